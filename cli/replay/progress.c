/* SPDX-License-Identifier: MIT */
/*
 * One line that is written over again and again. It is cleared with blanks, which every terminal
 * knows.
 */
#include "progress.h"

#include "printable.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER_S 1.0
#define EVERY_S       0.25

enum { COLUMNS = 60 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void rbk_progress_begin(struct rbk_progress *progress, uint64_t bytes, bool prints)
{
    const bool wanted = isatty(STDERR_FILENO) == 1 && !(prints && isatty(STDOUT_FILENO) == 1);

    *progress = (struct rbk_progress){.wanted = wanted, .bytes = bytes};
    if (progress->wanted) {
        progress->begin_s = now();
        progress->next_s = progress->begin_s + FIRST_AFTER_S;
    }
}

void rbk_progress_show(struct rbk_progress *progress, uint64_t lines, uint64_t bytes_done)
{
    char text[160] = "";
    char count[RBK_NUMBER_SIZE];
    char rate[RBK_NUMBER_SIZE];
    double time_s;

    if (!progress->wanted)
        return;
    time_s = now();
    if (time_s < progress->next_s)
        return;
    progress->next_s = time_s + EVERY_S;
    progress->shown = true;
    rbk_grouped(lines, count);
    rbk_grouped((uint64_t)((double)lines / (time_s - progress->begin_s)), rate);
    if (progress->bytes > 0 && bytes_done <= progress->bytes)
        snprintf(text, sizeof(text), "%3u %%  ", (unsigned)(bytes_done * 100 / progress->bytes));
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s lines  %s lines/s", count, rate);
    fprintf(stderr, "\r%-*.*s", COLUMNS, COLUMNS, text);
    fflush(stderr);
}

void rbk_progress_clear(struct rbk_progress *progress)
{
    if (!progress->shown)
        return;
    fprintf(stderr, "\r%*s\r", COLUMNS, "");
    fflush(stderr);
    progress->shown = false;
}
