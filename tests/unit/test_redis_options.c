/* SPDX-License-Identifier: MIT */
/*
 * What a server's URL asks for: every part and parameter, and one exact message for every fault,
 * none of which holds a value.
 */
#include "redis/options.h"
#include "test.h"

#include <stdio.h>

static void read_options(const char *text, struct rbk_redis_options *options)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_url url;

    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_OK);
    if (rbk_redis_options_parse(&url, options, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", text, error.message);
    memset(&url, 'x', sizeof url); /* they hold what they need themselves */
}

static void assert_refused(const char *text, const char *message)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_redis_options options;
    struct rbk_url url;
    enum redbucket_status status = rbk_url_parse(text, &url, &error);

    if (status == REDBUCKET_OK)
        status = rbk_redis_options_parse(&url, &options, &error);
    assert_int_equal(status, REDBUCKET_ERROR_URL);
    assert_string_equal(error.message, message);
}

static void defaults_are_what_the_header_says(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis://localhost", &options);
    assert_int_equal(options.kind, RBK_KIND_SERVER);
    assert_int_equal(options.hosts_len, 1);
    assert_string_equal(options.hosts[0].name, "localhost");
    assert_int_equal(options.hosts[0].port, 6379);
    assert_int_equal(options.db, 0);
    assert_null(options.user);
    assert_null(options.password);
    assert_null(options.service);
    assert_null(options.sentinel_password);
    assert_false(options.tls);
    assert_same(options.timeout, 1.0);
    assert_int_equal(options.connections, 8);
    assert_int_equal(options.method, RBK_METHOD_AUTO);
    assert_int_equal(options.codec, RBK_CODEC_STRUCT);
    assert_string_equal(options.hosts[0].where, "localhost:6379");
    assert_int_equal(options.key_format.pieces_len, 4);
}

static void every_part_is_read(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options(
        "rediss://al%3Aice:p%40ss%2f%3fword@[2001:db8::1]:6380/15?timeout=50ms&connections=3"
        "&codec=json&key_format=a%26{key}{zone}&method=transaction&ca=/c%20a&cert=ce&key=k",
        &options);
    assert_string_equal(options.hosts[0].name, "2001:db8::1");
    assert_int_equal(options.hosts[0].port, 6380);
    assert_int_equal(options.db, 15);
    assert_string_equal(options.user, "al:ice");
    assert_string_equal(options.password, "p@ss/?word");
    assert_true(options.tls);
    assert_true(options.tls_verify);
    assert_string_equal(options.tls_ca, "/c a");
    assert_string_equal(options.tls_cert, "ce");
    assert_string_equal(options.tls_key, "k");
    assert_same(options.timeout, 0.05);
    assert_int_equal(options.connections, 3);
    assert_int_equal(options.method, RBK_METHOD_TRANSACTION);
    assert_int_equal(options.codec, RBK_CODEC_JSON);
    assert_int_equal(options.key_format.pieces_len, 3);
    assert_string_equal(options.hosts[0].where, "[2001:db8::1]:6380");
}

static void a_socket_is_a_path(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("unix:///run/re%20dis.sock", &options);
    assert_int_equal(options.hosts[0].port, 0);
    assert_string_equal(options.hosts[0].name, "/run/re dis.sock");
    assert_string_equal(options.hosts[0].where, "/run/re dis.sock");
    assert_int_equal(options.db, 0);
    read_options("unix://:pass@/s?db=3&codec=struct&method=script", &options);
    assert_string_equal(options.hosts[0].name, "/s");
    assert_null(options.user);
    assert_string_equal(options.password, "pass");
    assert_int_equal(options.db, 3);
    assert_int_equal(options.method, RBK_METHOD_SCRIPT);
}

static void a_user_has_a_password_and_a_password_may_have_none(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis://user@h", &options);
    assert_string_equal(options.user, "user");
    assert_string_equal(options.password, "");
    read_options("redis://:word@h", &options);
    assert_null(options.user);
    assert_string_equal(options.password, "word");
    read_options("redis://a:b@c@h:1", &options);
    assert_string_equal(options.password, "b@c");
    assert_string_equal(options.hosts[0].name, "h");
}

