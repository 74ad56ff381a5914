/* SPDX-License-Identifier: MIT */
/*
 * What is sent to the script, byte for byte, and what is made of every kind of answer to it: a
 * reply that isn't exactly one of the script's is never an answer to a request.
 */
#include "test.h"
#include "wire/call.h"
#include "wire/script.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define NOW 1700000000.5

/* Four a second, two at once, one more with a wait. */
static const struct rbk_limit four = {.rate = 4, .burst = 1, .delay = 1};
static const struct rbk_limit one = {.rate = 1, .burst = 0, .delay = 0};

struct fixture {
    struct rbk_key_format format;
    struct rbk_call call;
    struct rbk_key keys[2];
    struct rbk_claim claims[2];
    struct rbk_ask ask;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    assert_null(rbk_key_format_parse(RBK_KEY_FORMAT_DEFAULT, &fixture->format));
    rbk_call_init(&fixture->call, &fixture->format, RBK_CODEC_STRUCT);
    fixture->keys[0] =
        (struct rbk_key){(const unsigned char *)"u", 1, (const unsigned char *)"a\0b", 3};
    fixture->keys[1] = (struct rbk_key){(const unsigned char *)"ip", 2, NULL, 0};
    fixture->claims[0] = (struct rbk_claim){.limit = four, .expiry = 60};
    fixture->claims[1] = (struct rbk_claim){.limit = one};
    fixture->ask = (struct rbk_ask){.operation = RBK_REQUEST, .cost = 1, .taken_at = 0};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    rbk_call_fini(&fixture->call);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, size_t len)
{
    assert_true(rbk_call_add(&fixture->call, &fixture->ask, fixture->keys, fixture->claims, len));
}

static void check_argument(const struct rbk_command *command, size_t index, const void *bytes,
                           size_t len)
{
    assert_true(index < command->len);
    assert_int_equal(command->arguments[index].len, len);
    if (len > 0)
        assert_memory_equal(command->arguments[index].bytes, bytes, len);
}

static void keys_are_declared_and_limits_are_arguments(void **state)
{
    static const unsigned char packed[] =
        "\0"
        "\x01\x05\x02\0\0\0\0\0\0\x04\x40\0\0\x20\x40\xfc\x54\xd9\x41" /* 1 of: give back, 2, 2.5,
                                                                          NOW */
        "\0\0\0\0\0\0\x10\x40\0\0\0\0\0\0\xf0\x3f"                     /* 4, 1 */
        "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x4e\x40"                     /* 1, 60 */
        "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    struct fixture *fixture = *state;

    fixture->ask = (struct rbk_ask){RBK_GIVE_BACK, 2.5, NOW, 0};
    add(fixture, 2);
    for (int with_text = 0; with_text < 2; with_text++) {
        struct rbk_command command = rbk_call_command(&fixture->call, with_text != 0);

        assert_int_equal(command.len, 6);
        if (with_text) {
            check_argument(&command, 0, "EVAL", 4);
            check_argument(&command, 1, rbk_script_text, rbk_script_len);
        } else {
            check_argument(&command, 0, "EVALSHA", 7);
            check_argument(&command, 1, rbk_script_sha, 40);
        }
        check_argument(&command, 2, "2", 1);
        check_argument(&command, 3, "redbucket:u:a\0b", 15);
        check_argument(&command, 4, "redbucket:ip:", 13);
        check_argument(&command, 5, packed,
                       RBK_CALL_HEAD_SIZE + RBK_CALL_REQUEST_SIZE + 2 * RBK_CALL_CLAIM_SIZE);
    }
}

static unsigned char flags_of(struct fixture *fixture)
{
    struct rbk_command command = rbk_call_command(&fixture->call, false);

    return *(const unsigned char *)command.arguments[command.len - 1].bytes;
}

static void the_codec_is_an_argument(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, 1);
    assert_int_equal(flags_of(fixture), 0);
    fixture->call.codec = RBK_CODEC_JSON;
    assert_int_equal(flags_of(fixture), 2);
    add(fixture, 1);
    assert_int_equal(flags_of(fixture), 3);
}

