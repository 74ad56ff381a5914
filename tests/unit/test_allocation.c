/* SPDX-License-Identifier: MIT */
/*
 * The N-th allocation fails, for every N: a clean status, nothing left behind, and what there was
 * goes on working. And deciding allocates nothing at all.
 *
 * The linker has every call of the library to the functions below end up here (--wrap), where it is
 * counted. What the library has and hasn't freed is counted too, so that a leak shows without a
 * sanitizer.
 */
#include "fiber.h"
#include "inside.h"
#include "redbucket/async.h"
#include "redbucket/walk.h"
#include "stores.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static struct {
    unsigned long made; /* calls since the start */
    unsigned long fail; /* which of them fails, 0 for none */
    bool and_on;        /* whether those after it fail as well */
    long blocks;        /* allocated and not freed */
    long mapped;        /* bytes mapped and not unmapped */
} memory;

static bool fails(void)
{
    memory.made++;
    if (memory.fail == 0 || memory.made < memory.fail ||
        (memory.made > memory.fail && !memory.and_on))
        return false;
    errno = ENOMEM;
    return true;
}

static void *block(void *made)
{
    memory.blocks += made != NULL;
    return made;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *old);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __real_madvise(void *at, size_t size, int advice);
ssize_t __real_getrandom(void *out, size_t size, unsigned flags);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *old);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);
int __wrap_madvise(void *at, size_t size, int advice);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : block(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : block(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    return old == NULL ? block(__real_malloc(size)) : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : block(__real_strdup(text));
}

void __wrap_free(void *old)
{
    memory.blocks -= old != NULL;
    __real_free(old);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails())
        return MAP_FAILED;
    memory.mapped += (long)size;
    return __real_mmap(at, size, protection, flags, fd, offset);
}

/* What mmap is called where files may be large. */
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return __wrap_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
    memory.mapped -= (long)size;
    return __real_munmap(at, size);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    return fails() ? -1 : __real_madvise(at, size, advice);
}

ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags)
{
    return fails() ? -1 : __real_getrandom(out, size, flags);
}

/* Has the n-th call from now on fail; 0 for none. */
static void fail_the(unsigned long nth)
{
    memory.made = 0;
    memory.fail = nth;
    memory.and_on = false;
}

static void fail_from(unsigned long nth)
{
    fail_the(nth);
    memory.and_on = true;
}

static int fail_none(void **state)
{
    (void)state;
    fail_the(0);
    return 0;
}

static void assert_out_of_memory(enum redbucket_status status, const struct redbucket_error *error)
{
    assert_int_equal(status, REDBUCKET_ERROR_MEMORY);
    assert_int_equal(error->status, REDBUCKET_ERROR_MEMORY);
    assert_non_null(strstr(error->message, strerror(ENOMEM)));
}

/* A shm: store that couldn't be made leaves no file. */
static void assert_nothing_left(const char *url)
{
    char path[512];

    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.mapped, 0);
    (void)snprintf(path, sizeof path, "/dev/shm/%.*s", (int)strcspn(url + 4, "?"), url + 4);
    if (strncmp(url, "shm:", 4) == 0)
        assert_int_not_equal(access(path, F_OK), 0);
}

/* Returns how many allocations opening takes. */
static unsigned long open_with_each_failure(const char *url)
{
    struct redbucket_store *untouched = (struct redbucket_store *)(uintptr_t)1;

    for (unsigned long nth = 1;; nth++) {
        struct redbucket_store *store = untouched;
        struct redbucket_error error = {.message = ""};

        fail_the(nth);
        enum redbucket_status status = redbucket_store_open(url, &store, &error);

        if (memory.made < nth) {
            assert_int_equal(status, REDBUCKET_OK);
            redbucket_store_close(store);
            test_store_remove(url);
            assert_nothing_left(url);
            return nth - 1;
        }
        assert_out_of_memory(status, &error);
        assert_ptr_equal(store, untouched);
        assert_nothing_left(url);
    }
}

static void opening_survives_each_failure(void **state)
{
    char url[256];

    (void)state;
    /* The struct, its locks, their fate at fork, the secret and the table. */
    assert_int_equal(open_with_each_failure("memory:"), 5);
    assert_int_equal(open_with_each_failure("memory:?size=64k"), 5);
    assert_int_equal(open_with_each_failure("memory:?grow=yes"), 5);
    test_store_url(&test_stores[1], "?size=64k", url, sizeof url);
    /* The struct, the secret and the mapping. */
    assert_int_equal(open_with_each_failure(url), 3);
}

