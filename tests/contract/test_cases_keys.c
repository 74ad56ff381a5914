/* SPDX-License-Identifier: MIT */
/*
 * The cases about keys, stored states, limiters, threads and the host; tests/README.md says where
 * the others are.
 */
#include "cases.h"
#include "inside.h"
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One permit for each key, and no second one. */
static void each_has_its_own_permit(struct test_case *test, const struct redbucket_key *keys,
                                    size_t len)
{
    for (size_t i = 0; i < len; i++)
        accepts(test, 0, &keys[i], 1, 0);
    for (size_t i = 0; i < len; i++)
        rejects(test, 0, &keys[i], 1, 1);
}

static void N09_a_burst_has_more_than_32_bits(void **state)
{
    struct test_case *test = *state;

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 3e9});
    test_put_state(test->limiter, "a", "k", 50, 2999999999.0);
    accepts(test, 50, K, 0);
    accepts(test, 50, K, 0);
    rejects(test, 50, K, 1);
}

static void C08_a_zone_and_a_name_are_taken_once(void **state)
{
    struct test_case *test = *state;
    struct redbucket_limit zone = {.rate = 1, .zone = "z"};

    fails(test, 0, K, REDBUCKET_ERROR_UNKNOWN_LIMIT);
    add_limit(test, "x", zone);
    assert_int_equal(redbucket_limiter_add(test->limiter, "y", &zone, NULL),
                     REDBUCKET_ERROR_DUPLICATE);
    add_limit(test, "a", (struct redbucket_limit){.rate = 1});
    assert_int_equal(
        redbucket_limiter_add(test->limiter, "a", &(struct redbucket_limit){.rate = 1}, NULL),
        REDBUCKET_ERROR_DUPLICATE);
    fails(test, 0, KEYS({"a", "k"}, {"b", "k"}), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_false(state_of(test, "a", "k").exists);
    accepts(test, 0, NULL, 0, 0);
}

static void C10_a_changed_limit_keeps_the_buckets(void **state)
{
    struct test_case *test = *state;

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 9});
    accepts_so_many(test, 8, 0);
    redbucket_limiter_destroy(test->limiter);
    assert_int_equal(redbucket_limiter_create(test->store, &test->limiter, NULL), REDBUCKET_OK);
    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    rejects(test, 0, K, 6);
    rejects(test, 5.9, K, 0.09999999);
    accepts(test, 6.01, K, 0);
}

static void S03_a_state_of_NaN_admits_nobody(void **state)
{
    struct test_case *test = *state;
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request reset = {.operation = REDBUCKET_RESET, .keys = &key, .keys_len = 1};

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 2, .delay = 1});
    test_put_state(test->limiter, "a", "k", -NAN, -NAN);
    for (int i = 0; i < 5; i++)
        fails(test, 1700000000, K, REDBUCKET_ERROR_STATE);
    test_put_state(test->limiter, "a", "k", 1700000000, NAN);
    fails(test, 1700000000, K, REDBUCKET_ERROR_STATE);
    /* Other keys are served, and somebody who wants to can start anew. */
    accepts(test, 1700000000, KEYS({"a", "other"}), 0);
    assert_int_equal(redbucket_decide_at(test->limiter, &reset, 1, 1700000000), REDBUCKET_OK);
    accepts_so_many(test, 3, 1700000000);
    accepts(test, 1700000000, K, 1);
    rejects(test, 1700000000, K, 1);
}

static void S04_extreme_states_are_read_or_refused(void **state)
{
    struct test_case *test = *state;
    struct redbucket_key key = {.limit = "a", .key = "k2"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    test_put_state(test->limiter, "a", "k", 100, -50);
    accepts_so_many(test, 3, 100);
    rejects(test, 100, K, 1);
    test_put_state(test->limiter, "a", "k2", 100, 1e300);
    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, 100), REDBUCKET_OK);
    assert_false(request.response.accepted);
    assert_true(isfinite(request.response.retry_after) && request.response.retry_after > 9e299);
    assert_true(request.response.retry_after_us == UINT64_MAX - 1);
    test_put_state(test->limiter, "a", "k3", INFINITY, 1);
    fails(test, 100, KEYS({"a", "k3"}), REDBUCKET_ERROR_STATE);
    test_put_state(test->limiter, "a", "k4", -INFINITY, 1);
    fails(test, 100, KEYS({"a", "k4"}), REDBUCKET_ERROR_STATE);
    test_put_state(test->limiter, "a", "k5", 100, INFINITY);
    fails(test, 100, KEYS({"a", "k5"}), REDBUCKET_ERROR_STATE);
}

