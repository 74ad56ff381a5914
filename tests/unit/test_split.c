/* SPDX-License-Identifier: MIT */
/*
 * Requests over several slots, part after part, against servers that are nothing but the model:
 * each slot has a clock of its own, some parts fail before or after they were counted, and some are
 * torn.
 *
 * What has to hold whatever happens: nothing is admitted that a limit doesn't allow; a request
 * that wasn't accepted leaves at least the level there would have been without it; and the answer
 * is the one that a single server would have given.
 */
#include "redis/split.h"
#include "test.h"

#include <math.h>

#define BUCKETS 6
#define SLOTS   4
#define NOW     1000.0

enum fate { FINE, LOST_BEFORE, LOST_AFTER, TORN, UNREADABLE, FATES };

struct world {
    uint64_t random;
    struct rbk_limit limits[BUCKETS];
    struct rbk_state states[BUCKETS];
    struct rbk_state without[BUCKETS]; /* as they would be without the last request */
    unsigned slots[BUCKETS];
    double now[SLOTS];
    unsigned torn;   /* slots, as bits, of which no two keys can be asked for together */
    unsigned rounds; /* of the last request */
    bool faults;
};

static unsigned draw(struct world *world, unsigned below)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(world->random >> 33) % below;
}

/* Which bucket a key means: its only byte. */
static size_t bucket_of(const struct rbk_key *key)
{
    return key->key[0];
}

static void make_world(struct world *world, unsigned seed)
{
    memset(world, 0, sizeof *world);
    world->random = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < BUCKETS; i++) {
        world->limits[i] = (struct rbk_limit){
            .rate = 0.5 + draw(world, 4), .burst = draw(world, 5), .delay = draw(world, 3)};
        world->slots[i] = draw(world, SLOTS);
    }
    for (int i = 0; i < SLOTS; i++)
        world->now[i] = NOW + draw(world, 100) * 0.01;
}

/* ---- A server for each slot ---------------------------------------------------------------- */

static void answer(struct world *world, struct rbk_part *part)
{
    struct rbk_request *request = &part->request;

    request->ask.now = world->now[part->slot];
    for (size_t i = 0; i < request->len; i++) {
        assert_int_equal(world->slots[bucket_of(&request->keys[i])], part->slot);
        request->claims[i].state = world->states[bucket_of(&request->keys[i])];
    }
    rbk_decide(&request->ask, request->claims, request->len, &request->answer);
    for (size_t i = 0; i < request->len; i++) {
        if (request->claims[i].change != RBK_KEEP)
            world->states[bucket_of(&request->keys[i])] = request->claims[i].state;
    }
    request->status = REDBUCKET_OK;
    request->failed = RBK_NONE;
}

static void lose(struct rbk_part *part, enum redbucket_status status, size_t failed)
{
    part->request.status = status;
    part->request.failed = failed;
}

static void charge(struct world *world, struct rbk_state *state, size_t bucket, double cost)
{
    *state = rbk_charge(&world->limits[bucket], state, cost, world->now[world->slots[bucket]]);
}

/* Before something is given back, time goes by, and somebody else takes what has become free. */
static void interfere(struct world *world, const struct rbk_part *part)
{
    world->now[part->slot] += draw(world, 200) * 0.01;
    for (size_t i = 0; i < part->request.len; i++) {
        size_t bucket = bucket_of(&part->request.keys[i]);
        const struct rbk_limit *limit = &world->limits[bucket];
        double room =
            limit->burst + 1 - rbk_level(limit, &world->states[bucket], world->now[part->slot]);

        if (room < 1e-3)
            continue;
        charge(world, &world->states[bucket], bucket, room);
        charge(world, &world->without[bucket], bucket, room);
    }
}

