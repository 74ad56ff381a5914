/* SPDX-License-Identifier: MIT */
/*
 * From requests to calls and back. Parts are copied side by side in the order of their slots, for a
 * call is a row of requests.
 */
#include "redis/cluster.h"

#include "wire/slot.h"

#include <stdlib.h>
#include <string.h>

/* Parts of one volley; what is due beyond waits for the next. */
#define PARTS_MAX 256u

#define TAKING_SHARE 0.75

/* Whose turn it is: sorted by slot, and of one slot by when they came. */
struct due {
    struct rbk_part *part;
    size_t number;
};

struct rbk_cluster_work {
    const struct rbk_redis_options *options;
    unsigned char *name; /* of the bucket whose slot is looked up */
    size_t name_size;
    struct rbk_split splits[RBK_CLUSTER_MAX];
    size_t splits_len;
    uint64_t stepped[RBK_SLOTS / 64]; /* slots of requests that take in steps, as bits */
    bool steps;                       /* any */
    struct due due[PARTS_MAX];
    size_t due_len;
    struct rbk_request requests[PARTS_MAX];
    struct rbk_shot shots[RBK_VOLLEY_MAX];
    size_t shots_len;
    struct rbk_call *calls[RBK_VOLLEY_MAX]; /* made when they are first needed */
};

struct rbk_cluster_work *rbk_cluster_work_create(const struct rbk_redis_options *options)
{
    struct rbk_cluster_work *work = calloc(1, sizeof *work);

    if (work != NULL)
        work->options = options;
    return work;
}

void rbk_cluster_work_destroy(struct rbk_cluster_work *work)
{
    if (work == NULL)
        return;
    for (size_t i = 0; i < RBK_VOLLEY_MAX && work->calls[i] != NULL; i++) {
        rbk_call_fini(work->calls[i]);
        free(work->calls[i]);
    }
    free(work->name);
    free(work);
}

/* ---- Cutting ------------------------------------------------------------------------------- */

static bool find_slot(struct rbk_cluster_work *work, const struct rbk_key *key, unsigned *slot)
{
    const struct rbk_key_format *format = &work->options->key_format;
    size_t len = rbk_key_format_len(format, key);

    if (len > work->name_size) {
        unsigned char *name = realloc(work->name, len * 2);

        if (name == NULL)
            return false;
        work->name = name;
        work->name_size = len * 2;
    }
    rbk_key_format_write(format, key, work->name);
    *slot = rbk_slot_of(work->name, len);
    return true;
}

/* A later request must not see what an earlier one has taken in one step and may give back in the
 * next, nor come before its last step: it waits until that one has ended. */
static bool must_wait(const struct rbk_cluster_work *work, const unsigned *slots, size_t len)
{
    for (size_t i = 0; i < len && work->steps; i++) {
        if ((work->stepped[slots[i] / 64] >> slots[i] % 64 & 1) != 0)
            return true;
    }
    return false;
}

static void note_steps(struct rbk_cluster_work *work, const unsigned *slots, size_t len)
{
    if (!work->steps)
        memset(work->stepped, 0, sizeof work->stepped);
    work->steps = true;
    for (size_t i = 0; i < len; i++)
        work->stepped[slots[i] / 64] |= (uint64_t)1 << slots[i] % 64;
}

enum cut {
    CUT,
    WAITS, /* for those that are cut already */
    FAILED /* without memory */
};

static enum cut cut(struct rbk_cluster_work *work, struct rbk_request *request)
{
    struct rbk_split *split = &work->splits[work->splits_len];
    unsigned slots[REDBUCKET_KEYS_MAX] = {0};

    for (size_t i = 0; i < request->len; i++) {
        if (!find_slot(work, &request->keys[i], &slots[i]))
            return FAILED;
    }
    if (must_wait(work, slots, request->len))
        return WAITS;
    if (!rbk_split_begin(split, request, slots))
        return FAILED;
    if (split->parts_len > 1)
        note_steps(work, slots, request->len);
    work->splits_len++;
    return CUT;
}

/* As many as may be decided together; returns how many. */
static size_t cut_all(struct rbk_cluster_work *work, struct rbk_request *requests, size_t len)
{
    work->splits_len = 0;
    work->steps = false;
    for (size_t i = 0; i < len; i++) {
        if (requests[i].len == 0)
            continue;
        switch (cut(work, &requests[i])) {
        case CUT:
            break;
        case WAITS:
            return i;
        case FAILED:
            rbk_requests_fail(&requests[i], 1, REDBUCKET_ERROR_MEMORY);
            break;
        }
    }
    return len;
}

