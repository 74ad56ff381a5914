/* SPDX-License-Identifier: MIT */
/*
 * A line of an access log in common or combined format, taken apart without a copy:
 *
 *   ADDRESS IDENT USER [TIME] "METHOD URI PROTOCOL" STATUS BYTES ["REFERRER" "AGENT"] ...
 *
 * What follows behind these is left alone, for servers are often set up to log more.
 */
#ifndef RBK_REPLAY_LOG_LINE_H
#define RBK_REPLAY_LOG_LINE_H

#include "redbucket/redbucket.h"

#include "span.h"

#include <stdbool.h>
#include <stdint.h>

/* The fields that a key may be made of. */
enum rbk_log_field {
    RBK_LOG_REMOTE_ADDR,
    RBK_LOG_REMOTE_USER,
    RBK_LOG_REQUEST_METHOD,
    RBK_LOG_URI,
    RBK_LOG_STATUS,
    RBK_LOG_HTTP_USER_AGENT,
    RBK_LOG_FIELDS,
};

/*
 * A line's fields point into it. A field that the line hasn't is empty.
 *
 *   combined  whether the line goes on with a referrer and a user agent
 */
struct rbk_log_line {
    int64_t time_s;
    bool combined;
    struct rbk_span fields[RBK_LOG_FIELDS];
};

/* ERROR_ARGUMENT, with what is missing as the message, when it is no line of an access log. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_log_parse(struct rbk_span line, struct rbk_log_line *parsed, struct redbucket_error *error);

#endif
