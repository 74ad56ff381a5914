/* SPDX-License-Identifier: MIT */
/*
 * A storm of signals, some thousand a second, whose handler was set without SA_RESTART, so that
 * every call of the system that waits is cut short again and again. Nobody is answered wrongly, a
 * wait for somebody silent ends at the deadline, and neither before it nor after; nor do stops of
 * the whole process change that. And no SIGPIPE is ever raised.
 */
#include "everything.h"
#include "host.h"
#include "processes.h"
#include "redbucket/async.h"
#include "shm_file.h"
#include "shortage.h"
#include "stores.h"
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Between two signals. */
#define EVERY_US 500

#define TIMEOUT_S   0.3
#define TIMEOUT_URL "timeout=300ms"

/* Handlers run in whichever thread is there. */
static atomic_int alarms, pipes;

static void count_alarm(int number)
{
    (void)number;
    (void)atomic_fetch_add(&alarms, 1);
}

static void count_pipe(int number)
{
    (void)number;
    (void)atomic_fetch_add(&pipes, 1);
}

static void storm(bool on)
{
    struct itimerval every = {{0, on ? EVERY_US : 0}, {0, on ? EVERY_US : 0}};

    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static int set_up(void **state)
{
    struct sigaction on_alarm = {.sa_handler = count_alarm}, on_pipe = {.sa_handler = count_pipe};

    (void)state;
    test_control_start();
    return sigaction(SIGALRM, &on_alarm, NULL) + sigaction(SIGPIPE, &on_pipe, NULL);
}

static int tear_down(void **state)
{
    storm(false);
    test_control_stop();
    return shortage_tear_down(state);
}

static int calm(void **state)
{
    (void)state;
    storm(false);
    return pipes != 0;
}

/* ---- Everything ----------------------------------------------------------------------------- */

/* Now and then the servers hang up, so that connections are made in the storm, too. */
static void begin_storm(const char *call)
{
    static unsigned number;

    if (number++ % 5 == 0 && strstr(call, "dispatch") == NULL)
        shortage_cut();
    storm(true);
}

static bool end_storm(void)
{
    storm(false);
    return false;
}

static bool nothing(enum redbucket_status status)
{
    (void)status;
    return false;
}

static void nobody_is_answered_wrongly(void **state)
{
    (void)state;
    for (size_t i = 0; i < shortage_stores_len; i++) {
        const struct shortage_store *store = &shortage_stores[i];
        char url[512], key[48];

        if ((store->slow && !shortage_every()) || !store->url(store->query, url, sizeof url))
            continue;
        for (int round = 0; round < (shortage_every() ? 50 : 2); round++) {
            (void)snprintf(key, sizeof key, "storm-%zu-%d", i, round);
            struct everything all = {.url = url,
                                     .place = "a storm of signals",
                                     .key = key,
                                     .before = begin_storm,
                                     .after = end_storm,
                                     .excused = nothing,
                                     .lenient = store->lenient};

            everything_do(&all);
            test_store_remove(url);
        }
    }
    assert_true(alarms > 0);
}

/* ---- Deadlines ------------------------------------------------------------------------------ */

/* One request, in a storm: it must end as `status` says, when it has to. */
static void assert_ends_in_time(struct test_host *host, enum redbucket_status status)
{
    double took = 0;
    int before = (int)alarms;

    test_control_reset();
    storm(true);
    enum redbucket_status got = test_host_time(host, "k", &took);

    storm(false);
    assert_int_equal(got, status);
    /* Who is known not to be there needn't be waited for. */
    if (status == REDBUCKET_ERROR_TIMEOUT && took < TIMEOUT_S - 0.002)
        fail_msg("gave up after %.0f ms", took * 1e3);
    test_control_check(took, TIMEOUT_S);
    assert_true(alarms - before > 10);
}

/* Who listens and never accepts; `full`: nor takes any more connections. */
static int listen_silently(bool full, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, full ? 0 : 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    for (int i = 0; full && i < 4; i++) { /* closed with the process */
        int guest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void)connect(guest, (struct sockaddr *)&address, sizeof address);
    }
    return fd;
}

static void ask_silent(const char *scheme, bool full, const char *query,
                       enum redbucket_status status)
{
    struct test_host host;
    char url[128];
    int port, fd = listen_silently(full, &port);

