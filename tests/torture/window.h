/* SPDX-License-Identifier: MIT */
/*
 * A counter of its own for the bound: what was granted, seen from outside, and the window that
 * comes closest. It has nothing of the library's code or of its time.
 *
 * Whoever is granted something knows that it was taken between his asking and his answer. So a
 * window has in it whatever was asked for and answered within, and perhaps more: what is counted
 * here can't be too much.
 */
#ifndef TORTURE_WINDOW_H
#define TORTURE_WINDOW_H

#include <stddef.h>

/* Seconds by one clock. */
struct grant {
    double begin;
    double end;
    double cost;
};

/* The window with the largest cost - rate * length: how much that is, and where it stands. */
struct fullest {
    double excess;
    double begin;
    double length;
    double cost;
};

/* Sorts the grants. All 0 when there are none. */
void window_fullest(struct grant *grants, size_t len, double rate, struct fullest *fullest);

#endif
