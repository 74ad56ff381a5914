/* SPDX-License-Identifier: MIT */
/*
 * A call that begins in a process and ends in a child of it as well: a listener of the store's may
 * fork in the middle of one.
 */
#include "gather.h"
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

static struct redbucket_store inner;
static bool forks;
static pid_t child;

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    (void)store;
    (void)batch;
    if (forks) {
        forks = false;
        child = fork();
    }
    for (size_t i = 0; i < len; i++)
        requests[i].status = REDBUCKET_OK;
}

static size_t inner_lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    (void)store;
    (void)request;
    return 0;
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
}

static const struct rbk_store_ops inner_ops = {
    .decide = inner_decide, .lane = inner_lane, .close = inner_close, .lanes = 1, .together = 64};

static enum redbucket_status ask(struct redbucket_store *store)
{
    struct rbk_request request = {.ask = {.operation = RBK_REQUEST, .cost = 1.0}};
    struct rbk_batch batch = {.waited = 0.0};

    store->ops->decide(store, &request, 1, &batch);
    return request.status;
}

/* It was never counted in the child, and must not be counted off there: who asks next would wait
 * for flights that nobody makes. */
static void it_leaves_nothing_behind(void **state)
{
    struct redbucket_store *store;
    int status;

    (void)state;
    inner.ops = &inner_ops;
    assert_int_equal(rbk_gather_create(&inner, 0.3, 1, &store, NULL), REDBUCKET_OK);
    forks = true;
    assert_int_equal(ask(store), REDBUCKET_OK);
    if (child == 0)
        _exit(ask(store) == REDBUCKET_OK ? 0 : 1);
    assert_int_equal(ask(store), REDBUCKET_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_leaves_nothing_behind)};

    return cmocka_run_group_tests_name("gather_fork", tests, NULL, NULL);
}
