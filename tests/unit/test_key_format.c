/* SPDX-License-Identifier: MIT */
/*
 * How buckets are called on a server: the rules of str.format for two fields, names of any bytes,
 * and zones that could meet in one name.
 */
#include "edge.h"
#include "test.h"
#include "wire/key_format.h"

#include <stdlib.h>

static struct rbk_key key_of(const char *zone, const void *key, size_t key_len)
{
    return (struct rbk_key){(const unsigned char *)zone, strlen(zone), key, key_len};
}

static struct rbk_key text_key(const char *zone, const char *key)
{
    return key_of(zone, key, strlen(key));
}

static void parse(const char *text, struct rbk_key_format *format)
{
    const char *fault = rbk_key_format_parse(test_edge(text, strlen(text) + 1), format);

    if (fault != NULL)
        fail_msg("%s: %s", text, fault);
}

/* The name, in memory of just its length, with a NUL behind it; freed by the caller. */
static char *name_of(const struct rbk_key_format *format, const struct rbk_key *key, size_t *len)
{
    *len = rbk_key_format_len(format, key);
    unsigned char *exact = malloc(*len);
    char *name = calloc(1, *len + 1);

    assert_non_null(exact);
    assert_non_null(name);
    rbk_key_format_write(format, key, exact);
    memcpy(name, exact, *len);
    free(exact);
    return name;
}

static void check_name(const char *text, const char *zone, const char *key, const char *expected)
{
    struct rbk_key_format format;
    struct rbk_key named = text_key(zone, key);
    size_t len;

    parse(text, &format);
    char *name = name_of(&format, &named, &len);

    assert_int_equal(len, strlen(expected));
    assert_string_equal(name, expected);
    free(name);
}

static void fields_are_replaced_and_doubled_braces_are_braces(void **state)
{
    (void)state;
    check_name(RBK_KEY_FORMAT_DEFAULT, "user", "alice", "redbucket:user:alice");
    check_name("{zone}{key}", "z", "k", "zk");
    check_name("{key}{zone}", "z", "k", "kz");
    check_name("{zone}:{key}:{zone}:{key}", "z", "k", "z:k:z:k");
    check_name("r:{{{zone}:{key}}}", "z", "k", "r:{z:k}");
    check_name("{{}}{zone}{{{{{key}}}}}", "z", "k", "{}z{{k}}");
    check_name("{{zone}}{zone}{key}", "z", "k", "{zone}zk");
    check_name("%s%n{zone} {key}%", "z", "k", "%s%nz k%");
    check_name("h\xc3\xa9:{zone}:{key}", "z", "k", "h\xc3\xa9:z:k");
}

static void what_is_replaced_is_not_looked_at_again(void **state)
{
    (void)state;
    check_name("r:{zone}:{key}", "{key}", "{zone}", "r:{key}:{zone}");
    check_name("r:{zone}:{key}", "}}", "{{", "r:}}:{{");
    check_name("r:{zone}:{key}", "a:b", "", "r:a:b:");
}

static void anything_else_in_braces_is_refused(void **state)
{
    static const struct {
        const char *text, *fault;
    } bad[] = {
        {"", "expected {zone} in it"},
        {"redbucket", "expected {zone} in it"},
        {"{zone}", "expected {key} in it"},
        {"{key}", "expected {zone} in it"},
        {"{{zone}}{key}", "expected {zone} in it"},
        {"{zone}{{key}}", "expected {key} in it"},
        {"{", "expected {zone}, {key}, {{ or }}"},
        {"{zone}{key}{", "expected {zone}, {key}, {{ or }}"},
        {"}", "expected }} for a brace"},
        {"{zone}{key}}", "expected }} for a brace"},
        {"{zone}}{key}", "expected }} for a brace"},
        {"{zone}{key}{}", "expected {zone}, {key}, {{ or }}"},
        {"{0}{zone}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone}{key}{other}", "expected {zone}, {key}, {{ or }}"},
        {"{Zone}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{ zone}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone }{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone!r}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone:>9}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone.x}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone[0]}{key}", "expected {zone}, {key}, {{ or }}"},
        {"{zone{key}}", "expected {zone}, {key}, {{ or }}"},
        {"{zone}{keys}", "expected {zone}, {key}, {{ or }}"},
        {"{zone}{key", "expected {zone}, {key}, {{ or }}"},
        {"{{{zone}{key}}", "expected }} for a brace"},
        {"{zone}{key}}}}", "expected }} for a brace"},
    };
    struct rbk_key_format format;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *text = test_edge(bad[i].text, strlen(bad[i].text) + 1);
        const char *fault = rbk_key_format_parse(text, &format);

        if (fault == NULL || strcmp(fault, bad[i].fault) != 0)
            fail_msg("%s: %s", bad[i].text, fault == NULL ? "taken" : fault);
    }
}

