/* SPDX-License-Identifier: MIT */
/*
 * What is JSON by RFC 8259 and has both numbers is a state, whatever else is in it; two readers of
 * one grammar then differ where one of them is lenient, so most of these are where cjson is.
 */
#include "state_texts.h"

#include <stdio.h>
#include <string.h>

#define GOOD(text, t, v)                       \
    {                                          \
        text, sizeof(text) - 1, true, (t), (v) \
    }
#define BAD(text)                           \
    {                                       \
        text, sizeof(text) - 1, false, 0, 0 \
    }

const struct test_state_text test_state_texts[] = {
    GOOD("{\"t\":1700000000.5,\"v\":2.5}", 1700000000.5, 2.5),
    GOOD("{\"v\":2.5,\"t\":1700000000.5}", 1700000000.5, 2.5),
    GOOD(" { \"t\" : 17000000005e-1 , \"v\" : 2.5E0 } ", 1700000000.5, 2.5),
    GOOD("\t\r\n{\n\"t\"\r:\t1\n,\"v\":2\n}\r\n", 1, 2),
    GOOD("{\"t\":1.7000000005e+9,\"v\":2.5,\"x\":[1,{\"t\":9}]}", 1700000000.5, 2.5),
    GOOD("{\"v\":1,\"t\":1582534960.1347}", 1582534960.1347, 1),
    GOOD("{\"t\":1582534960.134661,\"v\":1.0}", 1582534960.134661, 1),
    GOOD("{\"t\":1582534960,\"v\":1}", 1582534960, 1),
    GOOD("{\"t\":1,\"v\":0.1}", 1, 0.1),
    GOOD("{\"t\":1e-400,\"v\":5e-324}", 0, 5e-324),
    GOOD("{\"t\":-1.5,\"v\":-3}", -1.5, -3),
    GOOD("{\"t\":-0,\"v\":-0.0}", 0, 0),
    GOOD("{\"t\":0e99,\"v\":1E+300}", 0, 1e300),
    GOOD("{\"t\":9007199254740993,\"v\":2}", 9007199254740992, 2),
    GOOD("{\"t\":0.30000000000000004,\"v\":1.7976931348623157e308}", 0.30000000000000004,
         1.7976931348623157e308),
    /* Of a member given twice the last counts. */
    GOOD("{\"t\":1,\"v\":2,\"t\":3}", 3, 2),
    GOOD("{\"t\":null,\"v\":2,\"t\":3}", 3, 2),
    GOOD("{\"t\":1e999,\"v\":2,\"t\":3}", 3, 2),
    BAD("{\"t\":1,\"v\":2,\"t\":null}"),
    BAD("{\"t\":1,\"v\":2,\"t\":1e999}"),
    BAD("{\"t\":1,\"v\":2,\"t\":\"3\"}"),
    /* Names are what they spell. */
    GOOD("{\"\\u0074\":1,\"\\u0076\":2}", 1, 2),
    BAD("{\"\\U0074\":1,\"v\":2}"),
    BAD("{\"\\t\":1,\"v\":2}"),
    BAD("{\"T\":1,\"V\":2}"),
    BAD("{\"t\\u0000\":1,\"v\":2}"),
    BAD("{\"t \":1,\"v\":2}"),
    BAD("{t:1,v:2}"),
    BAD("{'t':1,'v':2}"),
    BAD("{\"\":1,\"v\":2}"),
    GOOD("{\"\":0,\"t\":1,\"v\":2}", 1, 2),
    /* Other members are passed over, and are JSON. */
    GOOD("{\"t\":1,\"v\":2,\"x\":true,\"y\":false,\"z\":null}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":{},\"y\":[],\"z\":[[],{}]}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":\"}{][,:\\\"\"}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":\"\\\\\",\"y\":\"\\/\\b\\f\\n\\r\\t\"}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":\"\\u00e9\\uD834\\udd1e\"}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":\"h\xc3\xa9\x7f\"}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":1e999}", 1, 2),
    GOOD("{\"t\":1,\"v\":2,\"x\":\"nan inf 0x10 01 +1 1. .5 1e\"}", 1, 2),
    BAD("{\"t\":1,\"v\":2,\"x\":nan}"),
    BAD("{\"t\":1,\"v\":2,\"x\":[NaN]}"),
    BAD("{\"t\":1,\"v\":2,\"x\":-Infinity}"),
    BAD("{\"t\":1,\"v\":2,\"x\":01}"),
    BAD("{\"t\":1,\"v\":2,\"x\":truefalse}"),
    BAD("{\"t\":1,\"v\":2,\"x\":tru}"),
    BAD("{\"t\":1,\"v\":2,\"x\":True}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\t\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\\t\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\x41\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\u12\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\u12g4\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\ud834\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\ud834x\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\ud834\\n\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\ud834\\u0041\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\udd1e\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\\udd1e\\ud834\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"\0\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":\"}"),
    BAD("{\"t\":1,\"v\":2,\"x\":[1,]}"),
    BAD("{\"t\":1,\"v\":2,\"x\":[,1]}"),
    BAD("{\"t\":1,\"v\":2,\"x\":{\"a\"}}"),
    BAD("{\"t\":1,\"v\":2,\"x\":[1}}"),
    BAD("{\"t\":1,\"v\":2,}"),
    BAD("{,\"t\":1,\"v\":2}"),
    BAD("{\"t\":1 \"v\":2}"),
    BAD("{\"t\" 1,\"v\":2}"),
    BAD("{\"t\"::1,\"v\":2}"),
    /* What is no object with both, or has something around it. */
    BAD(""),
    BAD(" "),
    BAD("null"),
    BAD("1"),
    BAD("\"t\""),
    BAD("[]"),
    BAD("[1,2]"),
    BAD("[{\"t\":1,\"v\":2}]"),
    BAD("{}"),
    BAD("{\"t\":1}"),
    BAD("{\"v\":1}"),
    BAD("{\"t\":{\"t\":1},\"v\":2}"),
    BAD("{\"x\":{\"t\":1,\"v\":2}}"),
    BAD("{\"t\":\"1\",\"v\":1}"),
    BAD("{\"t\":null,\"v\":1}"),
    BAD("{\"t\":true,\"v\":1}"),
    BAD("{\"t\":[1],\"v\":1}"),
    BAD("{\"t\":1,\"v\":1"),
    BAD("\"t\":1,\"v\":1}"),
    BAD("{\"t\":1,\"v\":1}x"),
    BAD("{\"t\":1,\"v\":1}}"),
    BAD("{\"t\":1,\"v\":1}{\"t\":1,\"v\":1}"),
    BAD("{\"t\":1,\"v\":1}\0"),
    BAD("{\"t\":1,\"v\":1}\0x"),
    BAD("\0{\"t\":1,\"v\":1}"),
    BAD("{\0\"t\":1,\"v\":1}"),
    BAD("\xef\xbb\xbf{\"t\":1,\"v\":1}"),
    BAD("{\"t\":1,\"v\":1}\v"),
    BAD("{\"t\":1,\"v\":1}\f"),
    BAD("{\"t\":1,\"v\":1}\xa0"),
    BAD("{\"t\":1,/**/\"v\":1}"),
    BAD("{\"t\":1,\"v\":1};"),
    /* What is no number. */
    BAD("{\"t\":NaN,\"v\":1}"),
    BAD("{\"t\":nan,\"v\":1}"),
    BAD("{\"t\":Infinity,\"v\":1}"),
    BAD("{\"t\":-inf,\"v\":1}"),
    BAD("{\"t\":0x10,\"v\":1}"),
    BAD("{\"t\":1e999,\"v\":1}"),
    BAD("{\"t\":1,\"v\":-1e999}"),
    BAD("{\"t\":1,5,\"v\":1}"),
    BAD("{\"t\":01,\"v\":1}"),
    BAD("{\"t\":-01,\"v\":1}"),
    BAD("{\"t\":00,\"v\":1}"),
    BAD("{\"t\":+1,\"v\":1}"),
    BAD("{\"t\":--1,\"v\":1}"),
    BAD("{\"t\":-,\"v\":1}"),
    BAD("{\"t\":1.,\"v\":1}"),
    BAD("{\"t\":.5,\"v\":1}"),
    BAD("{\"t\":1.e5,\"v\":1}"),
    BAD("{\"t\":1e,\"v\":1}"),
    BAD("{\"t\":1e+,\"v\":1}"),
    BAD("{\"t\":1e5.5,\"v\":1}"),
    BAD("{\"t\":1.5.5,\"v\":1}"),
    BAD("{\"t\":1 2,\"v\":1}"),
    BAD("{\"t\":1_0,\"v\":1}"),
    BAD("{\"t\":1f,\"v\":1}"),
    BAD("{\"t\":1-1,\"v\":1}"),
    BAD("{\"t\":,\"v\":1}"),
};

