/* SPDX-License-Identifier: MIT */
/*
 * From the caller's requests to the store's and back. Arguments are checked here, before anything
 * is read; the store sees good ones alone. Works in pieces of a fixed size on the stack, so that
 * deciding allocates nothing; but for long arrays of a store that is far away, for which a round
 * trip costs more than memory.
 */
#include "limiter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_REQUESTS 32
#define PIECE_KEYS     128

_Static_assert(PIECE_KEYS >= REDBUCKET_KEYS_MAX, "the largest request fits a piece");
_Static_assert((int)RBK_GIVE_BACK == (int)REDBUCKET_GIVE_BACK, "operations are numbered alike");

#define LONG_REQUESTS 256
#define LONG_KEYS     512

/* Some requests in the store's form. `origin` is where each came from. */
struct piece {
    struct rbk_request *requests;
    struct redbucket_request **origin;
    struct rbk_key *keys;
    struct rbk_claim *claims;
    size_t requests_size;
    size_t keys_size;
    size_t requests_len;
    size_t keys_len;
    const struct redbucket_request *first; /* of all that the pieces are of */
    const bool *gone;                      /* of each of these, or NULL */
    bool late;                             /* their time is over */
};

/* What pieces are made in. */
struct short_piece {
    struct rbk_request requests[PIECE_REQUESTS];
    struct redbucket_request *origin[PIECE_REQUESTS];
    struct rbk_key keys[PIECE_KEYS];
    struct rbk_claim claims[PIECE_KEYS];
};

struct long_piece {
    struct rbk_request requests[LONG_REQUESTS];
    struct redbucket_request *origin[LONG_REQUESTS];
    struct rbk_key keys[LONG_KEYS];
    struct rbk_claim claims[LONG_KEYS];
};

static struct piece piece_in_short(struct short_piece *memory)
{
    return (struct piece){memory->requests,
                          memory->origin,
                          memory->keys,
                          memory->claims,
                          PIECE_REQUESTS,
                          PIECE_KEYS,
                          0,
                          0,
                          NULL,
                          NULL,
                          false};
}

static struct piece piece_in_long(struct long_piece *memory)
{
    return (struct piece){memory->requests,
                          memory->origin,
                          memory->keys,
                          memory->claims,
                          LONG_REQUESTS,
                          LONG_KEYS,
                          0,
                          0,
                          NULL,
                          NULL,
                          false};
}

static enum redbucket_status check_arguments(const struct redbucket_request *request)
{
    if ((unsigned)request->operation > REDBUCKET_GIVE_BACK ||
        request->keys_len > REDBUCKET_KEYS_MAX)
        return REDBUCKET_ERROR_ARGUMENT;
    if (request->operation == REDBUCKET_GIVE_BACK && !isfinite(request->taken_at))
        return REDBUCKET_ERROR_ARGUMENT;
    if (request->operation != REDBUCKET_RESET &&
        !rbk_within(request->cost, RBK_COST_MIN, RBK_COST_MAX))
        return REDBUCKET_ERROR_ARGUMENT;
    return REDBUCKET_OK;
}

/* Resolves one key into the piece. */
static inline enum redbucket_status add_key(const struct redbucket_limiter *limiter,
                                            const struct redbucket_key *given, struct rbk_key *key,
                                            struct rbk_claim *claim)
{
    if (given->limit == NULL || given->key == NULL)
        return REDBUCKET_ERROR_ARGUMENT;
    size_t limit_len = rbk_given_len(given->limit, given->limit_len);
    const struct rbk_named *named = rbk_limiter_find(limiter, given->limit, limit_len);

    if (named == NULL)
        return REDBUCKET_ERROR_UNKNOWN_LIMIT;
    key->zone = named->zone;
    key->zone_len = named->zone_len;
    key->key = (const unsigned char *)given->key;
    key->key_len = rbk_given_len(given->key, given->key_len);
    claim->limit = named->limit;
    claim->expiry = named->expiry;
    claim->lease = named->terms.most > 0.0 ? &named->terms : NULL;
    claim->zone_index = named->zone_index;
    return key->key_len <= limiter->key_max ? REDBUCKET_OK : REDBUCKET_ERROR_KEY;
}

/* Zones belong to one limit each, so the zone's copy tells the limit. */
static bool named_before(const struct rbk_key *keys, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (keys[i].zone == keys[index].zone)
            return true;
    }
    return false;
}

/* Behind the keys that the piece has. `failed` is written when one is wrong. */
static inline enum redbucket_status add_keys(const struct redbucket_limiter *limiter,
                                             const struct redbucket_key *given, size_t len,
                                             struct piece *piece, size_t *failed)
{
    struct rbk_key *keys = &piece->keys[piece->keys_len];
    struct rbk_claim *claims = &piece->claims[piece->keys_len];

