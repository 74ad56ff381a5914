/* SPDX-License-Identifier: MIT */
/*
 * Arrays of requests whose buckets lie in slots all over a cluster: each decided as by itself, in
 * order, whatever the keys are made of; one that can't be read fails alone; and a script that nodes
 * have forgotten, all or one, costs no answer.
 */
#include "clustered.h"
#include "processes.h"
#include "wire/slot.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST 600

static char texts[MOST][32];
static struct redbucket_key keys[MOST];
static struct redbucket_request array[MOST];

/* `len` requests over `distinct` keys in turn. */
static void make_array(size_t len, size_t distinct)
{
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "key-%zu", i % distinct);
        keys[i] = (struct redbucket_key){.limit = "a", .key = texts[i]};
        array[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1};
    }
}

static void limit_a(struct clustered *clustered, double burst)
{
    clustered_limit(clustered, "a",
                    (struct redbucket_limit){.rate = 0.001, .burst = burst, .expiry = 60});
}

static void arrays_over_many_slots_are_decided_in_order(void **state)
{
    static const size_t lengths[] = {1, 2, 31, 32, 33, 127, 128, 129, MOST};
    struct clustered *clustered = *state;

    limit_a(clustered, 2);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t distinct = lengths[i] / 5 + 1;

        clustered_flush(clustered);
        make_array(lengths[i], distinct);
        assert_int_equal(redbucket_decide(clustered->limiter, array, lengths[i]), REDBUCKET_OK);
        for (size_t k = 0; k < lengths[i]; k++) {
            size_t before = k / distinct;

            assert_int_equal(array[k].response.accepted, before < 3);
            assert_int_equal(array[k].response.remaining, before < 3 ? 2 - before : 0);
        }
    }
}

/* A request over several slots is done, or has given back, before a later one of the array looks at
 * its buckets; and comes behind an earlier one. */
static void steps_keep_the_order_of_the_array(void **state)
{
    static const struct redbucket_key both[] = {{.limit = "a", .key = "1"},
                                                {.limit = "b", .key = "2"}};
    static const struct {
        size_t first; /* of `both` */
        size_t len;
    } asked[][3] = {
        {{0, 2}, {1, 1}, {0, 1}}, {{0, 2}, {0, 1}, {1, 1}}, {{0, 1}, {0, 2}, {1, 1}},
        {{1, 1}, {0, 2}, {0, 1}}, {{0, 2}, {0, 2}, {0, 1}},
    };
    static const bool accepted[][3] = {{true, false, false},
                                       {true, false, false},
                                       {true, false, true},
                                       {true, false, true},
                                       {true, false, false}};
    struct clustered *clustered = *state;

    limit_a(clustered, 0);
    clustered_limit(clustered, "b", (struct redbucket_limit){.rate = 0.001, .expiry = 60});
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        clustered_flush(clustered);
        for (size_t j = 0; j < 3; j++)
            array[j] = (struct redbucket_request){
                .keys = &both[asked[i][j].first], .keys_len = asked[i][j].len, .cost = 1};
        assert_int_equal(redbucket_decide(clustered->limiter, array, 3), REDBUCKET_OK);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(array[j].response.accepted, accepted[i][j]);
    }
}

/* And is stored where a cluster's servers would look for it. */
static void every_node_has_its_part(void **state)
{
    struct clustered *clustered = *state;
    size_t at[TEST_CLUSTER_NODES] = {0};

    limit_a(clustered, 2);
    make_array(MOST, MOST);
    assert_int_equal(redbucket_decide(clustered->limiter, array, MOST), REDBUCKET_OK);
    for (size_t i = 0; i < MOST; i++)
        at[clustered_node(clustered, "a", texts[i], NULL)]++;
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        redisReply *reply = test_server_ask(clustered->cluster->nodes[i], "DBSIZE", NULL);

        assert_true(at[i] > MOST / 6);
        assert_int_equal(reply->integer, at[i]);
        freeReplyObject(reply);
    }
    for (size_t i = 0; i < MOST; i += 50)
        assert_true(clustered_value(clustered, "a", texts[i]) == 1.0);
}

