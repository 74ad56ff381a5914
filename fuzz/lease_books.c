/* SPDX-License-Identifier: MIT */
/*
 * The one behind notes what passes; the one before, who sees what became of a call, settles: first
 * what was spent here, since leases serve before they ask, then what passed, in its order.
 */
#include "lease_books.h"

#include "front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOOKS_MAX  128
#define EVENTS_MAX 512
#define NOTES_MAX  2048

/* What rounding may come to: purses round to parts of 1/16384, doubles by their size. */
#define TOLERANCE 1e-3

/* Seconds by which what passes between two moments of a good server's is told wrong. */
#define MOMENTS (16 * RBK_TICK)

/* Taken of the bucket, by a clock of the server's. */
struct taking {
    double at;
    double cost;
};

/*
 *   left, until, limit  of the lease that is held, until by our clock
 *   level, at           of a bucket which is filled by what is admitted here, when it is
 *   spread              seconds of the longest call that took there: it tells one moment, though
 *                       several commands, or steps over several slots, had theirs
 *   loose               no bound holds for it: given back, or another limit was used
 */
struct book {
    struct rbk_key key;
    struct rbk_limit limit;
    double lease_time;
    double left;
    double until;
    double level;
    double at;
    double spread;
    bool loose;
    struct taking takings[NOTES_MAX];
    size_t takings_len;
};

/* What passed: one of the callers' requests, known by its claims, or one of the leases' own. */
struct event {
    const struct rbk_claim *claims;
    enum redbucket_status status;
    struct rbk_answer answer;
    struct rbk_ask ask;
    bool aside;
    struct book *book;
    double until;
};

struct lease_counts lease_counts;

static struct book books[BOOKS_MAX];
static size_t books_len;
static struct event events[EVENTS_MAX];
static size_t events_len;
static bool loosened;
static bool shifted;

static void demand(bool holds)
{
    if (!holds)
        abort();
}

void lease_books_begin(void)
{
    lease_counts = (struct lease_counts){0};
    books_len = 0;
    events_len = 0;
    loosened = false;
    shifted = false;
}

void lease_books_shift(double seconds)
{
    shifted = true;
    loosened = loosened || seconds > 0.0;
}

static bool same_key(const struct rbk_key *a, const struct rbk_key *b)
{
    return a->zone_len == b->zone_len && a->key_len == b->key_len &&
           memcmp(a->zone, b->zone, a->zone_len) == 0 && memcmp(a->key, b->key, a->key_len) == 0;
}

static void copy_bytes(const unsigned char **bytes, size_t len)
{
    unsigned char *copy = malloc(len + 1);

    demand(copy != NULL);
    memcpy(copy, *bytes, len);
    *bytes = copy;
}

/* The keys of leases end with them, so books have copies, which are kept for the next inputs. */
static struct book *book_of(const struct rbk_key *key, const struct rbk_claim *claim)
{
    static size_t made;
    struct book *book = books;

    while (book < books + books_len && !same_key(&book->key, key))
        book++;
    if (book == books + books_len) {
        demand(books_len++ < BOOKS_MAX);
        if (books_len <= made) {
            free((void *)book->key.zone);
            free((void *)book->key.key);
        } else {
            made = books_len;
        }
        book->key = *key;
        copy_bytes(&book->key.zone, key->zone_len);
        copy_bytes(&book->key.key, key->key_len);
        book->limit = claim->limit;
        book->lease_time = claim->lease != NULL ? claim->lease->time : 0.0;
        book->left = 0.0;
        book->level = 0.0;
        book->at = -INFINITY;
        book->spread = 0.0;
        book->loose = false;
        book->takings_len = 0;
    }
    if (memcmp(&book->limit, &claim->limit, sizeof book->limit) != 0)
        book->loose = true;
    return book;
}

/* ---- Behind the leases ---------------------------------------------------------------------- */

static const struct event *event_of(const struct rbk_claim *claims)
{
    for (size_t i = events_len; i > 0; i--) {
        if (!events[i - 1].aside && events[i - 1].claims == claims)
            return &events[i - 1];
    }
    return NULL;
}

/* Nobody is asked for again but who was rejected; leases ask for one bucket and no more than their
 * terms allow, and give back without terms. */