    for (size_t i = 0; i < len; i++) {
        enum redbucket_status status = add_key(limiter, &given[i], &keys[i], &claims[i]);

        if (status == REDBUCKET_OK && named_before(keys, i))
            status = REDBUCKET_ERROR_DUPLICATE;
        if (status != REDBUCKET_OK) {
            *failed = i;
            return status;
        }
    }
    return REDBUCKET_OK;
}

/* A request of so many of the piece's keys, but for what it asks. */
static inline void name_keys(struct piece *piece, size_t len, struct rbk_request *to)
{
    to->keys = &piece->keys[piece->keys_len];
    to->claims = &piece->claims[piece->keys_len];
    to->len = len;
    to->leases = 0;
    for (size_t i = 0; i < len; i++)
        to->leases += to->claims[i].lease != NULL;
    to->degraded = false;
    to->here = false;
    to->aside = false;
    to->gone = NULL;
    piece->keys_len += len;
}

/* Adds a request to the piece, or settles one that is wrong. */
static void add_request(const struct redbucket_limiter *limiter, struct redbucket_request *request,
                        struct piece *piece)
{
    request->failed = REDBUCKET_NONE;
    request->status = check_arguments(request);
    if (request->status == REDBUCKET_OK)
        request->status =
            add_keys(limiter, request->keys, request->keys_len, piece, &request->failed);
    if (request->status != REDBUCKET_OK)
        return;

    struct rbk_request *to = &piece->requests[piece->requests_len];

    to->ask.operation = (enum rbk_operation)request->operation;
    to->ask.cost = request->cost;
    to->ask.taken_at = request->taken_at;
    name_keys(piece, request->keys_len, to);
    if (piece->gone != NULL)
        to->gone = &piece->gone[request - piece->first];
    piece->origin[piece->requests_len++] = request;
}

static void respond(const struct rbk_request *from, struct redbucket_response *to)
{
    const struct rbk_answer *decided = &from->answer;

    *to = (struct redbucket_response){
        .accepted = decided->accepted,
        .degraded = from->degraded,
        .delay = decided->delay,
        .retry_after = decided->retry_after,
        .reset_after = decided->reset_after,
        .delay_us = rbk_microseconds(decided->delay),
        .retry_after_us = rbk_microseconds(decided->retry_after),
        .reset_after_us = rbk_microseconds(decided->reset_after),
        .remaining = decided->remaining,
        .decided = decided->decided,
        .time = from->ask.now,
    };
}

static void answer(const struct rbk_request *from, struct redbucket_request *to)
{
    to->status = from->status;
    if (to->status != REDBUCKET_OK) {
        to->failed = from->failed;
        return;
    }
    respond(from, &to->response);
    for (size_t i = 0; to->verdicts != NULL && i < from->len; i++) {
        const struct rbk_verdict *verdict = &from->claims[i].verdict;

        to->verdicts[i] = (struct redbucket_verdict){
            .accepted = verdict->accepted,
            .delay = verdict->delay,
            .retry_after = verdict->retry_after,
            .reset_after = verdict->reset_after,
            .remaining = verdict->remaining,
        };
    }
}

/* Those that are late are not the store's any more, but its failure policy's. */
static void decide_there(struct redbucket_limiter *limiter, const struct piece *piece,
                         struct rbk_batch *batch)
{
    const struct rbk_store_ops *ops = limiter->store->ops;

    if (!piece->late) {
        ops->decide(limiter->store, piece->requests, piece->requests_len, batch);
        return;
    }
    rbk_requests_fail(piece->requests, piece->requests_len, REDBUCKET_ERROR_TIMEOUT);
    if (ops->stand_in != NULL)
        ops->stand_in(limiter->store, piece->requests, piece->requests_len);
}

/* Decides as many of the requests as fit the piece; returns how many. */
static size_t decide_piece(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                           size_t requests_len, struct piece *piece, struct rbk_batch *batch)
{
    size_t taken = 0;

    piece->requests_len = 0;
    piece->keys_len = 0;
    while (taken < requests_len && piece->requests_len < piece->requests_size &&
           piece->keys_len + REDBUCKET_KEYS_MAX <= piece->keys_size)
        add_request(limiter, &requests[taken++], piece);
    decide_there(limiter, piece, batch);
    for (size_t i = 0; i < piece->requests_len; i++)
        answer(&piece->requests[i], piece->origin[i]);
    return taken;
}

static void decide_all(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                       size_t requests_len, struct piece *piece, struct rbk_batch *batch)
{
    for (size_t done = 0; done < requests_len;)
        done += decide_piece(limiter, requests + done, requests_len - done, piece, batch);
}

