/* SPDX-License-Identifier: MIT */
/*
 * Keys that hold something else: an error that names the key, for that request alone, and whatever
 * it is stays as it is. By both methods alike, whatever else is in the request and around it.
 */
#include "redis/connection.h"
#include "served.h"
#include "wire/codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY  "redbucket:a:bad"
#define HUGE (RBK_REPLY_BYTES_MAX + (1u << 20)) /* more than a reply may have */

/* What is put under the key: by a command that makes another type, or bytes. */
struct foreign {
    const char *what;
    const char *command[5];
    const char *bytes;
    size_t len;
    int json; /* 1: no state in JSON alone, 0: no struct alone, -1: no state at all */
};

#define BYTES(what, bytes, json)                       \
    {                                                  \
        what, {NULL}, bytes, sizeof(bytes) - 1, (json) \
    }

static const struct foreign foreigners[] = {
    {"a list", {"RPUSH", KEY, "x"}, NULL, 0, -1},
    {"a hash", {"HSET", KEY, "t", "1"}, NULL, 0, -1},
    {"a set", {"SADD", KEY, "x"}, NULL, 0, -1},
    {"a sorted set", {"ZADD", KEY, "1", "x"}, NULL, 0, -1},
    BYTES("an empty string", "", -1),
    BYTES("a number", "7", -1),
    BYTES("15 bytes", "123456789012345", -1),
    BYTES("17 bytes", "12345678901234567", -1),
    BYTES("NaN as a time", "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\xf0\x3f", -1),
    BYTES("NaN as a value", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf8\x7f", -1),
    BYTES("infinity as a time", "\0\0\0\0\0\0\xf0\x7f\0\0\0\0\0\0\xf0\x3f", -1),
    BYTES("minus infinity", "\0\0\0\0\0\0\xf0\xff\0\0\0\0\0\0\xf0\x3f", -1),
    BYTES("infinity as a value", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf0\x7f", -1),
    BYTES("JSON", "{\"t\":1700000000,\"v\":1}", 0),
    BYTES("a struct", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf0\x3f", 1),
    BYTES("JSON without a value", "{\"t\":170000000}", -1),
    BYTES("JSON of NaN", "{\"t\":NaN,\"v\":1}", -1),
    BYTES("an array", "[1700000000,1]", -1),
};

#define FOREIGNERS (sizeof foreigners / sizeof foreigners[0])

static const enum redbucket_operation operations[] = {
    REDBUCKET_REQUEST, REDBUCKET_PEEK, REDBUCKET_REFUND, REDBUCKET_CHARGE, REDBUCKET_GIVE_BACK};

#define OPERATIONS (sizeof operations / sizeof operations[0])

static bool is_foreign(const struct served *served, const struct foreign *foreign)
{
    return foreign->json < 0 || foreign->json == served_json(served);
}

static void put(const struct served *served, const struct foreign *foreign)
{
    const char *const *words = foreign->command;

    freeReplyObject(served_ask(served, "DEL", KEY, NULL));
    if (foreign->bytes != NULL)
        served_put(served, KEY, foreign->bytes, foreign->len);
    else
        freeReplyObject(served_ask(served, words[0], words[1], words[2], words[3], NULL));
    freeReplyObject(served_ask(served, "EXPIRE", KEY, "1000", NULL));
}

/* All of it: type, content and that it still has its life. */
static redisReply *dump(const struct served *served)
{
    return served_ask(served, "DUMP", KEY, NULL);
}

static void check_untouched(const struct served *served, redisReply *before)
{
    redisReply *after = dump(served);

    assert_int_equal(before->type, REDIS_REPLY_STRING);
    assert_int_equal(after->type, REDIS_REPLY_STRING);
    assert_int_equal(after->len, before->len);
    assert_memory_equal(after->str, before->str, before->len);
    assert_true(served_number(served, "TTL", KEY) > 900);
    freeReplyObject(after);
}

static void add_limits(struct served *served)
{
    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 2, .expiry = 60});
    served_limit(served, "b", (struct redbucket_limit){.rate = 1, .burst = 2, .expiry = 60});
    served_limit(served, "c", (struct redbucket_limit){.rate = 1, .burst = 2, .expiry = 60});
}

static const struct redbucket_key bad = {.limit = "a", .key = "bad"};

static void check_error(const struct redbucket_request *request, size_t failed, const char *what)
{
    struct redbucket_error error;

    if (request->status != REDBUCKET_ERROR_STATE)
        fail_msg("%s: %s", what, redbucket_status_name(request->status));
    assert_int_equal(request->failed, failed);
    redbucket_request_error(request, &error);
    assert_int_equal(error.status, REDBUCKET_ERROR_STATE);
    assert_non_null(strstr(error.message, "bad"));
}

static void each_operation_fails_and_leaves_it_alone(void **state)
{
    struct served *served = *state;

    add_limits(served);
    for (size_t i = 0; i < FOREIGNERS; i++) {
        if (!is_foreign(served, &foreigners[i]))
            continue;
        put(served, &foreigners[i]);
        redisReply *before = dump(served);
        struct redbucket_state read;

        for (size_t j = 0; j < OPERATIONS; j++) {
            struct redbucket_request request = {
                .operation = operations[j], .keys = &bad, .keys_len = 1, .cost = 1};

            assert_int_equal(redbucket_decide(served->limiter, &request, 1), REDBUCKET_ERROR_STATE);
            check_error(&request, 0, foreigners[i].what);
        }
        assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_ERROR_STATE);
        check_untouched(served, before);
        freeReplyObject(before);
    }
}

