/* SPDX-License-Identifier: MIT */
/*
 * Stores across fork: whatever other threads are in the middle of, a child's request is answered at
 * once and its table is whole; a memory: store is the child's own copy, a shm: store goes on being
 * shared. V06 and V07 of the cases.
 */
#include "audit.h"
#include "processes.h"
#include "stores.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define FORKS   (TEST_SANITIZED ? 40 : 400)

/* What threads do while others fork. */
struct hammer {
    struct redbucket_limiter *limiter;
    atomic_int stop;
    atomic_int errors;
    atomic_ullong requests;
    atomic_uint seeds;
};

static void count(struct hammer *hammer, enum redbucket_status status)
{
    if (status != REDBUCKET_OK && status != REDBUCKET_ERROR_FULL)
        atomic_fetch_add(&hammer->errors, 1);
    atomic_fetch_add(&hammer->requests, 1);
}

/* The hot key, and keys of all lengths of which some are in each other's way. */
static void *work(void *data)
{
    struct hammer *hammer = data;
    unsigned seed = atomic_fetch_add(&hammer->seeds, 1);
    char text[500];

    memset(text, 'x', sizeof text);
    while (!atomic_load(&hammer->stop)) {
        unsigned number = test_random(&seed, 3000);
        struct redbucket_key keys[] = {{"a", "k", 0, 0}, {"b", text, 8 + number % 480, 0}};
        struct redbucket_request request = {
            .keys = keys, .keys_len = 1 + test_random(&seed, 2), .cost = 1.0};

        (void)snprintf(text, sizeof text, "%07u", number);
        text[7] = 'x';
        if (test_random(&seed, 4) == 0)
            request.operation = REDBUCKET_RESET;
        count(hammer, redbucket_decide(hammer->limiter, &request, 1));
    }
    return NULL;
}

static struct redbucket_limiter *make_limiter(struct redbucket_store *store)
{
    struct redbucket_limiter *limiter =
        test_limiter(store, &(struct redbucket_limit){.rate = 1e6, .burst = 1e6});

    assert_int_equal(redbucket_limiter_add(limiter, "b",
                                           &(struct redbucket_limit){.rate = 10, .burst = 3}, NULL),
                     REDBUCKET_OK);
    return limiter;
}

struct child {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    bool own; /* the store is the child's alone */
};

/* SIGALRM ends a child that is still waiting after a second. */
static void ask_in_time(struct child *child, const char *limit, const char *key)
{
    struct redbucket_response response;

    (void)alarm((unsigned)TEST_PATIENCE);
    child_check(redbucket_request(child->limiter, &(struct redbucket_key){limit, key, 0, 0}, 1,
                                  &response) == REDBUCKET_OK);
    (void)alarm(0);
}

static void look_around(void *data)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct child *child = data;
    struct test_audit audit;

    ask_in_time(child, "a", "k");
    ask_in_time(child, "b", "a key of the child's, longer than a bucket holds by itself");
    (void)alarm((unsigned)TEST_PATIENCE);
    child_check(redbucket_store_statistics(child->store, &statistics) == REDBUCKET_OK);
    (void)alarm(0);
    child_check(statistics.buckets >= 2 && statistics.buckets <= statistics.capacity);
    if (!child->own)
        return;
    /* Nobody else changes this copy, so that it can be looked at as a whole. */
    const char *fault = test_audit(test_table_of(child->store), &audit);

    if (fault != NULL)
        (void)fprintf(stderr, "%s\n", fault);
    child_check(fault == NULL);
    child_check(audit.buckets == statistics.buckets);
    child_check(audit.free + audit.links + audit.buckets == statistics.capacity);
}

static void look_around_twice(void *data)
{
    struct child *child = data;

    look_around(child);
    pid_t grandchild = fork();

    if (grandchild == 0) {
        look_around(child);
        _exit(0);
    }
    child_check(grandchild > 0);
    look_around(child);
    int status = -1;

    child_check(waitpid(grandchild, &status, 0) == grandchild && status == 0);
}

static void fork_among_threads(const struct test_store *kind, const char *query, int forks)
{
    struct hammer hammer = {.stop = 0};
    pthread_t threads[THREADS];
    struct child child = {.own = !kind->shared};
    unsigned seed = 1;
    char url[128];

    test_store_url(kind, query, url, sizeof url);
    child.store = test_store_open(url);
    child.limiter = hammer.limiter = make_limiter(child.store);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &hammer), 0);
    for (int i = 0; i < forks; i++) {
        unsigned long long begun = atomic_load(&hammer.requests);

        while (atomic_load(&hammer.requests) < begun + test_random(&seed, 50))
            ;
        test_join(test_fork(i % 8 ? look_around : look_around_twice, &child));
    }
    atomic_store(&hammer.stop, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&hammer.errors), 0);
    redbucket_limiter_destroy(child.limiter);
    test_store_drop(url, child.store);
}

static void test_fork_among_threads_memory(void **state)
{
    (void)state;
    fork_among_threads(&test_stores[0], "?size=64k", FORKS);
    fork_among_threads(&test_stores[0], "?size=4m", FORKS / 4);
}

