/* SPDX-License-Identifier: MIT */
/*
 * One line that is written over again and again. It is cleared with blanks, which every terminal
 * knows.
 */
#include "progress.h"

#include "printable.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER_S 1.0
#define EVERY_S       0.25

enum { COLUMNS = 72 };

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

/* "5 s", "2 min 5 s", "3 h 10 min"; rounded up, for what is left should not turn out more. */
static void format_left(double left_s, char out[RBK_NUMBER_SIZE])
{
    const unsigned long long s = left_s < 1e9 ? (unsigned long long)ceil(left_s) : 1000000000;

    if (s < 60)
        snprintf(out, RBK_NUMBER_SIZE, "%llu s", s);
    else if (s < 3600)
        snprintf(out, RBK_NUMBER_SIZE, "%llu min %llu s", s / 60, s % 60);
    else
        snprintf(out, RBK_NUMBER_SIZE, "%llu h %llu min", s / 3600, s % 3600 / 60);
}

void rbk_progress_text(const struct rbk_progress_done *done, char out[RBK_PROGRESS_SIZE])
{
    const bool known = done->bytes_all > 0 && done->bytes > 0 && done->bytes <= done->bytes_all;
    char lines[RBK_NUMBER_SIZE];
    char rate[RBK_NUMBER_SIZE];
    char left[RBK_NUMBER_SIZE];
    size_t used = 0;

    rbk_grouped(done->lines, lines);
    rbk_grouped((uint64_t)((double)done->lines / done->elapsed_s), rate);
    if (known)
        used = (size_t)snprintf(out, RBK_PROGRESS_SIZE, "%3u %%  ",
                                (unsigned)((double)done->bytes * 100 / (double)done->bytes_all));
    used +=
        (size_t)snprintf(out + used, RBK_PROGRESS_SIZE - used, "%s lines  %s lines/s", lines, rate);
    if (!known)
        return;
    format_left(done->elapsed_s * (double)(done->bytes_all - done->bytes) / (double)done->bytes,
                left);
    snprintf(out + used, RBK_PROGRESS_SIZE - used, "  %s left", left);
}

/* Whether it is time to show something new. */
static bool due(struct rbk_progress *progress, double *time_s)
{
    if (!progress->wanted)
        return false;
    *time_s = now();
    if (*time_s < progress->next_s)
        return false;
    progress->next_s = *time_s + EVERY_S;
    return true;
}

static void put(struct rbk_progress *progress, const char *text)
{
    progress->shown = true;
    fprintf(stderr, "\r%-*.*s", COLUMNS, COLUMNS, text);
    fflush(stderr);
}

void rbk_progress_show(struct rbk_progress *progress, uint64_t lines, uint64_t bytes_done)
{
    struct rbk_progress_done done = {
        .lines = lines, .bytes = bytes_done, .bytes_all = progress->bytes};
    char text[RBK_PROGRESS_SIZE];
    double time_s;

    if (!due(progress, &time_s))
        return;
    done.elapsed_s = time_s - progress->begin_s;
    rbk_progress_text(&done, text);
    put(progress, text);
}

void rbk_progress_say(struct rbk_progress *progress, const char *text)
{
    double time_s;

    if (due(progress, &time_s))
        put(progress, text);
}

void rbk_progress_clear(struct rbk_progress *progress)
{
    if (!progress->shown)
        return;
    fprintf(stderr, "\r%*s\r", COLUMNS, "");
    fflush(stderr);
    progress->shown = false;
}
