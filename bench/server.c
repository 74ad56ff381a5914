/* SPDX-License-Identifier: MIT */
/*
 * What a decision on a server costs: the latency of a lone caller against a PING on a connection of
 * the same kind, taking turns with a script that does nothing but read the clock, read a key and
 * write it, the least that any decision by script costs there; and decisions a second through the
 * array form and by single requests of one thread and of many; and what it costs to be rejected
 * again. Prints "NAME VALUE" lines for bench/report.py.
 *
 * usage: bench_server SOCKET
 *        bench_server NAME URL            the arrays alone, on the store of that URL
 *        bench_server NAME URL LEN KEYS   one round of arrays of LEN, over so many different keys
 */
#include "redbucket/redbucket.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TURNS   20000
#define THREADS 4
#define CROWD   32
#define LONG    256 /* as many as go in one round trip */
#define KEYS    100000u
#define SECONDS 1.5
#define DENIALS 200000
#define ROUNDS  3 /* of which the best counts */

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

_Noreturn static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static struct redbucket_limiter *open_limiter(const char *url)
{
    struct redbucket_limit limit = {.rate = 1e6, .burst = 1e9, .expiry = 60};
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "user", &limit, &error) != REDBUCKET_OK)
        die(url, error.message);
    return limiter;
}

static int connect_raw(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die(path, "can't connect");
    return fd;
}

/* Sends a command and reads its short answer; returns how long that took. */
static double ask(int fd, const char *command, char *reply, size_t reply_size)
{
    double begin = now();
    ssize_t len = write(fd, command, strlen(command)) < 0 ? -1 : read(fd, reply, reply_size - 1);

    if (len <= 0 || reply[0] == '-')
        die("raw connection", "no answer");
    reply[len] = '\0';
    return now() - begin;
}

static double ping(int fd)
{
    char reply[64];

    return ask(fd, "*1\r\n$4\r\nPING\r\n", reply, sizeof reply);
}

/* The command that runs the least script. */
static void load_least(int fd, char *command, size_t size)
{
    static const char text[] = "local t = redis.call('TIME') local v = redis.call('GET', KEYS[1]) "
                               "redis.call('SETEX', KEYS[1], '60', ARGV[1]) return v";
    char load[512], reply[128];

    (void)snprintf(load, sizeof load, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                   sizeof text - 1, text);
    (void)ask(fd, load, reply, sizeof reply);
    (void)snprintf(command, size,
                   "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n1\r\n$15\r\nredbucket:least\r\n"
                   "$16\r\n0123456789abcdef\r\n",
                   reply + 5);
}

