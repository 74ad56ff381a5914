/* SPDX-License-Identifier: MIT */
/*
 * What a server really did, told by MONITOR: every command that came, and every one that a script
 * called, with its arguments as they were.
 */
#ifndef TEST_MONITOR_H
#define TEST_MONITOR_H

#include "server.h"

#define MONITOR_ARGUMENTS 32

struct monitored {
    bool by_script;
    size_t argc;
    char *argv[MONITOR_ARGUMENTS]; /* with a NUL behind each */
    size_t len[MONITOR_ARGUMENTS];
};

struct monitor;

/* From now on. */
struct monitor *monitor_start(struct test_server *server);

/* The next command that came, other than those of the test's own client. It lasts until the next
 * one. NULL when there is none more. */
const struct monitored *monitor_next(struct monitor *monitor);

void monitor_stop(struct monitor *monitor);

bool monitored_is(const struct monitored *command, const char *name);

/* Whether an argument is this text. */
bool monitored_has(const struct monitored *command, size_t index, const char *text);

#endif