static void decide_in_pieces(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                             size_t requests_len, const bool *gone, struct rbk_batch *batch)
{
    struct long_piece *memory = NULL;
    struct short_piece here;
    struct piece piece;

    if (requests_len > PIECE_REQUESTS && limiter->store->ops->far)
        memory = malloc(sizeof *memory);
    piece = memory != NULL ? piece_in_long(memory) : piece_in_short(&here);
    piece.first = requests;
    piece.gone = gone;
    decide_all(limiter, requests, requests_len, &piece, batch);
    free(memory);
}

static enum redbucket_status decide(struct redbucket_limiter *limiter,
                                    struct redbucket_request *requests, size_t requests_len,
                                    const double *now)
{
    decide_in_pieces(limiter, requests, requests_len, NULL, &(struct rbk_batch){.now = now});
    for (size_t i = 0; i < requests_len; i++) {
        if (requests[i].status != REDBUCKET_OK)
            return requests[i].status;
    }
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_decide(struct redbucket_limiter *limiter,
                                       struct redbucket_request *requests, size_t requests_len)
{
    return decide(limiter, requests, requests_len, NULL);
}

enum redbucket_status redbucket_decide_at(struct redbucket_limiter *limiter,
                                          struct redbucket_request *requests, size_t requests_len,
                                          double now)
{
    enum redbucket_status status = REDBUCKET_OK;

    if (!isfinite(now))
        status = REDBUCKET_ERROR_ARGUMENT;
    else if (limiter->store->ops->own_clock_only)
        status = REDBUCKET_ERROR_UNSUPPORTED;
    if (status == REDBUCKET_OK)
        return decide(limiter, requests, requests_len, &now);
    for (size_t i = 0; i < requests_len; i++) {
        requests[i].status = status;
        requests[i].failed = REDBUCKET_NONE;
    }
    return status;
}

void rbk_decide_waited(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                       size_t requests_len, double waited, const bool *gone)
{
    decide_in_pieces(limiter, requests, requests_len, gone, &(struct rbk_batch){.waited = waited});
}

void rbk_decide_late(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                     size_t requests_len)
{
    struct short_piece here;
    struct piece piece = piece_in_short(&here);
    struct rbk_batch none = {.waited = 0.0};

    piece.late = true;
    decide_all(limiter, requests, requests_len, &piece, &none);
}

enum redbucket_status rbk_request_check(const struct redbucket_limiter *limiter,
                                        const struct redbucket_request *request, size_t *lane)
{
    const struct redbucket_store *store = limiter->store;
    struct rbk_key keys[REDBUCKET_KEYS_MAX];
    struct rbk_claim claims[REDBUCKET_KEYS_MAX];
    struct piece piece = {.keys = keys, .claims = claims};
    struct rbk_request made = {.keys = keys, .claims = claims, .len = request->keys_len};
    enum redbucket_status status = check_arguments(request);
    size_t failed;

    if (status == REDBUCKET_OK)
        status = add_keys(limiter, request->keys, request->keys_len, &piece, &failed);
    if (status == REDBUCKET_OK)
        *lane = store->ops->lane != NULL ? store->ops->lane(store, &made) : 0;
    return status;
}

/* The way of one plain request, without what arrays need. */
enum redbucket_status redbucket_request(struct redbucket_limiter *limiter,
                                        const struct redbucket_key *keys, size_t keys_len,
                                        struct redbucket_response *response)
{
    struct rbk_key own[REDBUCKET_KEYS_MAX];
    struct rbk_claim claims[REDBUCKET_KEYS_MAX];
    struct piece piece = {.keys = own, .claims = claims};
    struct rbk_request one;
    enum redbucket_status status = REDBUCKET_ERROR_ARGUMENT;
    size_t failed;

    if (keys_len <= REDBUCKET_KEYS_MAX)
        status = add_keys(limiter, keys, keys_len, &piece, &failed);
    if (status != REDBUCKET_OK)
        return status;
    one.ask.operation = RBK_REQUEST;
    one.ask.cost = 1.0;
    name_keys(&piece, keys_len, &one);
    limiter->store->ops->decide(limiter->store, &one, 1, &(struct rbk_batch){.now = NULL});
    if (one.status == REDBUCKET_OK)
        respond(&one, response);
    return one.status;
}

enum redbucket_status redbucket_read(struct redbucket_limiter *limiter,
                                     const struct redbucket_key *given,
                                     struct redbucket_state *state)
{
    struct rbk_state stored;
    struct rbk_claim claim;
    struct rbk_key key;
    enum redbucket_status status = add_key(limiter, given, &key, &claim);

    if (status == REDBUCKET_OK)
        status = limiter->store->ops->read(limiter->store, &key, &stored);
    if (status == REDBUCKET_OK)
        *state = (struct redbucket_state){stored.exists, stored.timestamp, stored.value};
    return status;
}
