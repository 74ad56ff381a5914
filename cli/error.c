/* SPDX-License-Identifier: MIT */
/*
 * One way out for errors: "redbucket: WHERE: WHAT" on standard error, one line each, whatever
 * bytes an argument, a file or a key may hold, and the exit status that goes with them.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define LINE_SIZE 1024

/* A line stays a line, and a terminal is told nothing: bytes that don't print become '?'. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

int rbk_cli_fail(int exit_status, const char *where, const char *format, ...)
{
    char what[LINE_SIZE];
    char place[LINE_SIZE] = "";
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (where != NULL)
        snprintf(place, sizeof(place), "%s: ", where);
    make_printable(place);
    make_printable(what);
    fflush(stdout); /* so that what was said before stands before */
    fprintf(stderr, "redbucket: %s%s\n", place, what);
    return exit_status;
}

int rbk_cli_exit_of(enum redbucket_status status)
{
    switch (status) {
    case REDBUCKET_OK:
        return CLI_DONE;
    case REDBUCKET_ERROR_ARGUMENT:
    case REDBUCKET_ERROR_LIMIT:
    case REDBUCKET_ERROR_DUPLICATE:
    case REDBUCKET_ERROR_UNKNOWN_LIMIT:
    case REDBUCKET_ERROR_URL:
    case REDBUCKET_ERROR_KEY:
    case REDBUCKET_ERROR_MISMATCH:
        return CLI_USAGE;
    default:
        return CLI_STORE;
    }
}

int rbk_cli_fail_error(const char *where, const struct redbucket_error *error)
{
    return rbk_cli_fail(rbk_cli_exit_of(error->status), where, "%s", error->message);
}

int rbk_cli_fail_store(const char *where, struct redbucket_store *store,
                       enum redbucket_status status, const char *message)
{
    struct redbucket_error failure;

    redbucket_store_failure(store, &failure);
    if (failure.status != status || strcmp(failure.message, message) == 0)
        return rbk_cli_fail(rbk_cli_exit_of(status), where, "%s", message);
    return rbk_cli_fail(rbk_cli_exit_of(status), where, "%s: %s", message, failure.message);
}

int rbk_cli_flush(int exit_status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_status;
    return rbk_cli_fail(CLI_STORE, "standard output", "can't be written: %s", strerror(errno));
}
