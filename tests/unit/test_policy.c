/* SPDX-License-Identifier: MIT */
/*
 * Failure policies in front of a store that fails as a test says: who is answered, how, that it is
 * marked and counted, and that the store itself is asked every time.
 */
#include "policy.h"
#include "test.h"

#include <stdio.h>

/* An inner store: every request gets `status`, or `others` when it isn't the first of its batch. */
static struct inner {
    struct redbucket_store store;
    enum redbucket_status status;
    enum redbucket_status others;
    unsigned asked;
    bool closed;
    size_t key_max;
    bool apart;
} inner;

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    (void)store;
    (void)batch;
    inner.asked++;
    for (size_t i = 0; i < len; i++) {
        struct rbk_request *request = &requests[i];

        request->status = i == 0 ? inner.status : inner.others;
        /* As a store on a server does, which needs none for this. */
        if (request->len == 0)
            request->status = REDBUCKET_OK;
        request->failed = request->status == REDBUCKET_ERROR_STATE ? 0 : RBK_NONE;
        request->ask.now = 1234.5;
        for (size_t j = 0; request->status == REDBUCKET_OK && j < request->len; j++)
            request->claims[j].state = (struct rbk_state){.exists = false};
        if (request->status == REDBUCKET_OK)
            rbk_decide(&request->ask, request->claims, request->len, &request->answer);
        else
            request->ask.now = -77.0; /* says nothing */
    }
}

static enum redbucket_status inner_read(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    (void)store;
    (void)key;
    *state = (struct rbk_state){.exists = true, .timestamp = 5.0, .value = 2.0};
    return inner.status;
}

static enum redbucket_status inner_statistics(struct redbucket_store *store,
                                              struct redbucket_statistics *statistics)
{
    (void)store;
    statistics->failed = 42;
    return REDBUCKET_OK;
}

static size_t inner_key_max(const struct redbucket_store *store)
{
    (void)store;
    return inner.key_max;
}

static bool inner_apart(const struct redbucket_store *store, const struct rbk_key *a,
                        const struct rbk_key *b)
{
    (void)store;
    (void)a;
    (void)b;
    return inner.apart;
}

static void inner_failure(struct redbucket_store *store, struct redbucket_error *error)
{
    (void)store;
    rbk_error_set(error, REDBUCKET_ERROR_AUTH, -1, "the reason");
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
    inner.closed = true;
}

static const struct rbk_store_ops inner_ops = {
    .decide = inner_decide,
    .read = inner_read,
    .statistics = inner_statistics,
    .key_max = inner_key_max,
    .apart = inner_apart,
    .failure = inner_failure,
    .close = inner_close,
    .own_clock_only = true,
};

static struct redbucket_store *store;
static struct redbucket_limiter *limiter;
static unsigned told;

static void hear(void *data, enum redbucket_event event, const char *message)
{
    assert_ptr_equal(data, &told);
    assert_true(message[0] != '\0');
    if (event == REDBUCKET_EVENT_DEGRADED)
        told++;
}

/* A limiter with "a", 1/s and burst 3, and "b", 10/s and delay 8, on a store that fails. */
static void begin(enum rbk_policy_kind kind, const char *local_url, double share)
{
    struct redbucket_store *local = NULL;

    inner = (struct inner){.store.ops = &inner_ops,
                           .status = REDBUCKET_ERROR_UNAVAILABLE,
                           .others = REDBUCKET_ERROR_UNAVAILABLE,
                           .key_max = 100,
                           .apart = true};
    told = 0;
    if (local_url != NULL)
        assert_int_equal(redbucket_store_open(local_url, &local, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_policy_create(kind, &inner.store, local, share, &store), REDBUCKET_OK);
    redbucket_store_listen(store, hear, &told);
    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(
        redbucket_limiter_add(limiter, "a", &(struct redbucket_limit){.rate = 1, .burst = 3}, NULL),
        REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter, "b",
                                           &(struct redbucket_limit){.rate = 10, .delay = 8}, NULL),
                     REDBUCKET_OK);
}

static void end(void)
{
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    assert_true(inner.closed);
}

/* One operation under the limit "a", and "b" as well. */
static struct redbucket_request run_both(enum redbucket_operation operation)
{
    static struct redbucket_verdict verdicts[2];
    static const struct redbucket_key keys[] = {{"a", "k"}, {"b", "k"}};
    struct redbucket_request request = {
        .operation = operation, .keys = keys, .keys_len = 2, .cost = 1, .verdicts = verdicts};

