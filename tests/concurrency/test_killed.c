/* SPDX-License-Identifier: MIT */
/*
 * A process killed at any instruction of a request on a shm: store: the next one's request works at
 * once, every bucket is as it was before or as it would have been after, no slot is lost, and the
 * table holds as many keys as ever. The same for one killed while it clears up after another.
 */
#include "audit.h"
#include "processes.h"
#include "stepper.h"
#include "stores.h"
#include "test.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of each scene's torn moments, so many are cleared up after by somebody who is killed as well. */
#define HEIRS 3

struct scene {
    const char *name;
    const char *size;
    void (*prepare)(struct world *world);
    enum redbucket_operation operation;
    size_t keys_len;
    const char *heir; /* also killed is who comes after: the name of that test */
};

static void one_bucket(struct world *world)
{
    world_take(world, world_know(world, "a", 0), 3.0, WORLD_NOW - 1.0);
}

static void one_bucket_of_a_faster_limit(struct world *world)
{
    struct redbucket_limiter *faster =
        test_limiter(world->store, &(struct redbucket_limit){.rate = 7, .burst = 100});

    (void)test_ask(faster, world->known[world_know(world, "a", 0)].key.key, 3.0, WORLD_NOW - 0.25);
    redbucket_limiter_destroy(faster);
}

static void no_bucket(struct world *world)
{
    (void)world_know(world, "a", 0);
    world_take(world, world_know(world, "a", 1), 1.0, WORLD_NOW);
}

static void a_long_key(struct world *world)
{
    (void)world_know_long(world, "a", 0, 300);
    world_take(world, world_know_long(world, "b", 0, 200), 1.0, WORLD_NOW);
}

static void a_long_bucket(struct world *world)
{
    world_take(world, world_know_long(world, "a", 0, 300), 2.0, WORLD_NOW - 1.0);
}

static void two_buckets(struct world *world)
{
    world_take(world, world_know(world, "a", 0), 3.0, WORLD_NOW - 1.0);
    world_take(world, world_know(world, "b", 1), 5.0, WORLD_NOW - 2.0);
}

static void two_long_buckets(struct world *world)
{
    world_take(world, world_know_long(world, "a", 0, 300), 3.0, WORLD_NOW);
    world_take(world, world_know_long(world, "b", 0, 150), 3.0, WORLD_NOW);
}

static void one_bucket_and_two_long_keys(struct world *world)
{
    world_take(world, world_know(world, "a", 0), 3.0, WORLD_NOW - 1.0);
    (void)world_know_long(world, "b", 0, 250);
    (void)world_know_long(world, "once", 0, 150);
}

static void two_buckets_of_two_shards(struct world *world)
{
    assert_int_equal(rbk_table_shards(test_table_of(world->store)), 2);
    world_take(world, world_know(world, "a", 0), 3.0, WORLD_NOW - 1.0);
    for (unsigned i = 1; world->known_len < 2; i++) {
        if (world_shard(world, world_know(world, "b", i)) == world_shard(world, 0))
            world->known_len--;
    }
    world_take(world, 1, 5.0, WORLD_NOW - 2.0);
}

/* All 138 slots of the new key's pages. */
static void fill_pages(struct world *world, const char *limit)
{
    unsigned number = 0;

    (void)world_know(world, "a", 0);
    for (unsigned i = 1; i <= 138; i++) {
        number = world_twin(world, limit, number + 1);
        world_take(world, world_know(world, limit, number), i == 77 ? 1.0 : 2.0, WORLD_NOW);
    }
}

/* None of them keeps anybody out, and one drains first. */
static void a_full_table(struct world *world)
{
    fill_pages(world, "a");
}

static void a_table_full_of_closed_buckets(struct world *world)
{
    fill_pages(world, "once");
}

/* Chains have all the slots that they may have, so that a longer one takes those of several. */
static void a_table_full_of_long_keys(struct world *world)
{
    (void)world_know_long(world, "a", 0, 500);
    for (size_t i = 1; i <= 53; i++)
        world_take(world, world_know_long(world, "b", i, 250), 1.0, WORLD_NOW);
}

static void a_closed_bucket(struct world *world)
{
    world_take(world, world_know(world, "a", 0), 50.0, WORLD_NOW);
}

