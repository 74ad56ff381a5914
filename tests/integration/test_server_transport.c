/* SPDX-License-Identifier: MIT */
/*
 * Connections to real servers: what they say of themselves in each version, who is let in by TLS,
 * and what becomes of a connection whose server is slow, full, or hangs up.
 */
#include "../unit/caller.h"
#include "processes.h"
#include "redis/server.h"
#include "server.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define URL_SIZE 512

static struct test_server *start(const struct test_server_options *options)
{
    struct test_server *server;

    if (options->tls ? !test_server_have_tls(options->kind) : !test_server_have(options->kind))
        skip();
    server = test_server_start(options);
    assert_non_null(server);
    return server;
}

/* Sends a command of words set off by blanks. */
static enum redbucket_status ask(struct test_caller *caller, const char *text, double seconds)
{
    struct rbk_argument words[8];
    struct rbk_command command = {words, 0};
    struct rbk_deadline deadline;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        words[command.len++] = (struct rbk_argument){text, len};
        text += len + (text[len] == ' ');
    }
    rbk_deadline_start(&deadline, seconds);
    return rbk_connection_call(caller->connection, &command, 1, caller->replies, &deadline);
}

static void every_version_says_what_it_is(void **state)
{
    (void)state;
    for (int kind = 0; kind < TEST_SERVER_KINDS; kind++) {
        struct test_server_options options = {.kind = (enum test_server_kind)kind};
        struct rbk_server said = {.replica = false};
        struct test_server *server;
        struct test_caller caller;
        char url[URL_SIZE];

        if (!test_server_have(options.kind))
            continue;
        server = start(&options);
        test_server_url(server, TEST_BY_SOCKET, "", url, sizeof url);
        test_caller_init(&caller, url);
        assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
        assert_int_equal(ask(&caller, "INFO", LONG_S), REDBUCKET_OK);
        rbk_server_read_info(&said, caller.replies);
        const unsigned *version = kind == TEST_VALKEY ? said.valkey : said.version;

        assert_int_equal(version[0] * 10000 + version[1] * 100 + version[2], server->version);
        assert_int_equal(said.valkey[0] != 0, kind == TEST_VALKEY);
        /* INFO knows of it since Redis 3.2. */
        assert_string_equal(said.eviction, kind == TEST_OLD_REDIS ? "" : "noeviction");
        assert_false(said.replica || said.cluster || said.sentinel || said.aof);

        assert_true(test_server_do(server, "SLAVEOF", "127.0.0.1", "1", NULL));
        assert_int_equal(ask(&caller, "ROLE", LONG_S), REDBUCKET_OK);
        rbk_server_read_role(&said, caller.replies);
        assert_true(said.replica);
        said.replica = false;
        assert_int_equal(ask(&caller, "INFO", LONG_S), REDBUCKET_OK);
        rbk_server_read_info(&said, caller.replies);
        assert_true(said.replica);
        test_caller_fini(&caller);
        test_server_stop(server);
    }
}

/* Opens by TLS under this name with this query, and asks for a PING. */
static enum redbucket_status by_tls(const struct test_server *server, const char *host,
                                    const char *query)
{
    char url[URL_SIZE];
    struct test_caller caller;
    enum redbucket_status status;

    (void)snprintf(url, sizeof url, "rediss://%s:%d?%s", host, server->tls_port, query);
    test_caller_init(&caller, url);
    status = test_caller_open(&caller, LONG_S);
    if (status == REDBUCKET_OK)
        status = ask(&caller, "PING", LONG_S);
    if (status == REDBUCKET_OK)
        assert_string_equal(caller.replies[0].text, "PONG");
    test_caller_fini(&caller);
    return status;
}

static void tls_is_spoken_to_who_is_verified(void **state)
{
    struct test_server *server =
        start(&(struct test_server_options){.kind = TEST_REDIS, .tls = true});
    char by_ca[URL_SIZE], by_stranger[URL_SIZE];

    (void)state;
    (void)snprintf(by_ca, sizeof by_ca, "ca=%s/ca.pem", server->directory);
    (void)snprintf(by_stranger, sizeof by_stranger, "ca=%s/stranger_ca.pem", server->directory);
    assert_int_equal(by_tls(server, "localhost", by_ca), REDBUCKET_OK);
    assert_int_equal(by_tls(server, "127.0.0.1", by_ca), REDBUCKET_OK);
    assert_int_equal(by_tls(server, "localhost", "verify=none"), REDBUCKET_OK);
    assert_int_equal(by_tls(server, "localhost", by_stranger), REDBUCKET_ERROR_TLS);
    assert_int_equal(by_tls(server, "localhost", "timeout=9"), REDBUCKET_ERROR_TLS);
    test_server_stop(server);
}

