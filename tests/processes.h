/* SPDX-License-Identifier: MIT */
/*
 * Tests with more than one process: starting them, what they share, and waiting for their end,
 * never for ever.
 *
 * A child must not fail a test by cmocka's assertions, which would jump into the parent's list of
 * tests. It uses child_check, which says what was wrong and ends the child; the parent's test_join
 * then fails the test.
 */
#ifndef TEST_PROCESSES_H
#define TEST_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* How much more time things may take than on an idle machine without sanitizers. */
#define TEST_PATIENCE (TEST_SANITIZED ? 10.0 : 1.0)

#define child_check(condition) \
    ((condition) ? (void)0 : test_child_failed(__FILE__, __LINE__, #condition))

_Noreturn void test_child_failed(const char *file, int line, const char *condition);

/* Seconds by a clock that only goes forward. */
double test_now(void);

void test_pause(double seconds);

/* Zeroed memory that children share. Unmapped by test_unshare. */
void *test_share(size_t size);
void test_unshare(void *memory, size_t size);

/* The same in a file that a program started by test_spawn can map again by its descriptor. */
void *test_share_fd(size_t size, int *fd);
void *test_share_again(size_t size, int fd);

/* Runs `body` in a child, which then ends with status 0. It dies with its parent. */
pid_t test_fork(void (*body)(void *data), void *data);

/* Starts this very program anew; argv[0] is the program's name, the last is NULL. */
pid_t test_spawn(char *const argv[]);

/* Waits for a child's end, and fails the test unless it ended well and within a minute. */
void test_join(pid_t pid);

/* Waits until a child is stopped. */
void test_join_stop(pid_t pid);

/* Kills a child and waits for its end. */
void test_kill(pid_t pid);

/* Spins, yielding, until *flag isn't 0; false after a minute. */
bool test_await(const volatile int *flag);

/* Removes what this process's tests left in shared memory, for the end of a group of tests. */
int test_clean_up(void **state);

/* Microseconds, or whatever else one wants at random: below `bound`, by a generator of the caller's
 * own, seeded with anything. */
unsigned test_random(unsigned *seed, unsigned bound);

#endif
