/* SPDX-License-Identifier: MIT */
/*
 * Leases in company: with other limits on the same bucket, in arrays, beside the denial cache,
 * among more keys than there is room for; and what is counted.
 */
#include "fork_page.h"
#include "lease.h"
#include "lease_places.h"
#include "lease_trip.h"
#include "leased.h"
#include "policy.h"
#include "test.h"

/* ---- Limits, arrays, counts --------------------------------------------------------------------
 */

static void another_limit_gets_nothing(void **unused)
{
    struct rbk_limit other = {.rate = 1e-6, .burst = 1e6 + 1};

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    (void)model_store_asked();
    assert_true(leased_request(leased_store, 1, other, "a"));
    assert_int_equal(model_store_asked(), 1);
    assert_int_equal(leased_asked_for(1, "a"), 0);
}

static void arrays_are_served_in_part(void **unused)
{
    enum { LEN = 70 };
    static struct model_ask asks[LEN];
    struct rbk_request requests[LEN];
    struct rbk_batch batch = {.waited = 0.0};

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    (void)model_store_asked();
    for (int i = 0; i < LEN; i++)
        requests[i] =
            leased_ask(&asks[i], RBK_REQUEST, 1, leased_large, i % 2 == 0 ? "a" : "c")->request;
    requests[3] = leased_ask(&asks[3], RBK_REQUEST, 1e9, leased_large, "b")->request;
    leased_store->ops->decide(leased_store, requests, LEN, &batch);
    for (int i = 0; i < LEN; i++) {
        assert_int_equal(requests[i].status, REDBUCKET_OK);
        assert_int_equal(requests[i].answer.accepted, i != 3);
        assert_int_equal(requests[i].here, i % 2 == 0 && i < 8);
    }
    /* All but four, and a lease each of a and c. */
    assert_int_equal(model_store_asked(), LEN - 4 + 2);
}

static void an_array_resets_in_its_order(void **unused)
{
    struct model_ask asks[3];
    struct rbk_request requests[3];
    struct rbk_batch batch = {.waited = 0.0};

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    requests[0] = leased_ask(&asks[0], RBK_REQUEST, 1, leased_large, "a")->request;
    requests[1] = leased_ask(&asks[1], RBK_RESET, 1, leased_large, "a")->request;
    requests[2] = leased_ask(&asks[2], RBK_REQUEST, 1, leased_large, "a")->request;
    leased_store->ops->decide(leased_store, requests, 3, &batch);
    assert_true(requests[0].here);
    assert_false(requests[2].here);
    assert_true(requests[2].answer.accepted);
    assert_true(leased_level(leased_large, 'a') >= 1.0);
}

static void it_is_counted(void **unused)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct rbk_limit shaped = {.rate = 10, .burst = 0, .delay = 1000};
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, shaped, "a");
    for (int i = 0; i < 4; i++) {
        assert_true(model_send(leased_store, leased_ask(&ask, RBK_PEEK, 1, shaped, "a")));
        assert_true(leased_request(leased_store, 1, shaped, "a"));
    }
    (void)leased_store->ops->statistics(leased_store, &statistics);
    assert_int_equal(statistics.leased, 4);
    assert_int_equal(statistics.accepted, 4);
    assert_int_equal(statistics.delayed, 4);
}

/* What leases ask for themselves is marked, for those who count. */
static unsigned marked;

static void decide_counting(struct redbucket_store *inner, struct rbk_request *requests, size_t len,
                            struct rbk_batch *batch)
{
    for (size_t i = 0; i < len; i++)
        marked += requests[i].aside;
    model_store_decide(inner, requests, len, batch);
}

static void what_leases_ask_is_marked(void **unused)
{
    (void)unused;
    marked = 0;
    model_store_ops.decide = decide_counting;
    leased_warm(leased_store, leased_large, "a");
    assert_int_equal(marked, 1);
    model_store_pass(1.0);
    assert_true(leased_request(leased_store, 1, leased_large, "b"));
    assert_int_equal(marked, 2);
}

/* ---- What is put back --------------------------------------------------------------------------
 */

/* A place that holds so many permits of a bucket. */
static struct rbk_purse *hold(struct rbk_lease_places *places, uint64_t bucket, double permits)
{
    struct rbk_key key = {(const unsigned char *)"z", 1, (const unsigned char *)"k", 1};
    struct rbk_claim claim = {.limit = leased_large, .lease = &leased_terms};
    struct rbk_lack lack = {.bucket = bucket, .key = &key, .claim = &claim, .cost = 1, .now = 1};
    struct rbk_grant grant = {
        .note = {.bucket = bucket, .until = 100, .received = 1, .taken_at = 1, .top = permits},
        .key = &key,
        .permits = permits,
        .cost = 1};
    struct rbk_leftover leftover;
    double amount;