/* How often nodes have sent somebody elsewhere. */
static long long redirections(const struct clustered *clustered)
{
    long long count = 0;

    for (size_t i = 0; i < clustered->cluster->nodes_len; i++) {
        redisReply *reply =
            test_server_ask(clustered->cluster->nodes[i], "INFO", "errorstats", NULL);
        const char *at = strstr(reply->str, "errorstat_MOVED:count=");

        count += at != NULL ? atoll(strchr(at, '=') + 1) : 0;
        freeReplyObject(reply);
    }
    return count;
}

/* The map is read before anybody is asked, and again after the first who was wrongly asked: not
 * each slot has to find its way by itself. */
static void nodes_are_asked_for_their_own_slots(void **state)
{
    struct clustered *clustered = *state;
    long long before = redirections(clustered);

    limit_a(clustered, 9);
    make_array(MOST, MOST);
    assert_int_equal(redbucket_decide(clustered->limiter, array, MOST), REDBUCKET_OK);
    assert_int_equal(redirections(clustered), before);

    assert_true(test_cluster_migrate(clustered->cluster, 0, 400, 1));
    assert_true(test_cluster_settle(clustered->cluster));
    for (int i = 0; i < 3; i++) {
        test_pause(0.15); /* it is not read more often than every tenth of a second */
        before = redirections(clustered);
        assert_int_equal(redbucket_decide(clustered->limiter, array, MOST), REDBUCKET_OK);
    }
    assert_int_equal(redirections(clustered), before);
    assert_true(test_cluster_migrate(clustered->cluster, 0, 400, 0));
    assert_true(test_cluster_settle(clustered->cluster));
}

static void every_operation_works(void **state)
{
    static const struct {
        enum redbucket_operation operation;
        double cost;
        bool accepted;
        int64_t remaining;
    } steps[] = {
        {REDBUCKET_PEEK, 1, true, 2},    {REDBUCKET_REQUEST, 2, true, 1},
        {REDBUCKET_REQUEST, 1, true, 0}, {REDBUCKET_REQUEST, 1, false, 0},
        {REDBUCKET_REFUND, 2, true, 2},  {REDBUCKET_CHARGE, 9, true, 0},
        {REDBUCKET_PEEK, 1, false, 0},   {REDBUCKET_RESET, 0, true, 3},
        {REDBUCKET_REQUEST, 3, true, 0},
    };
    struct clustered *clustered = *state;

    limit_a(clustered, 2);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        make_array(60, 60);
        for (size_t k = 0; k < 60; k++) {
            array[k].operation = steps[i].operation;
            array[k].cost = steps[i].cost;
        }
        assert_int_equal(redbucket_decide(clustered->limiter, array, 60), REDBUCKET_OK);
        for (size_t k = 0; k < 60; k++) {
            if (array[k].response.accepted != steps[i].accepted ||
                array[k].response.remaining != steps[i].remaining)
                fail_msg("step %zu, key %zu", i, k);
        }
    }
    assert_true(clustered_value(clustered, "a", texts[7]) == 3.0);
}

/* Several limits of one request, in one slot or in several, and in either order; and arrays of
 * such. */