static void the_database_is_the_paths_or_the_parameters(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis://h/", &options);
    assert_int_equal(options.db, 0);
    read_options("redis://h/2147483647", &options);
    assert_int_equal(options.db, 2147483647);
    read_options("redis://h?db=4", &options);
    assert_int_equal(options.db, 4);
    read_options("redis://h/?db=4", &options);
    assert_int_equal(options.db, 4);
    assert_refused("redis://h/4?db=4", "store URL: db given twice");
    assert_refused("redis://h/x", "store URL: database behind the /: expected a number from 0");
    assert_refused("redis://h/1/", "store URL: database behind the /: expected a number from 0");
    assert_refused("redis://h/-1", "store URL: database behind the /: expected a number from 0");
    assert_refused("redis://h/2147483648",
                   "store URL: database behind the /: expected a number from 0");
    assert_refused("unix:///s?db=", "store URL: db: expected a number from 0");
}

/* Who gives one for TLS and gets none must hear of it. */
static void what_means_nothing_is_refused(void **state)
{
    static const char *const plain[] = {"ca=x", "cert=x", "key=x", "verify=none"};
    char text[64], message[200];

    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        (void)snprintf(text, sizeof text, "redis://h?%s", plain[i]);
        (void)snprintf(
            message, sizeof message,
            "store URL: unknown parameter \"%.*s\": redis: has timeout connections codec "
            "key_format method denial_time on_error local_share db",
            (int)strcspn(plain[i], "="), plain[i]);
        assert_refused(text, message);
    }
    assert_refused("unix:///s?verify=none",
                   "store URL: unknown parameter \"verify\": unix: has timeout connections codec "
                   "key_format method denial_time on_error local_share db");
    assert_refused(
        "rediss://h?denial=0",
        "store URL: unknown parameter \"denial\": rediss: has timeout connections "
        "codec key_format method denial_time on_error local_share db ca cert key verify");
    assert_refused("redis://h?timeout=1&timeout=1", "store URL: parameter \"timeout\" given twice");
}

static void sentinels_are_hosts_and_a_service(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis+sentinel://a,b:1,[2001:db8::1],[2001:db8::2]:65535/mymaster", &options);
    assert_int_equal(options.kind, RBK_KIND_SENTINEL);
    assert_int_equal(options.hosts_len, 4);
    assert_string_equal(options.hosts[0].where, "a:26379");
    assert_string_equal(options.hosts[1].where, "b:1");
    assert_string_equal(options.hosts[2].where, "[2001:db8::1]:26379");
    assert_string_equal(options.hosts[3].name, "2001:db8::2");
    assert_int_equal(options.hosts[3].port, 65535);
    assert_string_equal(options.service, "mymaster");
    assert_int_equal(options.db, 0);
    assert_false(options.tls);
    assert_null(options.password);
    assert_null(options.sentinel_user);
    assert_null(options.sentinel_password);
}

static void sentinels_and_the_master_have_passwords_of_their_own(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("rediss+sentinel://al%2Cice:p%2C@a:1,b:2/my%20service/7?sentinel_user=x"
                 "&sentinel_password=y%26z&ca=/c&method=transaction",
                 &options);
    assert_int_equal(options.kind, RBK_KIND_SENTINEL);
    assert_int_equal(options.hosts_len, 2);
    assert_string_equal(options.user, "al,ice");
    assert_string_equal(options.password, "p,");
    assert_string_equal(options.service, "my service");
    assert_int_equal(options.db, 7);
    assert_string_equal(options.sentinel_user, "x");
    assert_string_equal(options.sentinel_password, "y&z");
    assert_true(options.tls);
    assert_int_equal(options.method, RBK_METHOD_TRANSACTION);
    read_options("redis+sentinel://a/s?sentinel_password=&db=3", &options);
    assert_null(options.sentinel_user);
    assert_string_equal(options.sentinel_password, "");
    assert_int_equal(options.db, 3);
    read_options("redis+sentinel://a/s/", &options);
    assert_int_equal(options.db, 0);
}

