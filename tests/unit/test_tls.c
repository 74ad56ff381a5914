/* SPDX-License-Identifier: MIT */
/*
 * TLS against a server of the test's own: who is trusted and who isn't, what is not TLS, and
 * handshakes that stop anywhere.
 */
#include "caller.h"
#include "processes.h"
#include "test.h"
#include "tls_actor.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A caller of the server by this name of it. */
static void call_to(struct test_caller *caller, const struct test_actor *peer, const char *host,
                    const char *query)
{
    char url[PATH_MAX];

    (void)snprintf(url, sizeof url, "rediss://u:secret@%s:%d?%s", host, peer->port, query);
    test_caller_init(caller, url);
}

static const char *by_ca(const char *more)
{
    static char query[512];

    (void)snprintf(query, sizeof query, "ca=%s/ca.pem%s", test_tls_folder, more);
    return query;
}

static const char *with_certificate(const char *name)
{
    static char query[512];

    (void)snprintf(query, sizeof query, "ca=%s/ca.pem&cert=%s/%s.pem&key=%s/%s.key",
                   test_tls_folder, test_tls_folder, name, test_tls_folder, name);
    return query;
}

/* Opens and asks; returns how that went, and the words for it in caller->error. */
static enum redbucket_status try(struct test_tls_server *server, const char *host,
                                 const char *query, struct test_caller *caller)
{
    struct test_actor peer;
    enum redbucket_status status;

    if (server->answer == NULL)
        server->answer = "+OK\r\n";
    test_actor_start(&peer, test_tls_serve, server);
    call_to(caller, &peer, host, query);
    status = test_caller_open(caller, LONG_S);
    if (status == REDBUCKET_OK) {
        status = test_caller_say(caller, "PING", 1, LONG_S);
        (void)snprintf(caller->error.message, sizeof caller->error.message, "%s",
                       rbk_connection_failure(caller->connection));
    }
    test_caller_fini(caller);
    test_actor_stop(&peer);
    assert_int_equal(ERR_peek_error(), 0); /* the host finds its queue of errors empty */
    assert_null(strstr(caller->error.message, "secret"));
    return status;
}

static void a_server_of_the_right_name_is_trusted(void **state)
{
    struct test_caller caller;
    struct test_tls_server server = {.cert = "server"};
    struct test_tls_server older = {.cert = "server", .version = TLS1_2_VERSION};

    (void)state;
    assert_int_equal(try(&server, "localhost", by_ca(""), &caller), REDBUCKET_OK);
    assert_string_equal(server.name, "localhost");
    assert_int_equal(try(&server, "127.0.0.1", by_ca(""), &caller), REDBUCKET_OK);
    assert_string_equal(server.name, ""); /* addresses are no names */
    assert_int_equal(try(&older, "localhost", by_ca(""), &caller), REDBUCKET_OK);
}

/* Places that the URL doesn't name, but others do. */
static void places_share_certificates_and_are_verified_by_their_own_names(void **state)
{
    static const char *const names[] = {"localhost", "127.0.0.1"};
    struct test_tls_server server = {.cert = "server", .answer = "+OK\r\n"};
    struct test_caller caller;
    struct test_actor peer;
    struct rbk_tls *tls;

    (void)state;
    test_actor_start(&peer, test_tls_serve, &server);
    call_to(&caller, &peer, "elsewhere.example", by_ca(""));
    tls = caller.tls;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct test_caller other = {.connection = NULL};
        struct rbk_endpoint endpoint;

        assert_true(rbk_endpoint_set_host(&endpoint, names[i], (unsigned)peer.port));
        assert_int_equal(rbk_transport_create(&endpoint, tls, &other.transport, &other.error),
                         REDBUCKET_OK);
        assert_string_equal(rbk_transport_endpoint(other.transport)->name, names[i]);
        assert_int_equal(test_caller_open(&other, LONG_S), REDBUCKET_OK);
        assert_int_equal(test_caller_say(&other, "PING", 1, LONG_S), REDBUCKET_OK);
        assert_string_equal(server.name, i == 0 ? names[i] : "");
        test_caller_fini(&other);
    }
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static void assert_refused(struct test_tls_server *server, const char *host, const char *query,
                           const char *why)
{
    struct test_caller caller;

    assert_int_equal(try(server, host, query, &caller), REDBUCKET_ERROR_TLS);
    if (strstr(caller.error.message, why) == NULL)
        fail_msg("%s", caller.error.message);
}

