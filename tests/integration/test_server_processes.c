/* SPDX-License-Identifier: MIT */
/*
 * Processes that share a server: forked ones, which begin with their parent's store and have to
 * leave its connections alone, and many that press on one bucket.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHILDREN 8
#define CLIENTS  16

static struct test_server *server;

/* What processes were told, in memory that they share. */
struct tally {
    atomic_int accepted;
    atomic_int rejected;
    atomic_int conflicts;
    atomic_int errors;
    _Atomic double first; /* times of the server */
    _Atomic double last;
};

static struct tally *tally;

static void open_at(struct test_host *host, enum test_server_way way, const char *query)
{
    char url[512];

    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, way, query, url, sizeof url);
    test_host_open(host, url);
}

static void ask_and_tell(struct test_host *host)
{
    struct redbucket_response response = {.accepted = false};
    enum redbucket_status status = test_host_ask(host, "k", &response);

    if (status == REDBUCKET_OK)
        (void)atomic_fetch_add(response.accepted ? &tally->accepted : &tally->rejected, 1);
    else if (status == REDBUCKET_ERROR_CONFLICT)
        (void)atomic_fetch_add(&tally->conflicts, 1);
    else
        (void)atomic_fetch_add(&tally->errors, 1);
    if (status != REDBUCKET_OK || !response.accepted)
        return;
    for (double known = tally->first;
         response.time < known &&
         !atomic_compare_exchange_weak(&tally->first, &known, response.time);)
        continue;
    for (double known = tally->last;
         response.time > known &&
         !atomic_compare_exchange_weak(&tally->last, &known, response.time);)
        continue;
}

/* ---- The parent's connection ---------------------------------------------------------------- */

/* The server's number for our only connection beside the test's own; 0 when there are others. */
static long long connection_id(void)
{
    redisReply *list = test_server_ask(server, "CLIENT", "LIST", "TYPE", "normal", NULL);
    redisReply *own = test_server_ask(server, "CLIENT", "ID", NULL);
    long long found = 0;
    int count = 0;

    for (const char *at = list->str; at != NULL && (at = strstr(at, "id=")) != NULL; at++) {
        long long id = atoll(at + 3);

        if ((at == list->str || at[-1] == '\n') && id != own->integer) {
            found = id;
            count++;
        }
    }
    freeReplyObject(list);
    freeReplyObject(own);
    return count == 1 ? found : 0;
}

static void ask_fifty_times(void *data)
{
    for (int i = 0; i < 50; i++)
        ask_and_tell(data);
}

static void fork_family(enum test_server_way way, const char *query)
{
    struct test_host host;
    pid_t children[CHILDREN];
    long long id, before;

    memset(tally, 0, sizeof *tally);
    open_at(&host, way, query);
    test_host_limit(&host, "a", 0.001, 99.0);
    ask_and_tell(&host);
    id = connection_id();
    assert_true(id > 0);
    before = test_server_info(server, "total_connections_received");
    for (int i = 0; i < CHILDREN; i++)
        children[i] = test_fork(ask_fifty_times, &host);
    ask_fifty_times(&host);
    for (int i = 0; i < CHILDREN; i++)
        test_join(children[i]);
    ask_and_tell(&host);
    assert_int_equal(tally->accepted, 100);
    assert_int_equal(tally->rejected, 352);
    assert_int_equal(tally->errors, 0);
    /* Each child had one of its own, and the parent's is still the parent's, and still good. */
    assert_int_equal(test_server_info(server, "total_connections_received") - before, CHILDREN);
    assert_int_equal(connection_id(), id);
    assert_int_equal(host.down, 0);
    test_host_close(&host);
}

static void test_children_have_connections_of_their_own(void **state)
{
    (void)state;
    fork_family(TEST_BY_SOCKET, "timeout=20s");
    fork_family(TEST_BY_PORT, "timeout=20s");
    fork_family(TEST_BY_SOCKET, "timeout=20s&method=transaction");
    if (server->tls_port != 0)
        fork_family(TEST_BY_TLS, "timeout=20s");
}

/* ---- The child's copy ----------------------------------------------------------------------- */

struct copies {
    struct test_host host;
    int fd;
    ino_t socket; /* what the parent has behind it */
    bool use;
};