/* A limit that many ask for crosses once, and nobody is taken for somebody else. */
static void like_requests_are_packed_once(void **state)
{
    const size_t two = RBK_CALL_REQUEST_SIZE + 2 * RBK_CALL_CLAIM_SIZE;
    const size_t one_claim = RBK_CALL_REQUEST_SIZE + RBK_CALL_CLAIM_SIZE;
    struct fixture *fixture = *state;
    const unsigned char *packed = fixture->call.packed;

    for (int i = 0; i < 3; i++)
        add(fixture, 2);
    assert_int_equal(fixture->call.packed_len, RBK_CALL_HEAD_SIZE + two);
    assert_int_equal(packed[RBK_CALL_HEAD_SIZE], 3);
    add(fixture, 1);
    assert_int_equal(fixture->call.packed_len, RBK_CALL_HEAD_SIZE + two + one_claim);
    fixture->ask.cost = 2;
    add(fixture, 1);
    fixture->claims[0].limit.delay = 2;
    add(fixture, 1);
    fixture->claims[0].expiry = 61;
    add(fixture, 1);
    fixture->ask.operation = RBK_CHARGE;
    add(fixture, 1);
    add(fixture, 0);
    add(fixture, 1);
    assert_int_equal(fixture->call.packed_len, RBK_CALL_HEAD_SIZE + two + 5 * one_claim);
    assert_int_equal(packed[RBK_CALL_HEAD_SIZE + two + 4 * one_claim], 2);
    assert_int_equal(fixture->call.requests_len, 9);
}

/* Whoever says EVALSHA must mean the text that EVAL sends. */
static void the_text_is_one_line_of_code_a_line(void **state)
{
    (void)state;
    assert_int_equal(strlen(rbk_script_text), rbk_script_len);
    assert_int_equal(strlen(rbk_script_sha), 40);
    assert_int_equal(strspn(rbk_script_sha, "0123456789abcdef"), 40);
    assert_null(strstr(rbk_script_text, "\n--"));
    assert_null(strstr(rbk_script_text, "\n "));
    assert_non_null(strstr(rbk_script_text, "redis.call('TIME')"));
    assert_null(strstr(rbk_script_text, "ARGV[2]"));
    /* A constant that is left is a variable that every call fills in, or one that nobody set. */
    assert_null(strstr(rbk_script_text, "DONE"));
    assert_null(strstr(rbk_script_text, "NONE"));
}

static void as_many_as_a_call_may_have_fit_it(void **state)
{
    struct fixture *fixture = *state;
    struct rbk_key keys[4];
    struct rbk_claim claims[4];
    unsigned char *large = malloc(10240);

    assert_non_null(large);
    memset(large, 'k', 10240);
    for (size_t i = 0; i < 4; i++) {
        keys[i] = (struct rbk_key){(const unsigned char *)"z", 1, large, 10240};
        claims[i] = fixture->claims[0];
    }
    for (int round = 0; round < 2; round++) {
        rbk_call_clear(&fixture->call);
        for (size_t i = 0; i < RBK_CALL_REQUESTS; i++) {
            fixture->ask.cost = (double)i; /* none like the one before it */
            assert_true(rbk_call_add(&fixture->call, &fixture->ask, keys, claims,
                                     RBK_CALL_CLAIMS / RBK_CALL_REQUESTS));
        }
        struct rbk_command command = rbk_call_command(&fixture->call, false);

        assert_int_equal(command.len, 4 + RBK_CALL_CLAIMS);
        check_argument(&command, 2, "128", 3);
        assert_int_equal(command.arguments[3 + RBK_CALL_CLAIMS].len, RBK_CALL_PACKED_SIZE);
        for (size_t i = 0; i < RBK_CALL_CLAIMS; i++) {
            assert_int_equal(command.arguments[3 + i].len, 10252);
            assert_memory_equal(command.arguments[3 + i].bytes, "redbucket:z:k", 13);
        }
    }
    free(large);
}

