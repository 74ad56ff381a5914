/* SPDX-License-Identifier: MIT */
/*
 * Copies its input to its output a line at a time, no faster than a limit lets it: a queue's worker
 * in small, which would do its work where this one prints. All who name the same store keep to the
 * limit together. Each call waits for the server, and no longer than the store's time limit; what
 * the answer says is waited for here, since the library never sleeps.
 *
 * usage: blocking [STORE [LIMIT]] < LINES
 *
 * LIMIT is as in `redbucket -l`, work:5/s,burst=2,delay=5 when not given.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <redbucket/redbucket.h>

struct worker {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    const char *limit;
};

/* A signal that is handled cuts a sleep short, and the rest is slept then. */
static void sleep_us(uint64_t us)
{
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        continue;
}

static void tell_failure(const struct worker *worker, const struct redbucket_request *request)
{
    struct redbucket_error error;

    redbucket_request_error(request, &error);
    fprintf(stderr, "blocking: %s\n", error.message);
    /* In the server's words, where the store has heard some. */
    redbucket_store_failure(worker->store, &error);
    if (error.status != REDBUCKET_OK)
        fprintf(stderr, "blocking: %s\n", error.message);
}

/* Returns when it is this program's turn; false when nobody can tell, since the store failed. */
static bool take_turn(const struct worker *worker)
{
    struct redbucket_key key = {.limit = worker->limit, .key = "all"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    while (redbucket_decide(worker->limiter, &request, 1) == REDBUCKET_OK) {
        if (request.response.accepted) {
            sleep_us(request.response.delay_us);
            return true;
        }
        /* Nobody is first among those who wait: another may come before. Then it is asked again. */
        sleep_us(request.response.retry_after_us);
    }
    tell_failure(worker, &request);
    return false;
}

static bool work(const struct worker *worker)
{
    char *line = NULL;
    size_t size = 0;
    bool good = true;

    while (good && getline(&line, &size, stdin) != -1)
        good = take_turn(worker) && fputs(line, stdout) != EOF && fflush(stdout) == 0;
    free(line);
    return good && !ferror(stdin);
}

static enum redbucket_status open_worker(struct worker *worker, const char *url,
                                         const struct redbucket_named_limit *named,
                                         struct redbucket_error *error)
{
    enum redbucket_status status = redbucket_store_open(url, &worker->store, error);

    if (status == REDBUCKET_OK)
        status = redbucket_limiter_create(worker->store, &worker->limiter, error);
    if (status == REDBUCKET_OK)
        status = redbucket_limiter_add(worker->limiter, named->name, &named->limit, error);
    worker->limit = named->name;
    return status;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://localhost";
    const char *text = argc > 2 ? argv[2] : "work:5/s,burst=2,delay=5";
    struct worker worker = {0};
    struct redbucket_named_limit named;
    struct redbucket_error error;
    bool good = false;

    if (redbucket_limit_parse(text, &named, &error) == REDBUCKET_OK &&
        open_worker(&worker, url, &named, &error) == REDBUCKET_OK)
        good = work(&worker);
    else
        fprintf(stderr, "blocking: %s\n", error.message);
    redbucket_limiter_destroy(worker.limiter);
    redbucket_store_close(worker.store);
    return good ? 0 : 1;
}
