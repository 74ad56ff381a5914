/* SPDX-License-Identifier: MIT */
/*
 * Killing a process at any instruction.
 *
 * A child is stepped through a piece of work one instruction at a time. What a killed process
 * leaves behind is the memory that it shares and the list of locks that the kernel releases for it;
 * between two instructions that change neither, it makes no difference which of them was the last.
 * So the work is stepped through once, comparing all of that after every instruction, and then
 * killed for real after each one that changed something. Where the processor lets it, it runs there
 * at full speed, to a breakpoint, and takes but the repetitions of one instruction step by step;
 * elsewhere it is stepped again.
 */
#ifndef TEST_STEPPER_H
#define TEST_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More changes than any work of ours makes. */
#define TEST_STEPS_MAX 4096

struct test_work {
    void (*body)(void *data);
    void *data;
    const void *shared; /* all memory that the work shares with others */
    size_t shared_len;
};

/* A moment in the work: after so many instructions, before the one at `address` for the `turn`th
 * time. */
struct test_step {
    size_t instructions;
    uintptr_t address;
    size_t turn;
    size_t repeated; /* by itself, since that turn */
    uintptr_t left;  /* repetitions, where there was one */
};

/* All moments that differ from the one before, the first and the last among them. */
struct test_steps {
    struct test_step step[TEST_STEPS_MAX];
    size_t len;
};

/* False where a process can't be stepped: another processor, no permission, a sanitizer's code. */
bool test_can_step(void);

/* Steps through the work, which is done afterwards, and finds the instructions that matter. */
void test_step_through(const struct test_work *work, struct test_steps *steps);

/* Begins the work in a child and kills it at this moment. */
void test_kill_at(const struct test_work *work, const struct test_step *moment);

#endif
