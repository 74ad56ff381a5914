/* SPDX-License-Identifier: MIT */
/*
 * A terminal as a page that is drawn over and over, and given back as it was: at the end, at a
 * signal that ends the program, and while it is stopped.
 *
 * One at a time, for it is the process's own terminal and its signals. Plain ANSI sequences, which
 * every terminal of today knows.
 */
#ifndef RBK_CLI_TERMINAL_H
#define RBK_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* True when standard output is a terminal on which one can draw. */
bool rbk_terminal_here(void);

/* Takes the terminal, or gives it back. */
void rbk_terminal_open(void);
void rbk_terminal_close(void);

/* Its size; 80 by 24 when it doesn't say. */
void rbk_terminal_size(size_t *columns, size_t *rows);

enum cli_terminal_event {
    CLI_TERMINAL_TIME,   /* nothing came */
    CLI_TERMINAL_KEY,    /* a key was pressed */
    CLI_TERMINAL_REDRAW, /* another size, or it was away */
    CLI_TERMINAL_END,    /* a signal, or nobody is there any more */
};

/* Waits for at most so many seconds. */
enum cli_terminal_event rbk_terminal_wait(double seconds, char *key);

/* Draws a page of lines that end with newlines, none of them longer than there are columns. */
void rbk_terminal_draw(const char *page);

/* After rbk_terminal_close: ends the process by the signal that ended the view, if one did. */
void rbk_terminal_die(void);

#endif
