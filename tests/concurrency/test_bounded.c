/* SPDX-License-Identifier: MIT */
/*
 * What strangers can do to a store of fixed size by sending keys: not make it grow, not free a key
 * that is being kept out, not spoil it for ever. And what a growing one does instead. G01, G02 and
 * G04 of the cases.
 */
#include "audit.h"
#include "processes.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VISITORS (TEST_SANITIZED ? 100000u : 1000000u)

#define CLOSED (VISITORS / 5)

struct stage {
    char url[128];
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    unsigned told; /* how often the table was said to be full */
};

static void listen(void *data, enum redbucket_event event, const char *message)
{
    struct stage *stage = data;

    stage->told += event == REDBUCKET_EVENT_FULL && message[0] != '\0';
}

static void open_stage(struct stage *stage, const struct test_store *kind, const char *query,
                       struct redbucket_limit limit)
{
    *stage = (struct stage){.told = 0};
    test_store_url(kind, query, stage->url, sizeof stage->url);
    stage->store = test_store_open(stage->url);
    stage->limiter = test_limiter(stage->store, &limit);
    redbucket_store_listen(stage->store, listen, stage);
}

static void close_stage(struct stage *stage)
{
    redbucket_limiter_destroy(stage->limiter);
    test_store_drop(stage->url, stage->store);
}

static struct redbucket_statistics count(struct stage *stage)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(stage->store, &statistics), REDBUCKET_OK);
    return statistics;
}

/* One request of a visitor known by number, with so many bytes to its name at least. */
static enum redbucket_status visit(struct stage *stage, unsigned number, size_t len, double now)
{
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "visitor %u", number);
    struct redbucket_key key = {"a", text, len > used ? len : used, 0};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    assert_true(len < sizeof text);
    memset(text + used, '.', sizeof text - used);
    return redbucket_decide_at(stage->limiter, &request, 1, now);
}

/* In bytes, as the kernel counts it for this process. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
    (void)fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void expect_out(struct stage *stage, double now, double retry_after)
{
    struct redbucket_response response = test_ask(stage->limiter, "victim", 1.0, now);

    assert_false(response.accepted);
    assert_true(fabs(response.retry_after - retry_after) < 1e-3);
}

/* A table for about a thousand keys, and a million that come by and keep nobody out. */
static void check_flood(const struct test_store *kind)
{
    struct stage stage;
    unsigned rejected = 0;
    long before;

    open_stage(&stage, kind, "?size=64k", (struct redbucket_limit){.rate = 0.01, .burst = 1});
    assert_in_range(count(&stage).capacity, 800, 1100);
    assert_true(test_ask(stage.limiter, "victim", 2.0, 0.0).accepted);
    (void)visit(&stage, 0, 0, 0.0);
    before = resident();
    for (unsigned i = 1; i < VISITORS; i++) {
        double now = i * (10.0 / VISITORS);

        assert_int_equal(visit(&stage, i, 0, now), REDBUCKET_OK);
        if (i % 1000 != 0)
            continue;
        expect_out(&stage, now, 100.0 - now);
        rejected++;
    }
    struct redbucket_statistics now = count(&stage);

    assert_int_equal(now.accepted, 1 + VISITORS);
    assert_int_equal(now.rejected, rejected);
    assert_int_equal(now.full, 0);
    assert_int_equal(now.evicted, 1 + VISITORS - now.buckets);
    assert_true(now.buckets > now.capacity * 9 / 10 && now.buckets <= now.capacity);
    assert_int_equal(now.bytes, 65536);
    /* Pages of code that are met for the first time come to some 200,000 bytes. */
    assert_true(TEST_SANITIZED || resident() - before < (long)(VISITORS / 2));
    assert_int_equal(stage.told, 0);
    close_stage(&stage);
}

static void G01_a_flood_grows_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_flood(&test_stores[i]);
}

/* The same with visitors each of whom keeps others out: then there is no room, and nothing goes. */
static void check_closed_flood(const struct test_store *kind)
{
    struct redbucket_statistics now;
    struct stage stage;
    unsigned full = 0;

    open_stage(&stage, kind, "?size=64k", (struct redbucket_limit){.rate = 0.01});
    assert_true(test_ask(stage.limiter, "victim", 1.0, 0.0).accepted);
    for (unsigned i = 0; i < CLOSED; i++)
        full += visit(&stage, i, 0, 0.0) == REDBUCKET_ERROR_FULL;
    expect_out(&stage, 1.0, 99.0);
    now = count(&stage);
    assert_int_equal(now.full, full);
    assert_int_equal(stage.told, full);
    assert_int_equal(now.accepted, 1 + CLOSED - full);
    assert_int_equal(now.buckets, now.accepted);
    assert_int_equal(now.evicted, 0);
    assert_true(now.buckets > now.capacity * 9 / 10);
    /* Once they have drained, their places are free again, and no one was given up for that. */
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(visit(&stage, CLOSED + i, 0, 101.0), REDBUCKET_OK);
    assert_int_equal(count(&stage).evicted, 0);
    close_stage(&stage);
}

static void G02_G04_a_full_table_keeps_the_banned_and_recovers(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_closed_flood(&test_stores[i]);
}