static void sentinel_urls_have_faults_of_their_own(void **state)
{
#define WHOLE "store URL: redis+sentinel: expected HOST[:PORT],HOST[:PORT].../SERVICE[/DB]"
    (void)state;
    assert_refused("redis+sentinel://a", WHOLE);
    assert_refused("redis+sentinel://a/", WHOLE);
    assert_refused("redis+sentinel://a//1", WHOLE);
    assert_refused("redis+sentinel://a/s/x",
                   "store URL: database behind the /: expected a number from 0");
    assert_refused("redis+sentinel://a/s/1/",
                   "store URL: database behind the /: expected a number from 0");
    assert_refused("redis+sentinel://a/s/1?db=1", "store URL: db given twice");
    assert_refused("redis+sentinel://a,/s", "store URL: expected a host of 1 to 253 bytes");
    assert_refused("redis+sentinel://,a/s", "store URL: expected a host of 1 to 253 bytes");
    assert_refused("redis+sentinel://a,b:0/s", "store URL: expected a port, 1 to 65535");
    assert_refused("redis+sentinel://a/s?sentinel_user=u",
                   "store URL: sentinel_user: expected a sentinel_password beside it");
    assert_refused("redis://a?sentinel_password=p",
                   "store URL: unknown parameter \"sentinel_password\": redis: has timeout "
                   "connections codec key_format method denial_time on_error local_share db");
    assert_refused("redis+cluster://a?sentinel_password=p",
                   "store URL: unknown parameter \"sentinel_password\": redis+cluster: has timeout "
                   "connections codec key_format method denial_time on_error local_share");
    assert_refused("redis+sentinel://a/s?ca=x",
                   "store URL: unknown parameter \"ca\": redis+sentinel: has timeout connections "
                   "codec key_format method denial_time on_error local_share db sentinel_user "
                   "sentinel_password");
}

static void a_cluster_is_hosts_alone(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis+cluster://user:pass@a,[2001:db8::1]:7000?timeout=2s", &options);
    assert_int_equal(options.kind, RBK_KIND_CLUSTER);
    assert_int_equal(options.hosts_len, 2);
    assert_string_equal(options.hosts[0].where, "a:6379");
    assert_string_equal(options.hosts[1].where, "[2001:db8::1]:7000");
    assert_string_equal(options.password, "pass");
    assert_int_equal(options.db, 0);
    assert_null(options.service);
    read_options("rediss+cluster://a/?verify=none&method=script", &options);
    assert_int_equal(options.kind, RBK_KIND_CLUSTER);
    assert_true(options.tls);
    assert_false(options.tls_verify);
    assert_int_equal(options.method, RBK_METHOD_SCRIPT);
}

static void a_cluster_has_no_databases_and_no_transactions(void **state)
{
    (void)state;
    assert_refused("redis+cluster://a/0", "store URL: database behind the /: expected none, since "
                                          "a cluster has but one");
    assert_refused("redis+cluster://a/name", "store URL: database behind the /: expected none, "
                                             "since a cluster has but one");
    assert_refused("rediss+cluster://a?db=0", "store URL: db: expected no such parameter, since a "
                                              "cluster has but one database");
    assert_refused("redis+cluster://a?method=transaction",
                   "store URL: method: expected auto or script, since a cluster decides by script "
                   "alone");
}

static void hosts_are_bounded(void **state)
{
    struct rbk_redis_options options;
    char text[256] = "redis+cluster://h";

    (void)state;
    for (unsigned i = 1; i < RBK_HOSTS_MAX; i++)
        strcat(text, ",h");
    read_options(text, &options);
    assert_int_equal(options.hosts_len, RBK_HOSTS_MAX);
    strcat(text, ",h");
    assert_refused(text, "store URL: redis+cluster: expected at most 32 hosts");
}

