/* SPDX-License-Identifier: MIT */
/*
 * Which buckets of two zones share a slot: what is said of formats that people use, and, for all
 * short formats and zones with braces anywhere, that the slots themselves agree, in both
 * directions: what is said holds, and no more than that does.
 */
#include "test.h"
#include "wire/colocation.h"
#include "wire/slot.h"

#include <stdio.h>

#define ONE_SLOT REDBUCKET_COLOCATION_ONE_SLOT
#define SAME_KEY REDBUCKET_COLOCATION_SAME_KEY
#define SAME_TAG REDBUCKET_COLOCATION_SAME_TAG
#define NEVER    REDBUCKET_COLOCATION_NEVER

static struct rbk_key key_of(const char *zone, const char *key)
{
    return (struct rbk_key){(const unsigned char *)zone, strlen(zone), (const unsigned char *)key,
                            strlen(key)};
}

static enum redbucket_colocation said(const struct rbk_key_format *format, const char *zone_a,
                                      const char *zone_b)
{
    struct rbk_key a = key_of(zone_a, ""), b = key_of(zone_b, "");

    return rbk_colocation(format, &a, &b);
}

static void assert_said(const char *text, const char *zone_a, const char *zone_b,
                        enum redbucket_colocation expected)
{
    struct rbk_key_format format;

    assert_null(rbk_key_format_parse(text, &format));
    if (said(&format, zone_a, zone_b) != expected || said(&format, zone_b, zone_a) != expected)
        fail_msg("%s: %s and %s: %d, not %d", text, zone_a, zone_b,
                 (int)said(&format, zone_a, zone_b), (int)expected);
}

static void formats_that_people_use(void **state)
{
    (void)state;
    assert_said(RBK_KEY_FORMAT_DEFAULT, "user", "ip", SAME_TAG);
    assert_said("redbucket:{zone}:{{{key}}}", "user", "ip", SAME_KEY);
    assert_said("{{{key}}}:{zone}", "user", "ip", SAME_KEY);
    assert_said("redbucket:{{{key}:{zone}}}", "user", "ip", SAME_TAG);
    assert_said("redbucket:{{{zone}:{key}}}", "user", "ip", NEVER);
    assert_said("{{redbucket}}:{zone}:{key}", "user", "ip", ONE_SLOT);
    assert_said("{zone}:{{app}}:{key}", "user", "ip", ONE_SLOT);
    assert_said("{key}:{{app}}:{zone}", "user", "ip", ONE_SLOT);
    assert_said("redbucket:{{{zone}}}:{key}", "user", "ip", NEVER);
    assert_said("redbucket:{{}}:{zone}:{{{key}}}", "user", "ip", NEVER);
    assert_said("redbucket:{zone}:{{{key}:", "user", "ip", SAME_TAG);
}

static void a_zone_with_itself(void **state)
{
    (void)state;
    assert_said(RBK_KEY_FORMAT_DEFAULT, "user", "user", SAME_KEY);
    assert_said("redbucket:{zone}:{{{key}}}", "user", "user", SAME_KEY);
    assert_said("redbucket:{{{zone}}}:{key}", "user", "user", ONE_SLOT);
    assert_said("{{redbucket}}:{zone}:{key}", "user", "user", ONE_SLOT);
}

static void tags_of_zones_that_meet_in_a_slot(void **state)
{
    char twin[16];
    unsigned slot = rbk_slot_of((const unsigned char *)"foo", 3);

    (void)state;
    assert_said("{{{zone}}}{key}", "foo", "bar", NEVER);
    for (int i = 0; i < 1000000; i++) {
        (void)snprintf(twin, sizeof twin, "z%d", i);
        if (rbk_slot_of((const unsigned char *)twin, strlen(twin)) == slot)
            break;
    }
    assert_int_equal(rbk_slot_of((const unsigned char *)twin, strlen(twin)), slot);
    assert_said("{{{zone}}}{key}", "foo", twin, ONE_SLOT);
}

