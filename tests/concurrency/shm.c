/* SPDX-License-Identifier: MIT */
#include "shm.h"

#include "stores.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void shm_place_make(struct shm_place *place)
{
    test_store_url(&test_stores[1], "", place->url, sizeof place->url);
    (void)snprintf(place->path, sizeof place->path, "/dev/shm/%s", place->url + strlen("shm:"));
}

enum redbucket_status shm_open_store(const struct shm_place *place, const char *query,
                                     struct redbucket_store **store, struct redbucket_error *error)
{
    char url[256];

    (void)snprintf(url, sizeof url, "%s%s", place->url, query);
    return redbucket_store_open(url, store, error);
}

void shm_make_good(const struct shm_place *place)
{
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter;

    assert_int_equal(shm_open_store(place, "?size=64k", &store, NULL), REDBUCKET_OK);
    limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1});
    assert_true(test_ask(limiter, "k", 1.0, 1e9).accepted);
    assert_false(test_ask(limiter, "k", 1.0, 1e9).accepted);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

void shm_expect(const struct shm_place *place, const char *query, enum redbucket_status status,
                const char *words)
{
    struct redbucket_store *const nobody = (struct redbucket_store *)&status;
    struct redbucket_store *store = nobody;
    struct redbucket_error error = {.message = ""};
    enum redbucket_status got = shm_open_store(place, query, &store, &error);

    if (got != status || strstr(error.message, words) == NULL)
        fail_msg("%s \"%s\", not %s \"%s\"", redbucket_status_name(got), error.message,
                 redbucket_status_name(status), words);
    assert_int_equal(error.status, status);
    assert_ptr_equal(store, nobody);
    /* Which store, in one line. */
    assert_non_null(strstr(error.message, place->url));
    assert_null(strchr(error.message, '\n'));
}

void shm_patch(const struct shm_place *place, size_t offset, const void *bytes, size_t len)
{
    int fd = open(place->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), len);
    assert_int_equal(close(fd), 0);
}