static void S06_a_timestamp_keeps_all_its_digits(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1000});
    accepts(*state, 1582534960.134661, K, 0);
    assert_same(state_of(*state, "a", "k").timestamp, 1582534960.134661);
    accepts(*state, 1582534960.135681, K, 0);
}

static void P10_L02_percent_signs_and_braces_are_bytes(void **state)
{
    static const struct redbucket_key keys[] = {
        {"a", "50%_off"},     {"a", "100%"},          {"a", "%s"},           {"a", "%n%n%n%n"},
        {"a", "%b"},          {"a", "a b"},           {"a", "a\r\nSET x 1"}, {"a", "fe80::1%eth0"},
        {"a", "foo{bar}zap"}, {"a", "foo{bar}{zap}"}, {"a", "{}x"},          {"a", "{b"},
        {"a", "}b{"},
    };

    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    each_has_its_own_permit(*state, keys, sizeof keys / sizeof keys[0]);
}

static void P11_keys_hold_any_bytes(void **state)
{
    static const struct redbucket_key keys[] = {
        {"a", "a\0b", 3, 0},           {"a", "a"}, {"a", "a\0c", 3, 0}, {"a", "\0", 1, 0},
        {"a", "\xff\xfe\x80\0", 4, 0},
    };

    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    each_has_its_own_permit(*state, keys, sizeof keys / sizeof keys[0]);
}

/* Impossible by construction: a bucket is named by a zone and a key, each with its length. */
static void K02_no_two_pairs_of_zone_and_key_are_one_bucket(void **state)
{
    struct test_case *test = *state;

    add_limit(test, "x", (struct redbucket_limit){.rate = 1, .zone = "a"});
    add_limit(test, "y", (struct redbucket_limit){.rate = 1, .burst = 4, .zone = "a:b"});
    accepts(test, 0, KEYS({"x", "b:c"}, {"y", "c"}), 0);
    assert_same(state_of(test, "x", "b:c").value, 1.0);
    assert_same(state_of(test, "y", "c").value, 1.0);
    rejects(test, 0, KEYS({"x", "b:c"}, {"y", "c"}), 1);
    accepts(test, 0, KEYS({"x", ":b:c"}, {"y", ":b:c"}), 0);
}

/* Writes `len` times `byte`, and `last` behind it. */
static struct redbucket_key long_key(char *text, char byte, size_t len, char last)
{
    memset(text, byte, len);
    text[len] = last;
    return (struct redbucket_key){"a", text, len + (last != '\0'), 0};
}

static void K03_long_keys_are_whole_or_refused(void **state)
{
    struct test_case *test = *state;
    char *text = malloc(1 << 21);

    assert_non_null(text);
    add_limit(test, "a", (struct redbucket_limit){.rate = 1});
    accepts(test, 0, KEYS(long_key(text, 'A', 300, '1')), 0);
    accepts(test, 0, KEYS(long_key(text, 'A', 300, '2')), 0);
    rejects(test, 0, KEYS(long_key(text, 'A', 300, '1')), 1);
    accepts(test, 0, KEYS(long_key(text, 'B', 65535, '\0')), 0);
    accepts(test, 0, KEYS(long_key(text, 'B', 65536, '\0')), 0);
    rejects(test, 0, KEYS(long_key(text, 'B', 65536, '\0')), 1);
    fails(test, 0, KEYS(long_key(text, 'C', 1 << 20, '\0')), REDBUCKET_ERROR_KEY);
    free(text);
}

/* Pairs that CRC-32, FNV-1a, FNV-1, djb2 and djb2 with xor can't tell apart. */
static void K04_keys_that_collide_elsewhere_are_apart(void **state)
{
    static const struct redbucket_key keys[] = {
        {"a", "plumless"},    {"a", "buckeroo"},   {"a", "codding"},    {"a", "gnu"},
        {"a", "exhibiters"},  {"a", "schlager"},   {"a", "costarring"}, {"a", "liquid"},
        {"a", "declinate"},   {"a", "macallums"},  {"a", "altarage"},   {"a", "zinke"},
        {"a", "creamwove"},   {"a", "quists"},     {"a", "hetairas"},   {"a", "mentioner"},
        {"a", "heliotropes"}, {"a", "neurospora"}, {"a", "playwright"}, {"a", "snush"},
    };

    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    each_has_its_own_permit(*state, keys, sizeof keys / sizeof keys[0]);
}