    grant.note.limit = leased_large;
    (void)rbk_lease_places_visit(places, &lack, &amount, &leftover);
    assert_true(rbk_lease_places_begin(places, bucket, 1));
    rbk_lease_places_end(places, bucket, 1, &grant);
    return rbk_lease_places_find(places, bucket);
}

/* Somebody spends the last permits of one bucket, finds none of another, and puts them back; in
 * between somebody else has seen that nothing is held. */
static void what_is_put_back_is_found(void **unused)
{
    struct rbk_lease_places *places = NULL;
    struct rbk_want want = {.bucket = 7, .limit = &leased_large, .now = 2};
    struct rbk_leftover leftover;
    struct rbk_permit permit;
    unsigned cursor = 0;

    (void)unused;
    assert_int_equal(rbk_fork_page_map(sizeof *places, (void **)&places, NULL), REDBUCKET_OK);
    struct rbk_purse *purse = hold(places, want.bucket, 4);

    want.parts = rbk_purse_parts(4);
    assert_true(rbk_purse_spend(purse, &want, &permit));
    assert_false(rbk_lease_places_next(places, 2, false, &cursor, &leftover));
    if (rbk_purse_restore(purse, &permit)) {
        cursor = 0;
        assert_true(rbk_lease_places_next(places, 2, true, &cursor, &leftover));
        assert_same(leftover.permits, 4);
    }
    rbk_fork_page_unmap(places, sizeof *places);
}

/* Two have seen that a bucket is hot and nothing held of it: whoever comes second, when the first
 * has taken permits ahead by then, takes none. */
static void what_is_held_is_not_taken_again(void **unused)
{
    struct rbk_lease_places *places = NULL;
    struct rbk_leftover leftover;
    unsigned cursor = 0;

    (void)unused;
    assert_int_equal(rbk_fork_page_map(sizeof *places, (void **)&places, NULL), REDBUCKET_OK);
    (void)hold(places, 7, 4);
    assert_false(rbk_lease_places_begin(places, 7, 2));
    assert_true(rbk_lease_places_next(places, 2, true, &cursor, &leftover));
    assert_same(leftover.permits, 4);
    assert_true(rbk_lease_places_begin(places, 7, 3));
    rbk_fork_page_unmap(places, sizeof *places);
}

/* Nor is anything put back once somebody is taking permits ahead, which would be lost with the
 * lease that follows. */
static void what_is_followed_takes_nothing_back(void **unused)
{
    struct rbk_lease_places *places = NULL;
    struct rbk_want want = {.bucket = 7, .limit = &leased_large, .now = 2};
    struct rbk_permit permit;

    (void)unused;
    assert_int_equal(rbk_fork_page_map(sizeof *places, (void **)&places, NULL), REDBUCKET_OK);
    struct rbk_purse *purse = hold(places, want.bucket, 4);

    want.parts = rbk_purse_parts(4);
    assert_true(rbk_purse_spend(purse, &want, &permit));
    assert_true(rbk_lease_places_begin(places, want.bucket, 2));
    assert_false(rbk_purse_restore(purse, &permit));
    rbk_fork_page_unmap(places, sizeof *places);
}

/* ---- Beside the denial cache -------------------------------------------------------------------
 */

/* What this process gives back can let a request pass that has been rejected, of those who ask for
 * no lease as well. */
static void giving_back_is_seen_by_the_denial_cache(void **unused)
{
    struct rbk_limit tight = {.rate = 1e-6, .burst = 19};
    struct redbucket_store *other = leased_join_denying();
    struct model_ask ask;

    (void)unused;
    leased_warm(other, tight, "a");
    for (int i = 0; i < 2; i++) {
        (void)model_store_asked();
        assert_false(model_send(other, model_ask(&ask, RBK_REQUEST, 10, tight, "a")));
        assert_int_equal(model_store_asked(), i == 0 ? 1 : 0);
    }
    model_store_pass(0.5);
    assert_true(leased_request(other, 1, leased_large, "b"));
    assert_true(model_send(other, model_ask(&ask, RBK_REQUEST, 10, tight, "a")));
    redbucket_store_close(other);
}

/* ---- Before a failure policy -------------------------------------------------------------------
 */

static unsigned told;

static void hear(void *data, enum redbucket_event event, const char *message)
{
    (void)data;
    (void)message;
    told += event == REDBUCKET_EVENT_DEGRADED;
}

/* What is held says nothing of whether the store is back. */
static void a_lease_ends_no_outage(void **unused)
{
    struct redbucket_store *store;
    struct model_ask ask;

    (void)unused;
    assert_int_equal(rbk_policy_create(RBK_POLICY_OPEN, leased_join(), NULL, 1.0, &store),
                     REDBUCKET_OK);
    redbucket_store_listen(store, hear, NULL);
    leased_warm(store, leased_large, "a");
    model_store.status = REDBUCKET_ERROR_UNAVAILABLE;
    told = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(model_send(store, leased_ask(&ask, RBK_REQUEST, 1, leased_large, "b")));
        assert_true(ask.request.degraded);
        assert_true(model_send(store, leased_ask(&ask, RBK_REQUEST, 1, leased_large, "a")));
        assert_false(ask.request.degraded);
    }
    assert_int_equal(told, 1);
    redbucket_store_close(store);
}

