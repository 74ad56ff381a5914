/* SPDX-License-Identifier: MIT */
/*
 * Addresses of names: a look-up that answers, fails, or hangs for as long as a test likes.
 */
#include "caller.h"
#include "processes.h"
#include "redbucket/interrupt.h"
#include "redis/resolve.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

/* What the look-up of the test does. Shared with a child, so that it does it there too. */
static struct {
    atomic_int asked;    /* how many times */
    atomic_int answered; /* how many of them have ended */
    bool hangs;          /* until `go` */
    int failure;         /* EAI_..., or 0 */
    int number;          /* errno with it */
    int addresses;       /* that there are */
    sem_t go;
    char host[64];
    bool signals_blocked;
} world;

static int look_up(const char *host, const char *service, const struct addrinfo *hints,
                   struct addrinfo **found)
{
    struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo **end = found;
    sigset_t blocked;
    int failure = world.failure;
    int addresses = world.addresses;
    int number = world.number; /* when it has answered, the next test may begin */

    (void)hints;
    (void)atomic_fetch_add(&world.asked, 1);
    (void)snprintf(world.host, sizeof world.host, "%s:%s", host, service);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    world.signals_blocked =
        sigismember(&blocked, SIGALRM) == 1 && sigismember(&blocked, SIGTERM) == 1;
    if (world.hangs)
        (void)sem_wait(&world.go);
    for (int i = 0; failure == 0 && i < addresses; i++) {
        char text[32];

        (void)snprintf(text, sizeof text, "192.0.2.%d", i + 1);
        failure = getaddrinfo(text, service, &numeric, end);
        end = &(*end)->ai_next;
    }
    (void)atomic_fetch_add(&world.answered, 1);
    errno = number;
    return failure;
}

static struct rbk_resolver *make_resolver(const char *host)
{
    struct rbk_resolver *resolver = NULL;

    memset(&world, 0, sizeof world);
    world.addresses = 1;
    (void)sem_init(&world.go, 0, 0);
    assert_int_equal(rbk_resolver_create(look_up, host, 6380, &resolver, NULL), REDBUCKET_OK);
    return resolver;
}

struct found {
    struct rbk_addresses addresses;
    const char *reason;
};

static enum redbucket_status find(struct rbk_resolver *resolver, double seconds,
                                  struct found *found)
{
    struct rbk_deadline deadline;

    found->reason = NULL;
    rbk_deadline_start(&deadline, seconds);
    return rbk_resolve(resolver, &deadline, &found->addresses, &found->reason);
}

static void assert_address(const struct rbk_address *address, const char *expected)
{
    char host[64], service[16], text[96];

    assert_int_equal(getnameinfo((const struct sockaddr *)&address->bytes, address->len, host,
                                 sizeof host, service, sizeof service,
                                 NI_NUMERICHOST | NI_NUMERICSERV),
                     0);
    (void)snprintf(text, sizeof text, "%s %s", host, service);
    assert_string_equal(text, expected);
}

static void await_answers(int count)
{
    double until = test_now() + LONG_S;

    while (atomic_load(&world.answered) < count) {
        assert_true(test_now() < until);
        (void)sched_yield();
    }
}

static void numbers_are_not_looked_up(void **state)
{
    static const char *const numbers[][2] = {{"192.0.2.9", "192.0.2.9 6380"},
                                             {"2001:db8::1", "2001:db8::1 6380"},
                                             {"::ffff:192.0.2.1", "::ffff:192.0.2.1 6380"}};
    struct found found;

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct rbk_resolver *resolver = make_resolver(numbers[i][0]);

        assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
        assert_int_equal(found.addresses.len, 1);
        assert_address(&found.addresses.at[0], numbers[i][1]);
        assert_int_equal(atomic_load(&world.asked), 0);
        rbk_resolver_destroy(resolver);
    }
}

