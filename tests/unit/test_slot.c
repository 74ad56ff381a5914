/* SPDX-License-Identifier: MIT */
/*
 * The slots that names belong to: numbers that the specification of Redis Cluster and servers give,
 * the division by the polynomial done bit by bit beside it, and what is a hash tag.
 */
#include "edge.h"
#include "test.h"
#include "wire/slot.h"

#include <stdio.h>

/* The name lies at the end of memory. */
static unsigned slot_of(const void *name, size_t len)
{
    return rbk_slot_of(test_edge(name, len), len);
}

static unsigned text_slot(const char *name)
{
    return slot_of(name, strlen(name));
}

/* The definition: each bit in turn. */
static unsigned divide(const unsigned char *bytes, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len * 8; i++) {
        unsigned bit = (bytes[i / 8] >> (7 - i % 8) & 1u) ^ crc >> 15;

        crc = (crc << 1 & 0xffff) ^ (bit != 0 ? 0x1021 : 0);
    }
    return crc % RBK_SLOTS;
}

static void slots_are_those_of_servers(void **state)
{
    static const struct {
        const char *name;
        unsigned slot;
    } known[] = {
        {"123456789", 0x31c3},
        {"", 0},
        {"foo", 12182},
        {"bar", 5061},
        {"hello", 866},
        {"somekey", 11058},
        {"foo{hash_tag}", 2515},
        {"user1000", 3443},
        {"{user1000}.following", 3443},
        {"{user1000}.followers", 3443},
        {"foo{bar}zap", 5061},
        {"foo{bar}{zap}", 5061},
        {"redbucket:z:a{b}c", 3300},
        {"redbucket:z:{}x", 10265},
        {"redbucket:z:{}{b}", 289},
        {"redbucket:z:{b", 8609},
        {"redbucket:z:}b{", 14743},
        {"redbucket:z:2001:db8::1", 2057},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (text_slot(known[i].name) != known[i].slot)
            fail_msg("%s: %u", known[i].name, text_slot(known[i].name));
    }
}

/* Every pair of bytes, so that each value of the register meets each byte. */
static void every_byte_is_divided_as_by_its_bits(void **state)
{
    unsigned char name[3];

    (void)state;
    for (unsigned i = 0; i < 1u << 16; i++) {
        name[0] = (unsigned char)(i >> 8);
        name[1] = (unsigned char)i;
        name[2] = (unsigned char)(i * 31 >> 3);
        if (rbk_slot_of(name, 3) != divide(name, 3))
            fail_msg("%02x %02x %02x", name[0], name[1], name[2]);
    }
}

static void long_names_of_all_bytes_are_divided_as_well(void **state)
{
    unsigned char name[4096];

    (void)state;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = (unsigned char)(i == '{' ? 0 : i * 7 + i / 256);
    for (size_t i = 0; i < sizeof name; i++) {
        if (name[i] == '{')
            name[i] = 0xff;
    }
    assert_int_equal(slot_of(name, sizeof name), divide(name, sizeof name));
    assert_int_equal(slot_of(name + 1, sizeof name - 1), divide(name + 1, sizeof name - 1));
}

static void assert_tagged(const char *name, size_t len, const char *tag, size_t tag_len)
{
    if (slot_of(name, len) != divide((const unsigned char *)tag, tag_len))
        fail_msg("%.*s: not as %.*s", (int)len, name, (int)tag_len, tag);
}

#define TAGGED(name, tag) assert_tagged(name, sizeof(name) - 1, tag, sizeof(tag) - 1)
#define WHOLE(name)       TAGGED(name, name)

static void a_hash_tag_stands_in_the_first_braces(void **state)
{
    (void)state;
    TAGGED("{a}", "a");
    TAGGED("x{a}y", "a");
    TAGGED("x{a}{b}", "a");
    TAGGED("{{a}}", "{a");
    TAGGED("foo{{bar}}zap", "{bar");
    TAGGED("}{a}", "a");
    TAGGED("}}x{a", "}}x{a");
    TAGGED("{ }", " ");
    TAGGED("{a\0b}c", "a\0b");
    TAGGED("\0{\0}\0", "\0");
    TAGGED("\xc3\xa4{\xc3\xb6}", "\xc3\xb6");
    TAGGED("{\xff\xfe}", "\xff\xfe");
}

static void names_without_a_hash_tag_count_as_a_whole(void **state)
{
    (void)state;
    WHOLE("{");
    WHOLE("}");
    WHOLE("{}");
    WHOLE("{}{a}");
    WHOLE("foo{}{bar}");
    WHOLE("a}b{c");
    WHOLE("{a");
    WHOLE("a}");
    WHOLE("}{");
    WHOLE("\0");
    WHOLE("a\0{b");
}

static void every_slot_is_somebodys(void **state)
{
    static unsigned char seen[RBK_SLOTS];
    unsigned count = 0;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 1u << 18; i++) {
        int len = snprintf(name, sizeof name, "%u", i);
        unsigned slot = rbk_slot_of((const unsigned char *)name, (size_t)len);

        assert_in_range(slot, 0, RBK_SLOTS - 1);
        count += seen[slot] == 0;
        seen[slot] = 1;
    }
    assert_int_equal(count, RBK_SLOTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_servers),
        cmocka_unit_test(every_byte_is_divided_as_by_its_bits),
        cmocka_unit_test(long_names_of_all_bytes_are_divided_as_well),
        cmocka_unit_test(a_hash_tag_stands_in_the_first_braces),
        cmocka_unit_test(names_without_a_hash_tag_count_as_a_whole),
        cmocka_unit_test(every_slot_is_somebodys),
    };

    return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
