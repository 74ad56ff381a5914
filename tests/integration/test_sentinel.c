/* SPDX-License-Identifier: MIT */
/*
 * Real sentinels: who is down when a store is opened, passwords, services that aren't there, TLS,
 * processes that fork.
 */
#include "host.h"
#include "processes.h"
#include "sentinels.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>

#define URL_SIZE 1024

/* Those with passwords, and those that speak TLS, each started for the first case that wants them.
 */
static struct test_sentinels guarded, by_tls;
static struct test_sentinels *all;

static void open_with(struct test_host *host, const char *query)
{
    char url[URL_SIZE];

    test_sentinels_url(all, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 1000.0);
}

static void both_methods_and_codecs_decide(void **state)
{
    static const char *const ways[] = {"", "method=transaction",
                                       "codec=json&key_format=j{zone}{key}",
                                       "method=transaction&codec=json&key_format=j{zone}{key}"};

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct test_host host;

        open_with(&host, ways[i]);
        for (int n = 0; n < 3; n++)
            assert_int_equal(test_host_ask(&host, "ways", NULL), REDBUCKET_OK);
        assert_true(test_host_value(&host, "ways") > (i % 2 == 0 ? 2.9 : 5.9));
        test_host_close(&host);
    }
}

/* Whether it ended or is stopped: the others answer in time. */
static void a_sentinel_that_is_down_keeps_nobody_from_starting(void **state)
{
    struct test_host host;
    double took;

    (void)state;
    assert_int_equal(kill(all->sentinels[0]->pid, SIGSTOP), 0);
    open_with(&host, "");
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_OK);
    test_control_check(took, 0.5);
    test_host_close(&host);
    assert_int_equal(kill(all->sentinels[0]->pid, SIGCONT), 0);
    test_server_kill(all->sentinels[0]);
    assert_int_equal(kill(all->sentinels[1]->pid, SIGSTOP), 0);
    open_with(&host, "");
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_OK);
    test_control_check(took, 0.7);
    test_host_close(&host);
    assert_int_equal(kill(all->sentinels[1]->pid, SIGCONT), 0);
    assert_true(test_server_again(all->sentinels[0]));
}

static void passwords_are_needed_and_not_shown(void **state)
{
    struct redbucket_error error;
    struct test_host host;
    char url[URL_SIZE];

    (void)state;
    (void)snprintf(url, sizeof url, "redis+sentinel://:%s@127.0.0.1:%d/" TEST_SERVICE,
                   all->data[0]->password, all->sentinels[0]->port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 1.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
    test_host_failure(&host, &error);
    assert_non_null(strstr(error.message, "sentinel 127.0.0.1:"));
    test_host_close(&host);
    (void)snprintf(url, sizeof url,
                   "redis+sentinel://127.0.0.1:%d/" TEST_SERVICE "?sentinel_password=%s",
                   all->sentinels[0]->port, all->sentinels[0]->password);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 1.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
    test_host_failure(&host, &error);
    assert_non_null(strstr(error.message, "master 127.0.0.1:"));
    test_host_close(&host);
}

static void a_user_of_the_sentinels_has_a_name(void **state)
{
    struct test_host host;
    char url[URL_SIZE];

    (void)state;
    if (all->sentinels[0]->version < 70000) /* users of single subcommands */
        skip();
    assert_true(test_server_do(all->sentinels[0], "ACL", "SETUSER", "guest", "on",
                               ">" TEST_SECRET "-3", "+sentinel|get-master-addr-by-name", NULL));
    (void)snprintf(url, sizeof url,
                   "redis+sentinel://:%s@127.0.0.1:%d/" TEST_SERVICE
                   "?sentinel_user=guest&sentinel_password=" TEST_SECRET "-3",
                   all->data[0]->password, all->sentinels[0]->port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 1.0);
    assert_int_equal(test_host_ask(&host, "guest", NULL), REDBUCKET_OK);
    test_host_close(&host);
}

static void a_service_that_is_not_there_is_named(void **state)
{
    struct redbucket_error error;
    struct test_host host;
    char url[URL_SIZE];

    (void)state;
    test_sentinels_url(all, "", url, sizeof url);
    memcpy(strstr(url, TEST_SERVICE), "nymaster", strlen(TEST_SERVICE));
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 1.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
    test_host_failure(&host, &error);
    assert_string_equal(error.message, "no sentinel knows a service \"nymaster\"");
    test_host_close(&host);
}

static int descriptors; /* open before there was a store */

static void ask_often(struct test_host *host)
{
    for (int i = 0; i < 20; i++)
        child_check(test_host_ask(host, "forked", NULL) == REDBUCKET_OK);
}

/* Whether it asks or not, it is left with no copy of what its parent had open. */
static void be_child(void *data)
{
    ask_often(data);
    test_host_close(data);
    child_check(test_open_descriptors() == descriptors);
}

static void be_idle_child(void *data)
{
    test_host_close(data);
    child_check(test_open_descriptors() == descriptors);
}

static void children_ask_for_themselves(void **state)
{
    struct test_host host;
    pid_t children[4];

    (void)state;
    descriptors = test_open_descriptors();
    open_with(&host, "timeout=10s");
    assert_int_equal(test_host_ask(&host, "forked", NULL), REDBUCKET_OK);
    test_join(test_fork(be_idle_child, &host));
    for (int i = 0; i < 4; i++)
        children[i] = test_fork(be_child, &host);
    ask_often(&host);
    for (int i = 0; i < 4; i++)
        test_join(children[i]);
    assert_true(test_host_value(&host, "forked") > 100.5);
    test_host_close(&host);
}

static int start_with(struct test_sentinels *wanted, const struct test_sentinels_options *options)
{
    all = wanted;
    return wanted->data[0] != NULL || test_sentinels_start(wanted, options) ? 0 : -1;
}

static int with_passwords(void **state)
{
    (void)state;
    return start_with(&guarded,
                      &(struct test_sentinels_options){.kind = TEST_REDIS,
                                                       .password = TEST_SECRET "-1",
                                                       .sentinel_password = TEST_SECRET "-2"});
}

static int with_tls(void **state)
{
    (void)state;
    return start_with(&by_tls, &(struct test_sentinels_options){
                                   .kind = TEST_REDIS, .password = "word", .tls = true});
}

static int begin(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_control_stop();
    test_sentinels_stop(&guarded);
    test_sentinels_stop(&by_tls);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, with_passwords)
#define BY_TLS(name)                                \
    {                                               \
#name "_by_tls", name, with_tls, NULL, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(both_methods_and_codecs_decide),
        CASE(a_sentinel_that_is_down_keeps_nobody_from_starting),
        CASE(passwords_are_needed_and_not_shown),
        CASE(a_user_of_the_sentinels_has_a_name),
        CASE(a_service_that_is_not_there_is_named),
        CASE(children_ask_for_themselves),
        BY_TLS(both_methods_and_codecs_decide),
        BY_TLS(children_ask_for_themselves),
    };

    return cmocka_run_group_tests_name("sentinel", tests, begin, stop);
}
