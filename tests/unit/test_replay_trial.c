/* SPDX-License-Identifier: MIT */
/*
 * What suggestions rest on: requests come back from a spool as they went in, from memory and from
 * the file, and trials touch exactly those that the library does.
 */
#include "../../cli/replay/trial.h"
#include "../test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 20000, KEYS = 3000 };

/* Bursts of a few keys among many that come once, over some hours. */
static void fill(struct rbk_spool *spool)
{
    struct redbucket_error error;
    unsigned seed = 11;
    double now = 1.7e9;

    for (int i = 0; i < REQUESTS; i++) {
        const unsigned roll = (unsigned)rand_r(&seed) % 100;
        const unsigned key = roll < 40 ? roll % 4 : (unsigned)rand_r(&seed) % KEYS;
        const uint64_t hashes[2] = {key + 1, roll < 50 ? 7 : 0};

        now += roll < 90 ? 0 : (double)(rand_r(&seed) % 8);
        assert_int_equal(rbk_spool_add(spool, now, 1 + (double)(roll == 99), hashes, &error),
                         REDBUCKET_OK);
    }
}

static void requests_come_back_as_they_went_in(void **state)
{
    static const size_t sizes[] = {RBK_SPOOL_BYTES, 5000, 1};
    struct rbk_spool *expected = rbk_spool_create(2, RBK_SPOOL_BYTES);

    (void)state;
    assert_non_null(expected);
    fill(expected);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct rbk_spool *spool = rbk_spool_create(2, sizes[i]);

        assert_non_null(spool);
        fill(spool);
        assert_int_equal(rbk_spool_len(spool), REQUESTS);
        for (int round = 0; round < 2; round++) {
            const struct rbk_spool_record *record;
            size_t len = 0;

            rbk_spool_rewind(expected);
            rbk_spool_rewind(spool);
            while ((record = rbk_spool_next(spool))) {
                assert_memory_equal(record, rbk_spool_next(expected),
                                    sizeof(*record) + 2 * sizeof(uint64_t));
                len++;
            }
            assert_int_equal(len, REQUESTS);
            assert_int_equal(rbk_spool_failed(spool), 0);
        }
        rbk_spool_destroy(spool);
    }
    rbk_spool_destroy(expected);
    rbk_spool_destroy(NULL);
}

static void a_file_that_cannot_be_made_is_told(void **state)
{
    struct rbk_spool *spool = rbk_spool_create(1, 1);
    const uint64_t hash = 1;
    struct redbucket_error error;

    (void)state;
    assert_non_null(spool);
    assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
    assert_int_equal(rbk_spool_add(spool, 1, 1, &hash, &error), REDBUCKET_OK);
    assert_int_equal(rbk_spool_add(spool, 2, 1, &hash, &error), REDBUCKET_ERROR_SYSTEM);
    assert_string_equal(error.message, "temporary file: No such file or directory");
    assert_int_equal(unsetenv("TMPDIR"), 0);
    rbk_spool_destroy(spool);
}

/* How many requests the library touches. */
static uint64_t touched(struct rbk_spool *spool, size_t limit, const struct rbk_trial *trial)
{
    const struct redbucket_limit setting = {.rate = trial->rate, .burst = trial->burst};
    const struct rbk_spool_record *record;
    struct redbucket_limiter *limiter;
    struct redbucket_store *store;
    uint64_t count = 0;

    assert_int_equal(redbucket_store_open("memory:?grow=yes", &store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter, "a", &setting, NULL), REDBUCKET_OK);
    rbk_spool_rewind(spool);
    while ((record = rbk_spool_next(spool))) {
        const struct redbucket_key key = {
            .limit = "a", .key = (const char *)&record->hashes[limit], .key_len = 8};
        struct redbucket_request request = {
            .operation = REDBUCKET_REQUEST, .keys = &key, .keys_len = 1, .cost = record->cost};

        if (record->hashes[limit] == 0)
            continue;
        assert_int_equal(redbucket_decide_at(limiter, &request, 1, record->time_s), REDBUCKET_OK);
        count += !request.response.accepted;
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return count;
}

static void trials_touch_what_the_library_touches(void **state)
{
    static const double rates[] = {1.0 / 86400, 1.0 / 600, 0.1, 1.0 / 3, 1, 7, 1000};
    static const double bursts[] = {0, 1, 2.5, 10, 300};
    enum { RATES = sizeof(rates) / sizeof(rates[0]), BURSTS = sizeof(bursts) / sizeof(bursts[0]) };
    struct rbk_spool *spool = rbk_spool_create(2, 5000);
    struct rbk_trial trials[RATES * BURSTS];

    (void)state;
    assert_non_null(spool);
    fill(spool);
    for (size_t limit = 0; limit < 2; limit++) {
        for (size_t i = 0; i < RATES * BURSTS; i++)
            trials[i] = (struct rbk_trial){.rate = rates[i / BURSTS], .burst = bursts[i % BURSTS]};
        assert_int_equal(rbk_trials_run(spool, limit, trials, RATES * BURSTS), REDBUCKET_OK);
        for (size_t i = 0; i < RATES * BURSTS; i++)
            assert_int_equal(trials[i].touched, touched(spool, limit, &trials[i]));
    }
    rbk_spool_destroy(spool);
}

/* The highest level under an endless burst tells a burst that touches nobody, and no smaller one.
 */
static void the_highest_level_is_what_a_burst_must_hold(void **state)
{
    struct rbk_spool *spool = rbk_spool_create(2, RBK_SPOOL_BYTES);
    struct rbk_trial trials[2] = {{.rate = 0.25, .burst = INFINITY}};
    double burst;

    (void)state;
    assert_non_null(spool);
    fill(spool);
    assert_int_equal(rbk_trials_run(spool, 0, trials, 1), REDBUCKET_OK);
    assert_int_equal(trials[0].touched, 0);
    burst = ceil(trials[0].highest - 1);
    trials[0] = (struct rbk_trial){.rate = 0.25, .burst = burst};
    trials[1] = (struct rbk_trial){.rate = 0.25, .burst = burst - 1};
    assert_int_equal(rbk_trials_run(spool, 0, trials, 2), REDBUCKET_OK);
    assert_int_equal(trials[0].touched, 0);
    assert_true(trials[1].touched > 0);
    rbk_spool_destroy(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back_as_they_went_in),
        cmocka_unit_test(a_file_that_cannot_be_made_is_told),
        cmocka_unit_test(trials_touch_what_the_library_touches),
        cmocka_unit_test(the_highest_level_is_what_a_burst_must_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
