/* SPDX-License-Identifier: MIT */
/*
 * The forms in which a store can be asked from C. Each goes on asking until the worker's time is
 * over, and returns when nothing of it is under way.
 */
#ifndef TORTURE_FORMS_H
#define TORTURE_FORMS_H

#include "calls.h"

void ask_blocking(struct worker *worker);
void ask_arrays(struct worker *worker);
void ask_async(struct worker *worker);

/*
 * Python's threads, its arrays and its coroutines, in a process of its own: `script` is
 * tests/torture/faults.py, which tells by lines what it asks for and is answered. It begins to ask
 * with the first call, of all workers at once; and the second call, when the faults are over, has
 * it find out whether it can go on. Returns the seconds that this took, and writes what its
 * limiters have counted.
 */
struct python;
struct python *python_start(struct worker *workers, const char *url, double seconds, uint64_t seed);
void python_ask(struct python *python);
double python_back(struct python *python, uint64_t *leased, uint64_t *denied);

#endif
