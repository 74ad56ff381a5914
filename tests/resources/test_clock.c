/* SPDX-License-Identifier: MIT */
/*
 * Clocks that can't be trusted, in the place of those that the library reads: they step forward and
 * back by hours, to 0 and to the end of time, tick backwards, differ between users of one store,
 * and fail. However that is, no more passes than the limit lets through up to the latest time that
 * any of them has shown, answers are numbers, and whoever waits for a server waits no longer.
 *
 * The system's own waits go by the system's own clock, which only goes forward.
 */
#include "everything.h"
#include "host.h"
#include "processes.h"
#include "shortage.h"
#include "stores.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOUR    3600.0
#define FOREVER 4611686018427387904.0 /* 2^62 */

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);

/* What the library is shown. */
static struct {
    bool on;
    bool fails;
    bool fixed;     /* it stands at `at` */
    double at;      /* or is ahead by so much, whatever clock is read */
    long back_ns;   /* each time it is read, it is so much behind the last time */
    bool monotonic; /* whether the clock of deadlines is shifted, too */
    struct timespec last;
    double latest; /* shown of the clock of the buckets */
} clocks;

static struct timespec timespec_of(double seconds)
{
    double whole = floor(seconds);

    return (struct timespec){(time_t)whole, (long)((seconds - whole) * 1e9)};
}

static void shift(clockid_t id, struct timespec *now)
{
    double seconds = (double)now->tv_sec + (double)now->tv_nsec * 1e-9;

    if (id == CLOCK_MONOTONIC && !clocks.monotonic)
        return;
    *now = timespec_of(clocks.fixed ? clocks.at : seconds + clocks.at);
    if (clocks.back_ns > 0) {
        clocks.last.tv_nsec -= clocks.back_ns;
        if (clocks.last.tv_nsec < 0) {
            clocks.last.tv_nsec += 1000000000;
            clocks.last.tv_sec--;
        }
        *now = clocks.last;
    }
    clocks.latest = fmax(clocks.latest, (double)now->tv_sec + (double)now->tv_nsec * 1e-9);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    if (clocks.on && clocks.fails) {
        errno = EINVAL;
        return -1;
    }
    int result = __real_clock_gettime(id, now);

    if (clocks.on && result == 0)
        shift(id, now);
    return result;
}

static void show(bool fixed, double at)
{
    clocks.on = true;
    clocks.fixed = fixed;
    clocks.at = at;
}

static int set_right(void **state)
{
    (void)state;
    memset(&clocks, 0, sizeof clocks);
    return 0;
}

static double real_now(void)
{
    struct timespec now;

    (void)__real_clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- Embedded stores ------------------------------------------------------------------------ */

#define RATE  0.01
#define BURST 4.0
#define DELAY 2.0

static void assert_sane(const struct redbucket_response *response)
{
    const double numbers[] = {response->delay, response->retry_after, response->reset_after};

    for (size_t i = 0; i < 3; i++)
        assert_true(isfinite(numbers[i]) && numbers[i] >= 0.0);
    assert_true(response->remaining >= 0 && response->remaining <= (int64_t)BURST + 1);
    assert_true(isfinite(response->time));
    assert_true(response->accepted || response->retry_after > 0.0);
}

/* Those that pass of so many. */
static unsigned ask(struct redbucket_limiter *limiter, const char *key, unsigned len)
{
    unsigned granted = 0;

    for (unsigned i = 0; i < len; i++) {
        struct redbucket_response response;

        assert_int_equal(
            redbucket_request(limiter, &(struct redbucket_key){"a", key, 0, 0}, 1, &response),
            REDBUCKET_OK);
        assert_sane(&response);
        granted += response.accepted;
    }
    return granted;
}

static struct redbucket_limiter *limit(struct redbucket_store *store)
{
    return test_limiter(store,
                        &(struct redbucket_limit){.rate = RATE, .burst = BURST, .delay = DELAY});
}

static const struct {
    bool fixed;
    double at;
} steps[] = {{false, 0}, {false, HOUR}, {false, -HOUR},  {true, 0},    {false, 2 * HOUR},
             {false, 0}, {true, 1e-9},  {false, 1e9},    {false, 0},   {true, FOREVER},
             {false, 0}, {true, 0},     {true, FOREVER}, {false, HOUR}};

static void steps_let_no_more_through(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < test_stores_len; kind++) {
        char url[256];

        test_store_url(&test_stores[kind], "?size=64k", url, sizeof url);
        struct redbucket_store *store = test_store_open(url);
        struct redbucket_limiter *limiter = limit(store);
        double first = real_now(), granted = 0;

        clocks.latest = first;
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            show(steps[i].fixed, steps[i].at);
            granted += ask(limiter, "k", 20);
            assert_true(granted <= BURST + 1 + DELAY + RATE * (clocks.latest - first) + 1e-3);
        }
        (void)set_right(NULL);
        redbucket_limiter_destroy(limiter);
        test_store_drop(url, store);
    }
}

