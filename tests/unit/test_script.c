/* SPDX-License-Identifier: MIT */
/*
 * A long array by script, in several calls on one connection: which of them are sent again, and
 * what is believed, when the server forgets, refuses, or talks nonsense to one of them.
 */
#include "fake_nodes.h"
#include "redis/method.h"
#include "test.h"
#include "url.h"

#include <stdio.h>

/* Three calls. */
#define REQUESTS (3 * RBK_CALL_REQUESTS)

static struct rbk_redis_options options;
static struct rbk_pool pool;
static struct rbk_request requests[REQUESTS];
static struct rbk_key keys[REQUESTS];
static struct rbk_claim claims[REQUESTS];
static char names[REQUESTS][8];

static void begin(const char *first, const char *second, const char *third)
{
    struct rbk_pool_config config = {.options = &options, .endpoint = &options.hosts[0]};
    struct fake_node *node;
    struct rbk_url url;

    fake_nodes_reset();
    node = fake_node("a:1");
    node->says[0] = first;
    node->says[1] = second;
    node->says[2] = third;
    assert_int_equal(rbk_url_parse("redis://a:1?timeout=1", &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, NULL), REDBUCKET_OK);
    memset(&pool, 0, sizeof pool);
    assert_int_equal(rbk_pool_init(&pool, &config, NULL), REDBUCKET_OK);
    for (size_t i = 0; i < REQUESTS; i++) {
        int len = snprintf(names[i], sizeof names[i], "%zu", i);

        keys[i] = (struct rbk_key){(const unsigned char *)"k", 1, (const unsigned char *)names[i],
                                   (size_t)len};
        claims[i] = (struct rbk_claim){.limit = {.rate = 1.0, .burst = 1000.0}};
        requests[i] = (struct rbk_request){.ask = {.operation = RBK_REQUEST, .cost = 1.0},
                                           .keys = &keys[i],
                                           .claims = &claims[i],
                                           .len = 1};
    }
}

/* Returns how the connection fares. */
static enum redbucket_status decide(bool *usable)
{
    struct rbk_deadline deadline;
    struct rbk_use use = {.pool = &pool, .deadline = &deadline};
    enum redbucket_status status;

    rbk_deadline_start(&deadline, 1.0);
    assert_int_equal(rbk_pool_take(&pool, &deadline, &use.peer), REDBUCKET_OK);
    status = rbk_script_decide(&use, requests, REQUESTS);
    *usable = use.usable;
    rbk_pool_give(&pool, use.peer, status, use.usable);
    rbk_pool_fini(&pool);
    return status;
}

static void assert_call(size_t number, enum redbucket_status status)
{
    for (size_t i = number * RBK_CALL_REQUESTS; i < (number + 1) * RBK_CALL_REQUESTS; i++) {
        assert_int_equal(requests[i].status, status);
        if (status == REDBUCKET_OK)
            assert_true(claims[i].level == (double)i);
    }
}

static size_t count(const char *word)
{
    size_t found = 0;

    for (const char *at = fake_nodes.log; (at = strstr(at, word)) != NULL; at++)
        found++;
    return found;
}

static void only_what_was_forgotten_is_sent_again(void **state)
{
    bool usable;

    (void)state;
    begin("NOSCRIPT No", NULL, "NOSCRIPT No");
    assert_int_equal(decide(&usable), REDBUCKET_OK);
    assert_true(usable);
    for (size_t i = 0; i < 3; i++)
        assert_call(i, REDBUCKET_OK);
    assert_int_equal(count("EVALSHA "), 3);
    assert_int_equal(count("EVAL "), 2);
    assert_int_equal(count(" 32 33 "), 1);
}

static void a_refusal_is_its_own_calls(void **state)
{
    bool usable;

    (void)state;
    begin(NULL, "OOM command not allowed", NULL);
    assert_int_equal(decide(&usable), REDBUCKET_ERROR_UNAVAILABLE);
    assert_true(usable);
    assert_call(0, REDBUCKET_OK);
    assert_call(1, REDBUCKET_ERROR_UNAVAILABLE);
    assert_call(2, REDBUCKET_OK);
}

static void nonsense_is_the_last_that_is_heard(void **state)
{
    bool usable;

    (void)state;
    begin(NULL, FAKE_GARBAGE, NULL);
    assert_int_equal(decide(&usable), REDBUCKET_ERROR_PROTOCOL);
    assert_false(usable);
    assert_call(0, REDBUCKET_OK);
    assert_call(1, REDBUCKET_ERROR_PROTOCOL);
    assert_call(2, REDBUCKET_ERROR_PROTOCOL);
}

static void what_was_forgotten_is_not_sent_after_nonsense(void **state)
{
    bool usable;

    (void)state;
    begin("NOSCRIPT No", FAKE_GARBAGE, NULL);
    assert_int_equal(decide(&usable), REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(count("EVAL "), 0);
    for (size_t i = 0; i < 3; i++)
        assert_call(i, REDBUCKET_ERROR_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_forgotten_is_sent_again),
        cmocka_unit_test(a_refusal_is_its_own_calls),
        cmocka_unit_test(nonsense_is_the_last_that_is_heard),
        cmocka_unit_test(what_was_forgotten_is_not_sent_after_nonsense),
    };

    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