static void whoever_cannot_be_verified_is_refused(void **state)
{
    struct test_tls_server server = {.cert = "server"};
    struct test_tls_server elsewhere = {.cert = "elsewhere"};
    struct test_tls_server expired = {.cert = "expired"};
    struct test_tls_server stranger = {.cert = "intruder"};
    char query[512];

    (void)state;
    assert_refused(&elsewhere, "localhost", by_ca(""), ": TLS: certificate refused: ");
    assert_refused(&elsewhere, "127.0.0.1", by_ca(""),
                   ": TLS: certificate refused: IP address mismatch");
    assert_refused(&expired, "localhost", by_ca(""),
                   ": TLS: certificate refused: certificate has expired");
    assert_refused(&stranger, "localhost", by_ca(""), ": TLS: certificate refused: ");
    (void)snprintf(query, sizeof query, "ca=%s/stranger_ca.pem", test_tls_folder);
    assert_refused(&server, "localhost", query, ": TLS: certificate refused: ");
    /* The system's authorities don't know ours. */
    assert_refused(&server, "localhost", "timeout=1", ": TLS: certificate refused: ");
}

static void nobody_is_verified_when_asked_not_to(void **state)
{
    struct test_caller caller;
    struct test_tls_server elsewhere = {.cert = "elsewhere"};
    struct test_tls_server expired = {.cert = "expired"};

    (void)state;
    assert_int_equal(try(&elsewhere, "localhost", "verify=none", &caller), REDBUCKET_OK);
    assert_int_equal(try(&expired, "127.0.0.1", "verify=none", &caller), REDBUCKET_OK);
}

static void an_old_version_is_refused(void **state)
{
    struct test_tls_server old = {.cert = "server", .version = TLS1_1_VERSION};
    struct test_caller caller;

    (void)state;
    enum redbucket_status status = try(&old, "localhost", "verify=none", &caller);

    /* A system may have taken it out of the server as well, which then hangs up. */
    assert_true(status == REDBUCKET_ERROR_TLS || status == REDBUCKET_ERROR_UNAVAILABLE);
}

static void a_certificate_of_ours_is_shown(void **state)
{
    struct test_caller caller;

    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct test_tls_server server = {.cert = "server", .version = version, .wants_ours = true};

        assert_int_equal(try(&server, "localhost", with_certificate("client"), &caller),
                         REDBUCKET_OK);
        assert_refused(&server, "localhost", by_ca(""), "TLS: ");
        assert_refused(&server, "localhost", with_certificate("intruder"), "TLS: ");
    }
}

