/* SPDX-License-Identifier: MIT */
/*
 * Limits on a Redis Cluster. Each tenant has its users, and itself, limited. The hash tag {TENANT}
 * in the keys brings a tenant's buckets into one slot, so that a request which names both limits is
 * one step on one node; without it, it would take a step for each slot. Several tenants are asked
 * for at once, and a node that is down costs those alone who lie there.
 *
 * usage: cluster STORE [TENANT...]
 *
 * Ends with 0 when all were answered, 1 when the store is none, 3 when some were not answered.
 */
#include <stdio.h>

#include <redbucket/redbucket.h>

#define TENANTS_MAX 16
#define KEY_SIZE    64

/* The keys of a tenant, which have to live until the request is decided. */
struct question {
    char user[KEY_SIZE];
    char tenant[KEY_SIZE];
    struct redbucket_key keys[2];
};

static void tell_health(struct redbucket_store *store)
{
    struct redbucket_health health = {.size = sizeof health};
    struct redbucket_error error;

    if (redbucket_store_check(store, &health) != REDBUCKET_OK) {
        redbucket_store_failure(store, &error);
        fprintf(stderr, "cluster: %s\n", error.message);
        return;
    }
    printf("%s, %zu masters, %u slots served\n", health.server, health.masters, health.slots);
    for (size_t i = 0; i < health.warnings_len; i++)
        fprintf(stderr, "cluster: warning: %s\n", health.warnings[i]);
}

/* Where this isn't so, a request is still decided, in two steps that may have to be taken back. */
static void tell_colocation(struct redbucket_store *store)
{
    enum redbucket_colocation colocation =
        redbucket_store_colocation(store, "user", 0, "tenant", 0);

    if (colocation == REDBUCKET_COLOCATION_NEVER)
        printf("user and tenant take a step each\n");
    else
        printf("user and tenant of one tag are one step\n");
}

static void ask_for(const char *tenant, struct question *question,
                    struct redbucket_request *request)
{
    snprintf(question->user, sizeof question->user, "{%s}alice", tenant);
    snprintf(question->tenant, sizeof question->tenant, "{%s}", tenant);
    question->keys[0] = (struct redbucket_key){.limit = "user", .key = question->user};
    question->keys[1] = (struct redbucket_key){.limit = "tenant", .key = question->tenant};
    *request = (struct redbucket_request){.keys = question->keys, .keys_len = 2, .cost = 1.0};
}

static void tell(const char *tenant, const struct redbucket_request *request)
{
    struct redbucket_error error;

    if (request->status != REDBUCKET_OK) {
        redbucket_request_error(request, &error);
        printf("%s: %s\n", tenant, error.message);
    } else if (!request->response.accepted) {
        printf("%s: rejected by %s, retry after %.3f s\n", tenant,
               request->keys[request->response.decided].limit, request->response.retry_after);
    } else {
        printf("%s: accepted, %d remaining\n", tenant, (int)request->response.remaining);
    }
}

/* One array is one round trip to all nodes at once, whatever the number of requests. */
static int ask(struct redbucket_limiter *limiter, char **tenants, size_t count)
{
    struct question questions[TENANTS_MAX];
    struct redbucket_request requests[TENANTS_MAX];
    enum redbucket_status status;

    for (size_t i = 0; i < count; i++)
        ask_for(tenants[i], &questions[i], &requests[i]);
    status = redbucket_decide(limiter, requests, count);
    for (size_t i = 0; i < count; i++)
        tell(tenants[i], &requests[i]);
    return status == REDBUCKET_OK ? 0 : 3;
}

int main(int argc, char **argv)
{
    const struct redbucket_limit user = {.rate = 0.1, .burst = 1};
    const struct redbucket_limit tenant = {.rate = 0.1, .burst = 9};
    static char *two[] = {"acme", "example"};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error;
    int status = 1;

    if (argc < 2 || argc > TENANTS_MAX + 2) {
        fprintf(stderr, "usage: cluster STORE [TENANT...], at most %d of them\n", TENANTS_MAX);
        return 2;
    }
    if (redbucket_store_open(argv[1], &store, &error) == REDBUCKET_OK &&
        redbucket_limiter_create(store, &limiter, &error) == REDBUCKET_OK &&
        redbucket_limiter_add(limiter, "user", &user, &error) == REDBUCKET_OK &&
        redbucket_limiter_add(limiter, "tenant", &tenant, &error) == REDBUCKET_OK) {
        tell_health(store);
        tell_colocation(store);
        status = argc > 2 ? ask(limiter, argv + 2, (size_t)argc - 2) : ask(limiter, two, 2);
    } else {
        fprintf(stderr, "cluster: %s\n", error.message);
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return status;
}
