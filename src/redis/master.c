/* SPDX-License-Identifier: MIT */
/*
 * What is known of a service's master, shared by the threads that need a connection to it.
 *
 * The place is counted by who uses it, since one thread may find a new one while another is on its
 * way to the old. Locks lie in memory that a child finds cleared: it then knows nothing.
 */
#include "redis/master.h"

#include "error.h"
#include "fork_page.h"
#include "redis/handshake.h"
#include "redis/search.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Between two looks at what a sentinel says of itself, and two questions where it says nothing. */
#define LOOK_S 0.05
#define ASK_S  5.0

/* A question beside a decision takes no more than this, and no more than so much of what is left.
 */
#define BESIDE_MOST_S    0.25
#define BESIDE_MOST_PART 0.25

struct place {
    struct rbk_transport *transport;
    unsigned users; /* the master itself among them */
};

struct live {
    pthread_mutex_t mutex;
    struct rbk_bell ended; /* a search */
    bool here;             /* clear: this is a child that has not looked yet */
    bool searching;        /* a thread is at it */
};

struct rbk_master {
    const struct rbk_redis_options *options;
    struct rbk_tls *tls;
    struct rbk_transport *sentinels[RBK_HOSTS_MAX];
    struct live *live;
    atomic_uint generation; /* changed under the lock, read without: one moment too early is all the
                               same, and nothing else hangs on the order */

    _Atomic double look_at; /* when to look next; likewise */

    /* Guarded by live->mutex. */
    struct place *place;          /* where the master was found last, or NULL */
    bool known;                   /* and hasn't been lost since */
    size_t first;                 /* the sentinel that said so */
    struct rbk_connection *watch; /* to it, on which it says something when that changes; or NULL */
    struct rbk_connection *asked; /* the next watch, perhaps; whoever searches has it */
    bool looking;                 /* a thread is using that */
    unsigned long long searches;  /* that have ended */
    struct redbucket_error failure; /* of the last one, status OK when it found the master */
};

/* In a child: the copies of its parent's, which may be in pieces where another thread was using
 * them. */
static void forget_connections(struct rbk_master *master)
{
    if (master->asked != master->watch)
        rbk_connection_abandon(master->asked);
    if (master->looking)
        rbk_connection_abandon(master->watch);
    else
        rbk_connection_close(master->watch);
    master->asked = NULL;
    master->watch = NULL;
    master->looking = false;
}

static void lock(struct rbk_master *master)
{
    (void)pthread_mutex_lock(&master->live->mutex);
    if (master->live->here)
        return;
    master->known = false;
    if (master->place != NULL)
        master->place->users = 1;
    forget_connections(master);
    master->failure = (struct redbucket_error){.position = -1};
    master->live->here = true;
}

static void unlock(struct rbk_master *master)
{
    (void)pthread_mutex_unlock(&master->live->mutex);
}

enum redbucket_status rbk_master_create(const struct rbk_redis_options *options,
                                        struct rbk_tls *tls, struct rbk_master **master,
                                        struct redbucket_error *error)
{
    struct rbk_master *made = calloc(1, sizeof *made);
    enum redbucket_status status;

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, "sentinel");
    made->options = options;
    made->tls = tls;
    status = rbk_fork_page_map(sizeof *made->live, (void **)&made->live, error);
    for (size_t i = 0; i < options->hosts_len && status == REDBUCKET_OK; i++)
        status = rbk_transport_create(&options->hosts[i], tls, &made->sentinels[i], error);
    if (status != REDBUCKET_OK) {
        rbk_master_destroy(made);
        return status;
    }
    *master = made;
    return REDBUCKET_OK;
}

static void destroy_place(struct place *place)
{
    if (place != NULL)
        rbk_transport_destroy(place->transport);
    free(place);
}

void rbk_master_destroy(struct rbk_master *master)
{
    if (master == NULL)
        return;
    if (master->live != NULL) {
        lock(master); /* which, in a child, gives its parent's connections up */
        unlock(master);
    }
    for (size_t i = 0; i < master->options->hosts_len; i++)
        rbk_transport_destroy(master->sentinels[i]);
    destroy_place(master->place);
    rbk_connection_close(master->watch);
    rbk_fork_page_unmap(master->live, sizeof *master->live);
    free(master);
}