static void serve(struct world *world, struct rbk_part *part)
{
    enum fate fate = world->faults ? (enum fate)draw(world, 2 * FATES) : FINE;

    part->due = false;
    if ((world->torn & 1u << part->slot) != 0 && part->request.len > 1)
        fate = TORN;
    /* Giving back works here: what is lost then stays taken, which is never too little. */
    if (part->request.ask.operation == RBK_GIVE_BACK && fate != TORN)
        fate = FINE;
    if (part->request.ask.operation >= RBK_REFUND && world->faults && fate == FINE)
        interfere(world, part);
    switch (fate) {
    case LOST_BEFORE:
        lose(part, REDBUCKET_ERROR_UNAVAILABLE, RBK_NONE);
        break;
    case LOST_AFTER:
        answer(world, part);
        lose(part, REDBUCKET_ERROR_TIMEOUT, RBK_NONE);
        break;
    case TORN:
        part->torn = part->request.len > 1;
        lose(part, REDBUCKET_ERROR_UNAVAILABLE, RBK_NONE);
        break;
    case UNREADABLE:
        lose(part, REDBUCKET_ERROR_STATE, part->request.len - 1);
        break;
    default:
        answer(world, part);
    }
}

static void run(struct world *world, struct rbk_request *request)
{
    unsigned slots[BUCKETS];
    struct rbk_split split;
    bool more = true;

    for (size_t i = 0; i < request->len; i++)
        slots[i] = world->slots[bucket_of(&request->keys[i])];
    assert_true(rbk_split_begin(&split, request, slots));
    for (world->rounds = 0; more; world->rounds++) {
        unsigned due = 0;

        assert_true(world->rounds < 50);
        for (size_t i = 0; i < split.parts_len; i++) {
            if (split.parts[i].due) {
                serve(world, &split.parts[i]);
                due++;
            }
        }
        assert_true(due > 0);
        more = rbk_split_advance(&split);
    }
    rbk_split_end(&split);
    /* Caches learn from every state of what is answered, also of a limit that couldn't be looked
     * at. */
    for (size_t i = 0; request->status == REDBUCKET_OK && i < request->len; i++)
        assert_true(rbk_state_readable(&request->claims[i].state));
}

/* ---- Requests ------------------------------------------------------------------------------ */

struct ask {
    struct rbk_request request;
    struct rbk_key keys[BUCKETS];
    struct rbk_claim claims[BUCKETS];
    unsigned char bytes[BUCKETS];
};

/* For some of the buckets, in any order. */
static void make_ask(struct world *world, struct ask *ask, enum rbk_operation operation)
{
    size_t len = 1 + draw(world, BUCKETS);
    unsigned first = draw(world, BUCKETS);

    memset(ask, 0, sizeof *ask);
    for (size_t i = 0; i < len; i++) {
        ask->bytes[i] = (unsigned char)((first + 5 * i) % BUCKETS);
        ask->keys[i] = (struct rbk_key){.key = &ask->bytes[i], .key_len = 1};
        ask->claims[i] = (struct rbk_claim){.limit = world->limits[ask->bytes[i]],
                                            .state = {.exists = true, .value = NAN}};
    }
    ask->request = (struct rbk_request){.ask = {.operation = operation, .cost = 1 + draw(world, 2)},
                                        .keys = ask->keys,
                                        .claims = ask->claims,
                                        .len = len};
}

static double level(const struct world *world, size_t bucket)
{
    return rbk_level(&world->limits[bucket], &world->states[bucket],
                     world->now[world->slots[bucket]]);
}

/* What one server with the clock of every slot would say. */
static bool would_accept(const struct world *world, const struct ask *ask)
{
    struct rbk_judgement judgement;
    bool accepted = true;

    for (size_t i = 0; i < ask->request.len; i++) {
        size_t bucket = ask->bytes[i];

        rbk_judge(&world->limits[bucket], &world->states[bucket], ask->request.ask.cost,
                  world->now[world->slots[bucket]], &judgement);
        accepted = accepted && judgement.accepted;
    }
    return accepted;
}

static void check_levels(const struct world *world, const struct world *before,
                         const struct ask *ask, double exactly)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        bool asked = memchr(ask->bytes, (int)i, ask->request.len) != NULL;
        double expected = level(before, i) + (asked ? exactly : 0.0);

        assert_true(fabs(level(world, i) - expected) < 1e-9);
    }
}