static void K05_the_empty_key_is_a_key(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    accepts(*state, 0, KEYS({"a", ""}), 0);
    rejects(*state, 0, KEYS({"a", ""}), 1);
    accepts(*state, 0, KEYS({"a", "x"}), 0);
}

/* Two stores in memory are two; a shm: store that is opened twice is one, which is its purpose. */
static void V09_stores_share_nothing_unless_asked_to(void **state)
{
    struct test_case *test = *state;
    struct redbucket_store *store = test_store_open(test->url);
    struct redbucket_limiter *limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1});

    add_limit(test, "a", (struct redbucket_limit){.rate = 1});
    accepts(test, 0, K, 0);
    assert_int_equal(test_ask(limiter, "k", 1, 0).accepted, !test->kind->shared);
    rejects(test, 0, K, 1);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

/* What threads and processes that ask at one instant share. */
struct crowd {
    struct redbucket_limiter *limiter;
    unsigned requests_each;
    atomic_uint accepted;
    atomic_uint rejected;
    atomic_uint turn;
};

/* One permit after another for the same key; counts what comes of it. */
static void ask_again_and_again(struct crowd *crowd, struct redbucket_limiter *limiter)
{
    struct redbucket_key key = {.limit = "a", .key = "k"};

    for (unsigned i = 0; i < crowd->requests_each; i++) {
        struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

        if (redbucket_decide_at(limiter, &request, 1, 0) != REDBUCKET_OK)
            continue;
        if (request.response.accepted)
            atomic_fetch_add(&crowd->accepted, 1);
        else
            atomic_fetch_add(&crowd->rejected, 1);
    }
}

static void *one_of_a_crowd(void *data)
{
    struct crowd *crowd = data;

    ask_again_and_again(crowd, crowd->limiter);
    return NULL;
}

static void run_threads(unsigned count, void *(*body)(void *), struct crowd *crowd)
{
    pthread_t threads[50];

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, crowd), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void W01_V05_many_threads_at_one_instant_get_burst_and_one(void **state)
{
    struct test_case *test = *state;
    struct crowd fifty = {.limiter = test->limiter, .requests_each = 20};

    add_limit(test, "a", (struct redbucket_limit){.rate = 0.001, .burst = 9});
    run_threads(50, one_of_a_crowd, &fifty);
    assert_int_equal(fifty.accepted, 10);
    assert_int_equal(fifty.rejected, 990);
}

struct crowd_of_processes {
    struct crowd crowd;
    char url[256];
};