/* Gives a use of it up; returns it when that was the last, to be destroyed without the lock. */
static struct place *drop_locked(struct place *place)
{
    return place != NULL && --place->users == 0 ? place : NULL;
}

/* ---- Known ---------------------------------------------------------------------------------- */

/*
 * Waits while another thread searches. On OK *place is where the master is, held for the caller;
 * or NULL: then the caller has to search. Others that have waited for a search which failed don't
 * repeat it, unless it was only out of time.
 */
static enum redbucket_status find_locked(struct rbk_master *master,
                                         const struct rbk_deadline *deadline, struct place **place,
                                         struct redbucket_error *error)
{
    struct live *live = master->live;
    unsigned long long before = master->searches;

    while (!master->known && live->searching) {
        if (!rbk_bell_await(&live->ended, &live->mutex, deadline))
            return rbk_fail(error, REDBUCKET_ERROR_TIMEOUT, -1,
                            "no sentinel has named a master in time");
        if (master->searches != before && master->failure.status != REDBUCKET_OK &&
            master->failure.status != REDBUCKET_ERROR_TIMEOUT) {
            *error = master->failure;
            return error->status;
        }
    }
    *place = master->known ? master->place : NULL;
    if (*place != NULL)
        (*place)->users++;
    else
        live->searching = true;
    return REDBUCKET_OK;
}

static enum redbucket_status connect_to(struct rbk_master *master, struct place *place,
                                        const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                        struct redbucket_error *error)
{
    enum redbucket_status status =
        rbk_handshake(master->options, place->transport, deadline, peer, error);

    lock(master);
    place = drop_locked(place);
    unlock(master);
    destroy_place(place);
    return status;
}

/* ---- Searched ------------------------------------------------------------------------------- */

/* What is of no use any more, to be given up without the lock. */
struct leftovers {
    struct place *place;
    struct rbk_connection *watch;
};

static void give_up(const struct leftovers *leftovers)
{
    destroy_place(leftovers->place);
    rbk_connection_close(leftovers->watch);
}

/* Ends a search, or a question beside. */
static void end_locked(struct rbk_master *master)
{
    master->live->searching = false;
    rbk_bell_ring_all(&master->live->ended);
}

/* Listens to the sentinel that answered, no more to another. */
static void listen_locked(struct rbk_master *master, const struct rbk_search *search,
                          struct leftovers *leftovers)
{
    leftovers->watch = master->watch;
    master->watch = master->asked;
    master->asked = NULL;
    master->first = search->at;
    master->look_at = rbk_monotonic_now() + (master->watch != NULL ? LOOK_S : ASK_S);
}

/* Takes what was found, or what was wrong. */
static void settle_locked(struct rbk_master *master, const struct rbk_search *search,
                          const struct redbucket_error *failure, struct leftovers *leftovers)
{
    master->searches++;
    master->failure = *failure;
    if (failure->status == REDBUCKET_OK) {
        struct place *found = leftovers->place;

        leftovers->place = drop_locked(master->place);
        master->place = found;
        master->known = true;
        listen_locked(master, search, leftovers);
    }
    end_locked(master);
}

static struct rbk_search begin_search(struct rbk_master *master)
{
    return (struct rbk_search){.options = master->options,
                               .tls = master->tls,
                               .sentinels = master->sentinels,
                               .first = master->first,
                               .watch = &master->asked};
}

static enum redbucket_status search(struct rbk_master *master, const struct rbk_deadline *deadline,
                                    struct rbk_peer *peer, struct redbucket_error *error)
{
    struct rbk_search search = begin_search(master);
    struct redbucket_error failure = {.status = REDBUCKET_OK, .position = -1};
    struct leftovers leftovers = {.place = calloc(1, sizeof *leftovers.place)};
    enum redbucket_status status;