static void every_beginning_of_a_format_is_read_no_further_than_it_goes(void **state)
{
    static const char text[] = "a{{b}}{zone}:{{{key}}}{zone}{key}";
    struct rbk_key_format format;

    (void)state;
    for (size_t len = 0; len < sizeof text; len++) {
        char beginning[sizeof text] = {0};

        memcpy(beginning, text, len);
        (void)rbk_key_format_parse(test_edge(beginning, len + 1), &format);
    }
    parse(text, &format);
}

static void formats_are_bounded_in_bytes_and_fields(void **state)
{
    char text[RBK_KEY_FORMAT_MAX + 2];
    char fields[RBK_KEY_FORMAT_PIECES * 6 + 8] = "";
    struct rbk_key_format format;
    struct rbk_key key = text_key("z", "k");

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, "{zone}{key}", 11);
    text[RBK_KEY_FORMAT_MAX - 1] = '\0';
    parse(text, &format);
    assert_int_equal(rbk_key_format_len(&format, &key), RBK_KEY_FORMAT_MAX - 1 - 11 + 2);
    text[RBK_KEY_FORMAT_MAX - 1] = 'x';
    text[RBK_KEY_FORMAT_MAX] = '\0';
    assert_string_equal(rbk_key_format_parse(text, &format), "longer than 1023 bytes");

    for (size_t i = 0; i < RBK_KEY_FORMAT_PIECES; i++)
        strcat(fields, i % 2 == 0 ? "{zone}" : "{key}");
    parse(fields, &format);
    assert_int_equal(rbk_key_format_len(&format, &key), RBK_KEY_FORMAT_PIECES);
    strcat(fields, "x");
    assert_string_equal(rbk_key_format_parse(fields, &format), "too many fields");
}

static void keys_are_bytes_of_any_value_and_length(void **state)
{
    static const char binary[] = "a\0b\xff\n%{}";
    struct rbk_key_format format;
    struct rbk_key key = key_of("z", binary, sizeof binary - 1);
    unsigned char *large = malloc(10240);
    size_t len;

    (void)state;
    parse("r:{zone}:{key}:", &format);
    char *name = name_of(&format, &key, &len);

    assert_int_equal(len, 4 + sizeof binary);
    assert_memory_equal(name, "r:z:a\0b\xff\n%{}:", len);
    free(name);

    assert_non_null(large);
    for (size_t i = 0; i < 10240; i++)
        large[i] = (unsigned char)(i * 7);
    key = key_of("z", large, 10240);
    name = name_of(&format, &key, &len);
    assert_int_equal(len, 10245);
    assert_memory_equal(name, "r:z:", 4);
    assert_memory_equal(name + 4, large, 10240);
    assert_int_equal(name[10244], ':');
    free(name);
    free(large);
}

static bool apart(const char *text, const char *a, const char *b)
{
    struct rbk_key_format format;
    struct rbk_key of_a = text_key(a, "");
    struct rbk_key of_b = text_key(b, "");

    parse(text, &format);
    bool is = rbk_key_format_apart(&format, &of_a, &of_b);

    assert_int_equal(rbk_key_format_apart(&format, &of_b, &of_a), is);
    return is;
}