static void check_sent(const struct rbk_request *request)
{
    const struct event *before = event_of(request->claims);

    if (!request->aside) {
        demand(before == NULL || (before->status == REDBUCKET_OK && !before->answer.accepted &&
                                  request->ask.operation == RBK_REQUEST && request->leases > 0));
        return;
    }
    demand(request->len == 1 && request->leases == 0);
    demand(request->ask.cost >= RBK_COST_MIN && request->ask.cost <= RBK_COST_MAX);
    if (request->ask.operation == RBK_REQUEST)
        demand(request->claims[0].lease != NULL &&
               request->ask.cost <= request->claims[0].lease->most);
    else
        demand(request->ask.operation == RBK_GIVE_BACK && isfinite(request->ask.taken_at));
}

static void decide_behind(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                          struct rbk_batch *batch)
{
    struct redbucket_store *inner = ((struct rbk_front *)store)->inner;
    size_t first = events_len;
    double sent = rbk_fake.now;

    demand(len > 0 && events_len + len <= EVENTS_MAX);
    for (size_t i = 0; i < len; i++) {
        const struct rbk_request *request = &requests[i];

        check_sent(request);
        events[events_len++] = (struct event){
            .claims = request->claims, .ask = request->ask, .aside = request->aside, .until = sent};
        if (!request->aside)
            continue;
        events[events_len - 1].book = book_of(request->keys, request->claims);
        if (request->claims[0].lease != NULL)
            events[events_len - 1].until += request->claims[0].lease->time;
    }
    inner->ops->decide(inner, requests, len, batch);
    for (size_t i = 0; i < len; i++) {
        events[first + i].status = requests[i].status;
        if (requests[i].status == REDBUCKET_OK)
            events[first + i].answer = requests[i].answer;
    }
}

/* ---- Before them ---------------------------------------------------------------------------- */

/* Has been admitted at a time of the server's, by permits that were taken at another. */
static void admit(struct book *book, double at, double taken, double cost)
{
    double most = book->limit.burst + 1.0 + book->limit.delay;
    double bound = most + book->limit.rate * (book->lease_time + RBK_TICK);

    if (at > book->at) {
        book->level = fmax(book->level - (at - book->at) * book->limit.rate, 0.0);
        book->at = at;
    }
    book->level += cost;
    demand(book->loose || loosened || rbk_fake.made_up ||
           book->level <= bound * (1.0 + 1e-9) + TOLERANCE);
    demand(book->takings_len < NOTES_MAX);
    book->takings[book->takings_len++] = (struct taking){taken, cost};
}

/* Served from here, at a time of ours: all of it was held, and is held no more. */
static void spend(const struct rbk_request *request, double now)
{
    double cost = request->ask.cost;
    double at = rbk_fake.keeps ? now + rbk_fake.skew : rbk_fake_clock();

    demand(request->leases == request->len && request->len > 0);
    demand(event_of(request->claims) == NULL);
    for (size_t i = 0; i < request->len; i++) {
        struct book *book = book_of(&request->keys[i], &request->claims[i]);

        demand(now < book->until && cost <= book->left + TOLERANCE);
        if (request->ask.operation == RBK_PEEK)
            continue;
        book->left -= cost;
        demand((double)request->answer.remaining <= fmax(book->left, 0.0) + TOLERANCE);
        admit(book, at, request->ask.now, cost);
    }
}

static void take_there(const struct rbk_request *request, double began)
{
    for (size_t i = 0; i < request->len; i++) {
        struct book *book = book_of(&request->keys[i], &request->claims[i]);

        book->spread = fmax(book->spread, rbk_fake.now - began);
        admit(book, request->ask.now, request->ask.now, request->ask.cost);
    }
}

/* What changes a bucket otherwise does so whether we hear of it or not. */
static void unbind(const struct rbk_request *request)
{
    enum rbk_operation operation = request->ask.operation;

    for (size_t i = 0; i < request->len; i++) {
        struct book *book = book_of(&request->keys[i], &request->claims[i]);

        if (operation == RBK_REFUND || operation == RBK_RESET || operation == RBK_GIVE_BACK)
            book->loose = true;
    }
}

/* What was asked there is told as it was answered there. */
static void check_told(const struct rbk_request *request)
{
    const struct event *event = event_of(request->claims);

    demand(event != NULL && event->status == request->status);
    if (request->status != REDBUCKET_OK)
        return;
    demand(event->answer.accepted == request->answer.accepted &&
           event->answer.delay == request->answer.delay &&
           event->answer.retry_after == request->answer.retry_after &&
           event->answer.remaining == request->answer.remaining);
}

