/* SPDX-License-Identifier: MIT */
/*
 * A server that isn't one: it answers commands by rules that a test gives it, wrong ones on
 * purpose. For faults that no real server shows when asked to.
 *
 *     const struct test_rule rules[] = {
 *         {.command = "INFO", .answer = "-NOPERM no\r\n"},
 *         {.command = "EVALSHA", .answer = "$1073741824\r\n", .manner = TEST_FLOOD},
 *     };
 *     struct test_peer *peer = test_peer_start(false, rules, 2);
 */
#ifndef TEST_FAULT_PEER_H
#define TEST_FAULT_PEER_H

#include <stdbool.h>
#include <stddef.h>

/* How an answer is given. */
enum test_manner {
    TEST_WHOLE,    /* at once */
    TEST_BYTEWISE, /* a byte at a time, pause_us before each */
    TEST_CLOSE,    /* and then the connection is closed */
    TEST_RESET,    /* and then it is reset, as by a crash */
    TEST_SILENT,   /* and then nothing more, whatever is asked */
    TEST_FLOOD,    /* and then the letter x without an end */
};

/*
 * The first rule for a command that has times left says the answer; a command without one gets
 * "-ERR unknown command".
 *
 *   command     its first word, in capitals; NULL for any, also for bytes that are no command;
 *               "" for the moment a connection is accepted, before anything was asked
 *   answer      any bytes; NULL for none
 *   answer_len  how many; 0 when they end with a NUL
 *   pause_us    to wait before the answer, or before each of its bytes
 *   times       how often the rule holds, over all connections; 0 for always
 */
struct test_rule {
    const char *command;
    const char *answer;
    size_t answer_len;
    enum test_manner manner;
    unsigned pause_us;
    unsigned times;
};

struct test_peer;

/* On a free port, or on a Unix socket. The rules are copied, what they point to is borrowed until
 * it is stopped. NULL when it can't listen. */
struct test_peer *test_peer_start(bool by_port, const struct test_rule *rules, size_t rules_len);

/* NULL does nothing. */
void test_peer_stop(struct test_peer *peer);

/* Writes the URL of a store on it; `query` is "" or "timeout=50ms&db=1". */
void test_peer_url(const struct test_peer *peer, const char *query, char *url, size_t size);

/* The port, or 0 on a Unix socket; the socket's path, or "". */
int test_peer_port(const struct test_peer *peer);
const char *test_peer_path(const struct test_peer *peer);

/* How many connections it has accepted, and how many there are now. */
size_t test_peer_connections(struct test_peer *peer);
size_t test_peer_open(struct test_peer *peer);

/* How many commands of this name, or of any (NULL), have come. */
size_t test_peer_commands(struct test_peer *peer, const char *command);

/* Waits until that many have come; false after half a minute. */
bool test_peer_await(struct test_peer *peer, const char *command, size_t count);

/* An array in an array, `depth` deep, around a number: an answer to be freed. */
char *test_nesting(size_t depth);

#endif
