/* SPDX-License-Identifier: MIT */
/*
 * What is a limit and what is none, and a limiter's set of them. Every fault has one message, which
 * names the field, what was found and what is expected.
 */
#include "stores.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

struct limiter_test {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

static int set_up(void **state)
{
    static struct limiter_test test;

    test.store = test_store_open("memory:?size=64k");
    assert_int_equal(redbucket_limiter_create(test.store, &test.limiter, NULL), REDBUCKET_OK);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct limiter_test *test = *state;

    redbucket_limiter_destroy(test->limiter);
    redbucket_store_close(test->store);
    return 0;
}

static const struct redbucket_limit good = {.rate = 1};

static struct redbucket_limiter *limiter_of(void **state)
{
    return ((struct limiter_test *)*state)->limiter;
}

static void assert_refused(struct redbucket_limiter *limiter, const char *name,
                           const struct redbucket_limit *limit, enum redbucket_status status,
                           const char *message)
{
    struct redbucket_error error = {.position = 9};
    size_t count = redbucket_limiter_count(limiter);

    assert_int_equal(redbucket_limiter_add(limiter, name, limit, &error), status);
    assert_int_equal(error.status, status);
    assert_int_equal(error.position, -1);
    assert_string_equal(error.message, message);
    assert_int_equal(redbucket_limiter_add(limiter, name, limit, NULL), status);
    assert_int_equal(redbucket_limiter_count(limiter), count);
}

static void add(struct redbucket_limiter *limiter, const char *name, const char *zone)
{
    struct redbucket_limit limit = {.rate = 1, .zone = zone};

    assert_int_equal(redbucket_limiter_add(limiter, name, &limit, NULL), REDBUCKET_OK);
}

static enum redbucket_status ask(struct redbucket_limiter *limiter, const char *name,
                                 size_t name_len)
{
    struct redbucket_key key = {.limit = name, .key = "k", .limit_len = name_len};
    struct redbucket_response response;

    return redbucket_request(limiter, &key, 1, &response);
}

static void each_field_out_of_range_has_its_message(void **state)
{
    static const struct {
        struct redbucket_limit limit;
        const char *message;
    } bad[] = {
        {{.rate = 0}, "rate: 0 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = -0.0}, "rate: 0 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = -1}, "rate: -1 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = 1e-12}, "rate: 1e-12 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = 2e12},
         "rate: 2000000000000 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = NAN}, "rate: nan is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = INFINITY}, "rate: inf is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.rate = 1, .burst = -1}, "burst: -1 is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .burst = 1e18}, "burst: 1e+18 is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .burst = NAN}, "burst: nan is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .burst = INFINITY}, "burst: inf is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .delay = -1}, "delay: -1 is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .delay = 1e13},
         "delay: 10000000000000 is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .delay = NAN}, "delay: nan is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .burst = 5e11, .delay = 6e11},
         "burst + delay: 1100000000000 is out of range, expected 0 to 1e12 requests"},
        {{.rate = 1, .expiry = -5}, "expiry: -5 is out of range, expected 0 to 1e10 seconds"},
        {{.rate = 1, .expiry = NAN}, "expiry: nan is out of range, expected 0 to 1e10 seconds"},
        {{.rate = 1, .expiry = INFINITY},
         "expiry: inf is out of range, expected 0 to 1e10 seconds"},
        {{.rate = 1, .expiry = 2e10},
         "expiry: 20000000000 is out of range, expected 0 to 1e10 seconds"},
        {{.rate = 1, .lease = -1}, "lease: -1 is out of range, expected 0 to 1e12 permits"},
        {{.rate = 1, .lease = 2e12},
         "lease: 2000000000000 is out of range, expected 0 to 1e12 permits"},
        {{.rate = 1, .lease = NAN}, "lease: nan is out of range, expected 0 to 1e12 permits"},
        {{.rate = 1, .lease_time = -1},
         "lease_time: -1 is out of range, expected 0 to 3600 seconds"},
        {{.rate = 1, .lease_time = 3601},
         "lease_time: 3601 is out of range, expected 0 to 3600 seconds"},
        {{.rate = 1, .lease_time = NAN},
         "lease_time: nan is out of range, expected 0 to 3600 seconds"},
        /* The first fault, in the order of the fields. */
        {{.rate = 0, .burst = -1, .delay = -1, .expiry = -1},
         "rate: 0 is out of range, expected 1e-9 to 1e12 requests a second"},
        {{.size = 1, .rate = 1}, "limit: made for another version of the library"},
        {{.size = sizeof(struct redbucket_limit) + 8, .rate = 1},
         "limit: made for another version of the library"},
    };
    struct redbucket_error error;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_refused(limiter_of(state), "a", &bad[i].limit, REDBUCKET_ERROR_LIMIT,
                       bad[i].message);
        assert_int_equal(redbucket_limit_check(&bad[i].limit, &error), REDBUCKET_ERROR_LIMIT);
        assert_string_equal(error.message, bad[i].message);
    }
}

