/* SPDX-License-Identifier: MIT */
/*
 * Filling in a caller's struct redbucket_error.
 *
 * Messages are one line, cut to fit, and hold no secret. A NULL error is fine everywhere.
 */
#ifndef RBK_ERROR_H
#define RBK_ERROR_H

#include "redbucket/redbucket.h"

/* Sets status, position (an offset in the text parsed, or -1) and message. */
void rbk_error_set(struct redbucket_error *error, enum redbucket_status status, int position,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same, and returns `status`, for `return rbk_fail(...)`. */
enum redbucket_status rbk_fail(struct redbucket_error *error, enum redbucket_status status,
                               int position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The system's text for an error's number, in `text` or elsewhere. Safe from any thread. */
const char *rbk_errno_text(int number, char *text, size_t size);

/* "WHAT: strerror(number)" with ERROR_SYSTEM, or ERROR_MEMORY for ENOMEM. */
enum redbucket_status rbk_fail_system(struct redbucket_error *error, int number, const char *what);

#endif