static void an_endpoint_is_a_place_that_can_be(void **state)
{
    struct rbk_endpoint endpoint, other;
    char text[RBK_URL_HOST_MAX + 2];

    (void)state;
    assert_true(rbk_endpoint_set_host(&endpoint, "h", 1));
    other = endpoint;
    assert_false(rbk_endpoint_set_host(&endpoint, "", 1));
    assert_false(rbk_endpoint_set_host(&endpoint, "x", 0));
    assert_false(rbk_endpoint_set_host(&endpoint, "x", 65536));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(rbk_endpoint_set_host(&endpoint, text, 1));
    assert_false(rbk_endpoint_set_path(&endpoint, text));
    assert_true(rbk_endpoint_same(&endpoint, &other));
    assert_string_equal(endpoint.where, "h:1");
    text[sizeof text - 2] = '\0';
    assert_true(rbk_endpoint_set_host(&endpoint, text, 65535));
    assert_int_equal(strlen(endpoint.where), RBK_URL_HOST_MAX + 6);
    assert_false(rbk_endpoint_same(&endpoint, &other));
    assert_true(rbk_endpoint_set_host(&other, text, 65534));
    assert_false(rbk_endpoint_same(&endpoint, &other));
}

static void what_others_read_is_let_pass(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis://h?on_error=whatever&local_share=thing", &options);
    read_options("unix:///s?on_error=x&local_share=y", &options);
}

static void faults_have_their_messages(void **state)
{
    static const struct {
        const char *query, *message;
    } faults[] = {
        {"timeout=0", "timeout: expected a duration above 0, to 1h, such as 50ms or 2s"},
        {"timeout=2h", "timeout: expected a duration above 0, to 1h, such as 50ms or 2s"},
        {"connections=0", "connections: expected a number from 1 to 1024"},
        {"connections=1025", "connections: expected a number from 1 to 1024"},
        {"connections=", "connections: expected a number from 1 to 1024"},
        {"connections=1.5", "connections: expected a number from 1 to 1024"},
        {"codec=Json", "codec: expected struct or json"},
        {"codec=", "codec: expected struct or json"},
        {"method=eval", "method: expected auto, script or transaction"},
        {"verify=full", "verify: expected none, or no such parameter"},
        {"verify=", "verify: expected none, or no such parameter"},
        {"verify=none&ca=x", "ca: expected no verify=none beside it"},
        {"cert=x", "cert: expected both cert and key, or neither"},
        {"key=x", "cert: expected both cert and key, or neither"},
    };
    char text[96], message[160];

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        (void)snprintf(text, sizeof text, "rediss://h?%s", faults[i].query);
        (void)snprintf(message, sizeof message, "store URL: %s", faults[i].message);
        assert_refused(text, message);
    }
}

static void a_bad_key_format_is_refused(void **state)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_redis_options options;
    struct rbk_url url;

    (void)state;
    assert_int_equal(rbk_url_parse("redis://h?key_format={zone}", &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, &error), REDBUCKET_ERROR_URL);
    assert_int_equal(strncmp(error.message, "store URL: key_format: ", 23), 0);
}

static void certificates_may_be_left_unverified_when_asked(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("rediss://h?verify=none&cert=c&key=k", &options);
    assert_false(options.tls_verify);
    assert_null(options.tls_ca);
    assert_string_equal(options.tls_cert, "c");
}

static void a_place_is_one_server(void **state)
{
    char text[256];

    (void)state;
    assert_refused("redis:h", "store URL: expected // behind redis:");
    assert_refused("redis://", "store URL: expected a host of 1 to 253 bytes");
    assert_refused("redis:///3", "store URL: expected a host of 1 to 253 bytes");
    assert_refused("redis://:secret@", "store URL: expected a host of 1 to 253 bytes");
    assert_refused("redis://a:1,b:2", "store URL: redis: expected one server, HOST[:PORT]");
    assert_refused("unix://", "store URL: unix: expected unix://[USER[:PASSWORD]@]/PATH");
    assert_refused("unix:///", "store URL: unix: expected unix://[USER[:PASSWORD]@]/PATH");
    assert_refused("unix://h/p", "store URL: unix: expected unix://[USER[:PASSWORD]@]/PATH");
    assert_refused("unix:/p", "store URL: expected // behind unix:");
    assert_refused("http://h", "store URL: expected " RBK_URL_SERVERS);
    (void)snprintf(text, sizeof text, "unix:///%0107d", 0);
    assert_refused(text, "store URL: unix: the path is longer than 107 bytes");
}