    (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d?" TIMEOUT_URL "%s", scheme, port, query);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 1);
    assert_ends_in_time(&host, status);
    test_host_close(&host);
    (void)close(fd);
}

static void waits_for_a_server_end_in_time(void **state)
{
    (void)state;
    ask_silent("redis", false, "", REDBUCKET_ERROR_TIMEOUT);
    ask_silent("redis", true, "", REDBUCKET_ERROR_TIMEOUT);
    ask_silent("rediss", false, "&verify=none", REDBUCKET_ERROR_TIMEOUT);
    /* Nobody is asked for a permit where nobody says whom to ask. */
    ask_silent("redis+cluster", false, "", REDBUCKET_ERROR_UNAVAILABLE);
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

/* Nobody knows the slow name, after a while. */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found)
{
    if (strcmp(node, "slow.example") == 0 && (hints->ai_flags & AI_NUMERICHOST) == 0) {
        test_pause(2 * TIMEOUT_S);
        return EAI_NONAME;
    }
    return __real_getaddrinfo(node, service, hints, found);
}

static void a_look_up_ends_in_time(void **state)
{
    struct test_host host;

    (void)state;
    test_host_open(&host, "redis://slow.example?" TIMEOUT_URL);
    test_host_limit(&host, "a", 1, 1);
    assert_ends_in_time(&host, REDBUCKET_ERROR_TIMEOUT);
    test_host_close(&host);
}

static void *ask_calmly(void *data)
{
    double took;

    (void)test_host_time(data, "other", &took);
    return NULL;
}

/* The one connection is with another thread, which waits for a silent server. */
static void a_wait_for_a_connection_ends_in_time(void **state)
{
    struct test_host host;
    sigset_t alarm_only;
    pthread_t thread;
    char url[128];
    int port, fd = listen_silently(false, &port);

    (void)state;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?connections=1&" TIMEOUT_URL, port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 1);
    (void)sigemptyset(&alarm_only);
    (void)sigaddset(&alarm_only, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    assert_int_equal(pthread_create(&thread, NULL, ask_calmly, &host), 0);
    (void)pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    test_pause(0.05);
    double took = 0;

    test_control_reset();
    storm(true);
    enum redbucket_status status = test_host_time(&host, "k", &took);

    storm(false);
    /* When the other gives up, the server is known to be down, and nobody waits any longer. */
    assert_true(status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_UNAVAILABLE);
    assert_true(took >= TIMEOUT_S - 0.1);
    test_control_check(took, TIMEOUT_S);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_host_close(&host);
    (void)close(fd);
}

/* Holds all of a store's locks, until it is killed. */
static void hold_locks(void *data)
{
    volatile int *held = data;
    const char *path = (const char *)data + sizeof(int);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct rbk_shm_header *header =
        mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    child_check(header != MAP_FAILED);
    for (size_t i = 0; i < RBK_TABLE_SHARDS_MAX; i++)
        (void)pthread_mutex_lock(&header->locks[i].mutex);
    *held = 1;
    for (;;)
        (void)pause();
}

static void a_wait_for_a_lock_ends_in_time(void **state)
{
    struct test_host host;
    char *shared = test_share(512), url[256];

    (void)state;
    test_store_url(&test_stores[1], "?size=64k&" TIMEOUT_URL, url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 1);
    (void)snprintf(shared + sizeof(int), 500, "/dev/shm/%.*s", (int)strcspn(url + 4, "?"), url + 4);
    pid_t pid = test_fork(hold_locks, shared);

    assert_true(test_await((volatile int *)shared));
    assert_ends_in_time(&host, REDBUCKET_ERROR_TIMEOUT);
    test_kill(pid);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    test_host_close(&host);
    test_store_remove(url);
    test_unshare(shared, 512);
}

/* ---- On a loop ------------------------------------------------------------------------------ */

static void take_status(void *data, const struct redbucket_request *decided)
{
    *(int *)data = (int)decided->status;
}

static void a_loop_is_told_in_time(void **state)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    const struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};
    struct redbucket_async *async = NULL;
    struct test_host host;
    char url[128];
    int port, fd = listen_silently(false, &port), status = -1;

    (void)state;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?" TIMEOUT_URL, port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 1);
    assert_int_equal(redbucket_async_create(host.limiter, &async, NULL), REDBUCKET_OK);
    test_control_reset();
    storm(true);
    double begin = test_now();

    assert_int_equal(redbucket_async_request(async, &request, take_status, &status, NULL),
                     REDBUCKET_OK);
    while (status < 0 && test_now() - begin < 20) {
        (void)poll(&(struct pollfd){redbucket_async_descriptor(async), POLLIN, 0}, 1, 100);
        redbucket_async_dispatch(async);
    }
    storm(false);
    assert_int_equal(status, REDBUCKET_ERROR_TIMEOUT);
    assert_true(test_now() - begin >= TIMEOUT_S - 0.002);
    test_control_check(test_now() - begin, TIMEOUT_S);
    redbucket_async_destroy(async);
    test_host_close(&host);
    (void)close(fd);
}

/* ---- Stops ---------------------------------------------------------------------------------- */

static void ask_while_stopped(void *data)
{
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_response response;
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    double begin = test_now();

    child_check(redbucket_store_open(data, &store, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(limiter, "a", &(struct redbucket_limit){.rate = 1}, NULL) ==
                REDBUCKET_OK);
    child_check(redbucket_request(limiter, &key, 1, &response) == REDBUCKET_ERROR_TIMEOUT);
    child_check(test_now() - begin >= TIMEOUT_S - 0.002);
    child_check(test_now() - begin < TIMEOUT_S + 3.0 * TEST_PATIENCE);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

/* Stopped for most of the time, it still knows when its time is over. */
static void stops_prolong_no_wait(void **state)
{
    char url[128];
    int port, fd = listen_silently(false, &port);

    (void)state;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?" TIMEOUT_URL, port);
    pid_t pid = test_fork(ask_while_stopped, url);

    for (int i = 0; i < 15; i++) {
        test_pause(0.005);
        (void)kill(pid, SIGSTOP);
        test_pause(0.02);
        (void)kill(pid, SIGCONT);
    }
    test_join(pid);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nobody_is_answered_wrongly, calm),
        cmocka_unit_test_teardown(waits_for_a_server_end_in_time, calm),
        cmocka_unit_test_teardown(a_look_up_ends_in_time, calm),
        cmocka_unit_test_teardown(a_wait_for_a_connection_ends_in_time, calm),
        cmocka_unit_test_teardown(a_wait_for_a_lock_ends_in_time, calm),
        cmocka_unit_test_teardown(a_loop_is_told_in_time, calm),
        cmocka_unit_test_teardown(stops_prolong_no_wait, calm),
    };

    return cmocka_run_group_tests_name("signals", tests, set_up, tear_down);
}
