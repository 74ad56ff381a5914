/* SPDX-License-Identifier: MIT */
/*
 * The denial cache under whatever requests come, and under threads.
 */
#include "denial.h"
#include "model_store.h"
#include "test.h"

#include <pthread.h>

static uint64_t chance;

static unsigned draw(unsigned below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance >> 33) % below;
}

/* What the server would say at its own time now, without being asked. */
static bool would_accept(const struct model_ask *ask)
{
    struct rbk_judgement judgement;
    bool accepted = true;

    for (size_t i = 0; i < ask->request.len; i++) {
        rbk_judge(&ask->claims[i].limit, &model_store.states[ask->bytes[i]], ask->request.ask.cost,
                  model_store.now, &judgement);
        accepted = accepted && judgement.accepted;
    }
    return accepted;
}

/* Requests here and elsewhere, model_slow networks, and whatever else is done here. */
static void it_never_denies_what_the_server_would_not(void **unused)
{
    static const char *const some[] = {"a", "b", "c", "ab", "bc", "abc", "ca"};
    unsigned denied = 0;

    (void)unused;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct redbucket_store *store = model_store_make();
        struct rbk_limit limits[2] = {{.rate = 1 + seed % 7, .burst = seed % 4, .delay = seed % 3},
                                      {.rate = 8, .burst = 1}};

        chance = seed;
        for (int i = 0; i < 200; i++) {
            enum rbk_operation operation =
                draw(8) == 0 ? (enum rbk_operation)(2 + draw(4)) : RBK_REQUEST;
            struct model_ask ask;

            model_store.travel = draw(3) * 0.004;
            model_store_pass(draw(20) * 0.002);
            (void)model_ask(&ask, operation, 1 + draw(2), limits[draw(8) == 0], some[draw(7)]);
            if (draw(4) == 0) {
                /* Elsewhere: only takes, and by the limit that drains slowest. */
                struct rbk_batch batch = {.waited = 0.0};

                (void)model_ask(&ask, RBK_REQUEST, 1 + draw(2), limits[0], some[draw(7)]);
                model_store_decide(&model_store.store, &ask.request, 1, &batch);
                continue;
            }
            bool expected = would_accept(&ask);
            bool accepted;

            (void)model_store_asked();
            accepted = model_send(store, &ask);
            if (operation == RBK_REQUEST && model_store_asked() == 0) {
                denied++;
                assert_false(accepted);
                assert_false(expected);
            }
        }
        store->ops->close(store);
    }
    assert_true(denied > 1000);
}

static void *crowd(void *data)
{
    struct redbucket_store *store = data;

    for (int i = 0; i < 3000; i++) {
        struct model_ask ask;
        char bucket[2] = {(char)('a' + i % MODEL_BUCKETS), '\0'};

        (void)model_send(
            store, model_ask(&ask, i % 50 == 0 ? RBK_RESET : RBK_REQUEST, 1, model_slow, bucket));
        assert_int_equal(ask.request.status, REDBUCKET_OK);
    }
    return NULL;
}

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;

static void decide_serially(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                            struct rbk_batch *batch)
{
    (void)pthread_mutex_lock(&serial);
    model_store_decide(store, requests, len, batch);
    (void)pthread_mutex_unlock(&serial);
}

static double clock_that_stands(void)
{
    return 5000.0;
}

static void threads_share_it(void **unused)
{
    struct redbucket_store *store = model_store_make();
    struct redbucket_store *standing = NULL;
    struct redbucket_error error;
    pthread_t threads[4];

    (void)unused;
    store->ops->close(store);
    assert_int_equal(rbk_denial_create(&model_store.store, MODEL_DENIAL_TIME, clock_that_stands,
                                       &standing, &error),
                     REDBUCKET_OK);
    model_store_ops.decide = decide_serially;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd, standing), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    standing->ops->close(standing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_never_denies_what_the_server_would_not),
        cmocka_unit_test(threads_share_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
