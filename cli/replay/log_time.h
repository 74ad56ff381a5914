/* SPDX-License-Identifier: MIT */
/*
 * The time of an access log's line, "17/May/2015:10:05:03 +0000", always 26 bytes.
 *
 * Month names are English whatever the locale, the zone is applied, and a date that doesn't exist
 * is refused.
 */
#ifndef RBK_REPLAY_LOG_TIME_H
#define RBK_REPLAY_LOG_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define RBK_LOG_TIME_LEN 26

/* Seconds since the epoch. False, and nothing written, when the 26 bytes at `text` are no time. A
 * leap second, :60, is the second after :59. */
bool rbk_log_time_parse(const char *text, int64_t *time_s);

#endif
