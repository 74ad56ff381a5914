/* SPDX-License-Identifier: MIT */
/*
 * One event loop, as the tests of all of them see it. Each is a program of its own: loop_NAME.c
 * says what it is, test_loop.c has the tests.
 */
#ifndef LOOP_H
#define LOOP_H

#include "redbucket/async.h"

/*
 *   open    makes a loop
 *   attach  by the adapter
 *   tick    has a function called every millisecond from now on
 *   turn    waits for something and does it, once
 *   close   ends the loop; false when something of an adapter's was left in it
 */
struct loop {
    const char *name;
    void (*open)(void);
    enum redbucket_status (*attach)(struct redbucket_async *async);
    void (*tick)(void (*function)(void));
    void (*turn)(void);
    bool (*close)(void);
};

extern const struct loop loop;

#endif