    enum redbucket_status status = redbucket_decide(limiter, &request, 1);

    assert_int_equal(status, request.status);
    return request;
}

static struct redbucket_response ask(const char *limit)
{
    struct redbucket_response response = {.time = -1};

    assert_int_equal(redbucket_request(limiter, &(struct redbucket_key){limit, "k"}, 1, &response),
                     REDBUCKET_OK);
    return response;
}

static uint64_t degraded(void)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.failed, 42);
    return statistics.degraded;
}

/* ---- Who is answered ------------------------------------------------------------------------ */

/* A fault of the request itself is nobody else's to answer. */
static void test_which_failures_are_answered(void **state)
{
    static const enum redbucket_status own[] = {
        REDBUCKET_ERROR_ARGUMENT,      REDBUCKET_ERROR_LIMIT, REDBUCKET_ERROR_DUPLICATE,
        REDBUCKET_ERROR_UNKNOWN_LIMIT, REDBUCKET_ERROR_URL,   REDBUCKET_ERROR_KEY,
        REDBUCKET_ERROR_STATE,
    };

    (void)state;
    for (int code = 1; code <= (int)REDBUCKET_ERROR_SERVER; code++) {
        struct redbucket_request request;
        bool is_own = false;

        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            is_own = is_own || own[i] == (enum redbucket_status)code;
        for (int kind = RBK_POLICY_OPEN; kind <= (int)RBK_POLICY_LOCAL; kind++) {
            begin((enum rbk_policy_kind)kind, kind == RBK_POLICY_LOCAL ? "memory:?size=1m" : NULL,
                  1.0);
            inner.status = (enum redbucket_status)code;
            request = run_both(REDBUCKET_REQUEST);
            assert_int_equal(request.status, is_own ? code : (int)REDBUCKET_OK);
            if (!is_own)
                assert_true(request.response.degraded);
            assert_int_equal(degraded(), !is_own);
            assert_int_equal(told, !is_own);
            end();
        }
    }
}

static void test_a_fault_of_a_request_keeps_its_key(void **state)
{
    struct redbucket_request request;

    (void)state;
    begin(RBK_POLICY_OPEN, NULL, 1.0);
    inner.status = REDBUCKET_ERROR_STATE;
    request = run_both(REDBUCKET_REQUEST);
    assert_int_equal(request.status, REDBUCKET_ERROR_STATE);
    assert_int_equal(request.failed, 0);
    end();
}

static void test_a_store_that_works_is_left_to_answer(void **state)
{
    struct redbucket_response response;

    (void)state;
    for (int kind = RBK_POLICY_OPEN; kind <= (int)RBK_POLICY_CLOSED; kind++) {
        begin((enum rbk_policy_kind)kind, NULL, 1.0);
        inner.status = REDBUCKET_OK;
        response = ask("a");
        assert_true(response.accepted);
        assert_false(response.degraded);
        assert_int_equal(response.remaining, 3);
        assert_same(response.time, 1234.5);
        assert_int_equal(degraded(), 0);
        assert_int_equal(told, 0);
        end();
    }
}

/* ---- How ------------------------------------------------------------------------------------ */

/* `time` is that of no clock, so that nothing is given back to a store which took nothing. */
static void test_open_accepts(void **state)
{
    struct redbucket_request request;

    (void)state;
    begin(RBK_POLICY_OPEN, NULL, 1.0);
    for (int i = 0; i < 20; i++) {
        request = run_both(i % 2 == 0 ? REDBUCKET_REQUEST : REDBUCKET_PEEK);
        assert_int_equal(request.status, REDBUCKET_OK);
        assert_true(request.response.accepted);
        assert_true(request.response.degraded);
        assert_same(request.response.delay, 0.0);
        assert_int_equal(request.response.delay_us, 0);
        assert_same(request.response.retry_after, 0.0);
        assert_same(request.response.reset_after, 0.0);
        assert_int_equal(request.response.remaining, 0);
        assert_int_equal(request.response.decided, REDBUCKET_NONE);
        assert_same(request.response.time, 0.0);
        for (int j = 0; j < 2; j++)
            assert_true(request.verdicts[j].accepted);
    }
    assert_int_equal(degraded(), 20);
    assert_int_equal(inner.asked, 20);
    end();
}