/* What is behind a descriptor; 0 for nothing. */
static ino_t behind(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static void look_at_copy(void *data)
{
    struct copies *copies = data;

    child_check(behind(copies->fd) == copies->socket);
    if (copies->use) {
        child_check(test_host_ask(&copies->host, "k", NULL) == REDBUCKET_OK);
        child_check(behind(copies->fd) != copies->socket);
    }
    test_host_close(&copies->host);
    child_check(behind(copies->fd) == 0);
}

/* The lowest descriptor that is free: the next to be opened. */
static int next_descriptor(void)
{
    int fd = dup(STDOUT_FILENO);

    close(fd);
    return fd;
}

/* A child that uses the store, or closes it unused, closes its copies, and the parent's connection
 * is none the worse for it. */
static void copy(enum test_server_way way)
{
    struct copies copies;
    long long id;

    open_at(&copies.host, way, "connections=1");
    test_host_limit(&copies.host, "a", 0.001, 99.0);
    copies.fd = next_descriptor();
    assert_int_equal(test_host_ask(&copies.host, "k", NULL), REDBUCKET_OK);
    copies.socket = behind(copies.fd);
    assert_true(copies.socket != 0);
    id = connection_id();
    for (int use = 0; use < 2; use++) {
        copies.use = use != 0;
        test_join(test_fork(look_at_copy, &copies));
        assert_int_equal(test_host_ask(&copies.host, "k", NULL), REDBUCKET_OK);
        assert_int_equal(connection_id(), id);
    }
    test_host_close(&copies.host);
}

static void test_a_child_closes_its_copies(void **state)
{
    (void)state;
    copy(TEST_BY_SOCKET);
    copy(TEST_BY_PORT);
    if (server->tls_port != 0)
        copy(TEST_BY_TLS);
}

/* ---- Forked in the middle ------------------------------------------------------------------- */

struct busy {
    struct test_host host;
    atomic_bool ending;
};

static void *ask_on(void *data)
{
    struct busy *busy = data;

    while (!atomic_load(&busy->ending))
        ask_and_tell(&busy->host);
    return NULL;
}

static void ask_thrice(void *data)
{
    struct busy *busy = data;

    for (int i = 0; i < 3; i++)
        ask_and_tell(&busy->host);
}

/* Other threads hold connections and locks at the moment of the fork: the child has neither, and
 * the threads of the parent get their own answers. */
static void test_forked_while_others_are_asking(void **state)
{
    enum { THREADS = 4, FORKS = 30 };
    struct busy busy = {.ending = false};
    pthread_t threads[THREADS];

    (void)state;
    memset(tally, 0, sizeof *tally);
    open_at(&busy.host, TEST_BY_SOCKET, "connections=2&timeout=20s");
    test_host_limit(&busy.host, "a", 0.001, 1e9);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &busy), 0);
    for (int i = 0; i < FORKS; i++)
        test_join(test_fork(ask_thrice, &busy));
    atomic_store(&busy.ending, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tally->errors, 0);
    assert_int_equal((int)ceil(test_host_value(&busy.host, "k")), tally->accepted);
    test_host_close(&busy.host);
}

/* ---- Many on one bucket --------------------------------------------------------------------- */

struct press {
    char url[512];
    const volatile int *go;
    double seconds;
};

static void press_on(void *data)
{
    const struct press *press = data;
    struct test_host host;

    test_host_open(&host, press->url);
    test_host_limit(&host, "a", 1000.0, 1000.0);
    child_check(test_await(press->go));
    for (double until = test_now() + press->seconds; test_now() < until;) {
        int rejected = tally->rejected;

        ask_and_tell(&host);
        /* As somebody does who reads retry_after, a millisecond here. */
        if (tally->rejected != rejected)
            test_pause(0.0005);
    }
    test_host_close(&host);
}

/* Returns what share of the bound was reached, after having made sure that it was kept. */
static double press_for(double seconds, const char *query)
{
    struct press press = {.seconds = seconds};
    volatile int *go = test_share(sizeof *go);
    pid_t clients[CLIENTS];
    double bound;

    memset(tally, 0, sizeof *tally);
    tally->first = 1e18;
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, TEST_BY_SOCKET, query, press.url, sizeof press.url);
    press.go = go;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = test_fork(press_on, &press);
    *go = 1;
    for (int i = 0; i < CLIENTS; i++)
        test_join(clients[i]);
    test_unshare((void *)go, sizeof *go);
    assert_int_equal(tally->errors, 0);
    bound = 1001.0 + 1000.0 * (tally->last - tally->first + 2e-6);
    if (tally->accepted > bound)
        fail_msg("%d accepted, where %.1f may be", tally->accepted, bound);
    printf("# %s: %d accepted in %.3f s, %.1f %% of the bound, %d rejected, %d conflicts\n", query,
           tally->accepted, tally->last - tally->first, 100.0 * tally->accepted / bound,
           tally->rejected, tally->conflicts);
    return tally->accepted / bound;
}

static void test_many_on_one_bucket_by_script(void **state)
{
    (void)state;
    assert_true(press_for(3.0, "method=script&timeout=10s") >= (TEST_SANITIZED ? 0.5 : 0.98));
}

/* Each attempt that another one overtakes is made again: some of what could pass doesn't. */
static void test_many_on_one_bucket_by_transaction(void **state)
{
    (void)state;
    assert_true(press_for(3.0, "method=transaction&timeout=10s") >= 0.1);
}

static int start(void **state)
{
    (void)state;
    tally = test_share(sizeof *tally);
    server = test_server_start(
        &(struct test_server_options){.kind = TEST_REDIS, .tls = test_server_have_tls(TEST_REDIS)});
    return server == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    test_server_stop(server);
    test_unshare(tally, sizeof *tally);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_have_connections_of_their_own),
        cmocka_unit_test(test_a_child_closes_its_copies),
        cmocka_unit_test(test_forked_while_others_are_asking),
        cmocka_unit_test(test_many_on_one_bucket_by_script),
        cmocka_unit_test(test_many_on_one_bucket_by_transaction),
    };

    return cmocka_run_group_tests_name("server_processes", tests, start, stop);
}
