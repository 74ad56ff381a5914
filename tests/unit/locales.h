/* SPDX-License-Identifier: MIT */
/*
 * Locales whose decimal point isn't a dot, compiled for a test into a folder of its own.
 */
#ifndef RBK_TEST_LOCALES_H
#define RBK_TEST_LOCALES_H

/* `point` is what printf writes there. The folder is filled in by enter_locale. */
struct locale_case {
    const char *name;
    const char *point;
    char folder[64];
};

extern struct locale_case german; /* a comma */
extern struct locale_case pashto; /* two bytes long */

/* Set-up and teardown of cmocka, with a struct locale_case as the initial state. */
int enter_locale(void **state);
int leave_locale(void **state);

/* Fails when the locale isn't in force, skips the test when this system can't make it. */
void need_locale(const struct locale_case *wanted);

/* Fails when printf doesn't write the locale's decimal point. */
void assert_locale_in_force(const struct locale_case *wanted);

#endif