/* ---- A volley ------------------------------------------------------------------------------ */

static int by_slot(const void *a, const void *b)
{
    const struct due *x = a;
    const struct due *y = b;

    if (x->part->slot != y->part->slot)
        return x->part->slot < y->part->slot ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* What is due now, side by side. */
static void collect(struct rbk_cluster_work *work)
{
    work->due_len = 0;
    for (size_t i = 0; i < work->splits_len; i++) {
        struct rbk_split *split = &work->splits[i];

        for (size_t j = 0; j < split->parts_len && work->due_len < PARTS_MAX; j++) {
            if (!split->parts[j].due)
                continue;
            work->due[work->due_len] = (struct due){&split->parts[j], work->due_len};
            work->due_len++;
        }
    }
    if (work->due_len > 1)
        qsort(work->due, work->due_len, sizeof work->due[0], by_slot);
    for (size_t i = 0; i < work->due_len; i++)
        work->requests[i] = work->due[i].part->request;
}

/* How many parts, from `first` on, go in one call. */
static size_t fit(const struct rbk_cluster_work *work, size_t first)
{
    const struct rbk_part *part = work->due[first].part;
    size_t same = 1;
    size_t claims;

    while (first + same < work->due_len && !part->alone &&
           work->due[first + same].part->slot == part->slot && !work->due[first + same].part->alone)
        same++;
    return rbk_errand_fit(&work->requests[first], same, &claims);
}

static struct rbk_call *call_at(struct rbk_cluster_work *work, size_t i)
{
    if (work->calls[i] == NULL) {
        work->calls[i] = malloc(sizeof *work->calls[i]);
        if (work->calls[i] != NULL)
            rbk_call_init(work->calls[i], &work->options->key_format, work->options->codec);
    }
    return work->calls[i];
}

/* Packs as many calls as a volley has, and cuts off the parts that wait for the next. Without
 * memory parts have that status and no call. */
static void pack(struct rbk_cluster_work *work)
{
    size_t first = 0;

    work->shots_len = 0;
    while (first < work->due_len && work->shots_len < RBK_VOLLEY_MAX) {
        size_t len = fit(work, first);
        struct rbk_shot *shot = &work->shots[work->shots_len];

        *shot = (struct rbk_shot){.slot = work->due[first].part->slot};
        shot->errand = (struct rbk_errand){
            .call = call_at(work, work->shots_len), .requests = &work->requests[first], .len = len};
        if (shot->errand.call == NULL)
            rbk_errand_fail(&shot->errand, REDBUCKET_ERROR_MEMORY);
        else if (rbk_errand_pack(&shot->errand))
            work->shots_len++;
        first += len;
    }
    work->due_len = first;
}

static void hand_out(struct rbk_cluster_work *work)
{
    for (size_t i = 0; i < work->due_len; i++) {
        work->due[i].part->request = work->requests[i];
        work->due[i].part->due = false;
    }
    for (size_t i = 0; i < work->shots_len; i++) {
        const struct rbk_shot *shot = &work->shots[i];
        size_t first = (size_t)(shot->errand.requests - work->requests);

        for (size_t j = 0; j < shot->errand.len && shot->torn; j++)
            work->due[first + j].part->torn = true;
    }
}

static bool advance(struct rbk_cluster_work *work)
{
    bool more = false;

    for (size_t i = 0; i < work->splits_len; i++)
        more = rbk_split_advance(&work->splits[i]) || more;
    return more;
}

static bool any_takes(const struct rbk_cluster_work *work)
{
    for (size_t i = 0; i < work->splits_len; i++) {
        if (rbk_split_takes(&work->splits[i]))
            return true;
    }
    return false;
}

size_t rbk_cluster_decide(struct rbk_nodes *nodes, struct rbk_cluster_work *work,
                          struct rbk_request *requests, size_t len,
                          const struct rbk_deadline *deadline)
{
    struct rbk_deadline taking;
    bool more;

    /* Whoever keeps to one slot may turn out to be torn, and to take in steps after all. */
    rbk_deadline_start(&taking, rbk_deadline_left(deadline) * TAKING_SHARE);
    len = cut_all(work, requests, len);
    more = work->splits_len > 0;
    while (more) {
        collect(work);
        pack(work);
        rbk_volley(nodes, work->shots, work->shots_len, any_takes(work) ? &taking : deadline);
        hand_out(work);
        more = advance(work);
    }
    for (size_t i = 0; i < work->splits_len; i++)
        rbk_split_end(&work->splits[i]);
    return len;
}
