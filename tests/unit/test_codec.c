/* SPDX-License-Identifier: MIT */
/*
 * States as bytes: what is written, that it reads back exactly, and that nothing else is read.
 */
#include "edge.h"
#include "locales.h"
#include "state_texts.h"
#include "test.h"
#include "wire/codec.h"

#include <float.h>
#include <math.h>

static struct rbk_state at(double timestamp, double value)
{
    return (struct rbk_state){true, timestamp, value};
}

static bool decode(enum rbk_codec codec, const void *bytes, size_t len, struct rbk_state *state)
{
    return rbk_state_decode(codec, test_edge(bytes, len), len, state);
}

static const double numbers[] = {0.0,
                                 1.0,
                                 -50.0,
                                 0.1,
                                 1.0 / 3,
                                 1700000000.123456,
                                 1582534960.134661,
                                 1e15,
                                 1e300,
                                 DBL_MAX,
                                 -1e-300,
                                 DBL_MIN,
                                 4.9e-324,
                                 -DBL_MAX,
                                 1e-9,
                                 1e22,
                                 123456789.0,
                                 0.5,
                                 9007199254740993.,
                                 1e12 + 0.0001220703125};

#define NUMBERS (sizeof numbers / sizeof numbers[0])

/* Any finite double, small and large ones alike. */
static double random_double(unsigned *seed)
{
    double number;

    do {
        unsigned char bytes[8];

        for (size_t i = 0; i < 8; i++) {
            *seed = *seed * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(*seed >> 24);
        }
        number = rbk_double_read(bytes);
    } while (!isfinite(number));
    return number;
}

static void check_round_trip(enum rbk_codec codec, double timestamp, double value)
{
    const struct rbk_state written = at(timestamp, value);
    struct rbk_state read = {.exists = false};
    unsigned char bytes[RBK_STATE_SIZE];
    size_t len = rbk_state_encode(codec, &written, bytes);

    assert_true(len < RBK_STATE_SIZE);
    assert_true(decode(codec, bytes, len, &read));
    assert_true(read.exists);
    assert_same(read.timestamp, timestamp);
    assert_same(read.value, value);
}

static void check_round_trips(enum rbk_codec codec)
{
    unsigned seed = 1;

    for (size_t i = 0; i < NUMBERS * NUMBERS; i++)
        check_round_trip(codec, numbers[i / NUMBERS], numbers[i % NUMBERS]);
    for (int i = 0; i < 20000; i++)
        check_round_trip(codec, random_double(&seed), random_double(&seed));
}

static void states_read_back_exactly(void **state)
{
    (void)state;
    check_round_trips(RBK_CODEC_STRUCT);
    check_round_trips(RBK_CODEC_JSON);
}

static void a_struct_is_two_little_endian_doubles(void **state)
{
    static const unsigned char expected[16] = {0, 0, 0x40, 0x5c, 0x32, 0x4c, 0xd9, 0x41,
                                               0, 0, 0,    0,    0,    0,    0x04, 0x40};
    const struct rbk_state one = at(1697696113.0, 2.5);
    unsigned char bytes[RBK_STATE_SIZE];
    struct rbk_state read;

    (void)state;
    assert_int_equal(rbk_state_encode(RBK_CODEC_STRUCT, &one, bytes), 16);
    assert_memory_equal(bytes, expected, 16);
    assert_true(decode(RBK_CODEC_STRUCT, expected, 16, &read));
    assert_same(read.timestamp, 1697696113.0);
    assert_same(read.value, 2.5);
}

static void json_is_written_in_the_fewest_digits_that_read_back(void **state)
{
    static const struct {
        double timestamp, value;
        const char *text;
    } states[] = {
        {1700000000.5, 2.5, "{\"t\":1700000000.5,\"v\":2.5}"},
        {1582534960.134661, 1, "{\"t\":1582534960.134661,\"v\":1}"},
        {1700000000.123456, 1.0 / 3, "{\"t\":1700000000.123456,\"v\":0.3333333333333333}"},
        {0, 1e300, "{\"t\":0,\"v\":1e+300}"},
        {-1, -0.0, "{\"t\":-1,\"v\":0}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const struct rbk_state one = at(states[i].timestamp, states[i].value);
        unsigned char bytes[RBK_STATE_SIZE];
        size_t len = rbk_state_encode(RBK_CODEC_JSON, &one, bytes);

        assert_int_equal(len, strlen(states[i].text));
        assert_memory_equal(bytes, states[i].text, len);
    }
}

static void a_struct_of_another_length_is_no_state(void **state)
{
    const unsigned char zeros[64] = {0};
    struct rbk_state read = at(7, 8);

    (void)state;
    for (size_t len = 0; len < sizeof zeros; len++) {
        if (len != 16)
            assert_false(decode(RBK_CODEC_STRUCT, zeros, len, &read));
    }
    assert_same(read.timestamp, 7.0);
    assert_same(read.value, 8.0);
}

static void what_is_not_finite_is_no_state(void **state)
{
    static const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    unsigned char ones[16];

    (void)state;
    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct rbk_state states[] = {at(bad[i], 1), at(1, bad[i])};

        for (size_t j = 0; j < 2; j++) {
            unsigned char bytes[RBK_STATE_SIZE];
            struct rbk_state read = at(7, 8);
            size_t len = rbk_state_encode(RBK_CODEC_STRUCT, &states[j], bytes);

            assert_false(decode(RBK_CODEC_STRUCT, bytes, len, &read));
            len = rbk_state_encode(RBK_CODEC_JSON, &states[j], bytes);
            assert_false(decode(RBK_CODEC_JSON, bytes, len, &read));
            assert_false(decode(RBK_CODEC_STRUCT, ones, sizeof ones, &read));
            assert_same(read.timestamp, 7.0);
        }
    }
}

