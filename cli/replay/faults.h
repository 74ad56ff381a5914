/* SPDX-License-Identifier: MIT */
/*
 * Lines that can't be read never stop a replay: they are counted, and the first one in the order
 * read is kept to be shown.
 */
#ifndef RBK_REPLAY_FAULTS_H
#define RBK_REPLAY_FAULTS_H

#include "printable.h"
#include "span.h"
#include "step.h"

#include <stdint.h>

/* How much of the first such line is shown. */
#define RBK_FAULT_COLUMNS ((size_t)60)

/*
 * Begin with all zeros, and the names.
 *
 *   files   the names that places count, as given
 *   reason  why the first one can't be read, for people
 *   text    how that line begins, printable; empty when only its keys are still known
 */
struct rbk_faults {
    char *const *files;
    uint64_t count;
    struct rbk_place first;
    char reason[256];
    char text[RBK_PRINTABLE_SIZE];
};

void rbk_faults_add(struct rbk_faults *faults, struct rbk_place place, const char *reason,
                    struct rbk_span line);

/* The name of the file in which the first one is; "standard input" for "-". */
const char *rbk_faults_file(const struct rbk_faults *faults);

/* How a file's name is shown. */
const char *rbk_file_shown(const char *path);

#endif