static void count(const struct rbk_request *request)
{
    bool accepted = request->status == REDBUCKET_OK && request->answer.accepted;

    lease_counts.failed += request->status != REDBUCKET_OK;
    if (request->status != REDBUCKET_OK || request->ask.operation != RBK_REQUEST)
        return;
    lease_counts.accepted += accepted;
    lease_counts.delayed += accepted && request->answer.delay > 0.0;
    lease_counts.rejected += !accepted;
    lease_counts.denied += !accepted && request->here;
    lease_counts.leased += accepted && request->here;
}

/* The leases' own: what is given back is held no more, whatever is heard of it, and was held; a
 * lease that is granted follows one that is over. */
static void settle_own(const struct event *event)
{
    if (event->ask.operation == RBK_GIVE_BACK) {
        demand(event->ask.cost <= event->book->left + TOLERANCE);
        event->book->left -= event->ask.cost;
    } else if (event->status == REDBUCKET_OK && event->answer.accepted) {
        event->book->left = event->ask.cost;
        event->book->until = event->until;
    }
}

static void settle_events(void)
{
    for (size_t i = 0; i < events_len; i++) {
        if (events[i].aside)
            settle_own(&events[i]);
    }
    events_len = 0;
}

static void decide_before(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                          struct rbk_batch *batch)
{
    struct redbucket_store *inner = ((struct rbk_front *)store)->inner;
    double now = rbk_fake.now;

    for (size_t i = 0; i < len; i++)
        unbind(&requests[i]);
    inner->ops->decide(inner, requests, len, batch);
    for (size_t i = 0; i < len; i++) {
        bool good = requests[i].status == REDBUCKET_OK;

        count(&requests[i]);
        if (good && requests[i].here && requests[i].answer.accepted)
            spend(&requests[i], now);
        else
            check_told(&requests[i]);
    }
    for (size_t i = 0; i < len; i++) {
        bool good = requests[i].status == REDBUCKET_OK;

        if (good && !requests[i].here && requests[i].answer.accepted &&
            requests[i].ask.operation == RBK_REQUEST)
            take_there(&requests[i], now);
    }
    settle_events();
}

/* ---- Both ----------------------------------------------------------------------------------- */

static void close_front(struct redbucket_store *store)
{
    redbucket_store_close(((struct rbk_front *)store)->inner);
    free(store);
}

static struct redbucket_store *stand(struct redbucket_store *inner,
                                     void (*decide)(struct redbucket_store *store,
                                                    struct rbk_request *requests, size_t len,
                                                    struct rbk_batch *batch))
{
    struct rbk_front *front = calloc(1, sizeof *front);

    demand(front != NULL);
    rbk_front_init(front, inner);
    front->ops.decide = decide;
    front->ops.close = close_front;
    return &front->store;
}

struct redbucket_store *lease_books_behind(struct redbucket_store *inner)
{
    return stand(inner, decide_behind);
}

struct redbucket_store *lease_books_before(struct redbucket_store *inner)
{
    return stand(inner, decide_before);
}

/* ---- The end -------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    double x = ((const struct taking *)a)->at, y = ((const struct taking *)b)->at;

    return (x > y) - (x < y);
}

/* What the bucket has to hold at least by now. */
static double level_of(struct book *book)
{
    struct rbk_state state = {.exists = false};

    qsort(book->takings, book->takings_len, sizeof book->takings[0], by_time);
    for (size_t i = 0; i < book->takings_len; i++) {
        const struct taking *taking = &book->takings[i];

        state =
            rbk_take(&state, rbk_level(&book->limit, &state, taking->at), taking->cost, taking->at);
    }
    return rbk_level(&book->limit, &state, rbk_fake_clock());
}

static void compare(struct book *book, const struct rbk_key_format *format)
{
    size_t len = rbk_key_format_len(format, &book->key);
    unsigned char *name = malloc(len + 1);
    double there, here = level_of(book);

    demand(name != NULL);
    rbk_key_format_write(format, &book->key, name);
    there = rbk_level(&book->limit, rbk_fake_kept(name, len), rbk_fake_clock());
    demand(there >= here * (1.0 - 1e-9) - TOLERANCE - book->limit.rate * (book->spread + MOMENTS));
    free(name);
}

void lease_books_compare(const struct rbk_key_format *format)
{
    settle_events();
    for (size_t i = 0; rbk_fake.keeps && !rbk_fake.made_up && !shifted && i < books_len; i++) {
        if (!books[i].loose)
            compare(&books[i], format);
    }
}