static void zones_with_braces(void **state)
{
    (void)state;
    assert_said("{zone}:{key}", "{a}1", "{a}2", ONE_SLOT);
    assert_said("{zone}:{key}", "{a}1", "{b}1", NEVER);
    assert_said("{zone}:{key}", "{a}1", "user", NEVER);
    assert_said("{zone}:{key}", "x{", "user", NEVER);
    assert_said("{zone}:{key}", "x{", "y{", SAME_TAG);
    assert_said("{zone}:{key}", "x{", "y{z", NEVER);
    assert_said("{zone}:{key}", "x}", "y}", SAME_TAG);
    assert_said("{zone}:{key}}}", "x{", "y{", SAME_KEY);
    assert_said("{zone}:{key}", "{}", "y", NEVER);
    assert_said("{{{key}{zone}}}", "}", "}x", SAME_KEY);
}

/* ---- All of them, against the slots --------------------------------------------------------- */

#define LEN(array) (sizeof(array) / sizeof(array)[0])

static const char *const plain[] = {"k", "kk", "acme", "192.0.2.7", "a:b"};
static const char *const tagged[] = {"{t}", "{t}x", "{t}x:y"};
static const char *const tagged_otherwise[] = {"{acme}", "{acme}a", "{acme}:"};

static unsigned slot_of(const struct rbk_key_format *format, const char *zone, const char *key)
{
    struct rbk_key named = key_of(zone, key);
    unsigned char name[256];

    assert_true(rbk_key_format_len(format, &named) <= sizeof name);
    rbk_key_format_write(format, &named, name);
    return rbk_slot_of(name, rbk_key_format_len(format, &named));
}

/* True when each key of the one has the slot of each of the other. */
static bool all_meet(const struct rbk_key_format *format, const char *const zones[2],
                     const char *const *keys, size_t len)
{
    for (size_t i = 0; i < len * len; i++) {
        if (slot_of(format, zones[0], keys[i / len]) != slot_of(format, zones[1], keys[i % len]))
            return false;
    }
    return true;
}

static bool equal_keys_meet(const struct rbk_key_format *format, const char *const zones[2])
{
    for (size_t i = 0; i < LEN(plain); i++) {
        if (slot_of(format, zones[0], plain[i]) != slot_of(format, zones[1], plain[i]))
            return false;
    }
    return true;
}

static enum redbucket_colocation found(const struct rbk_key_format *format,
                                       const char *const zones[2])
{
    if (all_meet(format, zones, plain, LEN(plain)))
        return ONE_SLOT;
    if (equal_keys_meet(format, zones))
        return SAME_KEY;
    if (all_meet(format, zones, tagged, LEN(tagged)) &&
        all_meet(format, zones, tagged_otherwise, LEN(tagged_otherwise)))
        return SAME_TAG;
    return NEVER;
}

static void check_zones(const struct rbk_key_format *format, const char *text,
                        size_t seen[NEVER + 1])
{
    static const char *const zones[] = {"a", "ab", "{", "}", "{a}", "{b}", "a{", "}b"};

    for (size_t i = 0; i < LEN(zones) * LEN(zones); i++) {
        const char *const two[2] = {zones[i / LEN(zones)], zones[i % LEN(zones)]};
        enum redbucket_colocation is = said(format, two[0], two[1]);

        if (is != found(format, two))
            fail_msg("%s: %s and %s: said %d, found %d", text, two[0], two[1], (int)is,
                     (int)found(format, two));
        seen[is]++;
    }
}

static void what_is_said_is_what_slots_do(void **state)
{
    static const char *const tokens[] = {"{zone}", "{key}", "{{", "}}", ":"};
    size_t seen[NEVER + 1] = {0};
    size_t texts = 1;

    (void)state;
    for (size_t len = 1; len <= 6; len++) {
        texts *= LEN(tokens);
        for (size_t number = 0; number < texts; number++) {
            struct rbk_key_format format;
            char text[64] = "";

            for (size_t i = 0, left = number; i < len; i++, left /= LEN(tokens))
                strcat(text, tokens[left % LEN(tokens)]);
            if (rbk_key_format_parse(text, &format) == NULL)
                check_zones(&format, text, seen);
        }
    }
    for (size_t i = ONE_SLOT; i <= NEVER; i++)
        assert_true(seen[i] > 1000);
}