static void opening_what_exists_survives_each_failure(void **state)
{
    struct redbucket_store *first, *store = NULL;
    struct redbucket_error error;
    char url[256];

    (void)state;
    test_store_url(&test_stores[1], "?size=64k", url, sizeof url);
    first = test_store_open(url);
    for (unsigned long nth = 1; nth <= 2; nth++) {
        fail_the(nth);
        assert_out_of_memory(redbucket_store_open(url, &store, &error), &error);
        assert_null(store);
    }
    fail_the(0);
    assert_int_equal(redbucket_store_open(url, &store, &error), REDBUCKET_OK);
    redbucket_store_close(store);
    test_store_drop(url, first);
    assert_nothing_left(url);
}

static void creating_a_limiter_survives_failure(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error;
    long blocks = memory.blocks;

    (void)state;
    fail_the(1);
    assert_out_of_memory(redbucket_limiter_create(store, &limiter, &error), &error);
    assert_null(limiter);
    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(memory.made, 2);
    redbucket_limiter_destroy(limiter);
    assert_int_equal(memory.blocks, blocks);
    redbucket_store_close(store);
}

/* Adds limit `name`, again and again until no allocation fails; what was there before is there
 * after each attempt, and no more. */
static void add_with_each_failure(struct redbucket_limiter *limiter, const char *name)
{
    struct redbucket_limit limit = {.rate = 1};
    size_t count = redbucket_limiter_count(limiter);
    struct redbucket_error error;

    for (unsigned long nth = 1;; nth++) {
        struct redbucket_key key = {.limit = name, .key = "k"};
        struct redbucket_response response;

        fail_the(nth);
        enum redbucket_status status = redbucket_limiter_add(limiter, name, &limit, &error);

        if (memory.made < nth) {
            assert_int_equal(status, REDBUCKET_OK);
            assert_int_equal(redbucket_request(limiter, &key, 1, &response), REDBUCKET_OK);
            assert_int_equal(redbucket_limiter_count(limiter), count + 1);
            return;
        }
        assert_out_of_memory(status, &error);
        assert_int_equal(redbucket_limiter_count(limiter), count);
        assert_int_equal(redbucket_request(limiter, &key, 1, &response),
                         REDBUCKET_ERROR_UNKNOWN_LIMIT);
    }
}

static void adding_limits_survives_each_failure(void **state)
{
    static const char *const names[] = {"m", "a", "z", "aa", "b"};
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_limiter *limiter;
    long blocks = memory.blocks;

    (void)state;
    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        add_with_each_failure(limiter, names[i]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct redbucket_limit limit = {.size = sizeof limit};
        const char *name;

        assert_true(redbucket_limiter_get(limiter, i, &name, &limit));
        assert_string_equal(name, names[i]);
    }
    redbucket_limiter_destroy(limiter);
    assert_int_equal(memory.blocks, blocks);
    redbucket_store_close(store);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.mapped, 0);
}

/* Takes one permit for the n-th key, and returns the status and whether there was one. */
static enum redbucket_status take(struct redbucket_limiter *limiter, unsigned n, bool *accepted)
{
    char text[16];
    struct redbucket_key key = {.limit = "a", .key = text};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

    (void)snprintf(text, sizeof text, "%u", n);
    enum redbucket_status status = redbucket_decide_at(limiter, &request, 1, 0);

    *accepted = request.response.accepted;
    return status;
}

/* Without memory to grow by, a growing store is full, and has forgotten nobody. */
static void growing_survives_each_failure(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?grow=yes");
    struct redbucket_limiter *limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1});
    unsigned failures = 0, n = 0;
    long mapped = memory.mapped;
    bool accepted;

    (void)state;
    for (; n < 40000; n++) {
        for (unsigned long nth = 1;; nth++) {
            fail_from(nth);
            enum redbucket_status status = take(limiter, n, &accepted);

            if (status == REDBUCKET_OK)
                break;
            assert_int_equal(status, REDBUCKET_ERROR_FULL);
            assert_int_equal(memory.mapped, mapped);
            failures++;
        }
        assert_true(accepted);
        mapped = memory.mapped;
    }
    /* Its memory, and a text to copy through, at each of two doublings. */
    assert_int_equal(failures, 2 * 2);
    fail_the(0);
    while (n-- > 0) {
        assert_int_equal(take(limiter, n, &accepted), REDBUCKET_OK);
        assert_false(accepted);
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.mapped, 0);
}

