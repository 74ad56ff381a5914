/* SPDX-License-Identifier: MIT */
/*
 * Whether a signal that came in the middle of a wait ends it: what the host of this thread says.
 */
#ifndef RBK_INTERRUPT_H
#define RBK_INTERRUPT_H

#include <stdbool.h>

/* To be asked after a wait that a signal has cut short, holding no lock. */
bool rbk_interrupted(void);

#endif
