/* SPDX-License-Identifier: MIT */
/*
 * Takes one permit from limits on a server: one for each user and one for each address, from both
 * or from neither. shared.py is the same in Python. Whatever programs name the same store, limits
 * and keys share what is left, on one machine or on many.
 *
 * usage: shared [STORE]
 */
#include <redbucket/redbucket.h>
#include <stdio.h>

static int ask(struct redbucket_store *store, struct redbucket_limiter *limiter)
{
    struct redbucket_key keys[] = {{.limit = "user", .key = "alice"},
                                   {.limit = "ip", .key = "192.0.2.7"}};
    struct redbucket_response response;
    struct redbucket_error error;

    if (redbucket_request(limiter, keys, 2, &response) != REDBUCKET_OK) {
        redbucket_store_failure(store, &error);
        fprintf(stderr, "C: %s\n", error.message);
        return 1;
    }
    if (!response.accepted)
        printf("C: rejected, retry after %.3f s\n", response.retry_after);
    else
        printf("C: accepted after %.3f s, %d remaining\n", response.delay, (int)response.remaining);
    return 0;
}

int main(int argc, char **argv)
{
    struct redbucket_limit by_user = {.rate = 0.1, .burst = 2};
    struct redbucket_limit by_address = {.rate = 5, .burst = 20};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error;
    int failed = 1;

    if (redbucket_store_open(argc > 1 ? argv[1] : "redis://localhost", &store, &error) ==
            REDBUCKET_OK &&
        redbucket_limiter_create(store, &limiter, &error) == REDBUCKET_OK &&
        redbucket_limiter_add(limiter, "user", &by_user, &error) == REDBUCKET_OK &&
        redbucket_limiter_add(limiter, "ip", &by_address, &error) == REDBUCKET_OK)
        failed = ask(store, limiter);
    else
        fprintf(stderr, "C: %s\n", error.message);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return failed;
}