/* A string under that name is thrown away as a state would be; what is of another type never. */
static void reset_removes_strings_alone(void **state)
{
    struct served *served = *state;

    add_limits(served);
    for (size_t i = 0; i < FOREIGNERS; i++) {
        struct redbucket_request reset = {
            .operation = REDBUCKET_RESET, .keys = &bad, .keys_len = 1};

        put(served, &foreigners[i]);
        redisReply *before = dump(served);
        enum redbucket_status status = redbucket_decide(served->limiter, &reset, 1);

        if (foreigners[i].bytes != NULL) {
            assert_int_equal(status, REDBUCKET_OK);
            assert_int_equal(served_number(served, "EXISTS", KEY), 0);
            assert_true(served_request(served, "bad").accepted);
        } else {
            check_error(&reset, 0, foreigners[i].what);
            check_untouched(served, before);
        }
        freeReplyObject(before);
    }
}

/* The others are decided as if it weren't there, those behind it as those before. */
static void others_of_a_batch_are_decided(void **state)
{
    const struct redbucket_key good = {.limit = "a", .key = "good"};
    struct redbucket_request batch[40];
    struct served *served = *state;

    add_limits(served);
    for (size_t i = 0; i < FOREIGNERS; i++) {
        size_t accepted = 0;

        if (!is_foreign(served, &foreigners[i]))
            continue;
        put(served, &foreigners[i]);
        redisReply *before = dump(served);

        freeReplyObject(served_ask(served, "DEL", "redbucket:a:good", NULL));
        for (size_t j = 0; j < 40; j++)
            batch[j] = (struct redbucket_request){.operation = operations[j / 2 % OPERATIONS],
                                                  .keys = j % 2 == 1 ? &bad : &good,
                                                  .keys_len = 1,
                                                  .cost = 0.5};
        assert_int_equal(redbucket_decide(served->limiter, batch, 40), REDBUCKET_ERROR_STATE);
        for (size_t j = 0; j < 40; j++) {
            if (j % 2 == 1)
                check_error(&batch[j], 0, foreigners[i].what);
            else
                accepted += batch[j].status == REDBUCKET_OK && batch[j].response.accepted;
        }
        assert_int_equal(accepted, 20);
        check_untouched(served, before);
        freeReplyObject(before);
    }
}

