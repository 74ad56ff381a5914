/* SPDX-License-Identifier: MIT */
/*
 * The first round trip of a connection: what is said in it, what a server's refusals come to, and
 * that a password is never repeated.
 */
#include "fake_connection.h"
#include "redis/handshake.h"
#include "test.h"
#include "url.h"

#include <stdio.h>

#define SECRET "hunter2-marker"

static struct rbk_redis_options options;
static struct rbk_peer peer;
static struct redbucket_error error;

static void prepare(const char *text)
{
    struct rbk_url url;

    fake_server_reset();
    peer = (struct rbk_peer){.connection = NULL};
    error = (struct redbucket_error){.message = ""};
    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, &error), REDBUCKET_OK);
}

static enum redbucket_status shake(void)
{
    struct rbk_transport *transport = NULL;
    struct rbk_deadline deadline;
    enum redbucket_status status;

    assert_int_equal(rbk_transport_create(&options.hosts[0], NULL, &transport, &error),
                     REDBUCKET_OK);
    rbk_deadline_start(&deadline, 1.0);
    status = rbk_handshake(&options, transport, &deadline, &peer, &error);
    rbk_transport_destroy(transport);
    assert_int_equal(status == REDBUCKET_OK, peer.connection != NULL);
    rbk_connection_close(peer.connection);
    assert_int_equal(fake_server.closed, fake_server.open_status == REDBUCKET_OK);
    if (status != REDBUCKET_OK) {
        assert_int_equal(error.status, status);
        assert_true(error.message[0] != '\0');
        assert_null(strstr(error.message, SECRET));
    }
    return status;
}

static void assert_said(const char *text, const char *words)
{
    prepare(text);
    assert_int_equal(shake(), REDBUCKET_OK);
    assert_string_equal(fake_server.log, words);
}

static void test_what_is_said(void **state)
{
    (void)state;
    assert_said("redis://h", "INFO ROLE ");
    assert_said("redis://h/0", "INFO ROLE ");
    assert_said("redis://h/7", "SELECT 7 INFO ROLE ");
    assert_said("unix:///p?db=2147483647", "SELECT 2147483647 INFO ROLE ");
    assert_said("redis://:pass@h", "AUTH pass INFO ROLE ");
    assert_said("redis://user:pass@h/1", "AUTH user pass SELECT 1 INFO ROLE ");
    assert_said("redis://user@h", "AUTH user  INFO ROLE ");
}

/* What the server answers to one command makes this of the handshake. */
static enum redbucket_status when(const char *text, const char *command, const char *answer)
{
    prepare(text);
    fake_server_say(command, RBK_REPLY_ERROR, answer);
    return shake();
}

