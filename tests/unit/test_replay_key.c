/* SPDX-License-Identifier: MIT */
/*
 * Keys out of log lines: templates, what skips a line, and addresses cut to a prefix (case K07).
 */
#include "../../cli/replay/address.h"
#include "../../cli/replay/key_template.h"
#include "../test.h"

#include <stdio.h>
#include <stdlib.h>

static struct rbk_key_buffer buffer;

static struct rbk_span span(const char *text)
{
    return (struct rbk_span){text, strlen(text)};
}

static const struct rbk_log_line *line(void)
{
    static struct rbk_log_line parsed;

    parsed.fields[RBK_LOG_REMOTE_ADDR] = span("2001:db8:1:2:3:4:5:6");
    parsed.fields[RBK_LOG_REMOTE_USER] = span("-");
    parsed.fields[RBK_LOG_REQUEST_METHOD] = span("GET");
    parsed.fields[RBK_LOG_URI] = span("/login");
    parsed.fields[RBK_LOG_STATUS] = span("200");
    parsed.fields[RBK_LOG_HTTP_USER_AGENT] = span("");
    return &parsed;
}

static enum rbk_key_outcome expand(const char *text, struct rbk_span *key)
{
    struct rbk_key_template *template = NULL;
    struct redbucket_error error = {0};
    enum rbk_key_outcome outcome;

