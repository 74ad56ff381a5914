/* SPDX-License-Identifier: MIT */
/*
 * From key formats to patterns and back from names: what is matched, what is told, and what nobody
 * can tell.
 */
#include "edge.h"
#include "test.h"
#include "wire/key_name.h"

static struct rbk_key_format parse(const char *text)
{
    struct rbk_key_format format;

    assert_null(rbk_key_format_parse(text, &format));
    return format;
}

static struct rbk_key zone_of(const char *zone)
{
    return (struct rbk_key){.zone = (const unsigned char *)zone, .zone_len = strlen(zone)};
}

static void test_patterns_match_what_a_format_writes(void **state)
{
    static const struct {
        const char *format;
        const char *zone; /* or NULL */
        const char *pattern;
    } rows[] = {
        {"redbucket:{zone}:{key}", NULL, "redbucket:*:*"},
        {"redbucket:{zone}:{key}", "ip", "redbucket:ip:*"},
        {"redbucket:{zone}:{key}", "i*p?[x]\\", "redbucket:i\\*p\\?\\[x\\]\\\\:*"},
        {"{zone}{key}", NULL, "*"},
        {"{zone}{key}", "a", "a*"},
        {"a*{zone}*{key}", NULL, "a\\**\\**"},
        {"[^a-z]{{{key}}}{zone}", NULL, "\\[\\^a\\-z\\]{*}*"},
        {"{key}\\{zone}", NULL, "*\\\\*"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct rbk_key_format format = parse(rows[i].format);
        const struct rbk_key zone = zone_of(rows[i].zone != NULL ? rows[i].zone : "");
        unsigned char pattern[RBK_KEY_PATTERN_SIZE];
        const size_t len = rbk_key_pattern(&format, rows[i].zone != NULL ? &zone : NULL, pattern);

        assert_int_equal(len, strlen(rows[i].pattern));
        assert_memory_equal(pattern, rows[i].pattern, len);
    }
}

static void test_the_longest_pattern_has_room(void **state)
{
    unsigned char pattern[RBK_KEY_PATTERN_SIZE];
    char zone[256];
    char text[RBK_KEY_FORMAT_MAX];
    struct rbk_key_format format;
    struct rbk_key named;

    (void)state;
    memset(zone, '*', sizeof zone);
    zone[255] = '\0';
    text[0] = '\0';
    for (int i = 0; i < 15; i++)
        strncat(text, "?{zone}", sizeof text - strlen(text) - 1);
    strncat(text, "{key}", 6);
    strncat(text, "??????????", 11);
    format = parse(text);
    named = zone_of(zone);
    assert_true(rbk_key_pattern(&format, &named, pattern) <= sizeof pattern);
    memset(text, '*', sizeof text);
    memcpy(text, "{zone}{key}", 11);
    text[sizeof text - 1] = '\0';
    format = parse(text);
    assert_true(rbk_key_pattern(&format, &named, pattern) <= sizeof pattern);
}

static bool name_is_of(const char *text, const char *name, const char *zone, const char *key)
{
    const struct rbk_key_format format = parse(text);
    const struct rbk_key wanted = zone_of(zone);
    const size_t len = strlen(name);
    struct rbk_key found;

    if (!rbk_key_name_of(&format, test_edge(name, len), len, &wanted, &found))
        return false;
    assert_int_equal(found.key_len, strlen(key));
    assert_memory_equal(found.key, key, found.key_len);
    assert_int_equal(found.zone_len, strlen(zone));
    return true;
}

static void test_a_known_zone_tells_its_key(void **state)
{
    (void)state;
    assert_true(
        name_is_of("redbucket:{zone}:{key}", "redbucket:ip:2001:db8::1", "ip", "2001:db8::1"));
    assert_true(
        name_is_of("redbucket:{zone}:{key}", "redbucket:ip:2001:db8::1", "ip:2001", "db8::1"));
    assert_true(name_is_of("redbucket:{zone}:{key}", "redbucket:ip:", "ip", ""));
    assert_true(name_is_of("{key}.{zone}", "a.b.ip", "ip", "a.b"));
    assert_true(name_is_of("{zone}{key}{zone}", "zkz", "z", "k"));
    assert_true(name_is_of("{key}/{zone}/{key}", "ab/z/ab", "z", "ab"));
    assert_false(name_is_of("redbucket:{zone}:{key}", "redbucket:ip", "ip", ""));
    assert_false(name_is_of("redbucket:{zone}:{key}", "redbucket:ipx:k", "ip", ""));
    assert_false(name_is_of("redbucket:{zone}:{key}", "redbuckeT:ip:k", "ip", ""));
    assert_false(name_is_of("{key}/{zone}/{key}", "ab/z/ac", "z", ""));
    assert_false(name_is_of("{key}/{zone}/{key}", "ab/z/abc", "z", ""));
    assert_false(name_is_of("{zone}{key}{zone}", "zkx", "z", ""));
    assert_false(name_is_of("redbucket:{zone}:{key}", "", "ip", ""));
}

static unsigned guess(const char *text, const char *name, struct rbk_key *key)
{
    const struct rbk_key_format format = parse(text);
    const size_t len = strlen(name);

    *key = (struct rbk_key){.zone = NULL};
    return rbk_key_name_guess(&format, test_edge(name, len), len, key);
}

static void test_the_shortest_zone_is_guessed(void **state)
{
    struct rbk_key key;

    (void)state;
    assert_int_equal(guess("redbucket:{zone}:{key}", "redbucket:user:alice", &key), 1);
    assert_int_equal(key.zone_len, 4);
    assert_memory_equal(key.zone, "user", 4);
    assert_int_equal(key.key_len, 5);
    assert_memory_equal(key.key, "alice", 5);
    assert_int_equal(guess("redbucket:{zone}:{key}", "redbucket:ip:2001:db8::1", &key), 2);
    assert_int_equal(key.zone_len, 2);
    assert_int_equal(key.key_len, 11);
    assert_int_equal(guess("redbucket:{zone}:{key}", "redbucket::k", &key), 0);
    assert_int_equal(guess("redbucket:{zone}:{key}", "other:a:b", &key), 0);
    assert_int_equal(guess("{zone}{key}", "", &key), 0);
    assert_null(key.zone);
}

/* What a format writes of any zone and key is read back as them, once the zone is known. */
static void test_names_come_back(void **state)
{
    static const char *const formats[] = {"redbucket:{zone}:{key}", "{key}{zone}",
                                          "{zone}:{{{key}}}:{zone}", "{key}{key}x{zone}"};
    static const char *const texts[] = {"a", "a:b", "{}", "xx", "zone:key", "*?[\\"};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const struct rbk_key_format format = parse(formats[i]);

        for (size_t j = 0; j < 36; j++) {
            struct rbk_key given = zone_of(texts[j / 6]);
            struct rbk_key found;
            unsigned char name[256];

            given.key = (const unsigned char *)texts[j % 6];
            given.key_len = strlen(texts[j % 6]);
            rbk_key_format_write(&format, &given, name);
            assert_true(rbk_key_name_of(&format, name, rbk_key_format_len(&format, &given), &given,
                                        &found));
            assert_int_equal(found.key_len, given.key_len);
            assert_memory_equal(found.key, given.key, given.key_len);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_match_what_a_format_writes),
        cmocka_unit_test(test_the_longest_pattern_has_room),
        cmocka_unit_test(test_a_known_zone_tells_its_key),
        cmocka_unit_test(test_the_shortest_zone_is_guessed),
        cmocka_unit_test(test_names_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
