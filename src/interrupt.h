/* SPDX-License-Identifier: MIT */
/*
 * Whether a signal that came in the middle of a wait ends it: what the host of this thread says.
 * Said once, it holds for all that is left of the call: whoever asks how much time there is has
 * none, and nothing that is missed then is the server's fault.
 */
#ifndef RBK_INTERRUPT_H
#define RBK_INTERRUPT_H

#include <stdbool.h>

/* To be asked after a wait that a signal has cut short, holding no lock. */
bool rbk_interrupted(void);

/* False where nobody would be asked. */
bool rbk_interrupt_wanted(void);

/* A call of the host's begins and ends: what was said before holds no longer. */
void rbk_interrupt_begin(void);
void rbk_interrupt_end(void);

/* What was said, between these, without asking again. */
bool rbk_interrupt_is_over(void);

#endif