static void names_are_looked_up_each_time(void **state)
{
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;

    (void)state;
    for (int i = 1; i <= 3; i++) {
        world.addresses = i;
        assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
        assert_int_equal(found.addresses.len, i);
        assert_address(&found.addresses.at[0], "192.0.2.1 6380");
        assert_address(
            &found.addresses.at[i - 1],
            (const char *[]){"192.0.2.1 6380", "192.0.2.2 6380", "192.0.2.3 6380"}[i - 1]);
        assert_int_equal(atomic_load(&world.asked), i);
        assert_string_equal(world.host, "name.example:6380");
        assert_true(world.signals_blocked);
    }
    rbk_resolver_destroy(resolver);
}

static void more_addresses_than_there_is_room_for_are_left_out(void **state)
{
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;

    (void)state;
    world.addresses = RBK_ADDRESSES_MAX + 5;
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
    assert_int_equal(found.addresses.len, RBK_ADDRESSES_MAX);
    world.addresses = 0;
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_ERROR_UNAVAILABLE);
    rbk_resolver_destroy(resolver);
}

static void failures_have_their_statuses(void **state)
{
    static const struct {
        int failure, number;
        enum redbucket_status status;
    } failures[] = {
        {EAI_NONAME, 0, REDBUCKET_ERROR_UNAVAILABLE},
        {EAI_AGAIN, 0, REDBUCKET_ERROR_UNAVAILABLE},
        {EAI_FAIL, 0, REDBUCKET_ERROR_UNAVAILABLE},
        {EAI_MEMORY, 0, REDBUCKET_ERROR_MEMORY},
        {EAI_SYSTEM, EMFILE, REDBUCKET_ERROR_SYSTEM},
        {EAI_SYSTEM, ENOMEM, REDBUCKET_ERROR_MEMORY},
        {EAI_SYSTEM, EIO, REDBUCKET_ERROR_UNAVAILABLE},
        {EAI_NONAME, EMFILE, REDBUCKET_ERROR_SYSTEM},
        {EAI_AGAIN, ENFILE, REDBUCKET_ERROR_SYSTEM},
        {EAI_NONAME, ENOMEM, REDBUCKET_ERROR_MEMORY},
        {EAI_NONAME, ENOENT, REDBUCKET_ERROR_UNAVAILABLE},
    };
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        world.failure = failures[i].failure;
        world.number = failures[i].number;
        assert_int_equal(find(resolver, LONG_S, &found), failures[i].status);
        assert_true(strlen(found.reason) > 0);
    }
    world.failure = 0;
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
    rbk_resolver_destroy(resolver);
}

static void a_look_up_that_hangs_ends_at_the_deadline(void **state)
{
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;
    double begin = test_now();

    (void)state;
    world.hangs = true;
    assert_int_equal(find(resolver, SHORT_S, &found), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    assert_string_equal(found.reason, "the look-up of the name took too long");

    /* Whoever asks meanwhile waits for the same one, and gets its answer when it comes. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(resolver, 0.01, &found), REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(atomic_load(&world.asked), 1);
    (void)sem_post(&world.go);
    enum redbucket_status status = find(resolver, SHORT_S, &found);

    /* It may have come just before this asked, which then began a new one. */
    assert_true(status == REDBUCKET_OK || atomic_load(&world.asked) == 2);
    (void)sem_post(&world.go);
    await_answers(atomic_load(&world.asked));
    world.hangs = false;
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
    rbk_resolver_destroy(resolver);
}

static void *ask(void *resolver)
{
    struct found found;

    return (void *)(uintptr_t)find(resolver, LONG_S, &found);
}

static void many_threads_wait_for_one_look_up(void **state)
{
    struct rbk_resolver *resolver = make_resolver("name.example");
    pthread_t threads[8];
    struct found found;

    (void)state;
    world.hangs = true;
    assert_int_equal(find(resolver, 0.01, &found), REDBUCKET_ERROR_TIMEOUT);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, resolver), 0);
    /* One that comes too late for the first look-up begins another, or shares that. */
    for (int i = 0; i < 9; i++)
        (void)sem_post(&world.go);
    for (int i = 0; i < 8; i++) {
        void *status;

        assert_int_equal(pthread_join(threads[i], &status), 0);
        assert_int_equal((uintptr_t)status, REDBUCKET_OK);
    }
    assert_true(atomic_load(&world.asked) <= 9);
    rbk_resolver_destroy(resolver);
}