/* Whatever is wrong with a URL, and however wrongly a password was written into it. */
static void no_message_holds_a_password(void **state)
{
    static const char *const urls[] = {
        "redis://u:secret@h:x",
        "redis://u:secret@[h]",
        "redis://u:secret@",
        "redis://u:se/secret@h",
        "redis://u:se?secret=1@h",
        "redis://u:se?timeout=secret@h",
        "redis://u:secret@h/secret",
        "redis://:secret@a,b",
        "unix://u:secret@h/p",
        "redis://secret:secret:1",
        "redis://u:se#secret@h:y",
        "rediss://:secret@h?verify=secret",
        "unix://u:se/secret@/p?db=x",
        "redis://u:se%zzsecret@h:1",
        "redis://u:%00secret@h",
        "redis+sentinel://u:secret@h",
        "redis+cluster://:secret@/1",
        "redis+cluster://u:secret@a,b?method=transaction",
        "redis+sentinel://u:s@h/s/secret?sentinel_password=secret",
        "redis+sentinel://h/s?sentinel_user=secret",
        "redis+sentinel://h/s?sentinel_password=secret&db=x",
        "redis+sentinel://u:secret,secret@h:x/s",
    };

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct redbucket_error error = {.message = ""};
        struct rbk_redis_options options;
        struct rbk_url url;
        enum redbucket_status status = rbk_url_parse(urls[i], &url, &error);

        if (status == REDBUCKET_OK)
            status = rbk_redis_options_parse(&url, &options, &error);
        assert_int_equal(status, REDBUCKET_ERROR_URL);
        assert_null(strstr(error.message, "secret"));
    }
}

static void a_place_is_told_in_one_printable_line(void **state)
{
    struct rbk_redis_options options;

    (void)state;
    read_options("redis://:secret@a%0ab%1b%7f", &options);
    assert_string_equal(options.hosts[0].where, "a?b??:6379");
    read_options("unix://:secret@/a%0ab", &options);
    assert_string_equal(options.hosts[0].where, "/a?b");
    assert_string_equal(options.hosts[0].name, "/a\nb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_what_the_header_says),
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(a_socket_is_a_path),
        cmocka_unit_test(a_user_has_a_password_and_a_password_may_have_none),
        cmocka_unit_test(the_database_is_the_paths_or_the_parameters),
        cmocka_unit_test(what_means_nothing_is_refused),
        cmocka_unit_test(sentinels_are_hosts_and_a_service),
        cmocka_unit_test(sentinels_and_the_master_have_passwords_of_their_own),
        cmocka_unit_test(sentinel_urls_have_faults_of_their_own),
        cmocka_unit_test(a_cluster_is_hosts_alone),
        cmocka_unit_test(a_cluster_has_no_databases_and_no_transactions),
        cmocka_unit_test(hosts_are_bounded),
        cmocka_unit_test(an_endpoint_is_a_place_that_can_be),
        cmocka_unit_test(what_others_read_is_let_pass),
        cmocka_unit_test(faults_have_their_messages),
        cmocka_unit_test(a_bad_key_format_is_refused),
        cmocka_unit_test(certificates_may_be_left_unverified_when_asked),
        cmocka_unit_test(a_place_is_one_server),
        cmocka_unit_test(no_message_holds_a_password),
        cmocka_unit_test(a_place_is_told_in_one_printable_line),
    };

    return cmocka_run_group_tests_name("redis options", tests, NULL, NULL);
}
