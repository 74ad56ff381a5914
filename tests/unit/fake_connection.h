/* SPDX-License-Identifier: MIT */
/*
 * Connections that reach nobody, in the place of connection.c and exchange.c of src/redis: a test
 * says how they fare and sees what was asked of them. Linked into a program, they keep the real
 * ones out of it.
 *
 * The clock is real, moved on by a test's hand, so that nothing sleeps.
 */
#ifndef TEST_FAKE_CONNECTION_H
#define TEST_FAKE_CONNECTION_H

#include "redis/connection.h"

#include <stdatomic.h>

#define FAKE_ANSWERS 8

/* What is said to a command instead of what a good server says. `text` of an error, or of INFO. */
struct fake_answer {
    const char *command;
    enum rbk_reply_type type;
    const char *text;
};

/*
 *   open_status    how opening fares
 *   open_takes     seconds that opening takes
 *   call_status    how calls fare
 *   failure        why calls fail, or NULL
 *   bad            idle connections are found to be bad
 *   opened...      how often that was done
 *   log            words of all commands sent, a space behind each
 *   moved          seconds that the clock was moved on
 *   waiting        threads that have begun to wait for a connection
 *   late           so many of those that are told of one are told too late
 */
struct fake_server {
    enum redbucket_status open_status;
    double open_takes;
    enum redbucket_status call_status;
    const char *failure;
    bool bad;
    struct fake_answer answers[FAKE_ANSWERS];
    atomic_uint opened;
    atomic_uint closed;
    atomic_uint rested; /* gave their replies up */
    atomic_uint abandoned;
    char log[256];
    double moved;
    atomic_int waiting;
    atomic_int late;
};

extern struct fake_server fake_server;

/* A good server, and nothing done yet. The clock stays where it is. */
void fake_server_reset(void);

/* Another answer to one command from now on. */
void fake_server_say(const char *command, enum rbk_reply_type type, const char *text);

#endif