static const struct scene scenes[] = {
    {"update", "32k", one_bucket, REDBUCKET_REQUEST, 1},
    {"update by a slower limit", "32k", one_bucket_of_a_faster_limit, REDBUCKET_REQUEST, 1},
    {"insert", "32k", no_bucket, REDBUCKET_REQUEST, 1},
    {"insert a long key", "32k", a_long_key, REDBUCKET_REQUEST, 1, "insert a long key: heir"},
    {"update a long key", "32k", a_long_bucket, REDBUCKET_REQUEST, 1},
    {"two limits", "32k", two_buckets, REDBUCKET_REQUEST, 2},
    {"two limits of two shards", "540k", two_buckets_of_two_shards, REDBUCKET_REQUEST, 2,
     "two limits of two shards: heir"},
    {"three limits, two of them new", "32k", one_bucket_and_two_long_keys, REDBUCKET_REQUEST, 3,
     "three limits, two of them new: heir"},
    {"insert into a full table", "32k", a_full_table, REDBUCKET_REQUEST, 1},
    {"insert a long key into a full table", "32k", a_table_full_of_long_keys, REDBUCKET_REQUEST, 1,
     "insert a long key into a full table: heir"},
    {"no room at all", "32k", a_table_full_of_closed_buckets, REDBUCKET_REQUEST, 1},
    {"rejected", "32k", a_closed_bucket, REDBUCKET_REQUEST, 1},
    {"refund", "32k", two_buckets, REDBUCKET_REFUND, 2},
    {"charge", "32k", two_buckets, REDBUCKET_CHARGE, 2},
    {"reset", "32k", two_buckets, REDBUCKET_RESET, 2},
    {"reset long keys", "32k", two_long_buckets, REDBUCKET_RESET, 2, "reset long keys: heir"},
};
#define SCENES (sizeof scenes / sizeof scenes[0])

static void set_scene(const struct scene *scene, struct world *world)
{
    char query[64];

    (void)snprintf(query, sizeof query, "?size=%s&timeout=300ms", scene->size);
    world_open(world, query);
    scene->prepare(world);
    world_settle(world, scene->operation, scene->keys_len);
}

static void test_killed(void **state)
{
    const struct scene *scene = *state;
    struct test_steps steps;
    struct world world;

    if (!test_can_step())
        skip();
    set_scene(scene, &world);

    struct test_work work = {world_request, &world, world.bytes, world.size};

    test_step_through(&work, &steps);
    world_check(&world);
    /* Taking the lock and letting go of it alone are more. */
    assert_true(steps.len > 6);
    for (size_t i = 0; i < steps.len; i++) {
        test_kill_at(&work, &steps.step[i]);
        world_check(&world);
    }
    world_close(&world);
}

static void look(void *data)
{
    struct world *world = data;
    struct redbucket_state seen;

    for (size_t i = 0; i < world->request.keys_len; i++)
        if (redbucket_read(world->limiter, &world->keys[i], &seen) != REDBUCKET_OK)
            _exit(7);
}

/* Kills whoever looks next after a kill, which is the one that clears up, after each of its steps,
 * and has a third one look. */
static void kill_heir(struct world *world)
{
    struct test_work work = {look, world, world->bytes, world->size};
    struct test_steps steps;

    world_keep(world);
    test_step_through(&work, &steps);
    world_check(world);
    for (size_t i = 0; i < steps.len; i++) {
        test_kill_at(&work, &steps.step[i]);
        world_check(world);
    }
}

static bool torn(struct world *world)
{
    bool torn = false;

    for (unsigned shard = 0; shard < rbk_table_shards(test_table_of(world->store)); shard++)
        torn = torn || rbk_table_torn(test_table_of(world->store), shard);
    return torn;
}

/* The moments at which a kill leaves a change half done; the world is as before afterwards. */
static size_t find_torn(struct world *world, const struct test_work *work,
                        const struct test_steps *steps, size_t found[TEST_STEPS_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < steps->len; i++) {
        test_kill_at(work, &steps->step[i]);
        if (torn(world))
            found[len++] = i;
        world_return(world);
    }
    return len;
}

/* Some of the moments are enough: each has all of the heir's steps. */
static void kill_heirs(struct world *world)
{
    struct test_work work = {world_request, world, world->bytes, world->size};
    unsigned char *before = world->image;
    struct test_steps steps;
    size_t found[TEST_STEPS_MAX];
    size_t len;

    test_step_through(&work, &steps);
    world_return(world);
    len = find_torn(world, &work, &steps, found);
    assert_true(len > 0);
    world->image = malloc(world->size);
    assert_non_null(world->image);
    for (size_t i = 0; i < HEIRS; i++) {
        memcpy(world->bytes, before, world->size);
        test_kill_at(&work, &steps.step[found[i * (len - 1) / (HEIRS - 1)]]);
        kill_heir(world);
    }
    free(world->image);
    world->image = before;
}

static void test_heir_killed(void **state)
{
    const struct scene *scene = *state;
    struct world world;

    if (!test_can_step())
        skip();
    set_scene(scene, &world);
    kill_heirs(&world);
    world_close(&world);
}

int main(void)
{
    struct CMUnitTest tests[2 * SCENES];
    size_t len = 0;

    for (size_t i = 0; i < SCENES; i++) {
        const struct scene *scene = &scenes[i];

        tests[len++] =
            (struct CMUnitTest){scene->name, test_killed, NULL, NULL, (void *)(uintptr_t)scene};
        if (scene->heir != NULL)
            tests[len++] = (struct CMUnitTest){scene->heir, test_heir_killed, NULL, NULL,
                                               (void *)(uintptr_t)scene};
    }
    return _cmocka_run_group_tests("killed at any instruction", tests, len, NULL, test_clean_up);
}