static void test_fork_among_threads_shm(void **state)
{
    (void)state;
    fork_among_threads(&test_stores[1], "?size=64k&timeout=30s", FORKS / 4);
}

static void test_fork_among_threads_growing(void **state)
{
    (void)state;
    fork_among_threads(&test_stores[0], "?grow=yes", FORKS / 4);
}

static bool accepted(struct redbucket_limiter *limiter)
{
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    child_check(redbucket_decide_at(limiter, &request, 1, 0.0) == REDBUCKET_OK);
    return request.response.accepted;
}

static void take_two_of_two(void *data)
{
    child_check(accepted(data));
    child_check(accepted(data));
    child_check(!accepted(data));
}

/* Three permits, one taken before the fork: the child's two and the parent's two are not the same.
 */
static void test_memory_is_copied(void **state)
{
    struct redbucket_store *store = test_store_open("memory:");
    struct redbucket_limiter *limiter =
        test_limiter(store, &(struct redbucket_limit){.rate = 1, .burst = 2});

    (void)state;
    assert_true(accepted(limiter));
    test_join(test_fork(take_two_of_two, limiter));
    test_join(test_fork(take_two_of_two, limiter));
    assert_true(accepted(limiter));
    assert_true(accepted(limiter));
    assert_false(accepted(limiter));
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

#define SHARERS 8
#define EACH    50

struct share {
    struct redbucket_limiter *limiter;
    atomic_int *accepted;
};

static void take_some(void *data)
{
    struct share *share = data;

    for (int i = 0; i < EACH; i++)
        atomic_fetch_add(share->accepted, accepted(share->limiter));
}

/* V06: the one before the fork, eight children's fifty and the parent's fifty share 100 permits. */
static void test_shm_is_shared(void **state)
{
    struct share share = {.accepted = test_share(sizeof *share.accepted)};
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_store *store;
    pid_t pids[SHARERS];
    char url[128];

    (void)state;
    test_store_url(&test_stores[1], "?timeout=30s", url, sizeof url);
    store = test_store_open(url);
    share.limiter = test_limiter(store, &(struct redbucket_limit){.rate = 0.001, .burst = 99});
    atomic_fetch_add(share.accepted, test_ask(share.limiter, "k", 1.0, 0.0).accepted);
    for (int i = 0; i < SHARERS; i++)
        pids[i] = test_fork(take_some, &share);
    take_some(&share);
    for (int i = 0; i < SHARERS; i++)
        test_join(pids[i]);
    assert_int_equal(redbucket_store_statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(*share.accepted, 100);
    assert_int_equal(statistics.accepted, 100);
    assert_int_equal(statistics.rejected, 351);
    redbucket_limiter_destroy(share.limiter);
    test_store_drop(url, store);
    test_unshare(share.accepted, sizeof *share.accepted);
}

/* A child may close what it has of a store, and the parent's goes on. */
static void close_mine(void *data)
{
    struct child *child = data;

    redbucket_limiter_destroy(child->limiter);
    redbucket_store_close(child->store);
}

static void test_child_closes_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++) {
        struct child child = {.own = true};
        char url[128];

        test_store_url(&test_stores[i], "", url, sizeof url);
        child.store = test_store_open(url);
        child.limiter = test_limiter(child.store, &(struct redbucket_limit){.rate = 1, .burst = 9});
        assert_true(accepted(child.limiter));
        test_join(test_fork(close_mine, &child));
        assert_int_equal(test_ask(child.limiter, "k", 1.0, 0.0).remaining, 8);
        redbucket_limiter_destroy(child.limiter);
        test_store_drop(url, child.store);
    }
}

/*
 * The linker has the library's calls of munmap end up here (--wrap): a growing store lets go of its
 * old table by one. A fork just then finds it between two tables.
 */
static struct child *growing;
static int forks_in_grow;

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);

int __wrap_munmap(void *at, size_t size)
{
    int result = __real_munmap(at, size);

    if (growing != NULL && size > 65536) {
        forks_in_grow++;
        test_join(test_fork(look_around, growing));
    }
    return result;
}

static void test_fork_while_it_grows(void **state)
{
    struct child child = {.store = test_store_open("memory:?grow=yes"), .own = true};
    char text[16];

    (void)state;
    child.limiter = make_limiter(child.store);
    growing = &child;
    for (unsigned i = 0; i < 100000; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        (void)test_ask(child.limiter, text, 1e6, 1e3);
    }
    growing = NULL;
    assert_true(forks_in_grow >= 3);
    redbucket_limiter_destroy(child.limiter);
    redbucket_store_close(child.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_among_threads_memory),
        cmocka_unit_test(test_fork_among_threads_shm),
        cmocka_unit_test(test_fork_among_threads_growing),
        cmocka_unit_test(test_fork_while_it_grows),
        cmocka_unit_test(test_memory_is_copied),
        cmocka_unit_test(test_shm_is_shared),
        cmocka_unit_test(test_child_closes_its_own),
    };

    return cmocka_run_group_tests_name("fork", tests, NULL, test_clean_up);
}