static void see_nothing(void *data, const struct redbucket_bucket *bucket)
{
    (void)data;
    (void)bucket;
}

/* A walk is something to begin with, and something to copy buckets into. */
static void walking_survives_each_failure(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_walk *walk = NULL;
    long blocks = memory.blocks;
    bool done = false;

    (void)state;
    fail_the(1);
    assert_int_equal(redbucket_walk_create(store, NULL, &walk), REDBUCKET_ERROR_MEMORY);
    assert_null(walk);
    assert_int_equal(redbucket_walk_create(store, NULL, &walk), REDBUCKET_OK);
    fail_the(1);
    assert_int_equal(redbucket_walk_step(walk, see_nothing, NULL, &done), REDBUCKET_ERROR_MEMORY);
    assert_true(done);
    assert_int_equal(redbucket_walk_step(walk, see_nothing, NULL, &done), REDBUCKET_OK);
    redbucket_walk_destroy(walk);
    assert_int_equal(memory.blocks, blocks);
    redbucket_store_close(store);
}

/* Creates one, again and again until no allocation fails. */
static struct redbucket_async *create_with_each_failure(struct redbucket_limiter *limiter)
{
    long blocks = memory.blocks, mapped = memory.mapped;

    for (unsigned long nth = 1;; nth++) {
        struct redbucket_async *async = NULL;
        struct redbucket_error error;

        if (!rbk_fiber_supported())
            skip();
        fail_the(nth);
        enum redbucket_status status = redbucket_async_create(limiter, &async, &error);

        if (memory.made < nth) {
            assert_int_equal(status, REDBUCKET_OK);
            return async;
        }
        assert_out_of_memory(status, &error);
        assert_null(async);
        assert_int_equal(memory.blocks, blocks);
        assert_int_equal(memory.mapped, mapped);
    }
}

static void count_status(void *data, const struct redbucket_request *decided)
{
    ((unsigned *)data)[decided->status]++;
}

static void asking_on_a_loop_survives_each_failure(void **state)
{
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_limiter *limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1});
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};
    unsigned statuses[REDBUCKET_CANCELLED + 1] = {0};
    struct redbucket_async *async = create_with_each_failure(limiter);
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;
    unsigned long nth = 0;

    (void)state;
    /* The request itself, and room to know it and some more by their numbers. */
    while (status == REDBUCKET_ERROR_MEMORY) {
        fail_the(++nth);
        status = redbucket_async_request(async, &request, count_status, statuses, NULL);
        assert_int_equal(redbucket_async_outstanding(async), status == REDBUCKET_OK);
    }
    assert_int_equal(nth, 3);
    fail_from(1);
    redbucket_async_dispatch(async);
    assert_int_equal(statuses[REDBUCKET_OK], 1);
    fail_the(0);
    redbucket_async_destroy(async);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.mapped, 0);
}

static void deciding_allocates_nothing(void **state)
{
    char url[256];

    (void)state;
    for (size_t i = 0; i < test_stores_len; i++) {
        test_store_url(&test_stores[i], "?size=64k", url, sizeof url);
        fail_the(0);

        struct redbucket_store *store = test_store_open(url);
        struct redbucket_limiter *limiter =
            test_limiter(store, &(struct redbucket_limit){.rate = 1});
        struct redbucket_key key = {.limit = "a", .key = "0"};
        struct redbucket_state read;
        bool accepted;

        fail_the(1);
        for (unsigned n = 0; n < 3000; n++)
            (void)take(limiter, n % 1500, &accepted);
        assert_int_equal(redbucket_read(limiter, &key, &read), REDBUCKET_OK);
        assert_int_equal(memory.made, 0);
        redbucket_limiter_destroy(limiter);
        test_store_drop(url, store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opening_survives_each_failure, fail_none),
        cmocka_unit_test_setup(opening_what_exists_survives_each_failure, fail_none),
        cmocka_unit_test_setup(creating_a_limiter_survives_failure, fail_none),
        cmocka_unit_test_setup(adding_limits_survives_each_failure, fail_none),
        cmocka_unit_test_setup(growing_survives_each_failure, fail_none),
        cmocka_unit_test_setup(walking_survives_each_failure, fail_none),
        cmocka_unit_test_setup(asking_on_a_loop_survives_each_failure, fail_none),
        cmocka_unit_test_setup(deciding_allocates_nothing, fail_none),
    };

    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