/* In a child: opens the store by its name. */
static void process_of_a_crowd(void *data)
{
    struct crowd_of_processes *shared = data;
    struct redbucket_limit limit = {.rate = 0.001, .burst = 9};
    struct redbucket_limiter *limiter;
    struct redbucket_store *store;

    child_check(redbucket_store_open(shared->url, &store, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(limiter, "a", &limit, NULL) == REDBUCKET_OK);
    ask_again_and_again(&shared->crowd, limiter);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void W01_many_processes_at_one_instant_get_burst_and_one(void **state)
{
    struct test_case *test = *state;
    struct crowd_of_processes *shared;
    pid_t children[10];

    if (!test->kind->shared)
        return; /* impossible: each process has a store of its own */
    shared = test_share(sizeof *shared);
    shared->crowd.requests_each = 100;
    memcpy(shared->url, test->url, sizeof shared->url);
    for (size_t i = 0; i < 10; i++)
        children[i] = test_fork(process_of_a_crowd, shared);
    for (size_t i = 0; i < 10; i++)
        test_join(children[i]);
    assert_int_equal(shared->crowd.accepted, 10);
    assert_int_equal(shared->crowd.rejected, 990);
    test_unshare(shared, sizeof *shared);
}

/* Two requests for each of so many keys, no two of them the same in any two threads. */
static void *one_with_many_keys(void *data)
{
    struct crowd *crowd = data;
    unsigned turn = atomic_fetch_add(&crowd->turn, 1);
    char text[32];

    for (unsigned i = 0; i < crowd->requests_each; i++) {
        struct redbucket_key key = {.limit = "a", .key = text};
        struct redbucket_request twice[] = {{.keys = &key, .keys_len = 1, .cost = 1},
                                            {.keys = &key, .keys_len = 1, .cost = 1}};

        (void)snprintf(text, sizeof text, "%u of %u", i, turn);
        if (redbucket_decide_at(crowd->limiter, twice, 2, 0) != REDBUCKET_OK)
            continue;
        atomic_fetch_add(&crowd->accepted, twice[0].response.accepted);
        atomic_fetch_add(&crowd->rejected, !twice[1].response.accepted);
    }
    return NULL;
}

/* A growing store is exchanged under the threads' feet. */
static void W01_threads_with_keys_of_their_own_lose_nothing(void **state)
{
    struct test_case *test = *state;
    struct crowd four = {.limiter = test->limiter, .requests_each = 10000};

    add_limit(test, "a", (struct redbucket_limit){.rate = 0.001});
    run_threads(4, one_with_many_keys, &four);
    assert_int_equal(four.accepted, 4 * four.requests_each);
    assert_int_equal(four.rejected, 4 * four.requests_each);
}

struct host {
    void (*handlers[65])(int);
    char locale[128];
    mode_t umask;
    unsigned descriptors;
};

static unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count;
}

static void look_at_host(struct host *host)
{
    memset(host, 0, sizeof *host);
    for (int number = 1; number <= 64; number++) {
        struct sigaction action = {.sa_handler = SIG_DFL};

        (void)sigaction(number, NULL, &action);
        host->handlers[number] = action.sa_handler;
    }
    (void)snprintf(host->locale, sizeof host->locale, "%s", setlocale(LC_ALL, NULL));
    host->umask = umask(0);
    (void)umask(host->umask);
    host->descriptors = count_descriptors();
}

/* Some of everything, errors too. */
static void use_everything(struct test_case *test)
{
    struct redbucket_limit limit = {.rate = 1};
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_store *store = test_store_open(test->url), *none = NULL;
    struct redbucket_limiter *limiter = test_limiter(store, &limit);
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_response response;
    struct redbucket_state read;

    assert_int_not_equal(redbucket_store_open("shm:a/b", &none, NULL), REDBUCKET_OK);
    assert_int_not_equal(redbucket_store_open("memory:?size=1", &none, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_request(limiter, &key, 1, &response), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter, "a", &limit, NULL), REDBUCKET_ERROR_DUPLICATE);
    test_put_state(limiter, "a", "k", NAN, NAN);
    assert_int_equal(redbucket_request(limiter, &key, 1, &response), REDBUCKET_ERROR_STATE);
    assert_int_equal(redbucket_read(limiter, &key, &read), REDBUCKET_ERROR_STATE);
    assert_int_equal(redbucket_store_statistics(store, &statistics), REDBUCKET_OK);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void O02_the_host_is_left_as_it_was(void **state)
{
    int caught = memfd_create("output", MFD_CLOEXEC);
    int output = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
    struct host before, after;

    assert_true(caught >= 0 && output >= 0 && errors >= 0);
    (void)fflush(NULL);
    (void)dup2(caught, STDOUT_FILENO);
    (void)dup2(caught, STDERR_FILENO);
    look_at_host(&before);
    use_everything(*state);
    look_at_host(&after);
    (void)fflush(NULL);
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(errors, STDERR_FILENO);
    (void)close(output);
    (void)close(errors);
    assert_int_equal(lseek(caught, 0, SEEK_END), 0);
    (void)close(caught);
    assert_memory_equal(&before, &after, sizeof before);
}

int main(void)
{
    static const struct case_entry cases[] = {
        CASE(N09_a_burst_has_more_than_32_bits),
        CASE(C08_a_zone_and_a_name_are_taken_once),
        CASE(C10_a_changed_limit_keeps_the_buckets),
        CASE(S03_a_state_of_NaN_admits_nobody),
        CASE(S04_extreme_states_are_read_or_refused),
        CASE(S06_a_timestamp_keeps_all_its_digits),
        CASE(P10_L02_percent_signs_and_braces_are_bytes),
        CASE(P11_keys_hold_any_bytes),
        CASE(K02_no_two_pairs_of_zone_and_key_are_one_bucket),
        CASE(K03_long_keys_are_whole_or_refused),
        CASE(K04_keys_that_collide_elsewhere_are_apart),
        CASE(K05_the_empty_key_is_a_key),
        CASE(V09_stores_share_nothing_unless_asked_to),
        CASE(W01_V05_many_threads_at_one_instant_get_burst_and_one),
        CASE(W01_many_processes_at_one_instant_get_burst_and_one),
        CASE(W01_threads_with_keys_of_their_own_lose_nothing),
        CASE(O02_the_host_is_left_as_it_was),
    };

    return cases_run("cases_keys", "4m", cases, sizeof cases / sizeof cases[0]);
}
