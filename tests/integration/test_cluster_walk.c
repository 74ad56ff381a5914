/* SPDX-License-Identifier: MIT */
/*
 * Walks through a cluster: the buckets of every master, and what is seen when one of them is gone.
 */
#include "clustered.h"
#include "redbucket/walk.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS 300

struct met {
    size_t len;
    unsigned char times[KEYS];
};

static void meet(void *data, const struct redbucket_bucket *bucket)
{
    struct met *met = data;
    char text[16] = "";

    met->len++;
    assert_int_equal(bucket->status, REDBUCKET_OK);
    assert_true(bucket->now > 1e9 && bucket->state.value > 0.0);
    assert_int_equal(bucket->key_len, 6);
    memcpy(text, bucket->key, 6);
    met->times[strtoul(text + 1, NULL, 10) % KEYS]++;
}

/* Goes on after errors, of which it returns the number. */
static unsigned walk(struct redbucket_store *store, struct met *met)
{
    struct redbucket_walk *from;
    unsigned errors = 0;
    bool done = false;

    *met = (struct met){.len = 0};
    assert_int_equal(redbucket_walk_create(store, NULL, &from), REDBUCKET_OK);
    while (!done)
        errors += redbucket_walk_step(from, meet, met, &done) != REDBUCKET_OK;
    redbucket_walk_destroy(from);
    return errors;
}

static void fill(struct clustered *clustered)
{
    char key[16];

    clustered_limit(clustered, "a", (struct redbucket_limit){.rate = 1e-3, .burst = 5});
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "k%05d", i);
        assert_int_equal(clustered_request(clustered, "a", key, NULL), REDBUCKET_OK);
    }
}

static void the_buckets_of_every_master_are_met(void **state)
{
    struct clustered *clustered = *state;
    struct met met;

    fill(clustered);
    assert_int_equal(walk(clustered->store, &met), 0);
    for (int i = 0; i < KEYS; i++)
        assert_true(met.times[i] >= 1);
}

/* The others are gone through all the same, and nobody waits for it longer than once. */
static void a_master_that_is_silent_is_left_out(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_store *store;
    struct met met;
    size_t missed = 0, there = 0;
    char key[16];

    fill(clustered);
    store = clustered_open(clustered, "timeout=300ms");
    assert_true(test_cluster_freeze(clustered->cluster, 1));
    const unsigned errors = walk(store, &met);

    assert_true(test_cluster_thaw(clustered->cluster, 1));
    assert_int_equal(errors, 1);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "k%05d", i);
        missed += met.times[i] == 0;
        there += clustered_node(clustered, "a", key, NULL) == 1;
    }
    assert_int_equal(missed, there);
    assert_true(missed > 0);
    redbucket_store_close(store);
    assert_true(test_cluster_settle(clustered->cluster));
}

int main(void)
{
    const struct clustered_case cases[] = {
        CLUSTERED(CLUSTERED_ALL, the_buckets_of_every_master_are_met),
        CLUSTERED(CLUSTERED_STRUCT | CLUSTERED_UNTAGGED | CLUSTERED_REDIS,
                  a_master_that_is_silent_is_left_out),
    };

    return clustered_run("cluster_walk", cases, sizeof cases / sizeof cases[0]);
}