/* Long and short names for many a time over: afterwards there is as much room as at first. */
static void check_mixture(const struct test_store *kind)
{
    struct stage stage;
    unsigned seed = 3;
    unsigned fitted[2] = {0};

    open_stage(&stage, kind, "?size=64k", (struct redbucket_limit){.rate = 0.01});
    for (int turn = 0; turn < 2; turn++) {
        double now = 1000.0 * turn;

        for (unsigned i = 0; i < 1500; i++)
            fitted[turn] += visit(&stage, i, i % 3 ? 0 : 300, now) == REDBUCKET_OK;
        for (unsigned i = 0; turn == 0 && i < VISITORS / 10; i++)
            (void)visit(&stage, i, test_random(&seed, 500), 200.0 + i * 0.002);
        /* In between, all drain. */
    }
    /* Bucket by bucket it depends on who came when, but a share is a share. */
    assert_true(fitted[0] > 200);
    if (fitted[1] < fitted[0] * 9 / 10)
        fail_msg("%u keys fitted at first, and %u in the end", fitted[0], fitted[1]);
    struct test_audit audit;

    assert_null(test_audit(test_table_of(stage.store), &audit));
    close_stage(&stage);
}

static void G04_mixed_lengths_leave_no_holes(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_mixture(&test_stores[i]);
}

/* Everything stays, at whatever size it takes. */
static void growing_gives_up_nothing(void **state)
{
    const unsigned keys = VISITORS / 5;
    struct stage stage;

    (void)state;
    open_stage(&stage, &test_stores[0], "?grow=yes", (struct redbucket_limit){.rate = 1e-3});
    for (unsigned i = 0; i < keys; i++)
        assert_int_equal(visit(&stage, i, i % 50 ? 0 : 300, 1.0), REDBUCKET_OK);
    struct redbucket_statistics now = count(&stage);

    assert_int_equal(now.buckets, keys);
    assert_int_equal(now.accepted, keys);
    assert_int_equal(now.evicted + now.full + now.recovered, 0);
    for (unsigned i = 0; i < keys; i++)
        assert_int_equal(visit(&stage, i, i % 50 ? 0 : 300, 1.0), REDBUCKET_OK);
    assert_int_equal(count(&stage).rejected, keys);
    close_stage(&stage);
}

/* Keys that come and go leave its size alone. */
static void growing_ends_with_what_lives(void **state)
{
    struct stage stage;
    uint64_t bytes = 0;

    (void)state;
    open_stage(&stage, &test_stores[0], "?grow=yes", (struct redbucket_limit){.rate = 1});
    for (unsigned i = 0; i < VISITORS; i++) {
        assert_int_equal(visit(&stage, i, 0, i * 2.0), REDBUCKET_OK);
        if (i == VISITORS / 10)
            bytes = count(&stage).bytes;
    }
    assert_int_equal(count(&stage).bytes, bytes);
    assert_int_equal(count(&stage).evicted, 0);
    close_stage(&stage);
}

/* A request may be larger than all that there was before. */
static void growing_takes_the_largest_request(void **state)
{
    enum { KEYS = 64, LEN = 131072 };
    char *text = malloc(LEN);
    struct redbucket_key keys[KEYS];
    static char names[KEYS][8];
    struct stage stage;

    (void)state;
    assert_non_null(text);
    memset(text, 'k', LEN);
    open_stage(&stage, &test_stores[0], "?grow=yes", (struct redbucket_limit){.rate = 1});
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(names[i], sizeof names[i], "l%u", i);
        assert_int_equal(redbucket_limiter_add(stage.limiter, names[i],
                                               &(struct redbucket_limit){.rate = 1}, NULL),
                         REDBUCKET_OK);
        keys[i] = (struct redbucket_key){names[i], text, LEN, 0};
    }
    struct redbucket_request request = {.keys = keys, .keys_len = KEYS, .cost = 1.0};

    assert_int_equal(redbucket_decide_at(stage.limiter, &request, 1, 0.0), REDBUCKET_OK);
    assert_true(request.response.accepted);
    assert_int_equal(count(&stage).buckets, KEYS);
    assert_int_equal(redbucket_decide_at(stage.limiter, &request, 1, 0.0), REDBUCKET_OK);
    assert_false(request.response.accepted);
    close_stage(&stage);
    free(text);
}

/* Whoever knows where keys lie in one store knows nothing of another. */
static void secrets_differ(void **state)
{
    const struct rbk_table *tables[4];
    struct stage stages[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        open_stage(&stages[i], &test_stores[i % 2], "", (struct redbucket_limit){.rate = 1});
        tables[i] = test_table_of(stages[i].store);
        assert_true(tables[i]->secret[0] != 0 && tables[i]->secret[1] != 0);
        for (size_t k = 0; k < i; k++)
            assert_true(tables[k]->secret[0] != tables[i]->secret[0] &&
                        tables[k]->secret[1] != tables[i]->secret[1]);
    }
    for (size_t i = 0; i < 4; i++)
        close_stage(&stages[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(G01_a_flood_grows_nothing),
        cmocka_unit_test(G02_G04_a_full_table_keeps_the_banned_and_recovers),
        cmocka_unit_test(G04_mixed_lengths_leave_no_holes),
        cmocka_unit_test(growing_gives_up_nothing),
        cmocka_unit_test(growing_ends_with_what_lives),
        cmocka_unit_test(growing_takes_the_largest_request),
        cmocka_unit_test(secrets_differ),
    };

    return cmocka_run_group_tests_name("bounded", tests, NULL, test_clean_up);
}
