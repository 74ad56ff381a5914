/* SPDX-License-Identifier: MIT */
/*
 * The N-th allocation of a transport, a connection and a call fails, for every N: a clean status,
 * nothing left behind, and the next attempt goes well.
 *
 * The linker has every call of the library, hiredis included where it is part of it, end up here
 * (--wrap). Only what the test's own thread allocates counts.
 */
#include "caller.h"
#include "processes.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

static _Thread_local struct {
    bool on;
    unsigned long made; /* calls so far */
    unsigned long fail; /* which of them fails, 0 for none */
    long blocks;        /* allocated and not freed */
} memory;

static bool fails(void)
{
    if (!memory.on || ++memory.made != memory.fail)
        return false;
    errno = ENOMEM;
    return true;
}

static void *block(void *made)
{
    memory.blocks += memory.on && made != NULL;
    return made;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : block(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : block(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    void *made = fails() ? NULL : __real_realloc(old, size);

    return old == NULL ? block(made) : made;
}

void __wrap_free(void *old)
{
    memory.blocks -= memory.on && old != NULL;
    __real_free(old);
}

/* A long array in an array, and a text that needs memory of its own. */
static void answer(int fd, void *data)
{
    static const char head[] = "*2\r\n*2\r\n+a\r\n:1\r\n$20000\r\n";
    static char text[20000];
    char heard[64];

    (void)data;
    memset(text, 'z', sizeof text);
    while (test_actor_read(fd, heard, 14)) {
        (void)test_actor_write(fd, head, sizeof head - 1);
        (void)test_actor_write(fd, text, sizeof text);
        (void)test_actor_write(fd, "\r\n", 2);
    }
}

static enum redbucket_status use(struct test_caller *caller)
{
    enum redbucket_status status =
        rbk_transport_create(&caller->options.hosts[0], NULL, &caller->transport, &caller->error);

    if (status == REDBUCKET_OK)
        status = test_caller_open(caller, LONG_S);
    for (int i = 0; i < 2 && status == REDBUCKET_OK; i++) {
        status = test_caller_say(caller, "PING", 1, LONG_S);
        assert_true(status != REDBUCKET_OK || caller->replies[0].elements[1].len == 20000);
    }
    test_caller_fini(caller);
    caller->connection = NULL;
    caller->transport = NULL;
    return status;
}

static void any_allocation_may_fail(void **state)
{
    struct test_actor peer;
    struct test_caller caller;
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;
    unsigned long number;

    (void)state;
    test_actor_start(&peer, answer, NULL);
    test_caller_of(&caller, &peer);
    test_caller_fini(&caller);
    caller.transport = NULL;
    assert_int_equal(use(&caller), REDBUCKET_OK);
    for (number = 1; status != REDBUCKET_OK; number++) {
        memory.on = true;
        memory.made = 0;
        memory.fail = number;
        memory.blocks = 0;
        status = use(&caller);
        memory.on = false;
        assert_true(status == REDBUCKET_OK || status == REDBUCKET_ERROR_MEMORY);
        assert_int_equal(memory.blocks, 0);
        assert_int_equal(use(&caller), REDBUCKET_OK);
    }
    assert_true(number > 8); /* it did fail now and then */
    test_actor_stop(&peer);
}

/* A long reply is in blocks of its own, which go when the connection rests, and not when it is used
 * again. */
static void a_connection_at_rest_keeps_no_reply(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, answer, NULL);
    test_caller_of(&caller, &peer);
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    memory.blocks = 0;
    memory.fail = 0;
    memory.on = true;
    rbk_connection_rest(caller.connection);
    memory.on = false;
    assert_true(memory.blocks < 0);
    assert_true(rbk_connection_good(caller.connection));
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    assert_int_equal(caller.replies[0].elements[1].len, 20000);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

#define PEERS 5
#define EACH  13

/* So many calls at once need memory before any of them begins; nobody accepts these. */
static void many_calls_may_find_no_memory(void **state)
{
    struct rbk_argument argument = {"PING", 4};
    struct rbk_command command = {&argument, 1};
    struct rbk_reply replies[PEERS * EACH];
    struct rbk_exchange exchanges[PEERS * EACH];
    struct test_actor peers[PEERS];
    struct test_caller callers[PEERS];
    struct rbk_deadline deadline;

    (void)state;
    for (size_t i = 0; i < PEERS; i++) {
        test_actor_start(&peers[i], NULL, NULL);
        test_caller_of(&callers[i], &peers[i]);
        for (size_t at = i * EACH; at < (i + 1) * EACH; at++) {
            assert_int_equal(test_caller_open(&callers[i], LONG_S), REDBUCKET_OK);
            exchanges[at] = (struct rbk_exchange){callers[i].connection, &command, 1, &replies[at],
                                                  REDBUCKET_OK};
        }
        callers[i].connection = NULL;
    }
    rbk_deadline_start(&deadline, LONG_S);
    memory.on = true;
    memory.made = 0;
    memory.fail = 1;
    rbk_connections_call(exchanges, PEERS * EACH, &deadline);
    memory.on = false;
    assert_int_equal(memory.made, 1);
    for (size_t at = 0; at < PEERS * EACH; at++) {
        assert_int_equal(exchanges[at].status, REDBUCKET_ERROR_MEMORY);
        assert_string_equal(rbk_connection_failure(exchanges[at].connection), "out of memory");
        assert_false(rbk_connection_good(exchanges[at].connection));
        rbk_connection_close(exchanges[at].connection);
    }
    for (size_t i = 0; i < PEERS; i++) {
        test_caller_fini(&callers[i]);
        test_actor_stop(&peers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(a_connection_at_rest_keeps_no_reply),
        cmocka_unit_test(many_calls_may_find_no_memory),
    };

    return cmocka_run_group_tests_name("connection memory", tests, NULL, NULL);
}