static void files_that_are_of_no_use_are_refused(void **state)
{
    static const struct {
        const char *query, *message;
    } files[] = {
        {"ca=%1$s/nothing", "TLS: the file of ca= can't be used: No such file or directory"},
        {"ca=%1$s/server.key", "TLS: the file of ca= can't be used: "},
        {"ca=/dev/null", "TLS: the file of ca= can't be used: "},
        {"cert=%1$s/nothing&key=%1$s/client.key", "TLS: the file of cert= can't be used: "},
        {"cert=%1$s/client.key&key=%1$s/client.key", "TLS: the file of cert= can't be used: "},
        {"cert=%1$s/client.pem&key=%1$s/nothing", "TLS: the file of key= can't be used: "},
        {"cert=%1$s/client.pem&key=%1$s/server.key", "TLS: the file of key= can't be used: "},
        {"cert=%1$s/client.pem&key=%1$s/locked.key", "TLS: the file of key= can't be used: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct redbucket_error error = {.message = ""};
        struct rbk_redis_options options;
        struct rbk_tls *tls = NULL;
        struct rbk_url url;
        char text[PATH_MAX] = "rediss://u:secret@localhost?";
        size_t len = strlen(text);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(text + len, sizeof text - len, files[i].query, test_tls_folder);
#pragma GCC diagnostic pop
        assert_int_equal(rbk_url_parse(text, &url, NULL), REDBUCKET_OK);
        assert_int_equal(rbk_redis_options_parse(&url, &options, NULL), REDBUCKET_OK);
        assert_int_equal(rbk_tls_create(&options, &tls, &error), REDBUCKET_ERROR_TLS);
        assert_null(tls);
        assert_int_equal(strncmp(error.message, files[i].message, strlen(files[i].message)), 0);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

static void speak_plainly(int fd, void *data)
{
    (void)test_actor_write(fd, data, strlen(data));
    test_actor_drain(fd);
}

static void hang_up(int fd, void *data)
{
    char byte;

    (void)data;
    (void)test_actor_read(fd, &byte, 1);
}

static void stay_silent(int fd, void *data)
{
    (void)data;
    test_actor_drain(fd);
}

static enum redbucket_status open_to(test_actor_act *act, void *data, double seconds)
{
    struct test_actor peer;
    struct test_caller caller;
    enum redbucket_status status;

    test_actor_start(&peer, act, data);
    call_to(&caller, &peer, "localhost", by_ca(""));
    status = test_caller_open(&caller, seconds);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    return status;
}

static void what_is_no_tls_is_refused(void **state)
{
    double begin;

    (void)state;
    assert_int_equal(open_to(speak_plainly, "-ERR unknown command\r\n", LONG_S),
                     REDBUCKET_ERROR_TLS);
    assert_int_equal(open_to(hang_up, NULL, LONG_S), REDBUCKET_ERROR_UNAVAILABLE);
    begin = test_now();
    assert_int_equal(open_to(stay_silent, NULL, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
}

static void plain_text_to_a_tls_port_is_no_answer(void **state)
{
    struct test_tls_server server = {.cert = "server"};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, test_tls_serve, &server);
    test_caller_start(&caller, &peer);
    enum redbucket_status status = test_caller_say(&caller, "PING", 1, LONG_S);

    assert_true(status == REDBUCKET_ERROR_PROTOCOL || status == REDBUCKET_ERROR_IO);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

/* Long enough for many records, and for more than a socket takes at once. */
static void long_commands_and_replies_go_through(void **state)
{
    const size_t len = (size_t)3 << 20;
    char *text = malloc(len + 32);
    struct test_tls_server server = {.cert = "server", .answer = text};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    assert_non_null(text);
    int head = sprintf(text, "$%zu\r\n", len);

    memset(text + head, 'y', len);
    memcpy(text + (size_t)head + len, "\r\n", 3);
    test_actor_start(&peer, test_tls_serve, &server);
    call_to(&caller, &peer, "localhost", by_ca(""));
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(rbk_connection_good(caller.connection));
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
        assert_int_equal(caller.replies[0].len, len);
        assert_int_equal(caller.replies[0].text[len - 1], 'y');
    }
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    free(text);
}

static void replies_may_come_a_byte_at_a_time(void **state)
{
    struct test_tls_server server = {
        .cert = "server", .answer = "*2\r\n$5\r\nhello\r\n:12\r\n", .piece = 1};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, test_tls_serve, &server);
    call_to(&caller, &peer, "localhost", by_ca(""));
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    assert_string_equal(caller.replies[0].elements[0].text, "hello");
    assert_true(rbk_connection_good(caller.connection));
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static void answer_plainly(int fd, void *data)
{
    char heard[14];

    while (test_actor_read(fd, heard, sizeof heard))
        (void)test_actor_write(fd, data, strlen(data));
}

/* A server that answers in one record, one a byte at a time, one plainly, and one not at all. */
static void calls_with_tls_go_beside_others(void **state)
{
    struct test_tls_server whole = {.cert = "server", .answer = "+WHOLE\r\n"};
    struct test_tls_server slow = {.cert = "server", .answer = "$4\r\nSLOW\r\n", .piece = 1};
    struct test_tls_server silent = {.cert = "server", .answer = ""};
    struct test_tls_server *servers[] = {&whole, &slow, &silent};
    struct rbk_argument argument = {"PING", 4};
    struct rbk_command command = {&argument, 1};
    struct rbk_exchange exchanges[4];
    struct test_caller callers[4];
    struct test_actor peers[4];
    struct rbk_deadline deadline;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        if (i < 3) {
            test_actor_start(&peers[i], test_tls_serve, servers[i]);
            call_to(&callers[i], &peers[i], "localhost", by_ca(""));
        } else {
            test_actor_start(&peers[i], answer_plainly, "+PLAIN\r\n");
            test_caller_of(&callers[i], &peers[i]);
        }
        assert_int_equal(test_caller_open(&callers[i], LONG_S), REDBUCKET_OK);
        exchanges[i] = (struct rbk_exchange){callers[i].connection, &command, 1, callers[i].replies,
                                             REDBUCKET_ERROR_SYSTEM};
    }
    for (int i = 0; i < 2; i++) {
        rbk_deadline_start(&deadline, LONG_S);
        rbk_connections_call(exchanges, 2, &deadline);
        assert_int_equal(exchanges[0].status, REDBUCKET_OK);
        assert_string_equal(callers[0].replies[0].text, "WHOLE");
        assert_int_equal(exchanges[1].status, REDBUCKET_OK);
        assert_string_equal(callers[1].replies[0].text, "SLOW");
    }
    rbk_deadline_start(&deadline, TEST_PATIENCE);
    rbk_connections_call(exchanges, 4, &deadline);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(exchanges[i].status, i == 2 ? REDBUCKET_ERROR_TIMEOUT : REDBUCKET_OK);
        assert_int_equal(rbk_connection_good(callers[i].connection), i != 2);
        test_caller_fini(&callers[i]);
        test_actor_stop(&peers[i]);
    }
    assert_int_equal(ERR_peek_error(), 0);
}

/* A server of TLS 1.3 sends tickets when it likes. */
static void tickets_are_nobodys_answer(void **state)
{
    sem_t shaken;
    struct test_tls_server server = {.cert = "server", .answer = "+OK\r\n", .shaken = &shaken};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    assert_int_equal(sem_init(&shaken, 0, 0), 0);
    test_actor_start(&peer, test_tls_serve, &server);
    call_to(&caller, &peer, "localhost", by_ca(""));
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    while (sem_wait(&shaken) != 0)
        continue;
    assert_true(rbk_connection_good(caller.connection));
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static volatile sig_atomic_t pipes;

static void count_pipe(int number)
{
    (void)number;
    pipes++;
}

static void a_server_that_hangs_up_is_noticed_and_raises_no_signal(void **state)
{
    struct sigaction action = {.sa_handler = count_pipe}, before;
    sem_t resets;
    struct test_tls_server server = {.cert = "server", .resets = &resets, .answer = "+OK\r\n"};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &action, &before), 0);
    assert_int_equal(sem_init(&resets, 0, 0), 0);
    test_actor_start(&peer, test_tls_serve, &server);
    for (int i = 0; i < 10; i++) {
        call_to(&caller, &peer, "localhost", by_ca(""));
        assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
        (void)sem_post(&resets);
        while (rbk_connection_good(caller.connection))
            continue;
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_ERROR_UNAVAILABLE);
        test_caller_fini(&caller);
    }
    test_actor_stop(&peer);
    assert_int_equal(pipes, 0);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
}