static void test_closed_rejects_for_a_second(void **state)
{
    struct redbucket_request request;

    (void)state;
    begin(RBK_POLICY_CLOSED, NULL, 1.0);
    for (int i = 0; i < 20; i++) {
        request = run_both(i % 2 == 0 ? REDBUCKET_REQUEST : REDBUCKET_PEEK);
        assert_int_equal(request.status, REDBUCKET_OK);
        assert_false(request.response.accepted);
        assert_true(request.response.degraded);
        assert_same(request.response.retry_after, 1.0);
        assert_int_equal(request.response.retry_after_us, 1000000);
        assert_int_equal(request.response.remaining, 0);
        assert_int_equal(request.response.decided, 0);
        assert_same(request.response.time, 0.0);
        for (int j = 0; j < 2; j++) {
            assert_false(request.verdicts[j].accepted);
            assert_same(request.verdicts[j].retry_after, 1.0);
        }
    }
    assert_int_equal(degraded(), 20);
    end();
}

/* Saying that it was done would be a lie. */
static void test_changes_stay_errors(void **state)
{
    static const enum redbucket_operation changes[] = {REDBUCKET_REFUND, REDBUCKET_CHARGE,
                                                       REDBUCKET_RESET, REDBUCKET_GIVE_BACK};

    (void)state;
    for (int kind = RBK_POLICY_OPEN; kind <= (int)RBK_POLICY_CLOSED; kind++) {
        begin((enum rbk_policy_kind)kind, NULL, 1.0);
        inner.status = REDBUCKET_ERROR_TIMEOUT;
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
            assert_int_equal(run_both(changes[i]).status, REDBUCKET_ERROR_TIMEOUT);
        assert_int_equal(degraded(), 0);
        assert_int_equal(told, 0);
        end();
    }
}

static void test_local_limits(void **state)
{
    struct redbucket_response response;

    (void)state;
    begin(RBK_POLICY_LOCAL, "memory:?size=1m", 1.0);
    for (int i = 0; i < 4; i++) {
        response = ask("a");
        assert_true(response.accepted);
        assert_true(response.degraded);
        assert_int_equal(response.remaining, 3 - i);
    }
    response = ask("a");
    assert_false(response.accepted);
    assert_true(response.degraded);
    assert_true(response.retry_after > 0.0 && response.retry_after <= 1.0);
    assert_int_equal(degraded(), 5);
    assert_int_equal(inner.asked, 5);
    end();
}

static void test_local_goes_by_a_share(void **state)
{
    struct redbucket_response response;
    int accepted = 0;

    (void)state;
    begin(RBK_POLICY_LOCAL, "memory:?size=1m", 0.5);
    /* burst 1.5: 2.5 at once, and then half a unit a second */
    while (ask("a").accepted)
        accepted++;
    assert_int_equal(accepted, 2);
    response = ask("a");
    assert_true(response.retry_after > 0.9 && response.retry_after <= 1.0);
    /* delay 4 at 5/s: the first passes, and four wait */
    for (accepted = 0; ask("b").accepted;)
        accepted++;
    assert_int_equal(accepted, 5);
    end();
}

static void test_local_changes_its_own_buckets(void **state)
{
    (void)state;
    begin(RBK_POLICY_LOCAL, "memory:?size=1m", 1.0);
    for (int i = 0; i < 4; i++)
        assert_true(ask("a").accepted);
    assert_int_equal(run_both(REDBUCKET_REFUND).status, REDBUCKET_OK);
    assert_true(ask("a").accepted);
    assert_false(ask("a").accepted);
    assert_int_equal(run_both(REDBUCKET_RESET).status, REDBUCKET_OK);
    assert_true(ask("a").accepted);
    assert_true(run_both(REDBUCKET_CHARGE).response.degraded);
    end();
}

/* A stand-in that is full as well has nobody to answer for it. */
static void test_local_may_fail_as_well(void **state)
{
    struct redbucket_request request = {.cost = 4, .keys_len = 1};
    char name[16];
    struct redbucket_key key = {"a", name};
    unsigned keys = 0;

    (void)state;
    begin(RBK_POLICY_LOCAL, "memory:?size=32k", 1.0);
    request.keys = &key;
    do {
        snprintf(name, sizeof name, "k%u", keys++);
    } while (redbucket_decide(limiter, &request, 1) == REDBUCKET_OK && keys < 100000);
    assert_int_equal(request.status, REDBUCKET_ERROR_FULL);
    assert_int_equal(degraded(), keys - 1);
    end();
}