static void requests_of_several_limits_are_all_or_nothing(void **state)
{
    struct redbucket_key pair[2][2] = {{{"a", "x"}, {"b", "y"}}, {{"b", "y"}, {"a", "x"}}};
    struct clustered *clustered = *state;

    limit_a(clustered, 9);
    clustered_limit(clustered, "b", (struct redbucket_limit){.rate = 0.001, .burst = 4});
    for (size_t i = 0; i < 20; i++)
        array[i] = (struct redbucket_request){.keys = pair[i % 2], .keys_len = 2, .cost = 1};
    assert_int_equal(redbucket_decide(clustered->limiter, array, 20), REDBUCKET_OK);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(array[i].response.accepted, i < 5);
        assert_int_equal(array[i].response.remaining, i < 5 ? 4 - i : 0);
        if (i >= 5)
            assert_int_equal(array[i].response.decided, i % 2 == 0);
    }
    double level = clustered_value(clustered, "a", "x");

    assert_true(level >= 4.99 && level <= 5.0);
}

/* Under the default format they are in slots 5883 and 4276. */
static void two_limits_of_an_everyday_request_are_decided(void **state)
{
    struct redbucket_key pair[] = {{"ip", "192.0.2.1"}, {"user", "alice"}};
    struct clustered *clustered = *state;
    struct redbucket_response response;

    clustered_limit(clustered, "ip", (struct redbucket_limit){.rate = 0.001, .burst = 1});
    clustered_limit(clustered, "user", (struct redbucket_limit){.rate = 0.001, .burst = 1});
    for (int i = 0; i < 3; i++) {
        assert_int_equal(redbucket_request(clustered->limiter, pair, 2, &response), REDBUCKET_OK);
        assert_int_equal(response.accepted, i < 2);
        assert_true(response.delay == 0.0);
    }
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static void assert_stored(struct clustered *clustered, const char *key, size_t len)
{
    static unsigned char name[32768];
    const struct redbucket_key named = {.limit = "a", .key = key, .key_len = len};
    size_t name_len = clustered_name(clustered, "a", key, len, name, sizeof name);
    int slot = test_cluster_slot(clustered->cluster, name, name_len);
    const char *argv[] = {"EXISTS", (const char *)name};
    const size_t lengths[] = {6, name_len};
    struct redbucket_response response;

    assert_int_equal(redbucket_request(clustered->limiter, &named, 1, &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_int_equal(response.remaining, 2);
    size_t owner = test_cluster_owner(clustered->cluster, (unsigned)slot);
    redisReply *reply = test_server_call(clustered->cluster->nodes[owner], 2, argv, lengths);

    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

static void keys_are_any_bytes(void **state)
{
    static const char *const keys_of_text[] = {
        "{a}",  "x{a}y", "{}a",         "{}{a}",     "{a",
        "}a{",  "{{a}}", "a}b",         "%7b",       "\xc3\xa4\xe2\x82\xac",
        "\r\n", " ",     "2001:db8::7", "{\xc3\xa4}"};
    struct clustered *clustered = *state;
    static char large[10240];

    limit_a(clustered, 2);
    for (size_t i = 0; i < sizeof keys_of_text / sizeof keys_of_text[0]; i++)
        assert_stored(clustered, keys_of_text[i], strlen(keys_of_text[i]));
    assert_stored(clustered, "\0", 1);
    assert_stored(clustered, "a\0b", 3);
    assert_stored(clustered, "{\0}\0", 4);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i * 7 + i / 256);
    assert_stored(clustered, large, sizeof large);
    large[9000] = '}';
    large[1] = '{';
    assert_stored(clustered, large, sizeof large);
}

/* ---- What can be wrong with one ------------------------------------------------------------- */

static void one_that_cannot_be_read_fails_alone(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_error error;

    limit_a(clustered, 2);
    make_array(300, 300);
    for (size_t i = 11; i < 300; i += 100)
        freeReplyObject(clustered_ask(clustered, "a", texts[i], "RPUSH", "x", NULL));
    freeReplyObject(clustered_ask(clustered, "a", texts[12], "SET", "15 bytes, no more", NULL));
    assert_int_equal(redbucket_decide(clustered->limiter, array, 300), REDBUCKET_ERROR_STATE);
    for (size_t i = 0; i < 300; i++) {
        bool bad = i % 100 == 11 || i == 12;

        assert_int_equal(array[i].status, bad ? REDBUCKET_ERROR_STATE : REDBUCKET_OK);
        if (!bad) {
            assert_true(array[i].response.accepted);
            continue;
        }
        assert_int_equal(array[i].failed, 0);
        redbucket_request_error(&array[i], &error);
        assert_non_null(strstr(error.message, texts[i]));
    }
    redisReply *reply = clustered_ask(clustered, "a", texts[111], "LLEN", NULL);

    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

/* Whichever of the two it is, the other is as it was. */
static void one_of_two_that_cannot_be_read_takes_nothing_of_the_other(void **state)
{
    struct redbucket_key pair[] = {{"a", "x"}, {"b", "x"}};
    struct redbucket_key other_way[] = {{"b", "x"}, {"a", "x"}};
    struct clustered *clustered = *state;

    limit_a(clustered, 2);
    clustered_limit(clustered, "b", (struct redbucket_limit){.rate = 0.001, .burst = 2});
    for (size_t bad = 0; bad < 2; bad++) {
        clustered_flush(clustered);
        freeReplyObject(clustered_ask(clustered, pair[bad].limit, "x", "RPUSH", "x", NULL));
        for (size_t i = 0; i < 4; i++) {
            array[0] = (struct redbucket_request){
                .keys = i % 2 == 0 ? pair : other_way, .keys_len = 2, .cost = 1};
            assert_int_equal(redbucket_decide(clustered->limiter, array, 1), REDBUCKET_ERROR_STATE);
            assert_int_equal(array[0].failed, i % 2 == 0 ? bad : 1 - bad);
        }
        double value = clustered_value(clustered, pair[1 - bad].limit, "x");

        assert_true(value >= 0.0 && value < 0.01);
    }
}

static void a_script_that_nodes_forgot_costs_no_answer(void **state)
{
    struct clustered *clustered = *state;

    limit_a(clustered, 1);
    for (size_t i = 0; i < 20; i++) {
        if (i % 2 == 0)
            clustered_everywhere(clustered, "SCRIPT", "FLUSH", NULL);
        else
            assert_true(test_server_do(clustered->cluster->nodes[i / 2 % TEST_CLUSTER_MASTERS],
                                       "SCRIPT", "FLUSH", NULL));
        make_array(100, 100);
        assert_int_equal(redbucket_decide(clustered->limiter, array, 100), REDBUCKET_OK);
        for (size_t k = 0; k < 100; k++)
            assert_int_equal(array[k].response.accepted, i < 2);
    }
}

int main(void)
{
    static const struct clustered_case cases[] = {
        CLUSTERED(CLUSTERED_ALL, arrays_over_many_slots_are_decided_in_order),
        CLUSTERED(CLUSTERED_UNTAGGED, every_node_has_its_part),
        CLUSTERED(CLUSTERED_UNTAGGED | CLUSTERED_STRUCT | CLUSTERED_REDIS,
                  nodes_are_asked_for_their_own_slots),
        CLUSTERED(CLUSTERED_ALL, every_operation_works),
        CLUSTERED(CLUSTERED_ALL, requests_of_several_limits_are_all_or_nothing),
        CLUSTERED(CLUSTERED_ALL, two_limits_of_an_everyday_request_are_decided),
        CLUSTERED(CLUSTERED_UNTAGGED, keys_are_any_bytes),
        CLUSTERED(CLUSTERED_UNTAGGED, one_that_cannot_be_read_fails_alone),
        CLUSTERED(CLUSTERED_ALL, one_of_two_that_cannot_be_read_takes_nothing_of_the_other),
        CLUSTERED(CLUSTERED_ALL, steps_keep_the_order_of_the_array),
        CLUSTERED(CLUSTERED_ALL, a_script_that_nodes_forgot_costs_no_answer),
    };

    return clustered_run("cluster_batches", cases, sizeof cases / sizeof cases[0]);
}
