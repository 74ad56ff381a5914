/* SPDX-License-Identifier: MIT */
/*
 * Peers that say they are a cluster and aren't: that send one round in circles, or to nobody, or
 * tell a topology that can't be. Each is an error in good time, and nothing is believed of it.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

#define NODE "*3\r\n$9\r\n127.0.0.1\r\n:PORT\r\n$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"

/* The rules of one who serves all slots by himself; the answers to EVALSHA and EVAL are a case's.
 */
enum { INFO, ROLE, CLUSTER, EVALSHA, EVAL, ASKING, RULES };

struct liar {
    struct test_rule rules[RULES];
    struct test_peer *peer;
    struct test_host host;
    char slots[512];
    char words[128];
};

/* Copies a text that may have a PORT in it. */
static void fill_in(const char *text, int port, char *out, size_t size)
{
    const char *at = strstr(text, "PORT");

    if (at == NULL)
        (void)snprintf(out, size, "%s", text);
    else
        (void)snprintf(out, size, "%.*s%d%s", (int)(at - text), text, port, at + 4);
}

static void begin(struct liar *liar, const char *slots, const char *words)
{
    static const char info[] = "$62\r\n# Server\r\nredis_version:7.0.15\r\n"
                               "# Cluster\r\ncluster_enabled:1\r\n\r\n";
    char url[128];

    memset(liar, 0, sizeof *liar);
    liar->rules[INFO] = (struct test_rule){.command = "INFO", .answer = info};
    liar->rules[ROLE] = (struct test_rule){.command = "ROLE", .answer = "*1\r\n$6\r\nmaster\r\n"};
    liar->rules[CLUSTER] = (struct test_rule){.command = "CLUSTER", .answer = liar->slots};
    liar->rules[EVALSHA] = (struct test_rule){.command = "EVALSHA", .answer = liar->words};
    liar->rules[EVAL] = (struct test_rule){.command = "EVAL", .answer = liar->words};
    liar->rules[ASKING] = (struct test_rule){.command = "ASKING", .answer = "+OK\r\n"};
    liar->peer = test_peer_start(true, liar->rules, RULES);
    assert_non_null(liar->peer);
    int port = test_peer_port(liar->peer);

    fill_in(slots, port, liar->slots, sizeof liar->slots);
    fill_in(words, port, liar->words, sizeof liar->words);
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?timeout=1s", port);
    test_host_open(&liar->host, url);
    test_host_limit(&liar->host, "a", 1, 9);
}

static void end(struct liar *liar)
{
    test_host_close(&liar->host);
    test_peer_stop(liar->peer);
}

#define ALL_SLOTS "*1\r\n*3\r\n:0\r\n:16383\r\n" NODE

/* "redbucket:a:k" is in slot 2562. */
#define KEY "k"

/* ---- Round in circles ----------------------------------------------------------------------- */

static size_t asked(struct liar *liar)
{
    return test_peer_commands(liar->peer, "EVALSHA") + test_peer_commands(liar->peer, "EVAL");
}

/* A handful of times, and before the second is over. */
static void check_circle(const char *words)
{
    struct liar liar;
    double took;

    begin(&liar, ALL_SLOTS, words);
    enum redbucket_status status = test_host_time(&liar.host, KEY, &took);

    if (status == REDBUCKET_OK || status == REDBUCKET_ERROR_TIMEOUT)
        fail_msg("%s: %s", words, redbucket_status_name(status));
    test_control_check(took, 1.0);
    assert_in_range(asked(&liar), 1, 16);
    test_host_failure(&liar.host, NULL);
    end(&liar);
}

static void redirections_to_oneself_have_an_end(void **state)
{
    (void)state;
    check_circle("-MOVED 2562 127.0.0.1:PORT\r\n");
    check_circle("-ASK 2562 127.0.0.1:PORT\r\n");
    check_circle("-MOVED 2562 :PORT\r\n");
    check_circle("-ASK 2562 :PORT\r\n");
}

