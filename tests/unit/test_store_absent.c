/* SPDX-License-Identifier: MIT */
/*
 * A library without stores on servers: their URLs are refused by name and never with a password,
 * and the embedded stores are all there. What answers for them is linked here as in such a build.
 */
#include "stores.h"
#include "test.h"

#include <stdio.h>

static void urls_of_servers_are_refused_by_name(void **state)
{
    static const char *const schemes[] = {
        "redis",           "rediss",        "unix",           "redis+sentinel",
        "rediss+sentinel", "redis+cluster", "rediss+cluster",
    };
    char url[128], message[248];

    (void)state;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct redbucket_store *store = NULL;
        struct redbucket_error error;

        (void)snprintf(url, sizeof url, "%s://user:sesame@192.0.2.1/x", schemes[i]);
        (void)snprintf(message, sizeof message,
                       "store URL: %s: this library was built without stores on servers, it has "
                       "memory: and shm:NAME",
                       schemes[i]);
        assert_int_equal(redbucket_store_open(url, &store, &error), REDBUCKET_ERROR_UNSUPPORTED);
        assert_null(store);
        assert_string_equal(error.message, message);
        assert_int_equal(redbucket_store_open(url, &store, NULL), REDBUCKET_ERROR_UNSUPPORTED);
    }
}

static void a_policy_is_no_way_around(void **state)
{
    struct redbucket_store *store = NULL;

    (void)state;
    assert_int_equal(redbucket_store_open("redis://192.0.2.1?on_error=local", &store, NULL),
                     REDBUCKET_ERROR_UNSUPPORTED);
    assert_null(store);
}

static void embedded_stores_are_there(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?size=64k");

    (void)state;
    redbucket_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_of_servers_are_refused_by_name),
        cmocka_unit_test(a_policy_is_no_way_around),
        cmocka_unit_test(embedded_stores_are_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
