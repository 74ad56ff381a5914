/* SPDX-License-Identifier: MIT */
#include "world.h"

#include "audit.h"
#include "processes.h"
#include "stores.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char numbers[20000][16];
static char long_text[4000];

static void add_limit(struct world *world, const char *name, struct redbucket_limit limit)
{
    assert_int_equal(redbucket_limiter_add(world->limiter, name, &limit, NULL), REDBUCKET_OK);
}

static struct redbucket_statistics statistics(struct world *world)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(world->store, &statistics), REDBUCKET_OK);
    return statistics;
}

static void map_file(struct world *world)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "/dev/shm/%.*s", (int)strcspn(world->url + 4, "?"),
                   world->url + 4);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    world->size = (size_t)statistics(world).bytes;
    world->bytes = mmap(NULL, world->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(world->bytes, MAP_FAILED);
    (void)close(fd);
    world->image = malloc(world->size);
    assert_non_null(world->image);
}

void world_open(struct world *world, const char *query)
{
    unsigned seed = 1;

    *world = (struct world){.known_len = 0};
    for (size_t i = 0; i < sizeof long_text; i++)
        long_text[i] = (char)('a' + test_random(&seed, 26));
    test_store_url(&test_stores[1], query, world->url, sizeof world->url);
    world->store = test_store_open(world->url);
    world->limiter = test_limiter(world->store, &(struct redbucket_limit){.rate = 1, .burst = 10});
    add_limit(world, "b", (struct redbucket_limit){.rate = 1, .burst = 10});
    add_limit(world, "once", (struct redbucket_limit){.rate = 1e-6});
    map_file(world);
}

void world_close(struct world *world)
{
    redbucket_limiter_destroy(world->limiter);
    test_store_drop(world->url, world->store);
    (void)munmap(world->bytes, world->size);
    free(world->image);
}

static size_t know(struct world *world, struct redbucket_key key)
{
    assert_true(world->known_len < WORLD_KNOWN);
    world->known[world->known_len].key = key;
    return world->known_len++;
}

size_t world_know(struct world *world, const char *limit, unsigned number)
{
    assert_true(number < sizeof numbers / sizeof numbers[0]);
    (void)snprintf(numbers[number], sizeof numbers[0], "key-%u", number);
    return know(world, (struct redbucket_key){.limit = limit, .key = numbers[number]});
}

size_t world_know_long(struct world *world, const char *limit, size_t from, size_t len)
{
    assert_true(from + len <= sizeof long_text);
    return know(world, (struct redbucket_key){limit, long_text + from, len, 0});
}

void world_take(struct world *world, size_t known, double cost, double now)
{
    struct redbucket_request request = {.operation = REDBUCKET_CHARGE,
                                        .keys = &world->known[known].key,
                                        .keys_len = 1,
                                        .cost = cost};

    assert_int_equal(redbucket_decide_at(world->limiter, &request, 1, now), REDBUCKET_OK);
}

static struct rbk_place place_of(struct world *world, const struct redbucket_key *key)
{
    size_t key_len = key->key_len != 0 ? key->key_len : strlen(key->key);
    struct rbk_place place;

    rbk_table_place(test_table_of(world->store),
                    &(struct rbk_key){(const unsigned char *)key->limit, strlen(key->limit),
                                      (const unsigned char *)key->key, key_len},
                    &place);
    return place;
}

unsigned world_shard(struct world *world, size_t known)
{
    return place_of(world, &world->known[known].key).shard;
}

unsigned world_twin(struct world *world, const char *limit, unsigned number)
{
    struct rbk_place first = place_of(world, &world->known[0].key);

    for (;; number++) {
        struct rbk_place place;

        assert_true(number < sizeof numbers / sizeof numbers[0]);
        (void)snprintf(numbers[number], sizeof numbers[0], "key-%u", number);
        place = place_of(world, &(struct redbucket_key){.limit = limit, .key = numbers[number]});
        if ((place.page[0] == first.page[0] && place.page[1] == first.page[1]) ||
            (place.page[0] == first.page[1] && place.page[1] == first.page[0]))
            return number;
    }
}

void world_keep(struct world *world)
{
    memcpy(world->image, world->bytes, world->size);
}

void world_return(struct world *world)
{
    memcpy(world->bytes, world->image, world->size);
}

static struct redbucket_state read_known(struct world *world, size_t known)
{
    struct redbucket_state state = {.exists = false};

    assert_int_equal(redbucket_read(world->limiter, &world->known[known].key, &state),
                     REDBUCKET_OK);
    return state;
}

