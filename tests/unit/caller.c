/* SPDX-License-Identifier: MIT */
#include "caller.h"

#include "processes.h"
#include "test.h"

#include <stdio.h>

void test_caller_init(struct test_caller *caller, const char *text)
{
    struct redbucket_error error = {.message = ""};
    struct rbk_url url;

    memset(caller, 0, sizeof *caller);
    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_OK);
    if (rbk_redis_options_parse(&url, &caller->options, &error) != REDBUCKET_OK ||
        rbk_tls_create(&caller->options, &caller->tls, &error) != REDBUCKET_OK ||
        rbk_transport_create(&caller->options.hosts[0], caller->tls, &caller->transport, &error) !=
            REDBUCKET_OK)
        fail_msg("%s: %s", text, error.message);
}

void test_caller_of(struct test_caller *caller, const struct test_actor *peer)
{
    char url[128];

    if (peer->path[0] != '\0')
        (void)snprintf(url, sizeof url, "unix://%s", peer->path);
    else
        (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", peer->port);
    test_caller_init(caller, url);
}

enum redbucket_status test_caller_open(struct test_caller *caller, double seconds)
{
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, seconds);
    return rbk_connection_open(caller->transport, &deadline, &caller->connection, &caller->error);
}

void test_caller_start(struct test_caller *caller, const struct test_actor *peer)
{
    test_caller_of(caller, peer);
    if (test_caller_open(caller, LONG_S) != REDBUCKET_OK)
        fail_msg("%s", caller->error.message);
    assert_true(rbk_connection_good(caller->connection));
}

enum redbucket_status test_caller_say(struct test_caller *caller, const char *word, size_t len,
                                      double seconds)
{
    struct rbk_argument argument = {word, strlen(word)};
    struct rbk_command commands[8];
    struct rbk_deadline deadline;

    assert_true(len <= 8);
    for (size_t i = 0; i < len; i++)
        commands[i] = (struct rbk_command){&argument, 1};
    rbk_deadline_start(&deadline, seconds);
    return rbk_connection_call(caller->connection, commands, len, caller->replies, &deadline);
}

void test_caller_fini(struct test_caller *caller)
{
    rbk_connection_close(caller->connection);
    rbk_transport_destroy(caller->transport);
    rbk_tls_destroy(caller->tls);
}

void test_took(double begin, double seconds)
{
    double took = test_now() - begin;

    if (took < seconds - 0.001 || took > seconds + 5.0 * TEST_PATIENCE)
        fail_msg("took %g s rather than %g s", took, seconds);
}
