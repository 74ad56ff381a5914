/* SPDX-License-Identifier: MIT */
/*
 * Not every system has localedef or the sources of every locale, and none has them all compiled; so
 * a locale is made where it can be, and the test is skipped where it can't.
 */
#include "locales.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct locale_case german = {.name = "de_DE", .point = ","};
struct locale_case pashto = {.name = "ps_AF", .point = "\xd9\xab"};

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

int enter_locale(void **state)
{
    struct locale_case *wanted = *state;
    char command[256];
    char name[32];

    snprintf(wanted->folder, sizeof(wanted->folder), "/tmp/redbucket-locale-XXXXXX");
    if (mkdtemp(wanted->folder) == NULL)
        return -1;
    snprintf(name, sizeof(name), "%s.UTF-8", wanted->name);
    snprintf(command, sizeof(command), "localedef -i %s -f UTF-8 %s/%s >/dev/null 2>&1",
             wanted->name, wanted->folder, name);
    /* Its status also tells of mere warnings; setlocale says whether it has become one. */
    if (system(command) == -1 || setenv("LOCPATH", wanted->folder, 1) != 0 ||
        setenv("LC_ALL", name, 1) != 0)
        return -1;
    setlocale(LC_ALL, name);
    return 0;
}

int leave_locale(void **state)
{
    struct locale_case *wanted = *state;

    setlocale(LC_ALL, "C");
    unsetenv("LC_ALL");
    unsetenv("LOCPATH");
    return nftw(wanted->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void need_locale(const struct locale_case *wanted)
{
    if (strcmp(localeconv()->decimal_point, wanted->point) != 0) {
        print_message("skipped: no localedef or no sources of %s on this system\n", wanted->name);
        skip();
    }
    assert_locale_in_force(wanted);
}

void assert_locale_in_force(const struct locale_case *wanted)
{
    char expected[32];
    char text[32];

    snprintf(expected, sizeof(expected), "0%s5", wanted->point);
    snprintf(text, sizeof(text), "%.1f", 0.5);
    assert_string_equal(text, expected);
}
