/* SPDX-License-Identifier: MIT */
/*
 * Status codes and error texts. The one table in the public header makes code, name and text, so
 * that none can be forgotten.
 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c)  VERSION_TEXT_(a, b, c)

static const struct {
    const char *name;
    const char *text;
} statuses[] = {
#define STATUS_ROW(name, text) {"REDBUCKET_" #name, text},
    REDBUCKET_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static bool known(enum redbucket_status status)
{
    return (size_t)status < sizeof statuses / sizeof statuses[0];
}

const char *redbucket_status_name(enum redbucket_status status)
{
    return known(status) ? statuses[status].name : "unknown";
}

const char *redbucket_status_text(enum redbucket_status status)
{
    return known(status) ? statuses[status].text : "unknown status";
}

const char *redbucket_version(void)
{
    return VERSION_TEXT(REDBUCKET_VERSION_MAJOR, REDBUCKET_VERSION_MINOR, REDBUCKET_VERSION_PATCH);
}

static void set(struct redbucket_error *error, enum redbucket_status status, int position,
                const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

static void set(struct redbucket_error *error, enum redbucket_status status, int position,
                const char *format, va_list arguments)
{
    if (error == NULL)
        return;
    error->status = status;
    error->position = position;
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    /* Names from outside go into messages; a message stays one line, and tells a terminal nothing.
     */
    for (char *at = error->message; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    }
}

void rbk_error_set(struct redbucket_error *error, enum redbucket_status status, int position,
                   const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set(error, status, position, format, arguments);
    va_end(arguments);
}

enum redbucket_status rbk_fail(struct redbucket_error *error, enum redbucket_status status,
                               int position, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set(error, status, position, format, arguments);
    va_end(arguments);
    return status;
}

/* There are two functions of one name: glibc's answers with the text, others', as POSIX has it,
 * with a status, and the text is where they were told to write it. */
static const char *text_of_gnu(const char *answer, const char *text)
{
    (void)text;
    return answer;
}

static const char *text_of_posix(int answer, const char *text)
{
    (void)answer;
    return text;
}

const char *rbk_errno_text(int number, char *text, size_t size)
{
    text[0] = '\0';
    return _Generic(strerror_r(number, text, size), char *: text_of_gnu, int: text_of_posix)(
        strerror_r(number, text, size), text);
}

enum redbucket_status rbk_fail_system(struct redbucket_error *error, int number, const char *what)
{
    char text[96];
    enum redbucket_status status =
        number == ENOMEM ? REDBUCKET_ERROR_MEMORY : REDBUCKET_ERROR_SYSTEM;

    return rbk_fail(error, status, -1, "%s: %s", what, rbk_errno_text(number, text, sizeof text));
}