/* How many mappings are cleared in a child, as a resolver's is; -1 where the system doesn't tell.
 */
static int count_mappings(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    int count = file == NULL ? -1 : 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf") != NULL;
    if (file != NULL)
        (void)fclose(file);
    return count;
}

/* The sanitizers tell when it touches what is gone. */
static void a_late_look_up_outlives_its_owner(void **state)
{
    int before = count_mappings();
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;
    double until = test_now() + LONG_S;

    (void)state;
    assert_true(before == -1 || count_mappings() == before + 1);
    world.hangs = true;
    assert_int_equal(find(resolver, 0.01, &found), REDBUCKET_ERROR_TIMEOUT);
    rbk_resolver_destroy(resolver);
    assert_true(before == -1 || count_mappings() == before + 1);
    (void)sem_post(&world.go);
    await_answers(1);
    while (count_mappings() != before)
        assert_true(test_now() < until);
    rbk_resolver_destroy(NULL);
}

#if defined(__SANITIZE_THREAD__)
#define THREADS_AFTER_FORK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_AFTER_FORK 0
#endif
#endif
#ifndef THREADS_AFTER_FORK
#define THREADS_AFTER_FORK 1
#endif

static void find_in_child(void *data)
{
    struct found found;

    world.hangs = false;
    child_check(find(data, LONG_S, &found) == REDBUCKET_OK);
    child_check(found.addresses.len == 1);
    rbk_resolver_destroy(data);
}

/* The thread that looks up in the parent doesn't exist in the child. */
static void a_child_looks_up_for_itself(void **state)
{
    struct rbk_resolver *resolver;
    struct found found;

    (void)state;
    if (!THREADS_AFTER_FORK)
        skip();
    resolver = make_resolver("name.example");
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
    test_join(test_fork(find_in_child, resolver));
    world.hangs = true;
    assert_int_equal(find(resolver, 0.01, &found), REDBUCKET_ERROR_TIMEOUT);
    test_join(test_fork(find_in_child, resolver));
    (void)sem_post(&world.go);
    await_answers(2);
    world.hangs = false;
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_OK);
    rbk_resolver_destroy(resolver);
}

static void take_signal(int number)
{
    (void)number;
}

static bool has_had_enough(void *data)
{
    (void)data;
    return true;
}

static void a_host_may_leave_at_a_signal(void **state)
{
    const struct sigaction action = {.sa_handler = take_signal};
    const struct itimerval once = {.it_value.tv_usec = 50000};
    struct rbk_resolver *resolver = make_resolver("name.example");
    struct found found;
    double began = test_now();

    (void)state;
    world.hangs = true;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    redbucket_thread_interrupt(has_had_enough, NULL);
    assert_int_equal(setitimer(ITIMER_REAL, &once, NULL), 0);
    assert_int_equal(find(resolver, LONG_S, &found), REDBUCKET_ERROR_TIMEOUT);
    redbucket_thread_interrupt(NULL, NULL);
    assert_true(test_now() - began < LONG_S / 2);
    (void)sem_post(&world.go);
    await_answers(1);
    rbk_resolver_destroy(resolver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_not_looked_up),
        cmocka_unit_test(names_are_looked_up_each_time),
        cmocka_unit_test(more_addresses_than_there_is_room_for_are_left_out),
        cmocka_unit_test(failures_have_their_statuses),
        cmocka_unit_test(a_look_up_that_hangs_ends_at_the_deadline),
        cmocka_unit_test(many_threads_wait_for_one_look_up),
        cmocka_unit_test(a_late_look_up_outlives_its_owner),
        cmocka_unit_test(a_child_looks_up_for_itself),
        cmocka_unit_test(a_host_may_leave_at_a_signal),
    };

    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