    if (rbk_key_template_parse(text, &template, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", text, error.message);
    outcome = rbk_key_template_expand(template, line(), &buffer, key);
    rbk_key_template_destroy(template);
    return outcome;
}

static void assert_key(const char *text, const char *expected)
{
    struct rbk_span key;

    assert_int_equal(expand(text, &key), RBK_KEY_MADE);
    if (key.len != strlen(expected) || memcmp(key.bytes, expected, key.len) != 0)
        fail_msg("%s gave \"%.*s\", expected \"%s\"", text, (int)key.len, key.bytes, expected);
}

static void fields_are_filled_in_and_text_is_kept(void **state)
{
    (void)state;
    assert_key("$remote_addr", "2001:db8:1:2:3:4:5:6");
    assert_key("$remote_addr/64", "2001:db8:1:2::/64");
    assert_key("<$remote_addr/32>", "<2001:db8::/32>");
    assert_key("$request_method $uri", "GET /login");
    assert_key("$uri/64", "/login/64");
    assert_key("$remote_addr/$status", "2001:db8:1:2:3:4:5:6/200");
    assert_key("$remote_addr/", "2001:db8:1:2:3:4:5:6/");
    assert_key("$status$status", "200200");
    assert_key("$$5 $uri $$", "$5 /login $");
    assert_key("all", "all");
}

static void a_missing_field_skips_the_limit(void **state)
{
    struct rbk_span key;

    (void)state;
    assert_int_equal(expand("$remote_user", &key), RBK_KEY_SKIPPED);
    assert_int_equal(expand("$http_user_agent", &key), RBK_KEY_SKIPPED);
    assert_int_equal(expand("$uri by $remote_user", &key), RBK_KEY_SKIPPED);
}

static void assert_refused(const char *text, int position, const char *why)
{
    struct rbk_key_template *template = NULL;
    struct redbucket_error error = {0};

    if (rbk_key_template_parse(text, &template, &error) != REDBUCKET_ERROR_ARGUMENT)
        fail_msg("accepted: %s", text);
    assert_null(template);
    assert_int_equal(error.position, position);
    if (!strstr(error.message, why))
        fail_msg("%s: \"%s\" says nothing of \"%s\"", text, error.message, why);
}

static void unknown_fields_are_refused(void **state)
{
    (void)state;
    assert_refused("", 0, "$remote_addr");
    assert_refused("$", 0, "$uri");
    assert_refused("$host", 0, "$uri");
    assert_refused("$uri $uris", 5, "$uri");
    assert_refused("$remote", 0, "$uri");
    assert_refused("$URI", 0, "$uri");
    assert_refused("${uri}", 0, "$uri");
    assert_refused("$status_code", 0, "$uri");
    assert_refused("a $remote_addr/129", 2, "128");
    assert_refused("$remote_addr/99999999999999999999", 0, "128");
}

static void the_fields_of_a_template_are_known(void **state)
{
    struct rbk_key_template *template;

    (void)state;
    assert_int_equal(rbk_key_template_parse("x$uri", &template, NULL), REDBUCKET_OK);
    assert_true(rbk_key_template_uses(template, RBK_LOG_URI));
    assert_false(rbk_key_template_uses(template, RBK_LOG_REMOTE_ADDR));
    rbk_key_template_destroy(template);
    rbk_key_template_destroy(NULL);
}

/* The longest key is made, one byte more is told to be too long, and a missing field comes first.
 */
static void a_key_is_never_cut(void **state)
{
    static char long_text[RBK_KEY_MAX + 64];
    struct rbk_span key;

    (void)state;
    memset(long_text, 'x', RBK_KEY_MAX - 3);
    strcpy(long_text + RBK_KEY_MAX - 3, "$status");
    assert_int_equal(expand(long_text, &key), RBK_KEY_MADE);
    assert_int_equal(key.len, RBK_KEY_MAX);
    assert_memory_equal(key.bytes + RBK_KEY_MAX - 3, "200", 3);
    strcpy(long_text + RBK_KEY_MAX - 3, "$status!");
    assert_int_equal(expand(long_text, &key), RBK_KEY_TOO_LONG);
    strcpy(long_text + RBK_KEY_MAX - 3, "$status!$remote_user");
    assert_int_equal(expand(long_text, &key), RBK_KEY_SKIPPED);
}

static void k07_addresses_are_cut_to_what_one_client_owns(void **state)
{
    static const struct {
        const char *text;
        unsigned bits;
        const char *expected;
    } cases[] = {
        {"192.0.2.1", 64, "192.0.2.1"},
        {"192.0.2.1", 8, "192.0.2.1"},
        {"::ffff:192.0.2.1", 64, "192.0.2.1"},
        {"::FFFF:c000:201", 64, "192.0.2.1"},
        {"0:0:0:0:0:ffff:c000:0201", 0, "192.0.2.1"},
        {"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
        {"2001:DB8:1:2::1", 64, "2001:db8:1:2::/64"},
        {"2001:0db8:0001:0002:ffff:ffff:ffff:ffff", 64, "2001:db8:1:2::/64"},
        {"64:ff9b::c000:201", 64, "192.0.2.1"},
        {"64:ff9b:1::c000:201", 64, "64:ff9b:1::/64"},
        {"::1", 64, "::/64"},
        {"2001:db8:ffff:ffff::", 33, "2001:db8:8000::/33"},
        {"2001:db8::1", 128, "2001:db8::1/128"},
        {"2001:db8::1", 127, "2001:db8::/127"},
        {"2001:db8::1", 0, "::/0"},
        {"not-an-ip", 64, "not-an-ip"},
        {"fe80::1%eth0", 64, "fe80::1%eth0"},
        {"192.0.2.1:8080", 64, "192.0.2.1:8080"},
        {"[2001:db8::1]", 64, "[2001:db8::1]"},
        {"[2001:db8::1]:443", 64, "[2001:db8::1]:443"},
        {"2001:db8::1::2", 64, "2001:db8::1::2"},
        {":", 64, ":"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[RBK_ADDRESS_SIZE];
        const struct rbk_span got = rbk_address_prefix(span(cases[i].text), cases[i].bits, out);

        if (got.len != strlen(cases[i].expected) ||
            memcmp(got.bytes, cases[i].expected, got.len) != 0)
            fail_msg("%s/%u gave %.*s, expected %s", cases[i].text, cases[i].bits, (int)got.len,
                     got.bytes, cases[i].expected);
    }
}

static void a_nul_hides_nothing_of_an_address(void **state)
{
    static const char text[] = "2001:db8::1\0other";
    char out[RBK_ADDRESS_SIZE];
    const struct rbk_span got =
        rbk_address_prefix((struct rbk_span){text, sizeof(text) - 1}, 64, out);

    (void)state;
    assert_ptr_equal(got.bytes, text);
    assert_int_equal(got.len, sizeof(text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_filled_in_and_text_is_kept),
        cmocka_unit_test(a_missing_field_skips_the_limit),
        cmocka_unit_test(unknown_fields_are_refused),
        cmocka_unit_test(the_fields_of_a_template_are_known),
        cmocka_unit_test(a_key_is_never_cut),
        cmocka_unit_test(k07_addresses_are_cut_to_what_one_client_owns),
        cmocka_unit_test(a_nul_hides_nothing_of_an_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