/* One day of long keys must not cost their memory for ever. */
static void the_memory_of_long_keys_is_not_kept(void **state)
{
    struct fixture *fixture = *state;
    unsigned char *large = calloc(1, 1 << 20);

    assert_non_null(large);
    fixture->keys[0].key = large;
    fixture->keys[0].key_len = 1 << 20;
    add(fixture, 1);
    rbk_call_clear(&fixture->call);
    assert_true(fixture->call.names_size <= 1 << 16);
    fixture->keys[0].key_len = 1;
    add(fixture, 1);
    assert_int_equal(rbk_call_command(&fixture->call, false).len, 5);
    free(large);
}

/* The script has to look up what it has written itself only where that can be. */
static void a_name_that_comes_twice_is_told(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *keys[3];
        unsigned char twice;
    } calls[] = {
        {{"a", "b", "c"}, 0}, {{"a", "b", "b"}, 1}, {{"a", "b", "a"}, 1},
        {{"a", "a", "a"}, 1}, {{"aa", "a", ""}, 0}, {{"", "a", ""}, 1},
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        rbk_call_clear(&fixture->call);
        for (size_t j = 0; j < 3; j++) {
            fixture->keys[0].key = (const unsigned char *)calls[i].keys[j];
            fixture->keys[0].key_len = strlen(calls[i].keys[j]);
            add(fixture, 1);
        }
        assert_int_equal(flags_of(fixture), calls[i].twice);
    }
}

static void a_request_without_a_limit_is_not_sent(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, 0);
    add(fixture, 1);
    add(fixture, 0);
    struct rbk_command command = rbk_call_command(&fixture->call, false);

    assert_int_equal(command.len, 5);
    assert_int_equal(command.arguments[4].len,
                     RBK_CALL_HEAD_SIZE + RBK_CALL_REQUEST_SIZE + RBK_CALL_CLAIM_SIZE);
}

/* ---- Replies ---- */

#define AT_TIME    0
#define AT_OUTCOME 8
#define AT_FIRST   9
#define AT_SECOND  25
#define GOOD_LEN   41

struct replies {
    unsigned char bytes[128];
    struct rbk_reply reply;
};

static void put(struct replies *replies, size_t at, double number)
{
    rbk_double_write(number, replies->bytes + at);
}

static void put_state(struct replies *replies, size_t at, double timestamp, double value)
{
    put(replies, at, timestamp);
    put(replies, at + 8, value);
}

/* What the script says of a request for both claims: the first bucket holds two, the second
 * nothing. */
static void make_good(struct replies *replies)
{
    memset(replies->bytes, 0xff, sizeof replies->bytes);
    put(replies, AT_TIME, NOW);
    replies->bytes[AT_OUTCOME] = 1;
    put_state(replies, AT_FIRST, NOW - 0.25, 2);
    replies->reply = (struct rbk_reply){
        .type = RBK_REPLY_STRING, .text = (const char *)replies->bytes, .len = GOOD_LEN};
}

static enum rbk_outcome read_one(struct fixture *fixture, const struct replies *replies,
                                 struct rbk_answer *answer, size_t *failed)
{
    struct rbk_call_reader reader;

    rbk_call_clear(&fixture->call);
    add(fixture, 2);
    if (!rbk_call_read_begin(&reader, &fixture->call, &replies->reply))
        return RBK_OUTCOME_NONSENSE;
    enum rbk_outcome outcome = rbk_call_read(&reader, &fixture->ask, fixture->claims, 2, answer);

    if (outcome == RBK_OUTCOME_STATE)
        *failed = reader.failed;

    return rbk_call_read_end(&reader) ? outcome : RBK_OUTCOME_NONSENSE;
}