/* ---- Strangers ---------------------------------------------------------------------------------
 */

/* A server with room for everybody. */
static void accept_all(struct redbucket_store *inner, struct rbk_request *requests, size_t len,
                       struct rbk_batch *batch)
{
    (void)inner;
    (void)batch;
    for (size_t i = 0; i < len; i++) {
        requests[i].status = REDBUCKET_OK;
        requests[i].ask.now = model_store.now;
        for (size_t j = 0; j < requests[i].len; j++)
            requests[i].claims[j].state.exists = false;
        rbk_decide(&requests[i].ask, requests[i].claims, requests[i].len, &requests[i].answer);
    }
}

struct numbered {
    struct rbk_key key;
    struct rbk_claim claim;
    unsigned number;
};

static struct rbk_request ask_number(struct numbered *one, unsigned number,
                                     enum rbk_operation operation)
{
    one->number = number;
    one->key = (struct rbk_key){(const unsigned char *)"z", 1, (const unsigned char *)&one->number,
                                sizeof one->number};
    one->claim = (struct rbk_claim){.limit = leased_large, .lease = &leased_terms};
    return (struct rbk_request){.ask = {.operation = operation, .cost = 1},
                                .keys = &one->key,
                                .claims = &one->claim,
                                .len = 1,
                                .leases = 1};
}

static bool is_served_here(unsigned number)
{
    struct numbered one;
    struct rbk_request request = ask_number(&one, number, RBK_REQUEST);
    struct rbk_batch batch = {.waited = 0.0};

    leased_store->ops->decide(leased_store, &request, 1, &batch);
    assert_int_equal(request.status, REDBUCKET_OK);
    return request.here;
}

/* A lease ends with a reset also in an array that takes so much ahead that there is no room to give
 * back what is left of it. */
static void a_long_array_resets_as_well(void **unused)
{
    enum { KEYS = RBK_LEASE_TRIP_EXTRAS, EACH = RBK_PACE_HOT, LEN = KEYS * EACH + 1 };
    static struct numbered asked[LEN];
    struct rbk_request requests[LEN];
    struct rbk_batch batch = {.waited = 0.0};

    (void)unused;
    model_store_ops.decide = accept_all;
    for (unsigned i = 0; i < RBK_PACE_HOT; i++)
        assert_false(is_served_here(0));
    assert_true(is_served_here(0));
    for (unsigned i = 0; i < LEN - 1; i++)
        requests[i] = ask_number(&asked[i], 1 + i / EACH, RBK_REQUEST);
    requests[LEN - 1] = ask_number(&asked[LEN - 1], 0, RBK_RESET);
    leased_store->ops->decide(leased_store, requests, LEN, &batch);
    for (unsigned i = 1; i <= KEYS; i++)
        assert_true(is_served_here(i));
    assert_false(is_served_here(0));
}

/* A crowd of keys that come once, ten thousand in a second, neither drives out a hot key nor keeps
 * one from getting hot. */
static void strangers_drive_nobody_out(void **unused)
{
    unsigned served = 0;

    (void)unused;
    model_store_ops.decide = accept_all;
    for (unsigned i = 1; i <= 100000; i++) {
        model_store_pass(0.0001);
        assert_false(is_served_here(i));
        if (i % 100 == 0)
            served += is_served_here(0);
    }
    assert_true(served > 900);
}

/* More hot keys than there is room for: those that are there stay, the others are asked for. */
static void hot_keys_stay_where_they_are(void **unused)
{
    unsigned served = 0;

    (void)unused;
    model_store_ops.decide = accept_all;
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 4 * RBK_LEASE_PLACES_ALL; i++) {
            bool here = is_served_here(i);

            served += round >= 20 && here;
        }
        model_store_pass(0.01);
    }
    assert_true(served > 20 * RBK_LEASE_PLACES_ALL / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, leased_setup, leased_teardown)
        CASE(another_limit_gets_nothing),
        CASE(arrays_are_served_in_part),
        CASE(an_array_resets_in_its_order),
        CASE(it_is_counted),
        CASE(what_leases_ask_is_marked),
        CASE(what_is_put_back_is_found),
        CASE(what_is_held_is_not_taken_again),
        CASE(what_is_followed_takes_nothing_back),
        CASE(giving_back_is_seen_by_the_denial_cache),
        CASE(a_lease_ends_no_outage),
        CASE(a_long_array_resets_as_well),
        CASE(strangers_drive_nobody_out),
        CASE(hot_keys_stay_where_they_are),
#undef CASE
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
