/* SPDX-License-Identifier: MIT */
/*
 * A table into which somebody writes who takes no lock: numbers change between a check and the use
 * of what was checked. Whatever comes of the buckets, nothing is touched outside of the table's
 * bytes and of the text that a walk copies to, which end at pages that nobody may touch.
 */
#include "table/layout.h"
#include "table/walk.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define SIZE    (size_t)(8192 + 6 * 4096)
#define PAGE    (size_t)4096
#define SECONDS 1.0

struct scene {
    unsigned char *bytes;
    unsigned char *text; /* of a walk */
    struct rbk_table *table;
    atomic_bool over;
};

/* Memory between two pages that can't be touched, up to the second. */
static unsigned char *make_edge(size_t size)
{
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    unsigned char *mapped =
        mmap(NULL, PAGE + whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(mapped, MAP_FAILED);
    assert_int_equal(mprotect(mapped, PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(mapped + PAGE + whole, PAGE, PROT_NONE), 0);
    return mapped + PAGE + (whole - size);
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One bucket far, of which everything that leads anywhere changes for the worse and back. */
static void scribble_slot(const struct scene *scene, unsigned slot, bool worse)
{
    volatile struct rbk_page *page = scene->table->pages;
    volatile struct rbk_bucket *bucket = &page->slot[slot].bucket;

    page->tag[slot] = worse ? RBK_TAG_LINK : 77;
    page->lengths[slot].key_len = RBK_KEY_FAR;
    bucket->text.far.key_len = worse ? UINT32_MAX - slot : 30 + slot;
    bucket->text.far.chain = worse ? UINT32_MAX / (slot + 1) : slot + 1;
    page->slot[slot + 1].link.next = worse ? UINT32_MAX - 7 : slot;
}

static void *scribble(void *data)
{
    struct scene *scene = data;
    volatile struct rbk_shard *shard = scene->table->shards;
    volatile struct rbk_table_header *header = scene->table->header;

    for (bool worse = true; !atomic_load(&scene->over); worse = !worse) {
        for (unsigned slot = 0; slot < 60; slot += 3)
            scribble_slot(scene, slot, worse);
        shard->journal_len = worse ? UINT32_MAX / 64 : 1;
        shard->journal[0].slot = worse ? UINT32_MAX - 1 : 3;
        shard->journal[0].kind = RBK_JOURNAL_STATE;
        header->pages = worse ? UINT32_MAX : 6;
        header->names_len = worse ? UINT32_MAX : RBK_ZONE_NAMES;
        for (unsigned at = 0; at < RBK_ZONE_NAMES; at += 101)
            header->names[at] = worse ? 255 : 100;
    }
    return NULL;
}

static void ask(struct rbk_table *table, const unsigned char *text, size_t len)
{
    struct rbk_key key = {text, 4, text + 4, len};
    struct rbk_ask asked = {RBK_REQUEST, 1.0, 0.0, 5.0};
    struct rbk_claim claim = {.limit = {1.0, 2.0, 1.0}};
    struct rbk_touch touch;
    struct rbk_answer answer;
    size_t failed;

    rbk_table_place(table, &key, &touch.place);
    if (rbk_table_torn(table, touch.place.shard))
        rbk_table_recover(table, touch.place.shard);
    rbk_table_find(table, &touch, &claim.state);
    if (!rbk_state_readable(&claim.state))
        return;
    rbk_decide(&asked, &claim, 1, &answer);
    if (claim.change != RBK_KEEP)
        (void)rbk_table_apply(table, &touch, &claim, &(struct rbk_apply){1, 5.0}, &failed);
}

static void walk(const struct scene *scene)
{
    static struct rbk_table_seen seen[200];

    for (uint64_t slot = 0; slot < rbk_table_capacity(scene->table);) {
        struct rbk_table_piece piece = {.seen = seen, .most = 200, .text = scene->text};

        slot = rbk_table_walk(scene->table, slot, &piece);
        assert_in_range(piece.text_len, 0, RBK_TABLE_WALK_TEXT);
    }
}

static void name_zones(struct rbk_table *table)
{
    const unsigned char *names = table->header->names;
    const unsigned char *zone;
    size_t zone_len;

    assert_in_range(rbk_table_zone(table, (const unsigned char *)"zone", 4), 0, RBK_TABLE_ZONES);
    for (unsigned i = 0; i <= RBK_TABLE_ZONES + 1; i++) {
        if (!rbk_table_zone_name(table, i, &zone, &zone_len))
            continue;
        assert_true(zone > names && zone_len > 0);
        assert_true(zone + zone_len <= names + RBK_ZONE_NAMES);
    }
}

static void test_a_table_that_changes_between_two_looks(void **state)
{
    static const uint64_t secret[2] = {3, 4};
    static const unsigned char text[300] = "zone and key";
    struct scene scene = {.bytes = make_edge(SIZE), .text = make_edge(RBK_TABLE_WALK_TEXT)};
    struct rbk_table_plan plan;
    struct rbk_table table, again;
    double end = now() + SECONDS;
    pthread_t thread;

    (void)state;
    assert_true(rbk_table_plan(SIZE, 1, &plan));
    rbk_table_format(scene.bytes, SIZE, &plan, secret);
    assert_true(rbk_table_attach(&table, scene.bytes, SIZE));
    scene.table = &table;
    assert_int_equal(pthread_create(&thread, NULL, scribble, &scene), 0);
    for (size_t i = 0; now() < end; i++) {
        for (size_t len = 0; len < 20; len++)
            ask(&table, text, (i + len) * 13 % 290);
        walk(&scene);
        name_zones(&table);
        if (rbk_table_attach(&again, scene.bytes, SIZE))
            assert_int_equal(again.shard_pages, 6);
    }
    atomic_store(&scene.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Races are what this is about, and there they end the test. */
static bool is_watched_for_races(void)
{
#if defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_table_that_changes_between_two_looks),
    };

    if (is_watched_for_races()) {
        printf("1..0 # SKIP races are what this is about\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
