/* SPDX-License-Identifier: MIT */
/*
 * Counting by zone in front of a store on a server: which answers count, that threads lose none,
 * and that all who come at once with one zone get the same counters.
 */
#include "census.h"

#include "test.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 8
#define ROUNDS  2000

/* What the inner store answers. */
static enum redbucket_status inner_status;
static struct rbk_answer inner_answer;
static struct rbk_verdict inner_verdicts[3];
static bool inner_closed;

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    (void)store;
    (void)batch;
    for (size_t i = 0; i < len; i++) {
        requests[i].status = inner_status;
        requests[i].answer = inner_answer;
        for (size_t j = 0; j < requests[i].len; j++)
            requests[i].claims[j].verdict = inner_verdicts[j];
    }
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
    inner_closed = true;
}

static const struct rbk_store_ops inner_ops = {.decide = inner_decide, .close = inner_close};

static struct redbucket_store *make(void)
{
    static struct redbucket_store inner;
    struct redbucket_store *store;

    inner = (struct redbucket_store){.ops = &inner_ops};
    inner_status = REDBUCKET_OK;
    inner_closed = false;
    assert_int_equal(rbk_census_create(&inner, &store), REDBUCKET_OK);
    return store;
}

static unsigned enroll(struct redbucket_store *store, const char *zone)
{
    return store->ops->enroll(
        store, &(struct rbk_key){.zone = (const unsigned char *)zone, .zone_len = strlen(zone)});
}

static void ask(struct redbucket_store *store, enum rbk_operation operation, unsigned zones)
{
    struct rbk_claim claims[] = {{.zone_index = 1}, {.zone_index = 2}, {.zone_index = 0}};
    struct rbk_request request = {
        .ask = {.operation = operation, .cost = 1.0}, .claims = claims, .len = zones};

    store->ops->decide(store, &request, 1, &(struct rbk_batch){.waited = 0.0});
}

static struct redbucket_zone_statistics counted(struct redbucket_store *store, size_t index)
{
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    size_t len;

    assert_int_equal(store->ops->zones(store, zones, &len), REDBUCKET_OK);
    assert_true(index < len);
    return zones[index];
}

#define assert_counts(store, index, yes, later, no)                           \
    do {                                                                      \
        const struct redbucket_zone_statistics zone_ = counted(store, index); \
        assert_int_equal(zone_.accepted, yes);                                \
        assert_int_equal(zone_.delayed, later);                               \
        assert_int_equal(zone_.rejected, no);                                 \
    } while (0)

static void test_answers_are_counted_by_zone(void **state)
{
    struct redbucket_store *store = make();

    (void)state;
    assert_int_equal(enroll(store, "ip"), 1);
    assert_int_equal(enroll(store, "user"), 2);
    inner_answer = (struct rbk_answer){.accepted = true};
    inner_verdicts[0] = (struct rbk_verdict){.accepted = true};
    inner_verdicts[1] = (struct rbk_verdict){.accepted = true, .delay = 0.5};
    ask(store, RBK_REQUEST, 2);
    ask(store, RBK_REQUEST, 3);
    inner_answer.accepted = false;
    inner_verdicts[1] = (struct rbk_verdict){.accepted = false, .retry_after = 1.0};
    ask(store, RBK_REQUEST, 2);
    assert_counts(store, 0, 2, 0, 0);
    assert_counts(store, 1, 2, 2, 1);
    assert_counts(store, 2, 1, 0, 0);
    assert_string_equal(counted(store, 1).zone, "user");
    assert_string_equal(counted(store, 2).zone, "");
    store->ops->close(store);
    assert_true(inner_closed);
}

static void test_what_is_no_answer_to_a_request_is_not(void **state)
{
    struct redbucket_store *store = make();

    (void)state;
    inner_answer = (struct rbk_answer){.accepted = true};
    for (int operation = RBK_PEEK; operation <= RBK_GIVE_BACK; operation++)
        ask(store, (enum rbk_operation)operation, 3);
    inner_status = REDBUCKET_ERROR_TIMEOUT;
    ask(store, RBK_REQUEST, 3);
    assert_counts(store, 0, 0, 0, 0);
    store->ops->close(store);
}

static void test_zones_beyond_the_last_go_together(void **state)
{
    struct redbucket_store *store = make();
    char name[16];

    (void)state;
    for (unsigned i = 1; i <= RBK_ZONES_NAMED + 2; i++) {
        (void)snprintf(name, sizeof name, "z%u", i);
        assert_int_equal(enroll(store, name), i <= RBK_ZONES_NAMED ? i : 0);
    }
    assert_int_equal(enroll(store, "z64"), 64);
    assert_int_equal(counted(store, RBK_ZONES_NAMED).zone_len, 0);
    store->ops->close(store);
}

struct crowd {
    struct redbucket_store *store;
    pthread_barrier_t begin;
    unsigned got[THREADS][RBK_ZONES_NAMED];
};

struct one {
    struct crowd *crowd;
    unsigned number;
};

static void *join(void *data)
{
    struct one *one = data;
    struct crowd *crowd = one->crowd;
    char name[16];

    (void)pthread_barrier_wait(&crowd->begin);
    for (unsigned i = 0; i < RBK_ZONES_NAMED; i++) {
        (void)snprintf(name, sizeof name, "z%u", (i + one->number * 7) % RBK_ZONES_NAMED);
        crowd->got[one->number][(i + one->number * 7) % RBK_ZONES_NAMED] =
            enroll(crowd->store, name);
    }
    for (unsigned i = 0; i < ROUNDS; i++)
        ask(crowd->store, RBK_REQUEST, 2);
    return NULL;
}

static void test_threads_get_the_same_and_lose_nothing(void **state)
{
    struct crowd crowd = {.store = make()};
    struct one ones[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    inner_answer = (struct rbk_answer){.accepted = true};
    inner_verdicts[0] = inner_verdicts[1] = (struct rbk_verdict){.accepted = true};
    assert_int_equal(pthread_barrier_init(&crowd.begin, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        ones[i] = (struct one){&crowd, i};
        assert_int_equal(pthread_create(&threads[i], NULL, join, &ones[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned zone = 0; zone < RBK_ZONES_NAMED; zone++) {
        for (unsigned i = 0; i < THREADS; i++) {
            assert_true(crowd.got[i][zone] >= 1);
            assert_int_equal(crowd.got[i][zone], crowd.got[0][zone]);
        }
    }
    assert_counts(crowd.store, 0, THREADS * ROUNDS, 0, 0);
    assert_counts(crowd.store, 1, THREADS * ROUNDS, 0, 0);
    crowd.store->ops->close(crowd.store);
    (void)pthread_barrier_destroy(&crowd.begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_counted_by_zone),
        cmocka_unit_test(test_what_is_no_answer_to_a_request_is_not),
        cmocka_unit_test(test_zones_beyond_the_last_go_together),
        cmocka_unit_test(test_threads_get_the_same_and_lose_nothing),
    };

    return cmocka_run_group_tests_name("census", tests, NULL, NULL);
}