static void a_server_with_anothers_certificate_is_refused(void **state)
{
    struct test_server *server =
        start(&(struct test_server_options){.kind = TEST_REDIS,
                                            .config = "tls-cert-file elsewhere.pem\n"
                                                      "tls-key-file elsewhere.key",
                                            .tls = true});
    char by_ca[URL_SIZE];

    (void)state;
    (void)snprintf(by_ca, sizeof by_ca, "ca=%s/ca.pem", server->directory);
    assert_int_equal(by_tls(server, "localhost", by_ca), REDBUCKET_ERROR_TLS);
    assert_int_equal(by_tls(server, "127.0.0.1", by_ca), REDBUCKET_ERROR_TLS);
    assert_int_equal(by_tls(server, "localhost", "verify=none"), REDBUCKET_OK);
    test_server_stop(server);
}

static void a_server_may_want_a_certificate(void **state)
{
    struct test_server *server = start(&(struct test_server_options){
        .kind = TEST_REDIS, .config = "tls-auth-clients yes", .tls = true});
    const char *home = server->directory;
    char query[URL_SIZE];

    (void)state;
    (void)snprintf(query, sizeof query, "ca=%s/ca.pem&cert=%s/client.pem&key=%s/client.key", home,
                   home, home);
    assert_int_equal(by_tls(server, "localhost", query), REDBUCKET_OK);
    (void)snprintf(query, sizeof query, "ca=%s/ca.pem&cert=%s/intruder.pem&key=%s/intruder.key",
                   home, home, home);
    assert_int_equal(by_tls(server, "localhost", query), REDBUCKET_ERROR_TLS);
    (void)snprintf(query, sizeof query, "ca=%s/ca.pem", home);
    assert_int_equal(by_tls(server, "localhost", query), REDBUCKET_ERROR_TLS);
    test_server_stop(server);
}

static void open_by(struct test_caller *caller, const struct test_server *server,
                    enum test_server_way way)
{
    char url[URL_SIZE];

    test_server_url(server, way, "", url, sizeof url);
    test_caller_init(caller, url);
    assert_int_equal(test_caller_open(caller, LONG_S), REDBUCKET_OK);
}

static void a_slow_server_is_left_at_the_deadline(void **state)
{
    struct test_server *server = start(&(struct test_server_options){.kind = TEST_REDIS});
    struct test_caller caller;
    double begin;

    (void)state;
    open_by(&caller, server, TEST_BY_SOCKET);
    assert_true(test_server_do(server, "CLIENT", "PAUSE", "1000", "ALL", NULL));
    begin = test_now();
    assert_int_equal(ask(&caller, "PING", SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    assert_false(rbk_connection_good(caller.connection));
    test_caller_fini(&caller);
    test_server_stop(server);
}

static void a_killed_connection_is_noticed(void **state)
{
    struct test_server *server = start(
        &(struct test_server_options){.kind = TEST_REDIS, .tls = test_server_have_tls(TEST_REDIS)});

    (void)state;
    for (int way = TEST_BY_SOCKET; way <= (server->tls_port != 0 ? TEST_BY_TLS : TEST_BY_PORT);
         way++) {
        struct test_caller caller;
        double until = test_now() + LONG_S;

        open_by(&caller, server, (enum test_server_way)way);
        assert_int_equal(ask(&caller, "PING", LONG_S), REDBUCKET_OK);
        assert_true(rbk_connection_good(caller.connection));
        assert_true(test_server_do(server, "CLIENT", "KILL", "TYPE", "normal", NULL));
        while (rbk_connection_good(caller.connection))
            assert_true(test_now() < until);
        test_caller_fini(&caller);
    }
    test_server_stop(server);
}

static void a_full_server_says_so(void **state)
{
    struct test_server *server = start(&(struct test_server_options){.kind = TEST_REDIS});
    struct test_caller first, second;

    (void)state;
    open_by(&first, server, TEST_BY_PORT);
    assert_true(test_server_do(server, "CONFIG", "SET", "maxclients", "2", NULL));
    open_by(&second, server, TEST_BY_PORT);
    assert_int_equal(ask(&first, "PING", LONG_S), REDBUCKET_OK);
    /* The error, before or after the question went out; either way nothing was done. */
    enum redbucket_status status = ask(&second, "PING", LONG_S);

    if (status == REDBUCKET_OK)
        assert_string_equal(second.replies[0].text, "ERR max number of clients reached");
    else
        assert_true(status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_IO);
    test_caller_fini(&second);
    test_caller_fini(&first);
    test_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_says_what_it_is),
        cmocka_unit_test(tls_is_spoken_to_who_is_verified),
        cmocka_unit_test(a_server_with_anothers_certificate_is_refused),
        cmocka_unit_test(a_server_may_want_a_certificate),
        cmocka_unit_test(a_slow_server_is_left_at_the_deadline),
        cmocka_unit_test(a_killed_connection_is_noticed),
        cmocka_unit_test(a_full_server_says_so),
    };

    return cmocka_run_group_tests_name("server transport", tests, NULL, NULL);
}