/* Three limits, the bad bucket at each place of them; the others are fresh, in use, or full. */
static void all_or_nothing(struct served *served, const struct foreign *foreign, size_t place,
                           unsigned others)
{
    struct redbucket_key keys[3] = {bad, {.limit = "b", .key = "k"}, {.limit = "c", .key = "k"}};
    struct redbucket_request request = {.keys = keys, .keys_len = 3, .cost = 1};
    struct redbucket_state states[2], after;

    keys[0] = keys[place];
    keys[place] = bad;
    freeReplyObject(served_ask(served, "DEL", "redbucket:b:k", "redbucket:c:k", NULL));
    for (unsigned i = 1; i < 3 && others > 0; i++) {
        struct redbucket_request fill = {.operation = REDBUCKET_CHARGE,
                                         .keys = &keys[(place + i) % 3],
                                         .keys_len = 1,
                                         .cost = i == others ? 3 : 1};

        assert_int_equal(redbucket_decide(served->limiter, &fill, 1), REDBUCKET_OK);
    }
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(redbucket_read(served->limiter, &keys[(place + i) % 3], &states[i - 1]),
                         REDBUCKET_OK);
    for (size_t j = 0; j < OPERATIONS; j++) {
        request.operation = operations[j];
        assert_int_equal(redbucket_decide(served->limiter, &request, 1), REDBUCKET_ERROR_STATE);
        check_error(&request, place, foreign->what);
        for (unsigned i = 1; i < 3; i++) {
            assert_int_equal(redbucket_read(served->limiter, &keys[(place + i) % 3], &after),
                             REDBUCKET_OK);
            assert_int_equal(after.exists, states[i - 1].exists);
            assert_true(!after.exists || (after.timestamp == states[i - 1].timestamp &&
                                          after.value == states[i - 1].value));
        }
    }
}

static void several_limits_are_all_or_nothing(void **state)
{
    struct served *served = *state;

    add_limits(served);
    for (size_t i = 0; i < FOREIGNERS; i++) {
        if (!is_foreign(served, &foreigners[i]))
            continue;
        put(served, &foreigners[i]);
        redisReply *before = dump(served);

        for (size_t place = 0; place < 3; place++) {
            for (unsigned others = 0; others < 4; others++)
                all_or_nothing(served, &foreigners[i], place, others);
        }
        check_untouched(served, before);
        freeReplyObject(before);
    }
}

/* However large, it fails that request alone, and costs no connection. */
static void a_huge_string_is_one_of_them(void **state)
{
    const struct redbucket_key good = {.limit = "a", .key = "good"};
    struct redbucket_request batch[] = {
        {.keys = &good, .keys_len = 1, .cost = 1},
        {.keys = &bad, .keys_len = 1, .cost = 1},
        {.keys = &good, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_RESET, .keys = &bad, .keys_len = 1},
    };
    struct served *served = *state;
    struct redbucket_state read;
    char *text = malloc(HUGE);

    assert_non_null(text);
    memset(text, ' ', HUGE);
    /* It would be a state if it were shorter. */
    memcpy(text, "{\"t\":1,\"v\":1}", 13);
    add_limits(served);
    served_put(served, KEY, text, HUGE);
    assert_true(served_request(served, "good").accepted);
    long long connections = test_server_info(served->server, "total_connections_received");

    assert_int_equal(redbucket_decide(served->limiter, batch, 3), REDBUCKET_ERROR_STATE);
    assert_int_equal(batch[0].status, REDBUCKET_OK);
    check_error(&batch[1], 0, "huge");
    assert_int_equal(batch[2].status, REDBUCKET_OK);
    assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_ERROR_STATE);
    assert_int_equal(served_number(served, "STRLEN", KEY), HUGE);
    assert_int_equal(redbucket_decide(served->limiter, &batch[3], 1), REDBUCKET_OK);
    assert_int_equal(served_number(served, "EXISTS", KEY), 0);
    assert_int_equal(test_server_info(served->server, "total_connections_received"), connections);
    free(text);
}