/* ---- By the public call --------------------------------------------------------------------- */

static enum redbucket_colocation told(const char *url, const char *zone_a, const char *zone_b)
{
    struct redbucket_error error;
    struct redbucket_store *store;

    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", url, error.message);
    enum redbucket_colocation is = redbucket_store_colocation(store, zone_a, 0, zone_b, 0);

    redbucket_store_close(store);
    return is;
}

static void only_clusters_have_slots(void **state)
{
    static const char *const urls[] = {"memory:", "redis://192.0.2.1",
                                       "redis://192.0.2.1?on_error=closed",
                                       "redis+sentinel://192.0.2.1/main"};

    (void)state;
    for (size_t i = 0; i < LEN(urls); i++)
        assert_int_equal(told(urls[i], "user", "ip"), REDBUCKET_COLOCATION_ALWAYS);
    assert_int_equal(told("redis+cluster://192.0.2.1", "user", "ip"), SAME_TAG);
    assert_int_equal(told("redis+cluster://192.0.2.1?on_error=closed", "user", "ip"), SAME_TAG);
    assert_int_equal(told("redis+cluster://192.0.2.1?key_format={zone}{{{key}}}", "user", "ip"),
                     SAME_KEY);
}

static void zones_are_bytes_with_a_length(void **state)
{
    char longest[REDBUCKET_ZONE_MAX + 2];
    struct redbucket_store *store;

    (void)state;
    memset(longest, 'z', sizeof longest);
    assert_int_equal(
        redbucket_store_open("redis+cluster://192.0.2.1?key_format={zone}{{{key}}}", &store, NULL),
        REDBUCKET_OK);
    assert_int_equal(redbucket_store_colocation(store, "{\0a}", 4, "{\0a}", 4), ONE_SLOT);
    assert_int_equal(redbucket_store_colocation(store, "{\0a}", 4, "{\0b}", 4), NEVER);
    assert_int_equal(redbucket_store_colocation(store, longest, REDBUCKET_ZONE_MAX, "ip", 0),
                     SAME_KEY);
    assert_int_equal(redbucket_store_colocation(store, longest, sizeof longest - 1, "ip", 0),
                     NEVER);
    assert_int_equal(redbucket_store_colocation(store, "ip", 0, "", 0), NEVER);
    redbucket_store_close(store);
}

/* As many zones, as long as they can be. */
static void the_longest_names_fit(void **state)
{
    char text[RBK_KEY_FORMAT_MAX] = "";
    char a[REDBUCKET_ZONE_MAX + 1];

    (void)state;
    memset(a, 'a', REDBUCKET_ZONE_MAX);
    a[REDBUCKET_ZONE_MAX] = '\0';
    strcat(text, "{{");
    for (int i = 0; i < 28; i++)
        strcat(text, "{zone}");
    strcat(text, "}}{key}");
    memset(text + strlen(text), 't', RBK_KEY_FORMAT_MAX - 1 - strlen(text));
    text[RBK_KEY_FORMAT_MAX - 1] = '\0';
    assert_said(text, a, a, ONE_SLOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_that_people_use),
        cmocka_unit_test(a_zone_with_itself),
        cmocka_unit_test(tags_of_zones_that_meet_in_a_slot),
        cmocka_unit_test(zones_with_braces),
        cmocka_unit_test(what_is_said_is_what_slots_do),
        cmocka_unit_test(only_clusters_have_slots),
        cmocka_unit_test(zones_are_bytes_with_a_length),
        cmocka_unit_test(the_longest_names_fit),
    };

    return cmocka_run_group_tests_name("colocation", tests, NULL, NULL);
}