static void just_within_the_ranges_is_a_limit(void **state)
{
    static const struct redbucket_limit edges[] = {
        {.rate = 1e-9},
        {.rate = 1e12},
        {.rate = 1, .burst = 1e12},
        {.rate = 1, .delay = 1e12},
        {.rate = 1, .burst = 5e11, .delay = 5e11},
        {.rate = 1, .burst = -0.0, .delay = -0.0},
        {.rate = 1, .burst = 0.25, .delay = 5e-324},
        {.rate = 1, .expiry = 1e10, .lease = 1e12, .lease_time = 3600},
        {.size = sizeof(struct redbucket_limit), .rate = 1},
    };

    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "edge%zu", i);
        assert_int_equal(redbucket_limit_check(&edges[i], NULL), REDBUCKET_OK);
        assert_int_equal(redbucket_limiter_add(limiter_of(state), name, &edges[i], NULL),
                         REDBUCKET_OK);
    }
}

static void just_beyond_the_ranges_is_none(void **state)
{
    const struct redbucket_limit edges[] = {
        {.rate = nextafter(1e-9, 0)},
        {.rate = nextafter(1e12, INFINITY)},
        {.rate = 1, .burst = nextafter(1e12, INFINITY)},
        {.rate = 1, .burst = -5e-324},
        {.rate = 1, .delay = nextafter(1e12, INFINITY)},
        {.rate = 1, .delay = -5e-324},
        {.rate = 1, .burst = 5e11, .delay = 5e11 + 0.0002},
        {.rate = 1, .expiry = nextafter(1e10, INFINITY)},
        {.rate = 1, .expiry = -5e-324},
        {.rate = 1, .lease = nextafter(1e12, INFINITY)},
        {.rate = 1, .lease_time = nextafter(3600, INFINITY)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        assert_int_equal(redbucket_limit_check(&edges[i], NULL), REDBUCKET_ERROR_LIMIT);
}

/* Writes `len` times `byte`, with a NUL. */
static const char *repeat(char *text, char byte, size_t len)
{
    memset(text, byte, len);
    text[len] = '\0';
    return text;
}

static void a_name_has_1_to_255_bytes(void **state)
{
    char name[REDBUCKET_ZONE_MAX + 2];

    assert_refused(limiter_of(state), "", &good, REDBUCKET_ERROR_LIMIT,
                   "limit: expected a name of 1 to 255 bytes");
    assert_refused(limiter_of(state), repeat(name, 'n', REDBUCKET_ZONE_MAX + 1), &good,
                   REDBUCKET_ERROR_LIMIT, "limit: expected a name of 1 to 255 bytes");
    add(limiter_of(state), repeat(name, 'n', REDBUCKET_ZONE_MAX), NULL);
    assert_int_equal(ask(limiter_of(state), name, 0), REDBUCKET_OK);
}

static void a_zone_has_1_to_255_bytes(void **state)
{
    char zone[REDBUCKET_ZONE_MAX + 2];
    struct redbucket_limit limit = {.rate = 1, .zone = ""};

    assert_refused(limiter_of(state), "a", &limit, REDBUCKET_ERROR_LIMIT,
                   "limit a: expected a zone of 1 to 255 bytes");
    limit.zone = repeat(zone, 'z', REDBUCKET_ZONE_MAX + 1);
    assert_refused(limiter_of(state), "a", &limit, REDBUCKET_ERROR_LIMIT,
                   "limit a: expected a zone of 1 to 255 bytes");
    limit.zone_len = REDBUCKET_ZONE_MAX + 1;
    assert_refused(limiter_of(state), "a", &limit, REDBUCKET_ERROR_LIMIT,
                   "limit a: expected a zone of 1 to 255 bytes");
    limit.zone_len = REDBUCKET_ZONE_MAX;
    assert_int_equal(redbucket_limiter_add(limiter_of(state), "a", &limit, NULL), REDBUCKET_OK);
    assert_int_equal(ask(limiter_of(state), "a", 0), REDBUCKET_OK);
}

static void a_name_is_taken_once(void **state)
{
    struct redbucket_limit other = {.rate = 1, .zone = "elsewhere"};

    add(limiter_of(state), "a", NULL);
    assert_refused(limiter_of(state), "a", &other, REDBUCKET_ERROR_DUPLICATE,
                   "limit a: there is one already");
    assert_refused(limiter_of(state), "a", &good, REDBUCKET_ERROR_DUPLICATE,
                   "limit a: there is one already");
}

static void a_zone_has_one_limit(void **state)
{
    struct redbucket_limit zone = {.rate = 1, .zone = "z"};
    struct redbucket_limit named = {.rate = 1, .zone = "x"};

    add(limiter_of(state), "x", "z");
    assert_refused(limiter_of(state), "y", &zone, REDBUCKET_ERROR_DUPLICATE,
                   "limit y: its zone is the zone of limit x, and one zone has one limit");
    assert_refused(limiter_of(state), "z", &good, REDBUCKET_ERROR_DUPLICATE,
                   "limit z: its zone is the zone of limit x, and one zone has one limit");
    /* A limit's name is a zone only when nothing else was said. */
    assert_int_equal(redbucket_limiter_add(limiter_of(state), "y", &named, NULL), REDBUCKET_OK);
}

static void zones_are_bytes_with_a_length(void **state)
{
    struct redbucket_limit one = {.rate = 1, .zone = "z\0one", .zone_len = 5};
    struct redbucket_limit two = {.rate = 1, .zone = "z\0two", .zone_len = 5};
    struct redbucket_limit bare = {.rate = 1, .zone = "z\0", .zone_len = 2};
    struct redbucket_limit again = {.rate = 1, .zone = "z\0one and more", .zone_len = 5};

    assert_int_equal(redbucket_limiter_add(limiter_of(state), "one", &one, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter_of(state), "two", &two, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter_of(state), "bare", &bare, NULL), REDBUCKET_OK);
    add(limiter_of(state), "short", "z");
    assert_refused(limiter_of(state), "again", &again, REDBUCKET_ERROR_DUPLICATE,
                   "limit again: its zone is the zone of limit one, and one zone has one limit");
}

static void everything_is_copied(void **state)
{
    char name[] = "name", zone[] = "zone";
    struct redbucket_limit limit = {.rate = 2, .burst = 3, .zone = zone};
    const char *kept;

    assert_int_equal(redbucket_limiter_add(limiter_of(state), name, &limit, NULL), REDBUCKET_OK);
    memset(name, 'x', 4);
    memset(zone, 'x', 4);
    limit = (struct redbucket_limit){.rate = 9};
    assert_true(redbucket_limiter_get(limiter_of(state), 0, &kept, &limit));
    assert_string_equal(kept, "name");
    assert_memory_equal(limit.zone, "zone", 5);
    assert_same(limit.rate, 2.0);
    assert_int_equal(ask(limiter_of(state), "name", 0), REDBUCKET_OK);
}

static void limits_are_got_in_the_order_added(void **state)
{
    static const char *const names[] = {"m", "zz", "a", "b", "aa"};
    struct redbucket_limit limit = {.rate = 1,
                                    .burst = 2,
                                    .delay = 3,
                                    .expiry = 4,
                                    .lease = 5,
                                    .lease_time = 6,
                                    .zone = "elsewhere",
                                    .zone_len = 4};
    struct redbucket_limit got = {0};
    const char *name = "untouched";

    assert_int_equal(redbucket_limiter_count(limiter_of(state)), 0);
    assert_false(redbucket_limiter_get(limiter_of(state), 0, &name, &got));
    for (size_t i = 0; i < 5; i++) {
        add(limiter_of(state), names[i], NULL);
        assert_int_equal(redbucket_limiter_count(limiter_of(state)), i + 1);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_true(redbucket_limiter_get(limiter_of(state), i, &name, &got));
        assert_string_equal(name, names[i]);
        assert_int_equal(got.zone_len, strlen(names[i]));
        assert_memory_equal(got.zone, names[i], got.zone_len);
    }
    assert_int_equal(redbucket_limiter_add(limiter_of(state), "last", &limit, NULL), REDBUCKET_OK);
    assert_true(redbucket_limiter_get(limiter_of(state), 5, &name, &got));
    assert_int_equal(got.size, sizeof got);
    assert_int_equal(got.zone_len, 4);
    assert_memory_equal(got.zone, "else", 5);
    assert_same(got.burst + got.delay * 10 + got.expiry * 100, 432.0);
    assert_same(got.lease + got.lease_time * 10, 65.0);
    name = "untouched";
    assert_false(redbucket_limiter_get(limiter_of(state), 6, &name, &got));
    assert_false(redbucket_limiter_get(limiter_of(state), SIZE_MAX, &name, &got));
    assert_string_equal(name, "untouched");
}

/* Names of three lengths, so that the order by length and then bytes is put to the test; taken in
 * an order that is neither. */
static void any_of_many_limits_is_found_and_no_other(void **state)
{
    enum { LIMITS = 300, STEP = 77 };
    char name[16];

    for (unsigned i = 0; i < LIMITS; i++) {
        (void)snprintf(name, sizeof name, "n%u", i * STEP % LIMITS);
        add(limiter_of(state), name, NULL);
    }
    for (unsigned i = 0; i < LIMITS; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        size_t len = strlen(name);

        memcpy(name + len, "trail", sizeof "trail");
        assert_int_equal(ask(limiter_of(state), name, len), REDBUCKET_OK);
        assert_int_equal(ask(limiter_of(state), name, 0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    }
    assert_int_equal(ask(limiter_of(state), "n", 0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(ask(limiter_of(state), "n300", 0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(ask(limiter_of(state), "m0", 0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(ask(limiter_of(state), "", 0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(ask(limiter_of(state), "n1\0", 3), REDBUCKET_ERROR_UNKNOWN_LIMIT);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    redbucket_limiter_destroy(NULL);
    redbucket_store_close(NULL);
}

#define LIMITER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Zones "a" and "a:b" with the keys "b:c" and "c" would be one key of a server. Nobody is asked. */
static void zones_that_could_be_one_key_of_a_server_are_refused(void **state)
{
    static const char *const urls[] = {"redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1",
                                       "redis+sentinel://127.0.0.1:1/s",
                                       "redis://127.0.0.1:1?on_error=local"};
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        enum redbucket_status status = redbucket_store_open(urls[i], &store, NULL);

        if (status == REDBUCKET_ERROR_UNSUPPORTED)
            skip(); /* a build without stores on servers */
        assert_int_equal(status, REDBUCKET_OK);
        assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
        add(limiter, "x", "a");
        add(limiter, "z", "b");
        assert_int_equal(redbucket_limiter_add(limiter, "y",
                                               &(struct redbucket_limit){.rate = 1, .zone = "a:b"},
                                               NULL),
                         REDBUCKET_ERROR_DUPLICATE);
        assert_int_equal(redbucket_limiter_count(limiter), 2);
        redbucket_limiter_destroy(limiter);
        redbucket_store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIMITER_TEST(each_field_out_of_range_has_its_message),
        LIMITER_TEST(just_within_the_ranges_is_a_limit),
        LIMITER_TEST(just_beyond_the_ranges_is_none),
        LIMITER_TEST(a_name_has_1_to_255_bytes),
        LIMITER_TEST(a_zone_has_1_to_255_bytes),
        LIMITER_TEST(a_name_is_taken_once),
        LIMITER_TEST(a_zone_has_one_limit),
        LIMITER_TEST(zones_are_bytes_with_a_length),
        LIMITER_TEST(everything_is_copied),
        LIMITER_TEST(limits_are_got_in_the_order_added),
        LIMITER_TEST(any_of_many_limits_is_found_and_no_other),
        cmocka_unit_test(destroying_nothing_does_nothing),
        cmocka_unit_test(zones_that_could_be_one_key_of_a_server_are_refused),
    };

    return cmocka_run_group_tests_name("limiter", tests, NULL, NULL);
}