/* A text that is as long as one may be is a state, and with a byte more none. */
static void the_longest_text_is_a_state(void **state)
{
    char text[RBK_STATE_TEXT_MAX + 1];
    struct served *served = *state;
    struct redbucket_state read;

    memset(text, ' ', sizeof text);
    memcpy(text, "{\"t\":1,\"v\":1}", 13);
    add_limits(served);
    for (size_t over = 0; over < 2; over++) {
        const struct redbucket_request peek = {
            .operation = REDBUCKET_PEEK, .keys = &bad, .keys_len = 1, .cost = 1};
        enum redbucket_status status = over == 0 ? REDBUCKET_OK : REDBUCKET_ERROR_STATE;
        struct redbucket_request request = peek;

        served_put(served, KEY, text, RBK_STATE_TEXT_MAX + over);
        assert_int_equal(redbucket_read(served->limiter, &bad, &read), status);
        assert_int_equal(redbucket_decide(served->limiter, &request, 1), status);
    }
}

static void put_state(const struct served *served, const char *key, double timestamp, double value)
{
    unsigned char bytes[96];
    size_t len = served_encode(served, timestamp, value, bytes);

    served_put(served, key, bytes, len);
}

/* Nobody gets credit for a negative value. */
static void a_negative_value_counts_as_none(void **state)
{
    struct served *served = *state;
    struct redbucket_state read;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    put_state(served, KEY, SERVED_NOW, -50);
    assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_OK);
    assert_same(read.value, -50.0);
    for (int i = 0; i < 3; i++)
        assert_true(served_request(served, "bad").accepted);
    assert_false(served_request(served, "bad").accepted);
    assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_OK);
    assert_same(read.value, 3.0);
}

/* A zero has one form, as the model has it, whatever a foreigner wrote. */
static void a_negative_zero_becomes_a_zero(void **state)
{
    struct redbucket_request back = {.operation = REDBUCKET_GIVE_BACK,
                                     .keys = &bad,
                                     .keys_len = 1,
                                     .cost = 1,
                                     .taken_at = SERVED_NOW - 1000};
    struct served *served = *state;
    struct redbucket_state read;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    if (served_json(served))
        served_put(served, KEY, "{\"t\":1,\"v\":-0.0}", 16);
    else
        put_state(served, KEY, SERVED_NOW, -0.0);
    assert_int_equal(redbucket_decide(served->limiter, &back, 1), REDBUCKET_OK);
    assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_OK);
    assert_same(read.timestamp, SERVED_NOW);
    assert_same(read.value, 0.0);
}

/* All is finite, but the wait for what never fits; and the next reading is as good. */
static void extreme_values_are_rejected_without_an_end(void **state)
{
    static const double values[] = {1e15, 1e300, 1.7976931348623157e308};
    static const double times[] = {0, SERVED_NOW + 1e9, 1e300, -1e300};
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1e-9, .burst = 2});
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (size_t j = 0; j < sizeof times / sizeof times[0]; j++) {
            struct redbucket_request refund = {
                .operation = REDBUCKET_REFUND, .keys = &bad, .keys_len = 1, .cost = 1e12};
            struct redbucket_response response;
            struct redbucket_state read;

            put_state(served, KEY, times[j], values[i]);
            response = served_request(served, "bad");
            if (response.accepted && times[j] >= 0)
                fail_msg("accepted at %g since %g", values[i], times[j]);
            assert_true(isfinite(response.retry_after) && isfinite(response.reset_after));
            assert_int_equal(redbucket_decide(served->limiter, &refund, 1), REDBUCKET_OK);
            assert_int_equal(redbucket_read(served->limiter, &bad, &read), REDBUCKET_OK);
            assert_true(read.exists && isfinite(read.timestamp) && isfinite(read.value));
        }
    }
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED(each_operation_fails_and_leaves_it_alone),
        SERVED(reset_removes_strings_alone),
        SERVED(others_of_a_batch_are_decided),
        SERVED(several_limits_are_all_or_nothing),
        SERVED(a_huge_string_is_one_of_them),
        SERVED_BY(SERVED_JSON, the_longest_text_is_a_state),
        SERVED(a_negative_value_counts_as_none),
        SERVED(a_negative_zero_becomes_a_zero),
        SERVED(extreme_values_are_rejected_without_an_end),
    };

    return served_run("server_unreadable", cases, sizeof cases / sizeof cases[0]);
}
