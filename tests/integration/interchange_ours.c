/* SPDX-License-Identifier: MIT */
/*
 * Takes the library's part in interchange.py: asks a store as it is told, a line at a time.
 *
 *   interchange_ours URL RATE BURST DELAY EXPIRY
 *
 *   request KEY      accepted DELAY TIME | rejected RETRY_AFTER TIME | error NAME
 *   read KEY         state TIMESTAMP VALUE | none | error NAME
 *   run KEY SECONDS  asks until so much time has gone by: count ACCEPTED REQUESTS
 */
#include "redbucket/redbucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what)
{
    (void)fprintf(stderr, "interchange_ours: %s\n", what);
    exit(2);
}

static double number(const char *text)
{
    double value;

    if (redbucket_number_parse(text, &value, NULL) != REDBUCKET_OK)
        fail(text);
    return value;
}

static void say_status(enum redbucket_status status)
{
    (void)printf("error %s\n", redbucket_status_name(status));
}

static void request(struct redbucket_limiter *limiter, const char *text)
{
    const struct redbucket_key key = {.limit = "a", .key = text};
    struct redbucket_response response;
    enum redbucket_status status = redbucket_request(limiter, &key, 1, &response);

    if (status != REDBUCKET_OK)
        say_status(status);
    else if (response.accepted)
        (void)printf("accepted %.17g %.17g\n", response.delay, response.time);
    else
        (void)printf("rejected %.17g %.17g\n", response.retry_after, response.time);
}

static void read_state(struct redbucket_limiter *limiter, const char *text)
{
    const struct redbucket_key key = {.limit = "a", .key = text};
    struct redbucket_state state;
    enum redbucket_status status = redbucket_read(limiter, &key, &state);

    if (status != REDBUCKET_OK)
        say_status(status);
    else if (state.exists)
        (void)printf("state %.17g %.17g\n", state.timestamp, state.value);
    else
        (void)printf("none\n");
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run(struct redbucket_limiter *limiter, const char *text, double seconds)
{
    const struct redbucket_key key = {.limit = "a", .key = text};
    unsigned long accepted = 0, requests = 0;

    for (double end = now() + seconds; now() < end; requests++) {
        struct redbucket_response response;
        enum redbucket_status status = redbucket_request(limiter, &key, 1, &response);

        if (status != REDBUCKET_OK) {
            say_status(status);
            return;
        }
        accepted += response.accepted;
    }
    (void)printf("count %lu %lu\n", accepted, requests);
}

static void obey(struct redbucket_limiter *limiter, char *line)
{
    char *key = strchr(line, ' ');

    line[strcspn(line, "\n")] = '\0';
    if (key == NULL)
        fail("a command without a key");
    *key++ = '\0';
    if (strcmp(line, "request") == 0) {
        request(limiter, key);
    } else if (strcmp(line, "read") == 0) {
        read_state(limiter, key);
    } else if (strcmp(line, "run") == 0) {
        char *seconds = strrchr(key, ' ');

        if (seconds == NULL)
            fail("run without a time");
        *seconds++ = '\0';
        run(limiter, key, number(seconds));
    } else {
        fail(line);
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct redbucket_error error;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    char *line = NULL;
    size_t size = 0;

    if (argc != 6)
        fail("usage: interchange_ours URL RATE BURST DELAY EXPIRY");
    const struct redbucket_limit limit = {.rate = number(argv[2]),
                                          .burst = number(argv[3]),
                                          .delay = number(argv[4]),
                                          .expiry = number(argv[5])};

    if (redbucket_store_open(argv[1], &store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "a", &limit, &error) != REDBUCKET_OK)
        fail(error.message);
    while (getline(&line, &size, stdin) > 0)
        obey(limiter, line);
    free(line);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return 0;
}
