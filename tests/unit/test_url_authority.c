/* SPDX-License-Identifier: MIT */
/*
 * Who asks which server, as a URL says it: splitting comes before decoding, and no message holds
 * a part of what may be a password.
 */
#include "test.h"
#include "url.h"

#include <stdio.h>

static void split(const char *text, struct rbk_url *url, struct rbk_url_authority *authority)
{
    assert_int_equal(rbk_url_parse(text, url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_url_split(url, authority, NULL), REDBUCKET_OK);
}

static void same(const char *is, const char *expected)
{
    if (expected == NULL)
        assert_null(is);
    else
        assert_string_equal(is, expected);
}

static void an_authority_has_a_user_hosts_and_a_path(void **state)
{
    static const struct {
        const char *text, *user, *password, *hosts, *path;
    } urls[] = {
        {"x://h", NULL, NULL, "h", ""},
        {"x://h/", NULL, NULL, "h", "/"},
        {"x://h:1/2?a=b", NULL, NULL, "h:1", "/2"},
        {"x://", NULL, NULL, "", ""},
        {"x:///p/q", NULL, NULL, "", "/p/q"},
        {"x://u@h", "u", "", "h", ""},
        {"x://u:@h", "u", "", "h", ""},
        {"x://u:p@h", "u", "p", "h", ""},
        {"x://:p@h", NULL, "p", "h", ""},
        {"x://@h", NULL, NULL, "h", ""},
        {"x://:@h", NULL, NULL, "h", ""},
        {"x://u:p:q@a:1,[::1]:2/s/3", "u", "p:q", "a:1,[::1]:2", "/s/3"},
        {"x://u:p@q@h/d", "u", "p@q", "h", "/d"},
        {"x://u:p@/run/x.sock", "u", "p", "", "/run/x.sock"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct rbk_url url;
        struct rbk_url_authority authority;

        split(urls[i].text, &url, &authority);
        same(authority.user, urls[i].user);
        same(authority.password, urls[i].password);
        assert_string_equal(authority.hosts, urls[i].hosts);
        assert_string_equal(authority.path, urls[i].path);
    }
}

static void what_is_encoded_is_a_character(void **state)
{
    struct rbk_url url;
    struct rbk_url_authority authority;

    (void)state;
    split("x://a%3ab%40:c%3a%40%2f%3f%25%C3%A9@h%3a1/%2fp%3fq?r=s", &url, &authority);
    assert_string_equal(authority.user, "a:b@");
    assert_string_equal(authority.password, "c:@/?%\xc3\xa9");
    assert_string_equal(authority.hosts, "h%3a1");
    assert_string_equal(authority.path, "//p?q");
    assert_string_equal(rbk_url_get(&url, "r"), "s");
}

static void a_copy_is_split_by_itself(void **state)
{
    struct rbk_url url, copy;
    struct rbk_url_authority authority;

    (void)state;
    assert_int_equal(rbk_url_parse("x://u:p@h/d?a=1&b=2", &url, NULL), REDBUCKET_OK);
    rbk_url_copy(&url, &copy);
    assert_int_equal(rbk_url_split(&copy, &authority, NULL), REDBUCKET_OK);
    assert_string_equal(authority.hosts, "h");
    assert_string_equal(url.body, "//u:p@h/d");
    memset(&url, 'x', sizeof url);
    assert_string_equal(copy.scheme, "x");
    assert_string_equal(authority.user, "u");
    assert_string_equal(rbk_url_get(&copy, "a"), "1");
    assert_string_equal(rbk_url_get(&copy, "b"), "2");
}

static void assert_not_split(const char *text, const char *message)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_url url;
    struct rbk_url_authority authority;

    assert_int_equal(rbk_url_parse(text, &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_url_split(&url, &authority, &error), REDBUCKET_ERROR_URL);
    assert_string_equal(error.message, message);
}

static void what_has_no_authority_is_refused(void **state)
{
    static const char *const halves[] = {"x://a%@h", "x://a:%4@h", "x://u:p@h/%zz"};

    (void)state;
    assert_not_split("x:h", "store URL: expected // behind x:");
    assert_not_split("x:/h", "store URL: expected // behind x:");
    /* Nor do encoded slashes make one, when they are decoded. */
    assert_not_split("x:%2f%2fh", "store URL: expected // behind x:");
    assert_not_split("x:/%2fu:p@h", "store URL: expected // behind x:");
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
        assert_not_split(halves[i], "store URL: expected two hex digits after %");
    assert_not_split("x://u:%00@h", "store URL: %00 means nothing here");
}

static void a_host_may_have_a_port(void **state)
{
    static const struct {
        const char *text, *name;
        unsigned port;
        bool ipv6;
    } hosts[] = {
        {"h", "h", 7, false},
        {"h:1", "h", 1, false},
        {"192.0.2.1:65535", "192.0.2.1", 65535, false},
        {"a%2eb%3A:00080", "a.b:", 80, false},
        {"[::1]", "::1", 7, true},
        {"[2001:db8::1]:6380", "2001:db8::1", 6380, true},
        {"[fe80::1%25eth0]:1", "fe80::1%eth0", 1, true},
        {"[::ffff:192.0.2.1]", "::ffff:192.0.2.1", 7, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct rbk_url_host host = {.port = 7};
        char text[64];

        (void)snprintf(text, sizeof text, "%s", hosts[i].text);
        assert_int_equal(rbk_url_host(text, &host, NULL), REDBUCKET_OK);
        assert_string_equal(host.name, hosts[i].name);
        assert_int_equal(host.port, hosts[i].port);
        assert_int_equal(host.ipv6, hosts[i].ipv6);
    }
}

static void assert_no_host(const char *text, const char *message)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_url_host host = {.port = 7};
    char copy[RBK_URL_HOST_MAX + 8];

    (void)snprintf(copy, sizeof copy, "%s", text);
    assert_int_equal(rbk_url_host(copy, &host, &error), REDBUCKET_ERROR_URL);
    assert_string_equal(error.message, message);
    assert_int_equal(host.port, 7);
}

static void what_is_no_host_is_refused(void **state)
{
    static const char *const shapes[] = {"::1",    "h:1:2",     "[::1",
                                         "[::1]x", "[::1]:1:2", "2001:db8::1"};
    static const char *const ports[] = {"h:",
                                        "h:0",
                                        "h:65536",
                                        "h:x",
                                        "h:1x",
                                        "h:-1",
                                        "h:+1",
                                        "h: 1",
                                        "h:4294967297",
                                        "[::1]:",
                                        "h:18446744073709551617"};
    static const char *const addresses[] = {"[]", "[h]", "[192.0.2.1]", "[:::]", "[%25]"};
    char longest[RBK_URL_HOST_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        assert_no_host(shapes[i], "store URL: expected HOST[:PORT], an IPv6 address in brackets");
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        assert_no_host(ports[i], "store URL: expected a port, 1 to 65535");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_no_host(addresses[i], "store URL: expected an IPv6 address in the brackets");
    assert_no_host("", "store URL: expected a host of 1 to 253 bytes");
    assert_no_host(":1", "store URL: expected a host of 1 to 253 bytes");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_no_host(longest, "store URL: expected a host of 1 to 253 bytes");
}

static void a_number_is_digits_in_a_range(void **state)
{
    unsigned number = 9;

    (void)state;
    assert_true(rbk_url_number("0", 0, 5, &number));
    assert_int_equal(number, 0);
    assert_true(rbk_url_number("005", 0, 5, &number));
    assert_int_equal(number, 5);
    assert_true(rbk_url_number("4294967295", 0, 4294967295u, &number));
    assert_true(number == 4294967295u);
    number = 9;
    assert_false(rbk_url_number("6", 0, 5, &number));
    assert_false(rbk_url_number("0", 1, 5, &number));
    assert_false(rbk_url_number("", 0, 5, &number));
    assert_false(rbk_url_number(" 1", 0, 5, &number));
    assert_false(rbk_url_number("1 ", 0, 5, &number));
    assert_false(rbk_url_number("-0", 0, 5, &number));
    assert_false(rbk_url_number("4294967296", 0, 4294967295u, &number));
    assert_false(rbk_url_number("18446744073709551616", 0, 4294967295u, &number));
    assert_int_equal(number, 9);
}

static void assert_unparsed(const char *text, const char *message)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_url url;
    enum redbucket_status status = rbk_url_parse(text, &url, &error);

    if (status == REDBUCKET_OK)
        status = rbk_url_known(&url, "timeout", &error);
    assert_int_equal(status, REDBUCKET_ERROR_URL);
    assert_string_equal(error.message, message);
    assert_null(strstr(error.message, "secret"));
}

/* Somebody who doesn't know that a ? has to be encoded must not find the rest in a log. */
static void no_piece_of_a_password_is_a_parameters_name(void **state)
{
    (void)state;
    assert_unparsed("x://u:pass?secret=1@h",
                    "store URL: a parameter is unknown (in a password, ? is written %3F)");
    assert_unparsed("x://u:pass?timeout=1&secret=@h",
                    "store URL: a parameter is unknown (in a password, ? is written %3F)");
    assert_unparsed("x://u:pass?secret=1&secret=2@h",
                    "store URL: a parameter is given twice (in a password, ? is written %3F)");
    assert_unparsed("x://u:pass?secret@h", "store URL: expected NAME=VALUE behind ? and &");
    assert_unparsed("secret@h:1", "store URL: expected " RBK_URL_KINDS);
    assert_unparsed("the secret:1", "store URL: expected " RBK_URL_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_authority_has_a_user_hosts_and_a_path),
        cmocka_unit_test(what_is_encoded_is_a_character),
        cmocka_unit_test(a_copy_is_split_by_itself),
        cmocka_unit_test(what_has_no_authority_is_refused),
        cmocka_unit_test(a_host_may_have_a_port),
        cmocka_unit_test(what_is_no_host_is_refused),
        cmocka_unit_test(a_number_is_digits_in_a_range),
        cmocka_unit_test(no_piece_of_a_password_is_a_parameters_name),
    };

    return cmocka_run_group_tests_name("url authority", tests, NULL, NULL);
}
