/* SPDX-License-Identifier: MIT */
/*
 * Where the C library has no ucontext there is no asynchronous form, and everything else is as it
 * is elsewhere. Fibers are linked here as they are there, whatever this system has.
 */
#include "fiber.h"
#include "redbucket/async.h"
#include "stores.h"
#include "test.h"

static struct redbucket_store *store;
static struct redbucket_limiter *limiter;

static int set_up(void **state)
{
    (void)state;
    store = test_store_open("memory:?on_error=closed");
    limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1e-9, .burst = 1});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return 0;
}

static void it_is_refused_and_says_why(void **state)
{
    struct redbucket_async *async = NULL;
    struct redbucket_error error;

    (void)state;
    assert_int_equal(redbucket_async_create(limiter, &async, &error), REDBUCKET_ERROR_UNSUPPORTED);
    assert_null(async);
    assert_string_equal(error.message, "asynchronous form: this system has no ucontext");
    assert_int_equal(redbucket_async_create(limiter, &async, NULL), REDBUCKET_ERROR_UNSUPPORTED);
    assert_null(async);
    redbucket_async_destroy(async);
}

static void who_blocks_is_served(void **state)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_response response;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(redbucket_request(limiter, &key, 1, &response), REDBUCKET_OK);
        assert_int_equal(response.accepted, i < 2);
    }
}

static void nobody_is_on_a_fiber(void **state)
{
    (void)state;
    assert_false(rbk_fiber_supported());
    assert_null(rbk_fiber_create());
    assert_null(rbk_fiber_current());
    rbk_fiber_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_refused_and_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_blocks_is_served, set_up, tear_down),
        cmocka_unit_test(nobody_is_on_a_fiber),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