static void all_take_or_none(void **unused)
{
    struct world world;
    struct ask ask;

    (void)unused;
    for (unsigned seed = 0; seed < 400; seed++) {
        make_world(&world, seed);
        world.torn = seed % 2 == 0 ? 0 : draw(&world, 1u << SLOTS);
        for (int i = 0; i < 25; i++) {
            struct world before = world;

            make_ask(&world, &ask, RBK_REQUEST);
            bool expected = would_accept(&before, &ask);

            run(&world, &ask.request);
            assert_int_equal(ask.request.status, REDBUCKET_OK);
            assert_int_equal(ask.request.answer.accepted, expected);
            check_levels(&world, &before, &ask, expected ? ask.request.ask.cost : 0.0);
            if (i % 5 == 4) {
                for (int slot = 0; slot < SLOTS; slot++)
                    world.now[slot] += draw(&world, 100) * 0.01;
            }
        }
    }
}

/* Each limit for itself, at the level that the decision leaves, as one server tells it. */
static void answers_are_those_of_one_server(void **unused)
{
    static const enum rbk_operation operations[] = {RBK_REQUEST, RBK_PEEK, RBK_REFUND, RBK_CHARGE,
                                                    RBK_RESET};
    struct world world;
    struct ask ask;

    (void)unused;
    for (unsigned seed = 0; seed < 400; seed++) {
        make_world(&world, seed);
        for (int i = 1; i < SLOTS; i++)
            world.now[i] = world.now[0];
        for (int i = 0; i < 25; i++) {
            struct rbk_claim claims[BUCKETS];
            struct rbk_answer one;

            make_ask(&world, &ask, operations[draw(&world, 5)]);
            for (size_t j = 0; j < ask.request.len; j++) {
                claims[j] = ask.claims[j];
                claims[j].state = world.states[ask.bytes[j]];
            }
            run(&world, &ask.request);
            assert_same(ask.request.ask.now, world.now[0]);
            rbk_decide(&ask.request.ask, claims, ask.request.len, &one);
            assert_int_equal(ask.request.answer.accepted, one.accepted);
            assert_int_equal(ask.request.answer.decided, one.decided);
            assert_int_equal(ask.request.answer.remaining, one.remaining);
            assert_same(ask.request.answer.delay, one.delay);
            assert_same(ask.request.answer.retry_after, one.retry_after);
            assert_same(ask.request.answer.reset_after, one.reset_after);
            for (size_t j = 0; j < ask.request.len; j++) {
                assert_int_equal(ask.claims[j].verdict.accepted, claims[j].verdict.accepted);
                assert_int_equal(ask.claims[j].verdict.remaining, claims[j].verdict.remaining);
                assert_same(ask.claims[j].verdict.delay, claims[j].verdict.delay);
                assert_same(ask.claims[j].verdict.retry_after, claims[j].verdict.retry_after);
            }
        }
    }
}

/* Whatever fails, in whatever state: no limit is passed, and nothing is given that wasn't taken. */
static void faults_never_give_more(void **unused)
{
    struct world world;
    struct ask ask;

    (void)unused;
    for (unsigned seed = 0; seed < 1000; seed++) {
        make_world(&world, seed);
        world.faults = true;
        world.torn = draw(&world, 1u << SLOTS);
        for (int i = 0; i < 40; i++) {
            struct world before = world;

            make_ask(&world, &ask, RBK_REQUEST);
            memcpy(world.without, world.states, sizeof world.without);
            run(&world, &ask.request);
            memcpy(before.states, world.without, sizeof before.states);
            memcpy(before.now, world.now, sizeof before.now);
            for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
                const struct rbk_limit *limit = &world.limits[bucket];
                bool asked = memchr(ask.bytes, (int)bucket, ask.request.len) != NULL;
                double most = limit->burst + 1 + limit->delay + 1e-5 * limit->rate;
                double now = level(&world, bucket);

                assert_true(now <= most || now <= level(&before, bucket));
                assert_true(now >= level(&before, bucket) - 1e-9);
                if (ask.request.status == REDBUCKET_OK && ask.request.answer.accepted && asked)
                    assert_true(now >= level(&before, bucket) + ask.request.ask.cost - 1e-9);
            }
            if (ask.request.status == REDBUCKET_ERROR_STATE)
                assert_true(ask.request.failed < ask.request.len);
        }
    }
}

