/* SPDX-License-Identifier: MIT */
/*
 * Redirections as nodes write them, and what only looks like one.
 */
#include "edge.h"
#include "test.h"
#include "wire/redirect.h"

static const struct rbk_place asked = {"192.0.2.9", 7000};

static bool read_text(const char *text, struct rbk_redirect *redirect)
{
    return rbk_redirect_read(test_edge(text, strlen(text) + 1), &asked, redirect);
}

static void assert_read(const char *text, bool ask, unsigned slot, const char *host, unsigned port)
{
    struct rbk_redirect redirect;

    if (!read_text(text, &redirect))
        fail_msg("%s", text);
    assert_int_equal(redirect.ask, ask);
    assert_int_equal(redirect.slot, slot);
    assert_string_equal(redirect.place.host, host);
    assert_int_equal(redirect.place.port, port);
}

static void redirections_are_read(void **state)
{
    (void)state;
    assert_read("MOVED 3999 192.0.2.1:6381", false, 3999, "192.0.2.1", 6381);
    assert_read("ASK 3999 192.0.2.1:6381", true, 3999, "192.0.2.1", 6381);
    assert_read("MOVED 0 host-1.example:1", false, 0, "host-1.example", 1);
    assert_read("ASK 16383 a:65535", true, 16383, "a", 65535);
    assert_read("MOVED 1 2001:db8::7:6381", false, 1, "2001:db8::7", 6381);
    assert_read("MOVED 1 ::1:6381", false, 1, "::1", 6381);
}

static void a_host_that_is_not_named_is_the_one_that_was_asked(void **state)
{
    (void)state;
    assert_read("MOVED 3999 :6381", false, 3999, "192.0.2.9", 6381);
    assert_read("ASK 3999 :6381", true, 3999, "192.0.2.9", 6381);
    assert_read("MOVED 3999 ?:6381", false, 3999, "192.0.2.9", 6381);
}

static void nothing_else_is_a_redirection(void **state)
{
    static const char *const texts[] = {
        "",
        "MOVED",
        "MOVED ",
        "MOVED 3999",
        "MOVED 3999 ",
        "MOVED 3999 192.0.2.1",
        "MOVED 3999 192.0.2.1:",
        "MOVED 3999 192.0.2.1:0",
        "MOVED 3999 192.0.2.1:65536",
        "MOVED 3999 192.0.2.1:4294973677",
        "MOVED 3999 192.0.2.1:-1",
        "MOVED 3999 192.0.2.1:+1",
        "MOVED 3999 192.0.2.1:6381 ",
        "MOVED 3999 192.0.2.1:6381\r",
        "MOVED 3999 192.0.2.1:6381 more",
        "MOVED 3999 192.0.2.1:6381x",
        "MOVED 3999 192.0.2.1: 6381",
        "MOVED 3999  192.0.2.1:6381",
        "MOVED  3999 192.0.2.1:6381",
        "MOVED 16384 192.0.2.1:6381",
        "MOVED -1 192.0.2.1:6381",
        "MOVED +1 192.0.2.1:6381",
        "MOVED 0x10 192.0.2.1:6381",
        "MOVED 4294967296 192.0.2.1:6381",
        "MOVED 99999999999999999999999 192.0.2.1:6381",
        "MOVED a 192.0.2.1:6381",
        "MOVED 3999,192.0.2.1:6381",
        "MOVED\t3999\t192.0.2.1:6381",
        "MOVED 3999 a b:6381",
        "MOVED 3999 /tmp/socket:6381",
        "MOVED 3999 [2001:db8::7]:6381",
        "MOVED 3999 \xc3\xa4:6381",
        "moved 3999 192.0.2.1:6381",
        "MOVEDX 3999 192.0.2.1:6381",
        " MOVED 3999 192.0.2.1:6381",
        "ERR MOVED 3999 192.0.2.1:6381",
        "ASKING",
        "ASK",
        "ASK 3999 192.0.2.1",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "CROSSSLOT Keys in request don't hash to the same slot",
    };
    struct rbk_redirect redirect = {.slot = 4711};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (read_text(texts[i], &redirect))
            fail_msg("%s", texts[i]);
        assert_int_equal(redirect.slot, 4711);
    }
}

static void a_host_is_so_long_at_most(void **state)
{
    char text[512] = "MOVED 7 ";
    struct rbk_redirect redirect;

    (void)state;
    memset(text + 8, 'a', RBK_PLACE_HOST_MAX);
    strcpy(text + 8 + RBK_PLACE_HOST_MAX, ":6381");
    assert_true(read_text(text, &redirect));
    assert_int_equal(strlen(redirect.place.host), RBK_PLACE_HOST_MAX);
    strcpy(text + 8 + RBK_PLACE_HOST_MAX, "a:6381");
    assert_false(read_text(text, &redirect));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirections_are_read),
        cmocka_unit_test(a_host_that_is_not_named_is_the_one_that_was_asked),
        cmocka_unit_test(nothing_else_is_a_redirection),
        cmocka_unit_test(a_host_is_so_long_at_most),
    };

    return cmocka_run_group_tests_name("redirect", tests, NULL, NULL);
}