static void an_answer_comes_of_the_states_and_the_servers_time(void **state)
{
    struct fixture *fixture = *state;
    struct replies replies;
    struct rbk_answer answer;
    size_t failed = 9;

    make_good(&replies);
    assert_int_equal(read_one(fixture, &replies, &answer, &failed), RBK_OUTCOME_DECIDED);
    assert_true(answer.accepted);
    assert_same(fixture->ask.now, NOW);
    assert_same(fixture->claims[0].state.timestamp, NOW);
    assert_same(fixture->claims[0].state.value, 2.0);
    assert_same(fixture->claims[1].state.value, 1.0);
    assert_int_equal(answer.remaining, 0);
    assert_int_equal(failed, 9);
}

static void a_rejection_comes_of_them_as_well(void **state)
{
    struct fixture *fixture = *state;
    struct replies replies;
    struct rbk_answer answer;
    size_t failed = 9;

    make_good(&replies);
    replies.bytes[AT_OUTCOME] = 0;
    put_state(&replies, AT_SECOND, NOW, 1);
    assert_int_equal(read_one(fixture, &replies, &answer, &failed), RBK_OUTCOME_DECIDED);
    assert_false(answer.accepted);
    assert_int_equal(answer.decided, 1);
    assert_true(answer.retry_after >= 1.0 && answer.retry_after < 1.00001);
}

static void a_state_that_cant_be_read_is_told_by_its_place(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 2; i++) {
        struct replies replies;
        struct rbk_answer answer;
        size_t failed = 9;

        make_good(&replies);
        replies.bytes[AT_OUTCOME] = (unsigned char)(129 + i);
        assert_int_equal(read_one(fixture, &replies, &answer, &failed), RBK_OUTCOME_STATE);
        assert_int_equal(failed, i);
    }
}

static void requests_are_read_one_after_the_other(void **state)
{
    struct fixture *fixture = *state;
    struct rbk_call_reader reader;
    struct rbk_answer answer;
    struct replies replies;

    /* Three outcomes, then the states of two claims, one and one. */
    memset(replies.bytes, 0xff, sizeof replies.bytes);
    put(&replies, AT_TIME, NOW);
    replies.bytes[AT_OUTCOME] = 1;
    replies.bytes[AT_OUTCOME + 1] = 129;
    replies.bytes[AT_OUTCOME + 2] = 1;
    put_state(&replies, AT_OUTCOME + 3, NOW - 0.25, 2);
    replies.reply = (struct rbk_reply){.type = RBK_REPLY_STRING,
                                       .text = (const char *)replies.bytes,
                                       .len = AT_OUTCOME + 3 + 4 * 16};
    add(fixture, 2);
    add(fixture, 1);
    add(fixture, 1);
    assert_true(rbk_call_read_begin(&reader, &fixture->call, &replies.reply));
    assert_int_equal(rbk_call_read(&reader, &fixture->ask, fixture->claims, 2, &answer),
                     RBK_OUTCOME_DECIDED);
    assert_false(rbk_call_read_end(&reader));
    /* One without a limit needs no answer, and is accepted between them. */
    assert_int_equal(rbk_call_read(&reader, &fixture->ask, NULL, 0, &answer), RBK_OUTCOME_DECIDED);
    assert_true(answer.accepted && answer.remaining == INT64_MAX);
    assert_int_equal(rbk_call_read(&reader, &fixture->ask, fixture->claims, 1, &answer),
                     RBK_OUTCOME_STATE);
    assert_int_equal(rbk_call_read(&reader, &fixture->ask, &fixture->claims[1], 1, &answer),
                     RBK_OUTCOME_DECIDED);
    assert_true(rbk_call_read_end(&reader));
    /* There is no more. */
    assert_int_equal(rbk_call_read(&reader, &fixture->ask, fixture->claims, 1, &answer),
                     RBK_OUTCOME_NONSENSE);
}

static void check_nonsense(struct fixture *fixture, const struct replies *replies, int line)
{
    struct rbk_answer answer;
    size_t failed;
    unsigned char *exact = malloc(replies->reply.len + 1);
    struct replies moved = *replies;

    assert_non_null(exact);
    if (replies->reply.text != NULL)
        memcpy(exact, replies->reply.text, replies->reply.len);
    moved.reply.text = (const char *)exact;
    if (read_one(fixture, &moved, &answer, &failed) != RBK_OUTCOME_NONSENSE)
        fail_msg("line %d", line);
    free(exact);
}

