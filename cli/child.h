/* SPDX-License-Identifier: MIT */
/*
 * Running a command in our place, as a shell would see it.
 */
#ifndef RBK_CLI_CHILD_H
#define RBK_CLI_CHILD_H

/* Runs argv (ended by NULL) and waits for its end. Returns the exit status that stands for it: its
 * own, 128 plus a signal, 126 or 127 with a message when it can't be run. */
int rbk_child_run(char **argv);

#endif