    if (leftovers.place == NULL) {
        status = rbk_fail_system(&failure, ENOMEM, "sentinel");
    } else {
        status = rbk_search(&search, deadline, peer, &failure);
        *leftovers.place = (struct place){search.found, 1};
    }
    lock(master);
    settle_locked(master, &search, &failure, &leftovers);
    peer->generation = atomic_load_explicit(&master->generation, memory_order_relaxed);
    unlock(master);
    give_up(&leftovers);
    if (status != REDBUCKET_OK)
        *error = failure;
    return status;
}

/* ---- Looked after --------------------------------------------------------------------------- */

static void lose_locked(struct rbk_master *master)
{
    master->known = false;
    (void)atomic_fetch_add_explicit(&master->generation, 1, memory_order_relaxed);
}

/* True when it is this thread's turn to ask: nobody searches meanwhile. */
static bool has_to_ask_locked(struct rbk_master *master, double now)
{
    bool quiet;

    if (!master->known || master->live->searching || now < master->look_at)
        return false;
    master->looking = true;
    quiet = master->watch != NULL && rbk_connection_good(master->watch);
    master->looking = false;
    master->look_at = now + LOOK_S;
    master->live->searching = !quiet;
    return !quiet;
}

/* Who was found stays good enough when nobody answers. */
static void ask_beside(struct rbk_master *master, const struct rbk_deadline *deadline)
{
    double most = rbk_deadline_left(deadline) * BESIDE_MOST_PART;
    struct rbk_search search = begin_search(master);
    struct leftovers leftovers = {.place = NULL};
    struct rbk_deadline share;
    struct rbk_endpoint named;

    rbk_deadline_start(&share, most < BESIDE_MOST_S ? most : BESIDE_MOST_S);
    bool answered = rbk_search_ask(&search, &share, &named);

    if (!answered)
        search.at = search.first;
    lock(master);
    listen_locked(master, &search, &leftovers);
    if (answered && master->known &&
        !rbk_endpoint_same(&named, rbk_transport_endpoint(master->place->transport)))
        lose_locked(master);
    end_locked(master);
    unlock(master);
    give_up(&leftovers);
}

void rbk_master_look(struct rbk_master *master, const struct rbk_deadline *deadline)
{
    double now = rbk_monotonic_now();
    bool has_to_ask;

    if (now < atomic_load_explicit(&master->look_at, memory_order_relaxed))
        return;
    lock(master);
    has_to_ask = has_to_ask_locked(master, now);
    unlock(master);
    if (has_to_ask)
        ask_beside(master, deadline);
}

/* ---- From outside --------------------------------------------------------------------------- */

/* A place that has been lost without anybody having noticed so far. */
static bool is_loss(enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_READONLY ||
           status == REDBUCKET_ERROR_IO;
}

enum redbucket_status rbk_master_connect(struct rbk_master *master,
                                         const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                         struct redbucket_error *error)
{
    for (bool again = false;; again = true) {
        struct place *place = NULL;

        lock(master);
        enum redbucket_status status = find_locked(master, deadline, &place, error);

        peer->generation = atomic_load_explicit(&master->generation, memory_order_relaxed);
        unlock(master);
        if (status != REDBUCKET_OK)
            return status;
        if (place == NULL)
            return search(master, deadline, peer, error);
        status = connect_to(master, place, deadline, peer, error);
        if (again || !is_loss(status))
            return status;
        rbk_master_lost(master, peer);
    }
}

bool rbk_master_is_current(const struct rbk_master *master, const struct rbk_peer *peer)
{
    return atomic_load_explicit(&master->generation, memory_order_relaxed) == peer->generation;
}

void rbk_master_lost(struct rbk_master *master, const struct rbk_peer *peer)
{
    lock(master);
    if (master->known && rbk_master_is_current(master, peer))
        lose_locked(master);
    unlock(master);
}

void rbk_master_tell(struct rbk_master *master, char where[RBK_WHERE_SIZE],
                     char sentinel[RBK_WHERE_SIZE])
{
    where[0] = '\0';
    sentinel[0] = '\0';
    lock(master);
    if (master->place != NULL) {
        (void)snprintf(where, RBK_WHERE_SIZE, "%s",
                       rbk_transport_endpoint(master->place->transport)->where);
        (void)snprintf(sentinel, RBK_WHERE_SIZE, "%s", master->options->hosts[master->first].where);
    }
    unlock(master);
}