/* ---- Outages -------------------------------------------------------------------------------- */

static void test_only_what_failed_is_answered(void **state)
{
    struct redbucket_key key = {"a", "k"};
    struct redbucket_request requests[3];

    (void)state;
    begin(RBK_POLICY_CLOSED, NULL, 1.0);
    for (int i = 0; i < 3; i++)
        requests[i] = (struct redbucket_request){.keys = &key, .keys_len = 1, .cost = 1};
    inner.status = REDBUCKET_OK;
    assert_int_equal(redbucket_decide(limiter, requests, 3), REDBUCKET_OK);
    assert_true(requests[0].response.accepted);
    assert_false(requests[0].response.degraded);
    for (int i = 1; i < 3; i++) {
        assert_false(requests[i].response.accepted);
        assert_true(requests[i].response.degraded);
    }
    assert_int_equal(degraded(), 2);
    end();
}

static void test_it_is_told_once_an_outage(void **state)
{
    (void)state;
    begin(RBK_POLICY_OPEN, NULL, 1.0);
    for (int outage = 1; outage <= 3; outage++) {
        inner.status = REDBUCKET_ERROR_IO;
        for (int i = 0; i < 5; i++)
            assert_true(ask("a").degraded);
        assert_int_equal(told, outage);
        inner.status = REDBUCKET_OK;
        for (int i = 0; i < 5; i++)
            assert_false(ask("a").degraded);
        assert_int_equal(told, outage);
    }
    end();
}

/* A request that names no limit is answered without the server, and says nothing of it. */
static void test_a_request_without_limits_ends_no_outage(void **state)
{
    struct redbucket_response response;

    (void)state;
    begin(RBK_POLICY_OPEN, NULL, 1.0);
    assert_true(ask("a").degraded);
    assert_int_equal(redbucket_request(limiter, NULL, 0, &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_false(response.degraded);
    assert_true(ask("a").degraded);
    assert_int_equal(told, 1);
    end();
}

/* ---- What goes through ---------------------------------------------------------------------- */

static void test_the_rest_is_the_inner_stores(void **state)
{
    struct redbucket_key key = {"a", "k"};
    struct redbucket_state stored;
    struct redbucket_error error;
    char long_key[102];

    (void)state;
    begin(RBK_POLICY_LOCAL, "memory:?size=1m", 1.0);
    assert_int_equal(redbucket_read(limiter, &key, &stored), REDBUCKET_ERROR_UNAVAILABLE);
    inner.status = REDBUCKET_OK;
    assert_int_equal(redbucket_read(limiter, &key, &stored), REDBUCKET_OK);
    assert_same(stored.value, 2.0);
    redbucket_store_failure(store, &error);
    assert_string_equal(error.message, "the reason");
    inner.apart = false;
    assert_int_equal(
        redbucket_limiter_add(limiter, "c", &(struct redbucket_limit){.rate = 1}, NULL),
        REDBUCKET_ERROR_DUPLICATE);
    memset(long_key, 'x', sizeof long_key);
    key = (struct redbucket_key){"a", long_key, 101, 0};
    assert_int_equal(redbucket_request(limiter, &key, 1, NULL), REDBUCKET_ERROR_KEY);
    assert_int_equal(redbucket_decide_at(limiter, NULL, 0, 1.0), REDBUCKET_ERROR_UNSUPPORTED);
    rbk_store_tell(&inner.store, REDBUCKET_EVENT_DEGRADED, "as if");
    assert_int_equal(told, 1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_failures_are_answered),
        cmocka_unit_test(test_a_fault_of_a_request_keeps_its_key),
        cmocka_unit_test(test_a_store_that_works_is_left_to_answer),
        cmocka_unit_test(test_open_accepts),
        cmocka_unit_test(test_closed_rejects_for_a_second),
        cmocka_unit_test(test_changes_stay_errors),
        cmocka_unit_test(test_local_limits),
        cmocka_unit_test(test_local_goes_by_a_share),
        cmocka_unit_test(test_local_changes_its_own_buckets),
        cmocka_unit_test(test_local_may_fail_as_well),
        cmocka_unit_test(test_only_what_failed_is_answered),
        cmocka_unit_test(test_it_is_told_once_an_outage),
        cmocka_unit_test(test_a_request_without_limits_ends_no_outage),
        cmocka_unit_test(test_the_rest_is_the_inner_stores),
    };

    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
