/* SPDX-License-Identifier: MIT */
/*
 * How far a long replay is, on a terminal: percent and the time left where the amount is known,
 * lines a second. Never where standard error is no terminal, nothing for a replay that is over
 * within a second, and gone when the replay ends.
 */
#ifndef RBK_REPLAY_PROGRESS_H
#define RBK_REPLAY_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much was done: `bytes` of files of `bytes_all`, which is 0 when that isn't known. */
struct rbk_progress_done {
    uint64_t lines;
    uint64_t bytes;
    uint64_t bytes_all;
    double elapsed_s;
};

/* Enough for rbk_progress_text, which fits into 72 columns. */
#define RBK_PROGRESS_SIZE ((size_t)160)

/* "43 %  4,300,000 lines  1,234,567 lines/s  5 s left". */
void rbk_progress_text(const struct rbk_progress_done *done, char out[RBK_PROGRESS_SIZE]);

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

/* The same for a text of another kind, of at most 72 columns. */
void rbk_progress_say(struct rbk_progress *progress, const char *text);

/* Clears the line, before something else is printed or at the end. */
void rbk_progress_clear(struct rbk_progress *progress);

#endif