const size_t test_state_texts_len = sizeof test_state_texts / sizeof test_state_texts[0];

/* As long as a text may be, by the space around. */
static size_t length(char out[TEST_STATE_TEXT_MAX + 1], unsigned over)
{
    static const char text[] = "{\"t\":1,\"v\":2}";
    size_t len = TEST_STATE_TEXT_MAX + over;

    memset(out, ' ', len);
    memcpy(out, text, sizeof text - 1);
    return len;
}

static size_t number_of(const char *before, const char *behind, char *out, unsigned over)
{
    size_t digits = 64 + over;
    size_t len = strlen(before);

    memcpy(out, before, len);
    memset(out + len, '1', digits);
    memcpy(out + len + digits, behind, strlen(behind));
    return len + digits + strlen(behind);
}

static size_t digits_of_a_number(char out[TEST_STATE_TEXT_MAX + 1], unsigned over)
{
    return number_of("{\"t\":", ",\"v\":2}", out, over);
}

static size_t digits_of_another_number(char out[TEST_STATE_TEXT_MAX + 1], unsigned over)
{
    return number_of("{\"t\":1,\"v\":2,\"x\":", "}", out, over);
}

static size_t digits_of_a_number_within(char out[TEST_STATE_TEXT_MAX + 1], unsigned over)
{
    return number_of("{\"t\":1,\"v\":2,\"x\":[[", "]]}", out, over);
}