/* The key that can't be read is told by its place in the request, not in a part of it. */
static void a_fault_is_told_by_its_place(void **unused)
{
    struct rbk_limit limit = {.rate = 1, .burst = 5};
    unsigned char bytes[] = {0, 1, 2};
    struct rbk_key keys[] = {{.key = bytes, .key_len = 1},
                             {.key = bytes + 1, .key_len = 1},
                             {.key = bytes + 2, .key_len = 1}};
    struct rbk_claim claims[] = {{.limit = limit}, {.limit = limit}, {.limit = limit}};
    struct rbk_request request = {
        .ask = {.operation = RBK_REQUEST, .cost = 1}, .keys = keys, .claims = claims, .len = 3};
    const unsigned slots[] = {30, 10, 20};
    const size_t places[] = {1, 2, 0};

    (void)unused;
    for (size_t at = 0; at < 3; at++) {
        struct rbk_split split;
        size_t given_back = 0;

        assert_true(rbk_split_begin(&split, &request, slots));
        for (size_t i = 0; i <= at; i++) {
            struct rbk_part *part = &split.parts[i];

            assert_true(part->due);
            part->due = false;
            part->request.status = i < at ? REDBUCKET_OK : REDBUCKET_ERROR_STATE;
            part->request.failed = i < at ? RBK_NONE : 0;
            part->request.answer.accepted = true;
            part->request.ask.now = 100.0 + (double)i;
            assert_int_equal(rbk_split_advance(&split), i < at || at > 0);
        }
        for (size_t i = 0; i < split.parts_len; i++) {
            struct rbk_part *part = &split.parts[i];

            if (!part->due)
                continue;
            assert_int_equal(part->request.ask.operation, RBK_GIVE_BACK);
            assert_same(part->request.ask.taken_at, 100.0 + (double)i);
            part->due = false;
            given_back++;
        }
        assert_int_equal(given_back, at);
        assert_false(rbk_split_advance(&split));
        rbk_split_end(&split);
        assert_int_equal(request.status, REDBUCKET_ERROR_STATE);
        assert_int_equal(request.failed, places[at]);
    }
}

/* A caller who gives back later by the answer's time must not get more than it took anywhere. */
static void the_time_is_the_earliest_clock(void **unused)
{
    struct world world;
    struct ask ask;

    (void)unused;
    for (unsigned seed = 0; seed < 200; seed++) {
        double earliest = INFINITY;

        make_world(&world, seed);
        make_ask(&world, &ask, RBK_CHARGE);
        run(&world, &ask.request);
        for (size_t i = 0; i < ask.request.len; i++)
            earliest = fmin(earliest, world.now[world.slots[ask.bytes[i]]]);
        assert_same(ask.request.ask.now, earliest);
    }
}

static void what_nobody_refuses_goes_at_once(void **unused)
{
    struct world world;
    struct ask ask;

    (void)unused;
    for (unsigned seed = 0; seed < 100; seed++) {
        make_world(&world, seed);
        make_ask(&world, &ask, seed % 2 == 0 ? RBK_CHARGE : RBK_PEEK);
        run(&world, &ask.request);
        assert_int_equal(world.rounds, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_take_or_none),
        cmocka_unit_test(answers_are_those_of_one_server),
        cmocka_unit_test(faults_never_give_more),
        cmocka_unit_test(a_fault_is_told_by_its_place),
        cmocka_unit_test(the_time_is_the_earliest_clock),
        cmocka_unit_test(what_nobody_refuses_goes_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