#define NONSENSE(...)                                \
    do {                                             \
        struct replies replies;                      \
        make_good(&replies);                         \
        __VA_ARGS__;                                 \
        check_nonsense(fixture, &replies, __LINE__); \
    } while (0)

/* Of every type, and the texts that a script might have made of a number. */
static void a_reply_that_is_no_string_of_its_length_is_nonsense(void **state)
{
    static const char *const texts[] = {
        "0", "0.33333333333333", "1e-05", "1e+15", "inf", "-nan", "", "0.5x", "12345678"};
    static const enum rbk_reply_type types[] = {RBK_REPLY_NIL, RBK_REPLY_INTEGER, RBK_REPLY_STATUS,
                                                RBK_REPLY_ERROR, RBK_REPLY_ARRAY};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        NONSENSE(replies.reply.text = texts[i]; replies.reply.len = strlen(texts[i]));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        NONSENSE(replies.reply.type = types[i]);
    for (size_t len = 0; len < 100; len++) {
        if (len != GOOD_LEN)
            NONSENSE(replies.reply.len = len);
    }
}

static void a_reply_without_a_time_is_nonsense(void **state)
{
    static const double times[] = {NAN, -NAN, INFINITY, -INFINITY, 1.1e15, -1.1e15, DBL_MAX};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        NONSENSE(put(&replies, AT_TIME, times[i]));
}

static void a_verdict_that_is_none_is_nonsense(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned outcome = 0; outcome < 256; outcome++) {
        if (outcome != 1 && outcome != 129 && outcome != 130)
            NONSENSE(replies.bytes[AT_OUTCOME] = (unsigned char)outcome);
    }
    /* The model would have rejected. */
    NONSENSE(put_state(&replies, AT_SECOND, NOW, 1));
}

static void a_state_that_is_none_is_nonsense(void **state)
{
    static const double numbers[] = {NAN, -NAN, INFINITY, -INFINITY};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        NONSENSE(put_state(&replies, AT_FIRST, numbers[i], 1));
        NONSENSE(put_state(&replies, AT_FIRST, 1, numbers[i]));
        NONSENSE(put_state(&replies, AT_SECOND, numbers[i], numbers[i]));
    }
    /* None is all bits set, and nothing less. */
    for (size_t i = 0; i < 16; i++)
        NONSENSE(replies.bytes[AT_SECOND + i] = 0xfe);
    fixture->ask.operation = RBK_RESET;
    NONSENSE(put_state(&replies, AT_FIRST, NAN, 1));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(keys_are_declared_and_limits_are_arguments),
        WITH_FIXTURE(the_codec_is_an_argument),
        WITH_FIXTURE(like_requests_are_packed_once),
        cmocka_unit_test(the_text_is_one_line_of_code_a_line),
        WITH_FIXTURE(as_many_as_a_call_may_have_fit_it),
        WITH_FIXTURE(a_name_that_comes_twice_is_told),
        WITH_FIXTURE(a_request_without_a_limit_is_not_sent),
        WITH_FIXTURE(the_memory_of_long_keys_is_not_kept),
        WITH_FIXTURE(an_answer_comes_of_the_states_and_the_servers_time),
        WITH_FIXTURE(a_rejection_comes_of_them_as_well),
        WITH_FIXTURE(a_state_that_cant_be_read_is_told_by_its_place),
        WITH_FIXTURE(requests_are_read_one_after_the_other),
        WITH_FIXTURE(a_reply_that_is_no_string_of_its_length_is_nonsense),
        WITH_FIXTURE(a_reply_without_a_time_is_nonsense),
        WITH_FIXTURE(a_verdict_that_is_none_is_nonsense),
        WITH_FIXTURE(a_state_that_is_none_is_nonsense),
    };

    return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