/* A thousand, the object itself among them. */
static size_t depth(char out[TEST_STATE_TEXT_MAX + 1], unsigned over)
{
    static const char before[] = "{\"t\":1,\"v\":2,\"x\":";
    size_t levels = 999 + over;
    size_t len = sizeof before - 1;

    memcpy(out, before, len);
    memset(out + len, '[', levels);
    memset(out + len + levels, ']', levels);
    out[len + 2 * levels] = '}';
    return len + 2 * levels + 1;
}

test_state_bound *const test_state_bounds[] = {length, digits_of_a_number, digits_of_another_number,
                                               digits_of_a_number_within, depth};

const size_t test_state_bounds_len = sizeof test_state_bounds / sizeof test_state_bounds[0];

static unsigned draw(unsigned *seed, size_t bound)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (unsigned)((*seed >> 8) % bound);
}

/* Puts `count` bytes in the place of `gone` of them. */
static size_t splice(char *text, size_t len, size_t at, size_t gone, const char *bytes)
{
    size_t count = strlen(bytes);

    if (at + gone > len || len - gone + count >= TEST_STATE_TEXT_MAX)
        return len;
    memmove(text + at + count, text + at + gone, len - at - gone);
    memcpy(text + at, bytes, count);
    return len - gone + count;
}

/* A change of a byte, or of a piece for one that has a meaning. */
static size_t change(unsigned *seed, char *text, size_t len)
{
    static const char *const pieces[] = {
        "",   " ",  "\"", "\\", "{",    "}",    "[",    "]",     ",",      ":",       "-",
        "+",  ".",  "e",  "E",  "0",    "1",    "x",    "t",     "v",      "\"t\":",  "\"v\":1",
        "\n", "\v", "/",  "u",  "\x01", "\x80", "null", "false", "\\u00",  "\\ud800", "\\udc00",
        "0x", "1e", "99", "[]", "{}",   "nan",  "inf",  "true",  "\\\"\"", "\\\\"};
    size_t at = draw(seed, len + 1);
    const char *piece = pieces[draw(seed, sizeof pieces / sizeof pieces[0])];

    if (draw(seed, 8) == 0 && at < len) {
        text[at] = (char)draw(seed, 256);
        return len;
    }
    return splice(text, len, at, draw(seed, 3), piece);
}

size_t test_state_mutant(unsigned *seed, char out[TEST_STATE_TEXT_MAX])
{
    const struct test_state_text *from = &test_state_texts[draw(seed, test_state_texts_len)];
    size_t len = from->len;

    memcpy(out, from->text, len);
    for (unsigned changes = draw(seed, 4); changes > 0; changes--)
        len = change(seed, out, len);
    return len;
}