static void close_copy(void *connection)
{
    rbk_connection_close(connection);
}

static void a_child_says_no_goodbye(void **state)
{
    struct test_tls_server server = {.cert = "server", .answer = "+OK\r\n"};
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, test_tls_serve, &server);
    call_to(&caller, &peer, "localhost", by_ca(""));
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_join(test_fork(close_copy, caller.connection));
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_of_the_right_name_is_trusted),
        cmocka_unit_test(places_share_certificates_and_are_verified_by_their_own_names),
        cmocka_unit_test(whoever_cannot_be_verified_is_refused),
        cmocka_unit_test(nobody_is_verified_when_asked_not_to),
        cmocka_unit_test(an_old_version_is_refused),
        cmocka_unit_test(a_certificate_of_ours_is_shown),
        cmocka_unit_test(files_that_are_of_no_use_are_refused),
        cmocka_unit_test(what_is_no_tls_is_refused),
        cmocka_unit_test(plain_text_to_a_tls_port_is_no_answer),
        cmocka_unit_test(long_commands_and_replies_go_through),
        cmocka_unit_test(replies_may_come_a_byte_at_a_time),
        cmocka_unit_test(calls_with_tls_go_beside_others),
        cmocka_unit_test(tickets_are_nobodys_answer),
        cmocka_unit_test(a_server_that_hangs_up_is_noticed_and_raises_no_signal),
        cmocka_unit_test(a_child_says_no_goodbye),
    };

    return cmocka_run_group_tests_name("tls", tests, test_tls_make, test_tls_remove);
}
