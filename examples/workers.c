/* SPDX-License-Identifier: MIT */
/*
 * A server of several processes with one limit in shared memory. The store is opened once, and used
 * by the children that are forked after it; a process that isn't a child would open it by its name.
 * No process is in charge: whichever dies, the others go on.
 *
 * usage: workers [STORE [WORKERS]]
 *
 * Each worker asks REQUESTS times for its turn without ever waiting; the limit passes 20 at once
 * and then 10 a second, to all of them together. The store stays, for whoever comes next: what is
 * asked within two seconds of the first call finds less. `rm /dev/shm/NAME` removes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <redbucket/redbucket.h>

#define REQUESTS    100
#define WORKERS_MAX 64

/* What a worker tells its parent in the end. */
struct tally {
    int worker;
    int accepted;
    int rejected;
    int failed;
};

static struct tally ask(struct redbucket_limiter *limiter, int worker)
{
    struct redbucket_key key = {.limit = "page", .key = "192.0.2.7"};
    struct tally tally = {.worker = worker};

    for (int i = 0; i < REQUESTS; i++) {
        struct redbucket_response response;

        /* A full table, or a lock whose owner was stopped: the request wasn't decided. */
        if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
            tally.failed++;
        else if (response.accepted)
            tally.accepted++;
        else
            tally.rejected++;
    }
    return tally;
}

/* A child's own end. It leaves the store open: what it shares with the parent ends with it. */
static _Noreturn void be_worker(struct redbucket_limiter *limiter, int worker, int pipe)
{
    struct tally tally = ask(limiter, worker);
    ssize_t wrote = write(pipe, &tally, sizeof tally); /* so little is written whole */

    _exit(wrote == (ssize_t)sizeof tally && tally.failed == 0 ? 0 : 1);
}

static int start_workers(struct redbucket_limiter *limiter, int workers, int pipe)
{
    int started = 0;

    for (; started < workers; started++) {
        pid_t pid = fork();

        if (pid == -1) {
            perror("workers: fork");
            break;
        }
        if (pid == 0)
            be_worker(limiter, started + 1, pipe);
    }
    return started;
}

static void tell(int pipe)
{
    struct tally tally;
    int accepted = 0;

    while (read(pipe, &tally, sizeof tally) == (ssize_t)sizeof tally) {
        printf("worker %d: %d accepted, %d rejected, %d failed\n", tally.worker, tally.accepted,
               tally.rejected, tally.failed);
        accepted += tally.accepted;
    }
    printf("together: %d accepted\n", accepted);
}

/* How many of them ended otherwise than well. */
static int wait_for(int workers)
{
    int bad = 0;

    for (int ended = 0; ended < workers;) {
        int status;

        if (wait(&status) == -1 && errno == EINTR)
            continue;
        ended++;
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return bad;
}

static int run(struct redbucket_limiter *limiter, int workers)
{
    int ends[2];
    int started;

    if (pipe(ends) != 0) {
        perror("workers: pipe");
        return 1;
    }
    started = start_workers(limiter, workers, ends[1]);
    close(ends[1]); /* so that reading ends with the last worker */
    tell(ends[0]);
    close(ends[0]);
    return wait_for(started) > 0 || started < workers;
}

int main(int argc, char **argv)
{
    const struct redbucket_limit limit = {.rate = 10, .burst = 19};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error;
    int workers = argc > 2 ? atoi(argv[2]) : 4;
    int failed = 1;

    if (workers < 1 || workers > WORKERS_MAX) {
        fprintf(stderr, "workers: expected 1 to %d workers\n", WORKERS_MAX);
        return 2;
    }
    if (redbucket_store_open(argc > 1 ? argv[1] : "shm:redbucket-workers?size=1m", &store,
                             &error) == REDBUCKET_OK &&
        redbucket_limiter_create(store, &limiter, &error) == REDBUCKET_OK &&
        redbucket_limiter_add(limiter, "page", &limit, &error) == REDBUCKET_OK)
        failed = run(limiter, workers);
    else
        fprintf(stderr, "workers: %s\n", error.message);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return failed;
}