static double decide(struct redbucket_limiter *limiter)
{
    struct redbucket_key key = {"user", "192.0.2.7", 9, 4};
    struct redbucket_response response;
    double begin = now();

    if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
        die("request", "failed");
    return now() - begin;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Medians, since a few turns out of many meet the scheduler. */
static void measure_latency(const char *path, const char *url)
{
    static double pings[TURNS], leasts[TURNS], decisions[TURNS];
    struct redbucket_limiter *limiter = open_limiter(url);
    int fd = connect_raw(path);
    char least[256], reply[64];

    load_least(fd, least, sizeof least);
    for (int i = 0; i < TURNS; i++) {
        pings[i] = ping(fd);
        leasts[i] = ask(fd, least, reply, sizeof reply);
        decisions[i] = decide(limiter);
    }
    qsort(pings, TURNS, sizeof pings[0], order);
    qsort(leasts, TURNS, sizeof leasts[0], order);
    qsort(decisions, TURNS, sizeof decisions[0], order);
    printf("ping_us %.3f\nleast_script_us %.3f\nserver_one_us %.3f\n", pings[TURNS / 2] * 1e6,
           leasts[TURNS / 2] * 1e6, decisions[TURNS / 2] * 1e6);
    (void)close(fd);
}

/* ---- Rejected again ----------------------------------------------------------------------------
 */

static void measure_denials(const char *url)
{
    struct redbucket_limit limit = {.rate = 0.001};
    struct redbucket_key key = {"slow", "192.0.2.7", 9, 4};
    struct redbucket_limiter *limiter = open_limiter(url);
    struct redbucket_response response;
    double clock_ns = 1e9, denied_ns = 1e9;
    struct timespec time;

    if (redbucket_limiter_add(limiter, "slow", &limit, NULL) != REDBUCKET_OK)
        die("limit", "can't be added");
    for (int round = 0; round < 5; round++) {
        double begin = now();

        for (int i = 0; i < DENIALS; i++)
            (void)clock_gettime(CLOCK_MONOTONIC, &time);
        clock_ns = fmin(clock_ns, (now() - begin) / DENIALS * 1e9);
        begin = now();
        for (int i = 0; i < DENIALS; i++) {
            if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
                die("request", "failed");
        }
        denied_ns = fmin(denied_ns, (now() - begin) / DENIALS * 1e9);
    }
    printf("clock_ns %.2f\ndenied_ns %.2f\n", clock_ns, denied_ns);
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

struct worker {
    pthread_t thread;
    struct redbucket_limiter *limiter;
    unsigned number;
    unsigned len;  /* of its arrays */
    unsigned keys; /* that it asks for, in turns */
    unsigned long long decided;
    atomic_bool *stop;
};

/* Arrays of different keys, over and over. */
static void *work(void *data)
{
    struct worker *worker = data;
    struct redbucket_request requests[LONG];
    struct redbucket_key keys[LONG];
    char texts[LONG][16];
    unsigned next = worker->number * 7919;

    while (!atomic_load(worker->stop)) {
        for (unsigned i = 0; i < worker->len; i++) {
            int len = snprintf(texts[i], sizeof texts[i], "%012u", next++ * 7919u % worker->keys);

            keys[i] = (struct redbucket_key){"user", texts[i], (size_t)len, 4};
            requests[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1.0};
        }
        if (redbucket_decide(worker->limiter, requests, worker->len) != REDBUCKET_OK)
            die("batch", "failed");
        worker->decided += worker->len;
    }
    return NULL;
}

static double measure_round(const char *url, unsigned threads, unsigned len, unsigned keys)
{
    struct redbucket_limiter *limiter = open_limiter(url);
    struct worker workers[CROWD];
    unsigned long long decided = 0;
    atomic_bool stop = false;
    double begin = now();

    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){
            .limiter = limiter, .number = i, .len = len, .keys = keys, .stop = &stop};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            die("thread", "can't start");
    }
    while (now() - begin < SECONDS)
        (void)usleep(1000);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        decided += workers[i].decided;
    }
    return (double)decided / (now() - begin);
}

static void measure_batches(const char *url, unsigned threads, unsigned len, const char *name)
{
    double best = 0.0;

    for (int i = 0; i < ROUNDS; i++) {
        double rate = measure_round(url, threads, len, KEYS);

        best = rate > best ? rate : best;
    }
    printf("%s %.0f\n", name, best);
}

static double measure_arrays(const char *url, const char *len_text, const char *keys_text)
{
    double len = 0.0, keys = 0.0;

    if (redbucket_number_parse(len_text, &len, NULL) != REDBUCKET_OK || len < 1.0 || len > LONG ||
        redbucket_number_parse(keys_text, &keys, NULL) != REDBUCKET_OK || keys < len || keys > 1e9)
        die("usage", "LEN from 1 to 256, KEYS from LEN to 1e9");
    return measure_round(url, THREADS, (unsigned)len, (unsigned)keys);
}

int main(int argc, char **argv)
{
    char url[512];

    if (argc == 3) {
        measure_batches(argv[2], THREADS, LONG, argv[1]);
        return 0;
    }
    if (argc == 5) {
        printf("%s %.0f\n", argv[1], measure_arrays(argv[2], argv[3], argv[4]));
        return 0;
    }
    if (argc != 2)
        die("usage", "bench_server SOCKET, or NAME URL, or NAME URL LEN KEYS");
    (void)snprintf(url, sizeof url, "unix://%s", argv[1]);
    measure_latency(argv[1], url);
    measure_denials(url);
    measure_batches(url, 1, 1, "one_thread");
    measure_batches(url, CROWD, 1, "crowd");
    return 0;
}
