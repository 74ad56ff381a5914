/* SPDX-License-Identifier: MIT */
/*
 * Structs that may grow, as a caller has them who was compiled when they ended earlier, or will be
 * when they end later: the library writes no byte behind what `size` says, and reads none. What is
 * written is followed by bytes that must stay, what is read ends at a page that can't be read.
 */
#include "redbucket/metrics.h"
#include "redbucket/walk.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STAYS 0xaa

/* More than the largest of them, and a word. */
#define ROOM (sizeof(struct redbucket_health) + sizeof(size_t))

static struct redbucket_store *store;
static struct redbucket_limiter *limiter;

static int open_all(void **state)
{
    (void)state;
    assert_int_equal(redbucket_store_open("memory:?size=64k", &store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(
                         limiter, "a", &(struct redbucket_limit){.rate = 7, .lease_time = 3}, NULL),
                     REDBUCKET_OK);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return 0;
}

/* The last `size` bytes before what nobody can read; `bytes` is given back by let_go. */
struct edge {
    unsigned char *bytes;
    size_t page;
};

static void make_edge(struct edge *edge)
{
    edge->page = (size_t)sysconf(_SC_PAGESIZE);
    assert_true(edge->page >= ROOM);
    edge->bytes =
        mmap(NULL, 2 * edge->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(edge->bytes, MAP_FAILED);
    assert_int_equal(mprotect(edge->bytes + edge->page, edge->page, PROT_NONE), 0);
}

static void let_go(const struct edge *edge)
{
    assert_int_equal(munmap(edge->bytes, 2 * edge->page), 0);
}

static void *before(const struct edge *edge, const void *bytes, size_t size)
{
    unsigned char *at = edge->bytes + edge->page - size;

    if (bytes != NULL)
        memcpy(at, bytes, size);
    return at;
}

/* Has a struct that is aligned like its words filled in, with `size` in front; whether it was. */
typedef bool filler(void *out);

static bool fill_limit(void *out)
{
    const char *name = NULL;

    return redbucket_limiter_get(limiter, 0, &name, out) && strcmp(name, "a") == 0;
}

static bool fill_statistics(void *out)
{
    return redbucket_store_statistics(store, out) == REDBUCKET_OK;
}

static bool fill_health(void *out)
{
    return redbucket_store_check(store, out) == REDBUCKET_OK;
}

/* At every size a caller's struct may end, from less than its `size` to more than there is. */
static void fill_at_each_size(filler *fill, size_t whole)
{
    _Alignas(16) unsigned char out[ROOM];

    for (size_t size = 1; size <= whole + sizeof(size_t); size++) {
        bool can_be = size >= sizeof(size_t);
        size_t written = size < whole ? size : whole;

        memset(out, STAYS, sizeof out);
        memcpy(out, &size, sizeof size);
        assert_int_equal(fill(out), can_be);
        for (size_t at = can_be ? written : sizeof size; at < sizeof out; at++)
            assert_int_equal(out[at], STAYS);
        if (!can_be)
            assert_memory_equal(out, &size, sizeof size);
    }
}

static void no_more_is_written_than_there_is_room(void **state)
{
    (void)state;
    fill_at_each_size(fill_limit, sizeof(struct redbucket_limit));
    fill_at_each_size(fill_statistics, sizeof(struct redbucket_statistics));
    fill_at_each_size(fill_health, sizeof(struct redbucket_health));
}

/* The size says what is there, so what was got can be given to the same library again. */
static void a_limit_that_was_got_can_be_added(void **state)
{
    static const size_t sizes[] = {0, sizeof(struct redbucket_limit), 4096};
    struct redbucket_limiter *other = NULL;
    const char *name = NULL;
    char text[16];

    (void)state;
    assert_int_equal(redbucket_limiter_create(store, &other, NULL), REDBUCKET_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct redbucket_limit limit = {.size = sizes[i]};

        assert_true(redbucket_limiter_get(limiter, 0, &name, &limit));
        assert_int_equal(limit.size, sizeof limit);
        assert_same(limit.rate, 7.0);
        assert_same(limit.lease_time, 3.0);
        limit.zone = NULL;
        (void)snprintf(text, sizeof text, "%zu", i);
        assert_int_equal(redbucket_limiter_add(other, text, &limit, NULL), REDBUCKET_OK);
    }
    redbucket_limiter_destroy(other);
}

/* Sizes that are no version's are refused before more than the size was read. */
static void no_more_is_read_than_there_is(void **state)
{
    const struct redbucket_limit limit = {.rate = 1};
    struct redbucket_walk *walk = NULL;
    struct edge edge;

    (void)state;
    make_edge(&edge);
    assert_int_equal(redbucket_limit_check(before(&edge, &limit, sizeof limit), NULL),
                     REDBUCKET_OK);
    for (size_t size = sizeof(size_t); size < sizeof limit; size += sizeof(size_t)) {
        struct redbucket_limit *given = before(&edge, NULL, size);

        given->size = size;
        assert_int_equal(redbucket_limit_check(given, NULL), REDBUCKET_ERROR_LIMIT);
        assert_int_equal(redbucket_limiter_add(limiter, "b", given, NULL), REDBUCKET_ERROR_LIMIT);
    }
    for (size_t size = sizeof(size_t); size < sizeof(struct redbucket_walk_options);
         size += sizeof(size_t)) {
        struct redbucket_walk_options *given = before(&edge, NULL, size);

        given->size = size;
        assert_int_equal(redbucket_walk_create(store, given, &walk), REDBUCKET_ERROR_ARGUMENT);
    }
    let_go(&edge);
}

/* Metrics of a caller's statistics, however much of them it has. */
static void no_more_is_counted_than_there_is(void **state)
{
    char *bytes = malloc(REDBUCKET_METRICS_SIZE(1));
    struct edge edge;

    (void)state;
    assert_non_null(bytes);
    make_edge(&edge);
    for (size_t size = sizeof(size_t); size <= sizeof(struct redbucket_statistics);
         size += sizeof(size_t)) {
        struct redbucket_statistics *given = before(&edge, NULL, size);
        struct redbucket_text text = {bytes, REDBUCKET_METRICS_SIZE(1), 0};

        given->size = size;
        assert_int_equal(redbucket_store_statistics(store, given), REDBUCKET_OK);
        assert_int_equal(redbucket_metrics(&(struct redbucket_metered){"s", given}, 1, &text),
                         REDBUCKET_OK);
    }
    let_go(&edge);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_is_written_than_there_is_room),
        cmocka_unit_test(a_limit_that_was_got_can_be_added),
        cmocka_unit_test(no_more_is_read_than_there_is),
        cmocka_unit_test(no_more_is_counted_than_there_is),
    };

    return cmocka_run_group_tests_name("sizes", tests, open_all, close_all);
}