/* A nanosecond back at each look, for a while that would otherwise let one through. */
static void a_clock_that_ticks_backwards_drains_nothing(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_limiter *limiter = limit(store);

    (void)state;
    show(false, 0);
    clocks.last = timespec_of(real_now());
    clocks.back_ns = 1;
    assert_int_equal(ask(limiter, "k", 20), (unsigned)(BURST + 1 + DELAY));
    assert_int_equal(ask(limiter, "k", 20000), 0);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

/* Two users of one store, an hour apart, in turns: the hour drains once. */
static void two_clocks_on_one_store_drain_once(void **state)
{
    char url[256];
    struct redbucket_store *stores[2];
    struct redbucket_limiter *limiters[2];
    double first = real_now(), granted = 0;

    (void)state;
    clocks.latest = first;
    test_store_url(&test_stores[1], "?size=64k", url, sizeof url);
    for (int i = 0; i < 2; i++) {
        stores[i] = test_store_open(url);
        limiters[i] = limit(stores[i]);
    }
    for (int i = 0; i < 200; i++) {
        show(false, i % 2 == 0 ? 0 : HOUR);
        granted += ask(limiters[i % 2], "k", 3);
        assert_true(granted <= BURST + 1 + DELAY + RATE * (clocks.latest - first) + 1e-3);
    }
    assert_true(granted > BURST + 1 + DELAY);
    (void)set_right(NULL);
    for (int i = 0; i < 2; i++) {
        redbucket_limiter_destroy(limiters[i]);
        redbucket_store_close(stores[i]);
    }
    test_store_remove(url);
}

static void a_clock_that_fails_drains_nothing(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < test_stores_len; kind++) {
        char url[256];

        test_store_url(&test_stores[kind], "?size=64k", url, sizeof url);
        struct redbucket_store *store = test_store_open(url);
        struct redbucket_limiter *limiter = limit(store);

        assert_int_equal(ask(limiter, "k", 20), (unsigned)(BURST + 1 + DELAY));
        clocks.on = clocks.fails = true;
        assert_int_equal(ask(limiter, "k", 100), 0);
        (void)set_right(NULL);
        redbucket_limiter_destroy(limiter);
        test_store_drop(url, store);
    }
}

/* ---- Servers -------------------------------------------------------------------------------- */

/* Who listens and never says a word. */
static int listen_silently(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, size, "redis://127.0.0.1:%d?timeout=300ms", ntohs(address.sin_port));
    return fd;
}

static void a_clock_that_fails_ends_waits(void **state)
{
    char url[128];
    int fd = listen_silently(url, sizeof url);
    struct test_host host;

    (void)state;
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 1);
    clocks.on = clocks.fails = true;
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_TIMEOUT);
    (void)set_right(NULL);
    test_host_close(&host);
    (void)close(fd);
}

/* Another time before each call; the clock of deadlines, which nobody can set, goes forward only.
 */
static void step_on(const char *call)
{
    static unsigned number;
    size_t i = number++ % (sizeof steps / sizeof steps[0]);

    (void)call;
    show(steps[i].fixed, steps[i].at);
}

static bool never(void)
{
    return false;
}

static bool nothing(enum redbucket_status status)
{
    (void)status;
    return false;
}

static void servers_are_asked_all_the_same(void **state)
{
    char key[32];

    (void)state;
    for (size_t i = 0; i < shortage_stores_len; i++) {
        const struct shortage_store *store = &shortage_stores[i];
        char url[512];

        if ((store->slow && !shortage_every()) || strncmp(store->name, "server", 6) != 0 ||
            !store->url(store->query, url, sizeof url))
            continue;
        (void)snprintf(key, sizeof key, "clock-%zu", i);
        struct everything all = {.url = url,
                                 .place = "a clock that steps",
                                 .key = key,
                                 .before = step_on,
                                 .after = never,
                                 .excused = nothing,
                                 .lenient = store->lenient};

        everything_do(&all);
        (void)set_right(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(steps_let_no_more_through, set_right),
        cmocka_unit_test_teardown(a_clock_that_ticks_backwards_drains_nothing, set_right),
        cmocka_unit_test_teardown(two_clocks_on_one_store_drain_once, set_right),
        cmocka_unit_test_teardown(a_clock_that_fails_drains_nothing, set_right),
        cmocka_unit_test_teardown(a_clock_that_fails_ends_waits, set_right),
        cmocka_unit_test_teardown(servers_are_asked_all_the_same, set_right),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, shortage_tear_down);
}