static void check_text(const struct test_state_text *text)
{
    struct rbk_state read = at(7, 8);

    if (decode(RBK_CODEC_JSON, text->text, text->len, &read) != text->good)
        fail_msg("%.*s: %s", (int)text->len, text->text, text->good ? "not read" : "read");
    assert_same(read.timestamp, text->good ? text->timestamp : 7.0);
    assert_same(read.value, text->good ? text->value : 8.0);
}

static void json_is_read_by_its_grammar(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_state_texts_len; i++)
        check_text(&test_state_texts[i]);
}

static void json_has_bounds(void **state)
{
    char text[TEST_STATE_TEXT_MAX + 1];
    struct rbk_state read;

    (void)state;
    for (size_t i = 0; i < test_state_bounds_len; i++) {
        for (unsigned over = 0; over < 2; over++) {
            size_t len = test_state_bounds[i](text, over);

            if (rbk_state_decode(RBK_CODEC_JSON, (unsigned char *)text, len, &read) == (over == 1))
                fail_msg("bound %zu, over %u", i, over);
        }
    }
}

/* No beginning of a state in JSON is one, and none is read further than it goes. */
static void json_that_ends_early_is_no_state(void **state)
{
    struct rbk_state read;

    (void)state;
    for (size_t i = 0; i < test_state_texts_len; i++) {
        const struct test_state_text *text = &test_state_texts[i];

        for (size_t len = 0; len < text->len; len++) {
            bool is = decode(RBK_CODEC_JSON, text->text, len, &read);

            if (text->good && memchr(text->text + len, '}', text->len - len) != NULL)
                assert_false(is);
        }
    }
}

static void a_codec_does_not_read_the_other(void **state)
{
    const struct rbk_state one = at(1700000000.5, 2.5);
    unsigned char bytes[RBK_STATE_SIZE];
    struct rbk_state read;

    (void)state;
    size_t len = rbk_state_encode(RBK_CODEC_STRUCT, &one, bytes);

    assert_false(decode(RBK_CODEC_JSON, bytes, len, &read));
    len = rbk_state_encode(RBK_CODEC_JSON, &one, bytes);
    assert_false(decode(RBK_CODEC_STRUCT, bytes, len, &read));
    /* 16 bytes are a struct, whatever they spell: the configured codec alone decides. */
    assert_true(decode(RBK_CODEC_STRUCT, "{\"t\":10,\"v\":200}", 16, &read));
}

/* Whatever a mutant is, reading it is safe, and what is read can be written and read again. */
static void mutants_are_read_or_refused(void **state)
{
    unsigned seed = 2;
    unsigned good = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[TEST_STATE_TEXT_MAX];
        size_t len = test_state_mutant(&seed, text);
        struct rbk_state read;

        if (decode(RBK_CODEC_JSON, text, len, &read)) {
            check_round_trip(RBK_CODEC_JSON, read.timestamp, read.value);
            good++;
        }
    }
    assert_true(good > 1000 && good < 19000);
}

static void locales_change_nothing(void **state)
{
    need_locale(*state);
    check_round_trips(RBK_CODEC_JSON);
    json_is_written_in_the_fewest_digits_that_read_back(state);
    json_is_read_by_its_grammar(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_read_back_exactly),
        cmocka_unit_test(a_struct_is_two_little_endian_doubles),
        cmocka_unit_test(json_is_written_in_the_fewest_digits_that_read_back),
        cmocka_unit_test(a_struct_of_another_length_is_no_state),
        cmocka_unit_test(what_is_not_finite_is_no_state),
        cmocka_unit_test(json_is_read_by_its_grammar),
        cmocka_unit_test(json_has_bounds),
        cmocka_unit_test(json_that_ends_early_is_no_state),
        cmocka_unit_test(a_codec_does_not_read_the_other),
        cmocka_unit_test(mutants_are_read_or_refused),
        {"json_in_german", locales_change_nothing, enter_locale, leave_locale, &german},
        {"json_in_pashto", locales_change_nothing, enter_locale, leave_locale, &pashto},
    };

    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