void world_settle(struct world *world, enum redbucket_operation operation, size_t keys_len)
{
    for (size_t i = 0; i < keys_len; i++)
        world->keys[i] = world->known[i].key;
    world->request = (struct redbucket_request){
        .operation = operation, .keys = world->keys, .keys_len = keys_len, .cost = 1.0};
    world->accepted = statistics(world).accepted;
    world->evicted = statistics(world).evicted;
    world_keep(world);
    for (size_t i = 0; i < world->known_len; i++)
        world->known[i].before = read_known(world, i);
    world->status = redbucket_decide_at(world->limiter, &world->request, 1, WORLD_NOW);
    for (size_t i = 0; i < world->known_len; i++)
        world->known[i].after = read_known(world, i);
    world_return(world);
}

void world_request(void *data)
{
    struct world *world = data;

    if (redbucket_decide_at(world->limiter, &world->request, 1, WORLD_NOW) != world->status)
        _exit(7);
}

static bool same(const struct redbucket_state *a, const struct redbucket_state *b)
{
    return a->exists == b->exists &&
           (!a->exists || (test_bits(a->timestamp) == test_bits(b->timestamp) &&
                           test_bits(a->value) == test_bits(b->value)));
}

/* Each bucket has one of its two states, and none was counted that didn't go; the first look also
 * takes the dead one's lock. */
static void check_states(struct world *world, uint64_t *buckets)
{
    uint64_t gone = 0;

    *buckets = 0;
    for (size_t i = 0; i < world->known_len; i++) {
        const struct known *known = &world->known[i];
        struct redbucket_state state = read_known(world, i);

        *buckets += state.exists;
        gone += known->before.exists && !state.exists;
        if (!same(&state, &known->before) && !same(&state, &known->after))
            fail_msg("key %zu is neither as before nor as after: exists %d, value %.17g at %.17g",
                     i, state.exists, state.value, state.timestamp);
    }
    assert_in_range(statistics(world).evicted - world->evicted, 0, gone);
}

/* The same request once more, on what was left, decides by the states that were found. */
static void check_request(struct world *world)
{
    struct redbucket_state before[4], after;

    for (size_t i = 0; i < world->request.keys_len; i++)
        before[i] = read_known(world, i);

    enum redbucket_status status =
        redbucket_decide_at(world->limiter, &world->request, 1, WORLD_NOW);

    assert_int_equal(status, world->status);
    for (size_t i = 0; i < world->request.keys_len; i++) {
        double level = before[i].exists ? before[i].value - (WORLD_NOW - before[i].timestamp) : 0.0;

        after = read_known(world, i);
        if (status != REDBUCKET_OK || !world->request.response.accepted)
            assert_true(same(&before[i], &after));
        else if (world->request.operation == REDBUCKET_REQUEST)
            assert_same(after.value, level + 1.0);
    }
}

/* As many buckets as are known, and a slot for everything else. */
static void check_whole(struct world *world, uint64_t buckets)
{
    struct redbucket_statistics now = statistics(world);
    struct test_audit audit;
    const char *fault = test_audit(test_table_of(world->store), &audit);

    if (fault != NULL)
        fail_msg("%s", fault);
    assert_int_equal(audit.buckets, buckets);
    assert_int_equal(now.buckets, buckets);
    assert_int_equal(audit.free + audit.links + audit.buckets, now.capacity);
    assert_in_range(now.accepted, world->accepted, world->accepted + 2);
    assert_in_range(now.recovered, 0, 2);
    if (buckets == 0)
        assert_int_equal(audit.free, now.capacity);
}

static enum redbucket_status decide_known(struct world *world, enum redbucket_operation operation,
                                          const struct redbucket_key *key)
{
    struct redbucket_request request = {
        .operation = operation, .keys = key, .keys_len = 1, .cost = 1.0};

    return redbucket_decide_at(world->limiter, &request, 1, WORLD_NOW);
}

/* With all that is known forgotten, no slot is in use, and two pages take a key for each of their
 * slots, and no more. */
static void check_capacity(struct world *world)
{
    unsigned number = 0;

    for (size_t i = 0; i < world->known_len; i++)
        assert_int_equal(decide_known(world, REDBUCKET_RESET, &world->known[i].key), REDBUCKET_OK);
    check_whole(world, 0);
    for (unsigned i = 0; i <= 138; i++) {
        number = world_twin(world, "once", number + 1);

        struct redbucket_key key = {.limit = "once", .key = numbers[number]};

        assert_int_equal(decide_known(world, REDBUCKET_REQUEST, &key),
                         i < 138 ? REDBUCKET_OK : REDBUCKET_ERROR_FULL);
    }
}

void world_check(struct world *world)
{
    uint64_t buckets;

    check_states(world, &buckets);
    check_whole(world, buckets);
    check_request(world);
    if (world->size < 65536)
        check_capacity(world);
    world_return(world);
}
