/* SPDX-License-Identifier: MIT */
/*
 * How far a long replay is, on a terminal: percent where the amount is known, lines a second. Never
 * where standard error is no terminal, nothing for a replay that is over within a second, and gone
 * when the replay ends.
 */
#ifndef RBK_REPLAY_PROGRESS_H
#define RBK_REPLAY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Times are by CLOCK_MONOTONIC. */
struct rbk_progress {
    bool wanted;
    bool shown;
    uint64_t bytes;
    double begin_s;
    double next_s;
};

/* `bytes`: of all files together, or 0 when that isn't known. `prints`: the replay prints as it
 * goes, so where that is on a terminal too, progress would be in its way. */
void rbk_progress_begin(struct rbk_progress *progress, uint64_t bytes, bool prints);

/* Call it now and then: it shows something new a few times a second. */
void rbk_progress_show(struct rbk_progress *progress, uint64_t lines, uint64_t bytes_done);

/* Clears the line, before something else is printed or at the end. */
void rbk_progress_clear(struct rbk_progress *progress);

#endif