static void zones_that_could_meet_in_a_name_are_known(void **state)
{
    (void)state;
    assert_true(apart(RBK_KEY_FORMAT_DEFAULT, "user", "ip"));
    assert_true(apart(RBK_KEY_FORMAT_DEFAULT, "user", "users"));
    assert_false(apart(RBK_KEY_FORMAT_DEFAULT, "a", "a:b"));
    assert_false(apart(RBK_KEY_FORMAT_DEFAULT, "a", "a"));
    assert_false(apart("{zone}{key}", "user", "users"));
    assert_true(apart("{zone}{key}", "user", "ip"));
    assert_false(apart("{key}{zone}", "ip", "vip"));
    assert_true(apart("{key}{zone}", "ip", "ips"));
    assert_true(apart("{key}:{zone}", "ip", "vip"));
    assert_false(apart("{key}:{zone}", "b", "a:b"));
    /* Only what stands before the first key and behind the last one counts. */
    assert_false(apart("{key}:{zone}:{key}", "user", "ip"));
    assert_true(apart("{zone}:{key}:{zone}", "a", "a:b"));
    assert_false(apart("{zone}:{key}:{zone}", "a", "a:a"));
}

/* All words of up to `most` letters out of "a:". */
static size_t words(char out[][8], size_t most)
{
    size_t count = 1;

    out[0][0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(out[i]);

        for (size_t letter = 0; len < most && letter < 2; letter++) {
            memcpy(out[count], out[i], len);
            out[count][len] = "a:"[letter];
            out[count++][len + 1] = '\0';
        }
    }
    return count;
}

static bool meet(const struct rbk_key_format *format, const struct rbk_key *a,
                 const struct rbk_key *b)
{
    size_t a_len, b_len;
    char *of_a = name_of(format, a, &a_len);
    char *of_b = name_of(format, b, &b_len);
    bool same = a_len == b_len && memcmp(of_a, of_b, a_len) == 0;

    free(of_a);
    free(of_b);
    return same;
}

/* Zones of up to two letters, keys of up to five: those that are said to be apart never meet. */
static void zones_that_are_apart_never_meet(void **state)
{
    static const char *const formats[] = {"r:{zone}:{key}", "{zone}{key}", "{key}{zone}",
                                          "{key}:{zone}", "{zone}:{key}:{zone}"};
    char zones[8][8], keys[64][8];
    size_t zones_len = words(zones, 2);
    size_t keys_len = words(keys, 4);
    size_t said = 0;

    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        struct rbk_key_format format;

        parse(formats[f], &format);
        for (size_t i = 1; i < zones_len * zones_len; i++) {
            struct rbk_key a = text_key(zones[i / zones_len], "");
            struct rbk_key b = text_key(zones[i % zones_len], "");

            if (a.zone_len == 0 || b.zone_len == 0 || !rbk_key_format_apart(&format, &a, &b))
                continue;
            said++;
            for (size_t j = 0; j < keys_len * keys_len; j++) {
                a = text_key(zones[i / zones_len], keys[j / keys_len]);
                b = text_key(zones[i % zones_len], keys[j % keys_len]);
                assert_false(meet(&format, &a, &b));
            }
        }
    }
    assert_true(said > 20);
}

/* As long as they may be, and alike to the last byte of both sides. */
static void the_longest_zones_are_compared_whole(void **state)
{
    char text[RBK_KEY_FORMAT_MAX] = "";
    char a[256], b[256];

    (void)state;
    for (int i = 0; i < 15; i++)
        strcat(text, "{zone}");
    strcat(text, "{key}");
    for (int i = 0; i < 16; i++)
        strcat(text, "{zone}");
    memset(a, 'a', 255);
    a[255] = '\0';
    memcpy(b, a, sizeof b);
    assert_false(apart(text, a, b));
    b[254] = 'b';
    assert_true(apart(text, a, b));
    assert_true(apart("{key}{zone}", a, b));
    assert_true(apart("{zone}{key}", a, b));
    b[254] = '\0';
    assert_false(apart("{zone}{key}", a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_replaced_and_doubled_braces_are_braces),
        cmocka_unit_test(what_is_replaced_is_not_looked_at_again),
        cmocka_unit_test(anything_else_in_braces_is_refused),
        cmocka_unit_test(every_beginning_of_a_format_is_read_no_further_than_it_goes),
        cmocka_unit_test(formats_are_bounded_in_bytes_and_fields),
        cmocka_unit_test(keys_are_bytes_of_any_value_and_length),
        cmocka_unit_test(zones_that_could_meet_in_a_name_are_known),
        cmocka_unit_test(zones_that_are_apart_never_meet),
        cmocka_unit_test(the_longest_zones_are_compared_whole),
    };

    return cmocka_run_group_tests_name("key_format", tests, NULL, NULL);
}