static void two_that_send_to_each_other_have_an_end(void **state)
{
    struct liar first, second;
    double took;

    (void)state;
    begin(&second, ALL_SLOTS, "-MOVED 2562 127.0.0.1:PORT\r\n");
    begin(&first, ALL_SLOTS, "-MOVED 2562 127.0.0.1:PORT\r\n");
    fill_in("-MOVED 2562 127.0.0.1:PORT\r\n", test_peer_port(second.peer), first.words,
            sizeof first.words);
    fill_in("-ASK 2562 127.0.0.1:PORT\r\n", test_peer_port(first.peer), second.words,
            sizeof second.words);
    assert_int_not_equal(test_host_time(&first.host, KEY, &took), REDBUCKET_OK);
    test_control_check(took, 1.0);
    assert_in_range(asked(&first), 1, 16);
    assert_in_range(asked(&second), 1, 16);
    end(&first);
    end(&second);
}

/* A cluster says so while it is being mended. */
static bool is_passing(const char *words)
{
    return strncmp(words, "-CLUSTERDOWN", 12) == 0 || strncmp(words, "-TRYAGAIN", 9) == 0;
}

/* To nobody, to a slot that isn't the key's, or to what is no place: no answer, and no crash. */
static void redirections_to_nowhere_are_errors(void **state)
{
    static const char *const words[] = {
        "-MOVED 2562 127.0.0.1:1\r\n",
        "-ASK 2562 127.0.0.1:1\r\n",
        "-MOVED 1 127.0.0.1:PORT\r\n",
        "-ASK 1 127.0.0.1:PORT\r\n",
        "-MOVED 99999 127.0.0.1:PORT\r\n",
        "-MOVED 2562 127.0.0.1:99999\r\n",
        "-MOVED 2562 /tmp/socket:1\r\n",
        "-MOVED\r\n",
        "-ASK \r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
    };
    (void)state;
    for (size_t i = 0; i < LEN(words); i++) {
        struct liar liar;
        double took;

        begin(&liar, ALL_SLOTS, words[i]);
        enum redbucket_status status = test_host_time(&liar.host, KEY, &took);

        if (status == REDBUCKET_OK ||
            (status != REDBUCKET_ERROR_UNAVAILABLE && is_passing(words[i])))
            fail_msg("%s: %s", words[i], redbucket_status_name(status));
        test_control_check(took, 1.0);
        end(&liar);
    }
}

/* ---- What can't be -------------------------------------------------------------------------- */

static void topologies_that_cannot_be_are_errors(void **state)
{
    static const char *const slots[] = {
        "*0\r\n",
        "*-1\r\n",
        "+OK\r\n",
        "$3\r\nabc\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n" NODE,
        "*1\r\n*3\r\n:5\r\n:0\r\n" NODE,
        "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$3\r\na b\r\n:PORT\r\n",
        "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:99999\r\n",
        "*1000000000\r\n",
        "-ERR This instance has cluster support disabled\r\n",
        "-NOPERM this user has no permissions to run the 'cluster' command\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
    };

    (void)state;
    for (size_t i = 0; i < LEN(slots); i++) {
        struct liar liar;
        double took;

        begin(&liar, slots[i], "-ERR nobody asked\r\n");
        if (test_host_time(&liar.host, KEY, &took) == REDBUCKET_OK)
            fail_msg("%s", slots[i]);
        test_control_check(took, 1.0);
        assert_in_range(asked(&liar), 0, 16);
        end(&liar);
    }
}

/* It says nothing, or not enough; the deadline is for all of it. */
static void silence_ends_at_the_deadline(void **state)
{
    struct liar liar;
    double took;

    (void)state;
    begin(&liar, "*1\r\n*3\r\n:0\r\n", "");
    assert_int_not_equal(test_host_time(&liar.host, KEY, &took), REDBUCKET_OK);
    test_control_check(took, 1.0);
    end(&liar);
    begin(&liar, ALL_SLOTS, "*1\r\n");
    assert_int_equal(test_host_time(&liar.host, KEY, &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, 1.0);
    end(&liar);
}

static int start(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_control_stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirections_to_oneself_have_an_end),
        cmocka_unit_test(two_that_send_to_each_other_have_an_end),
        cmocka_unit_test(redirections_to_nowhere_are_errors),
        cmocka_unit_test(topologies_that_cannot_be_are_errors),
        cmocka_unit_test(silence_ends_at_the_deadline),
    };

    return cmocka_run_group_tests_name("cluster_peers", tests, start, stop);
}