static void test_refused_user_or_database(void **state)
{
    static const struct {
        const char *command;
        const char *answer;
        enum redbucket_status status;
    } refusals[] = {
        {"AUTH", "WRONGPASS invalid username-password pair or user is disabled.",
         REDBUCKET_ERROR_AUTH},
        {"AUTH", "ERR invalid password", REDBUCKET_ERROR_AUTH},
        {"AUTH", "ERR Client sent AUTH, but no password is set", REDBUCKET_ERROR_AUTH},
        {"AUTH", "ERR wrong number of arguments for 'auth' command", REDBUCKET_ERROR_AUTH},
        {"SELECT", "NOAUTH Authentication required.", REDBUCKET_ERROR_AUTH},
        {"SELECT", "ERR DB index is out of range", REDBUCKET_ERROR_SERVER},
        {"SELECT", "ERR SELECT is not allowed in cluster mode", REDBUCKET_ERROR_SERVER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        assert_int_equal(
            when("redis://user:" SECRET "@h/1", refusals[i].command, refusals[i].answer),
            refusals[i].status);
        assert_non_null(strstr(error.message, refusals[i].command));
    }
}

/* Managed servers: nobody knows what it is, and the script is tried. */
static void test_info_and_role_may_be_refused(void **state)
{
    static const char *const refusals[] = {
        "NOPERM this user has no permissions to run the 'info' command",
        "ERR unknown command 'INFO'",
        "ERR unknown command `ROLE`, with args beginning with: ",
        "ERR operation not supported here",
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        prepare("redis://h");
        fake_server_say("INFO", RBK_REPLY_ERROR, refusals[i]);
        fake_server_say("ROLE", RBK_REPLY_ERROR, refusals[i]);
        assert_int_equal(shake(), REDBUCKET_OK);
        assert_false(peer.by_transaction);
        assert_int_equal(peer.server.version[0], 0);
    }
}

/* A server that can't say now what it is may be a replica, or too old for the script. */
static void test_a_server_that_cannot_answer_now_is_not_ready(void **state)
{
    static const struct {
        const char *answer;
        enum redbucket_status status;
    } answers[] = {
        {"BUSY Redis is busy running a script.", REDBUCKET_ERROR_UNAVAILABLE},
        {"LOADING Redis is loading the dataset in memory", REDBUCKET_ERROR_UNAVAILABLE},
        {"MASTERDOWN Link with MASTER is down", REDBUCKET_ERROR_UNAVAILABLE},
        {"NOAUTH Authentication required.", REDBUCKET_ERROR_AUTH},
        {"ERR operation not permitted", REDBUCKET_ERROR_AUTH},
        {"ERR max number of clients reached", REDBUCKET_ERROR_UNAVAILABLE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        assert_int_equal(when("redis://h", "INFO", answers[i].answer), answers[i].status);
        assert_int_equal(when("redis://h", "ROLE", answers[i].answer), answers[i].status);
    }
}

static void test_a_replica_is_refused(void **state)
{
    (void)state;
    prepare("redis://h");
    fake_server_say("ROLE", RBK_REPLY_ERROR, "NOPERM no");
    fake_server_say("INFO", RBK_REPLY_STRING, "redis_version:7.0.15\r\nrole:slave\r\n");
    assert_int_equal(shake(), REDBUCKET_ERROR_READONLY);
}

/* Which tells of a master, and is none. */
static void test_a_sentinel_is_refused(void **state)
{
    (void)state;
    prepare("redis://h:26379");
    fake_server_say("INFO", RBK_REPLY_STRING, "redis_version:7.0.15\r\nredis_mode:sentinel\r\n");
    fake_server_say("ROLE", RBK_REPLY_ERROR, "NOPERM no");
    assert_int_equal(shake(), REDBUCKET_ERROR_UNSUPPORTED);
    assert_string_equal(error.message, "h:26379: a sentinel keeps no buckets, it is for a "
                                       "redis+sentinel:// URL");
}

/* Which node has a slot is for the node to say, by what it answers to a call. */
static void test_a_replica_of_a_cluster_is_a_node(void **state)
{
    (void)state;
    prepare("redis+cluster://user:pass@h");
    fake_server_say("INFO", RBK_REPLY_STRING, "redis_version:7.0.15\r\nrole:slave\r\n");
    fake_server_say("ROLE", RBK_REPLY_ERROR, "NOPERM no");
    assert_int_equal(shake(), REDBUCKET_OK);
    assert_true(peer.server.replica);
    assert_false(peer.by_transaction);
    assert_string_equal(fake_server.log, "AUTH user pass INFO ROLE ");
    prepare("redis+cluster://h");
    fake_server_say("INFO", RBK_REPLY_STRING, "redis_version:3.0.7\r\n");
    assert_int_equal(shake(), REDBUCKET_ERROR_UNSUPPORTED);
}

static void assert_method(const char *text, const char *info, bool by_transaction)
{
    prepare(text);
    fake_server_say("INFO", RBK_REPLY_STRING, info);
    assert_int_equal(shake(), REDBUCKET_OK);
    assert_int_equal(peer.by_transaction, by_transaction);
}

static void test_old_servers_decide_by_transaction(void **state)
{
    (void)state;
    assert_method("redis://h", "redis_version:2.8.24\r\n", true);
    assert_method("redis://h", "redis_version:3.0.5\r\n", true);
    assert_method("redis://h", "redis_version:3.2.0\r\n", false);
    assert_method("redis://h", "redis_version:7.0.15\r\n", false);
    assert_method("redis://h", "redis_version:255.255.255\r\n", false);
    assert_method("redis://h", "redis_version:unstable\r\n", false);
    assert_method("redis://h", "redis_version:3.0.0\r\nvalkey_version:8.0.1\r\n", false);
    assert_method("redis://h?method=script", "redis_version:3.0.5\r\n", false);
    assert_method("redis://h?method=transaction", "redis_version:7.0.15\r\n", true);
}

/* Not even where a server or a proxy repeats what it was told. */
static void test_no_password_is_repeated(void **state)
{
    static const char *const answers[] = {
        "ERR unknown command 'AUTH', with args beginning with: '" SECRET "', ",
        "ERR unknown command `AUTH`, with args beginning with: `user`, `" SECRET "`, ",
        "WRONGPASS user/" SECRET " is not right",
        "ERR AUTH " SECRET "\033[2J",
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        assert_int_not_equal(when("redis://user:" SECRET "@h", "AUTH", answers[i]), REDBUCKET_OK);
        for (const char *at = error.message; *at != '\0'; at++)
            assert_true((unsigned char)*at >= 0x20);
    }
    assert_int_not_equal(
        when("redis://:" SECRET "@h/1", "SELECT", "ERR you said " SECRET " before"), REDBUCKET_OK);
}

/* Nor where it hangs up with it, and its words had to be cut. */
static void test_no_password_is_repeated_on_hanging_up(void **state)
{
    static const char *const failures[] = {
        "ERR invalid password " SECRET,
        "ERR invalid password of user, which was " SECRET " and not what it is here",
        "ERR invalid password of a user of whom there was a lot to be said, in words so long that "
        "no more than a beginning of what he gave is left: it was not "
        "hunter2-m",
    };

    (void)state;
    assert_int_equal(strlen(failures[2]), RBK_SERVER_WORDS_SIZE - 1);
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        prepare("redis://user:" SECRET "@192.0.2.1:7000");
        fake_server.call_status = REDBUCKET_ERROR_AUTH;
        fake_server.failure = failures[i];
        assert_int_equal(shake(), REDBUCKET_ERROR_AUTH);
        assert_string_equal(error.message,
                            "192.0.2.1:7000: refused, in words that hold the password");
    }
}

static void test_a_connection_that_breaks_says_where(void **state)
{
    (void)state;
    prepare("redis://192.0.2.1:7000");
    fake_server.call_status = REDBUCKET_ERROR_TIMEOUT;
    assert_int_equal(shake(), REDBUCKET_ERROR_TIMEOUT);
    assert_string_equal(error.message, "192.0.2.1:7000: went wrong");
    prepare("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_TLS;
    assert_int_equal(shake(), REDBUCKET_ERROR_TLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_refused_user_or_database),
        cmocka_unit_test(test_info_and_role_may_be_refused),
        cmocka_unit_test(test_a_server_that_cannot_answer_now_is_not_ready),
        cmocka_unit_test(test_a_replica_is_refused),
        cmocka_unit_test(test_a_sentinel_is_refused),
        cmocka_unit_test(test_a_replica_of_a_cluster_is_a_node),
        cmocka_unit_test(test_old_servers_decide_by_transaction),
        cmocka_unit_test(test_no_password_is_repeated),
        cmocka_unit_test(test_no_password_is_repeated_on_hanging_up),
        cmocka_unit_test(test_a_connection_that_breaks_says_where),
    };

    return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}
