/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: rate limiting with shared state.
 *
 * A zone is a set of buckets that drain at one rate; a limit adds how many requests a bucket may
 * hold at once (burst) and how many more may wait (delay). A request names one key for each of
 * some limits, and all of them take it or none does.
 *
 * What to know before anything else:
 *
 *  - burst + 1 requests pass at once, the next `delay` are accepted with a wait, and a "rate of
 *    60 a minute" is a rate, not a cap for a calendar minute: in any window of W seconds at most
 *    burst + 1 + delay + rate * (W + 2e-6) pass.
 *  - The library doesn't sleep a delay out. It says how long to wait; the caller waits.
 *  - A rejection is an answer. A store that failed is an error, never an answer.
 *  - A limiter is set up by one thread, then used by any number. A store outlives its limiters.
 *  - shm: stores keep time by CLOCK_BOOTTIME, which nobody can set, so their times mean nothing to
 *    another machine or after a reboot.
 *  - A full table gives up the bucket that matters least, and counts it, or refuses the new key
 *    with REDBUCKET_ERROR_FULL. It never forgets a key that is being kept out.
 *  - A thread that is cancelled (pthread_cancel) in a call that waits ends the call first.
 *  - Nothing here prints, exits, installs a signal handler, or reads the locale.
 *
 * Times are seconds, as doubles, and beside them whole microseconds, rounded up.
 */
#ifndef REDBUCKET_REDBUCKET_H
#define REDBUCKET_REDBUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDBUCKET_VERSION_MAJOR 0
#define REDBUCKET_VERSION_MINOR 1
#define REDBUCKET_VERSION_PATCH 0

#if defined(__GNUC__)
#define REDBUCKET_API        __attribute__((visibility("default")))
#define REDBUCKET_MUST_CHECK __attribute__((warn_unused_result))
#else
#define REDBUCKET_API
#define REDBUCKET_MUST_CHECK
#endif

/* The version of the library that runs, "0.1.0"; the macros above are of the one compiled with. */
REDBUCKET_API const char *redbucket_version(void);

/* ---- Status ------------------------------------------------------------------------------- */

/*
 * Every code, its name and its text. The order is part of the ABI: new codes go to the end.
 *
 *   OK             done; for a request: there is an answer, accepted or rejected
 *   ARGUMENT       an argument has no meaning here (a cost out of range, a text that is no number)
 *   LIMIT          a limit out of range, or a text that is no limit
 *   DUPLICATE      a name or a zone given twice, or a limit named twice in one request
 *   UNKNOWN_LIMIT  a request names a limit that the limiter doesn't have
 *   URL            a text that is no URL of a store
 *   KEY            a key or a zone's name too long for this store
 *   FULL           the table is full of buckets that keep somebody out; nothing was changed
 *   STATE          a stored state can't be read; it was left alone
 *   TIMEOUT        the deadline passed, for instance waiting for a lock
 *   FOREIGN        the named store is not ours, damaged, or of another format or clock
 *   MISMATCH       the store exists with another size or mode than the URL asks for
 *   UNSUPPORTED    this store can't do that
 *   MEMORY         out of memory; a request that a server was asked about may have been taken
 *   SYSTEM         the operating system refused something; the message says what
 *   UNAVAILABLE    the server can't be reached, or says that it can't serve now; nothing was taken
 *   IO             the connection broke in the middle; whether something was taken is unknown
 *   PROTOCOL       the server sent what makes no sense; whether something was taken is unknown
 *   AUTH           the server wants another user or password, or forbids the user what it takes
 *   READONLY       the server is a replica, which can't take anything
 *   TLS            the server's certificate is not good for its name, or TLS failed otherwise
 *   CONFLICT       others changed the same buckets until the deadline; nothing was taken
 *   SERVER         the server refused the command; the message has its words
 *   SPACE          a text doesn't fit into the room that the caller gave
 *   CANCELLED      the caller gave an asynchronous request up; whether something was taken is
 * unknown
 */
#define REDBUCKET_STATUS_MAP(X)                               \
    X(OK, "ok")                                               \
    X(ERROR_ARGUMENT, "invalid argument")                     \
    X(ERROR_LIMIT, "invalid limit")                           \
    X(ERROR_DUPLICATE, "named twice")                         \
    X(ERROR_UNKNOWN_LIMIT, "unknown limit")                   \
    X(ERROR_URL, "invalid store URL")                         \
    X(ERROR_KEY, "key too long for the store")                \
    X(ERROR_FULL, "store full")                               \
    X(ERROR_STATE, "stored state can't be read")              \
    X(ERROR_TIMEOUT, "deadline passed")                       \
    X(ERROR_FOREIGN, "not a store of this library")           \
    X(ERROR_MISMATCH, "store exists with other parameters")   \
    X(ERROR_UNSUPPORTED, "not supported by this store")       \
    X(ERROR_MEMORY, "out of memory")                          \
    X(ERROR_SYSTEM, "system error")                           \
    X(ERROR_UNAVAILABLE, "server unavailable")                \
    X(ERROR_IO, "connection broke")                           \
    X(ERROR_PROTOCOL, "server sent nonsense")                 \
    X(ERROR_AUTH, "not authorized by the server")             \
    X(ERROR_READONLY, "server is a read-only replica")        \
    X(ERROR_TLS, "secure connection failed")                  \
    X(ERROR_CONFLICT, "changed by others until the deadline") \
    X(ERROR_SERVER, "refused by the server")                  \
    X(ERROR_SPACE, "no room for the text")                    \
    X(CANCELLED, "cancelled")

enum redbucket_status {
#define REDBUCKET_STATUS_CODE(name, text) REDBUCKET_##name,
    REDBUCKET_STATUS_MAP(REDBUCKET_STATUS_CODE)
#undef REDBUCKET_STATUS_CODE
};

/* "REDBUCKET_OK", "REDBUCKET_CANCELLED" or "REDBUCKET_ERROR_..."; "unknown" for no code of ours.
 * Static text. */
REDBUCKET_API const char *redbucket_status_name(enum redbucket_status status);

/* A text for people, in lower case, without a full stop. Static text. */
REDBUCKET_API const char *redbucket_status_text(enum redbucket_status status);

/*
 * What went wrong, in full. The caller owns it and may pass NULL instead. Written only when a call
 * fails. `position` is the offset in a parsed text at which it stopped making sense, or -1.
 * `message` is one line for people, without a secret in it.
 */
struct redbucket_error {
    enum redbucket_status status;
    int position;
    char message[248];
};

/* ---- Limits ------------------------------------------------------------------------------- */

/*
 * What a limit allows. Fields left 0 have their defaults.
 *
 *   size        sizeof(struct redbucket_limit), or 0 for the struct as of version 0.1
 *   zone        whose buckets these are, any bytes, 1 to REDBUCKET_ZONE_MAX of them; NULL for the
 *               limit's own name
 *   zone_len    its length, or 0 when `zone` ends with a NUL
 *   rate        requests a second, from 1e-9 to 1e12
 *   burst       how many more than one pass at once, from 0
 *   delay       how many more are accepted with a wait, from 0; burst + delay at most 1e12
 *   expiry      seconds for which a store on a server keeps a bucket at least, from 0 (as long as
 *               it needs); an embedded store keeps it until it is empty
 *   lease       permits of a hot key that a process may take ahead from a store on a server, to
 *               spend them without asking: in any window of W seconds at most burst + 1 + delay +
 *               rate * (W + lease_time + 2e-6) pass then, over all processes; from 0 to 1e12.
 *               An embedded store has no use for it and decides each request
 *   lease_time  for how many seconds it may hold them, from 0 (the default, 1 s) to 3600
 *
 * `zone` is copied by whoever keeps the limit.
 */
struct redbucket_limit {
    size_t size;
    const char *zone;
    size_t zone_len;
    double rate;
    double burst;
    double delay;
    double expiry;
    double lease;
    double lease_time;
};

/* The longest name of a limit or a zone, in bytes. */
#define REDBUCKET_ZONE_MAX 255

/* ---- Text: numbers, durations, limits ------------------------------------------------------ */

/*
 * Room of the caller's for a text. Functions append at `len`, and a NUL behind it that isn't
 * counted; with ERROR_SPACE they leave `len` where it was. Begin with {bytes, size, 0}.
 */
struct redbucket_text {
    char *bytes;
    size_t size;
    size_t len;
};

/*
 * Each reads the whole of `text`; anything before, behind or between is an error. None depends on
 * the locale. Safe from any thread.
 *
 *   number    decimal, with an optional fraction and exponent; no sign but a leading '-', no hex,
 *             no "inf", no "nan", nothing too large for a double
 *   rate      a number of requests a second, or N/s, N/m, N/h, N/d, or nginx's Nr/s, Nr/m; above 0
 *   duration  seconds, or with a unit: 50us, 50ms, 2s, 5m, 1h, 1d; from 0
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_number_parse(const char *text, double *number, struct redbucket_error *error);

REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_rate_parse(const char *text, double *rate, struct redbucket_error *error);

REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_duration_parse(const char *text, double *seconds, struct redbucket_error *error);

/* Enough for any double as text, with its NUL. */
#define REDBUCKET_NUMBER_SIZE 32

/* Writes the shortest decimal that reads back as the same double ("0.1", "1e+22", "inf"). */
REDBUCKET_API void redbucket_number_format(double number, char out[REDBUCKET_NUMBER_SIZE]);

/* A limit with its name, as read from a text. `limit.zone` points into `zone`: don't copy it. */
struct redbucket_named_limit {
    char name[REDBUCKET_ZONE_MAX + 1];
    char zone[REDBUCKET_ZONE_MAX + 1];
    struct redbucket_limit limit;
};

/*
 * Reads NAME:RATE[,burst=N][,delay=N][,expiry=SECONDS][,zone=NAME][,lease=N][,lease_time=DURATION],
 * names made of A-Z a-z 0-9 _ . - , and checks it as redbucket_limiter_add does. ERROR_LIMIT with a
 * message and a position when it is no limit. Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_limit_parse(const char *text, struct redbucket_named_limit *limit,
                      struct redbucket_error *error);

/* The longest text that redbucket_limit_format writes, with its NUL. */
#define REDBUCKET_LIMIT_TEXT_SIZE 768

/* Writes the limit so that redbucket_limit_parse reads the same doubles; defaults are left out. */
REDBUCKET_API void redbucket_limit_format(const struct redbucket_named_limit *limit,
                                          char out[REDBUCKET_LIMIT_TEXT_SIZE]);

/* ERROR_LIMIT and one exact message when a field is out of range. Safe from any thread. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_limit_check(const struct redbucket_limit *limit, struct redbucket_error *error);

/* ---- Stores ------------------------------------------------------------------------------- */

/*
 * Where the buckets live, named by a URL:
 *
 *   memory:[?size=64m]
 *       in this process. `grow=yes` instead of a bound: the table grows with its live buckets,
 * gives up nothing and is never full, for traffic that is replayed rather than served.
 *   shm:NAME[?size=16m][&mode=0600][&timeout=1s][&create=yes]
 *       in shared memory of this machine, made by whoever comes first. A size or a mode unlike the
 *       existing one is refused. `timeout` bounds a decision that waits for another process. With
 *       `create=no` nothing is made: where there is none, it is ERROR_UNAVAILABLE.
 *
 *   redis://[user[:password]@]host[:port][/db], unix://[user[:password]@]/path[?db=N]
 *       on a Redis or Valkey server. rediss:// with TLS.
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../service[/db]
 *       on the master of a service, which sentinels name. rediss+sentinel:// with TLS.
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...
 *       on the nodes of a cluster. rediss+cluster:// with TLS.
 *
 * A size is a number of bytes with an optional k, m or g (of 1024).
 *
 * A store is safe from any thread and stays usable in a child after fork: a memory: store becomes
 * the child's own copy, the others go on being shared.
 */
struct redbucket_store;

/* Creates *store, or fails and leaves it alone; NULL error is fine. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_store_open(const char *url, struct redbucket_store **store,
                     struct redbucket_error *error);

/* Closes the store; what is shared stays for the others. NULL does nothing. No limiter may use it
 * any more. */
REDBUCKET_API void redbucket_store_close(struct redbucket_store *store);

/*
 * What a store has counted since it was made: for shm: by all processes together.
 *
 *   size      the caller's sizeof(struct redbucket_statistics); fields beyond it are not written
 *   accepted  requests accepted, delayed ones among them; peeks are not counted
 *   delayed   accepted with a delay above 0
 *   rejected  requests rejected
 *   evicted   buckets given up while not yet empty, because the table was full
 *   full      requests that got ERROR_FULL
 *   recovered times that a process died (or forked) in the middle of a change, which was undone
 *   buckets   buckets held now, empty ones that nobody needed to clear among them
 *   capacity  how many short-keyed buckets (zone and key at most 24 bytes together) fit
 *   bytes     memory set aside for the store
 *   failed    requests that got an error from a store on a server, by this process
 *   degraded  requests that a failure policy answered, by this process
 *   denied    those of `rejected` that were answered without asking the server, by this process
 *   leased    those of `accepted` that took a permit which this process held, likewise
 *
 * A store on a server counts what this process asks of it, and knows no buckets, capacity or bytes.
 */
struct redbucket_statistics {
    size_t size;
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t evicted;
    uint64_t full;
    uint64_t recovered;
    uint64_t buckets;
    uint64_t capacity;
    uint64_t bytes;
    uint64_t failed;
    uint64_t degraded;
    uint64_t denied;
    uint64_t leased;
};

/* Fills *statistics, whose `size` the caller has set. The numbers are each exact, and taken one
 * after the other while others go on. ERROR_TIMEOUT when a lock could not be had. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_store_statistics(struct redbucket_store *store, struct redbucket_statistics *statistics);

/* The most entries that redbucket_store_zones writes. */
#define REDBUCKET_ZONES_MAX 65

/*
 * What a store has counted of the requests that named a limit of one zone, since it was made: for
 * shm: by all processes together, for a store on a server by this process.
 *
 *   zone      its name, with a NUL behind it; empty for all zones together that had no room for
 *             counters of their own, which the first 64 have
 *   accepted  requests that named the zone's limit and were accepted, delayed ones among them
 *   delayed   those of them for which this limit by itself asked to wait
 *   rejected  requests that were rejected and for which this limit by itself had no room. Several
 *             limits may have none for one request, and one that had room counts nothing: so these
 *             are not parts of a sum
 */
struct redbucket_zone_statistics {
    char zone[REDBUCKET_ZONE_MAX + 1];
    size_t zone_len;
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
};

/*
 * Writes an entry for each zone that a limiter of this store has had a limit of, in the order of
 * their first coming, and a last one for all others. `zones` has room for `zones_max` entries, of
 * REDBUCKET_ZONES_MAX at least (otherwise ERROR_SPACE); on failure *zones_len stays as it was.
 * ERROR_TIMEOUT when a lock could not be had. Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_store_zones(struct redbucket_store *store, struct redbucket_zone_statistics *zones,
                      size_t zones_max, size_t *zones_len);

/*
 * What a host may want to log.
 *
 *   FULL       a request got ERROR_FULL
 *   RECOVERED  a change that a dead process had begun was undone
 *   DOWN       the server can't be used; requests fail at once until it can
 *   BACK       it can be used again
 *   DEGRADED   the first request since the store last worked that a failure policy answered
 */
enum redbucket_event {
    REDBUCKET_EVENT_FULL,
    REDBUCKET_EVENT_RECOVERED,
    REDBUCKET_EVENT_DOWN,
    REDBUCKET_EVENT_BACK,
    REDBUCKET_EVENT_DEGRADED,
};

#define REDBUCKET_WARNINGS_MAX 16
#define REDBUCKET_WARNING_SIZE 120
#define REDBUCKET_PLACE_SIZE   272

/*
 * How a store is.
 *
 *   size        the caller's sizeof(struct redbucket_health); fields beyond it are not written
 *   round_trip  seconds that a server takes to answer nothing, the shortest of a few, and of a
 *               cluster's masters the longest; 0 without one
 *   server      "Redis 7.0.15", or "" without one
 *   method      how requests are decided: "table", "script" or "transaction"
 *   warnings    what can go wrong with it, a line each, `warnings_len` of them
 *   service     whose master the server is, by a redis+sentinel:// URL; "" by any other
 *   master      then, where that is: "192.0.2.1:6379"
 *   sentinel    then, who said so
 *   replicas    how many follow that master, or the masters of a cluster; -1 when nobody says
 *   masters     of a cluster, by a redis+cluster:// URL; 0 by any other
 *   silent      how many of them could not be asked
 *   slots       of a cluster's 16384 hash slots, those whose master was asked and serves them
 */
struct redbucket_health {
    size_t size;
    double round_trip;
    char server[48];
    char method[16];
    size_t warnings_len;
    char warnings[REDBUCKET_WARNINGS_MAX][REDBUCKET_WARNING_SIZE];
    char service[64];
    char master[REDBUCKET_PLACE_SIZE];
    char sentinel[REDBUCKET_PLACE_SIZE];
    int replicas;
    size_t masters;
    size_t silent;
    unsigned slots;
};

/*
 * Asks a store whether it is there and how it is. Fails as a request would; an idle store on a
 * server is connected to. A cluster is there as long as some of it serves. Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_store_check(struct redbucket_store *store, struct redbucket_health *health);

/*
 * Copies why a store on a server failed last, in the server's words where it had some: status OK
 * when it hasn't failed, or can't say more than a request's status does. Another thread's failure
 * may be the later one. Safe from any thread.
 */
REDBUCKET_API void redbucket_store_failure(struct redbucket_store *store,
                                           struct redbucket_error *error);

/*
 * Which buckets of two zones a store decides in one step. A request that names both is then one
 * step as well; otherwise it takes one for each slot, see docs/cluster.md. A cluster decides
 * together what lies in one hash slot, and where a bucket lies follows from the key format; all
 * other stores decide everything together.
 *
 *   ALWAYS    all: the store is one place
 *   ONE_SLOT  all: the key format has them in one slot of a cluster, and so on one of its nodes
 *   SAME_KEY  those with equal keys
 *   SAME_TAG  those whose keys begin with the same hash tag: {acme}alice and {acme}192.0.2.7
 *   NEVER     none, but for what meets by chance
 *
 * Between the first and the last, this is said of keys that aren't empty and have no braces but
 * those of such a tag: braces of a key may be taken for those of a tag, or end one.
 */
enum redbucket_colocation {
    REDBUCKET_COLOCATION_ALWAYS,
    REDBUCKET_COLOCATION_ONE_SLOT,
    REDBUCKET_COLOCATION_SAME_KEY,
    REDBUCKET_COLOCATION_SAME_TAG,
    REDBUCKET_COLOCATION_NEVER,
};

/*
 * Tells it without asking anybody. A zone's length is 0 when it ends with a NUL; a zone with itself
 * is ONE_SLOT when all its buckets are in one. NEVER for what can't be a zone, being empty or
 * longer than REDBUCKET_ZONE_MAX. Safe from any thread.
 */
REDBUCKET_API enum redbucket_colocation
redbucket_store_colocation(const struct redbucket_store *store, const char *zone_a,
                           size_t zone_a_len, const char *zone_b, size_t zone_b_len);

typedef void redbucket_listener(void *data, enum redbucket_event event, const char *message);

/*
 * Has `listener` told of events, in the thread that met them, holding no lock of ours; `message`
 * lives as long as the call. It must not use the same store. Set it before the store is shared
 * between threads; NULL for none.
 */
REDBUCKET_API void redbucket_store_listen(struct redbucket_store *store,
                                          redbucket_listener *listener, void *data);

/* ---- Limiters ----------------------------------------------------------------------------- */

/*
 * A set of limits on one store. Add limits while one thread has it; from the first request on it
 * is read only, and any number of threads may use it. To change limits while serving, make a second
 * limiter on the same store, change over, destroy the first: the buckets stay as they are.
 */
struct redbucket_limiter;

/* Creates *limiter on `store`, which is borrowed until redbucket_limiter_destroy. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_limiter_create(struct redbucket_store *store, struct redbucket_limiter **limiter,
                         struct redbucket_error *error);

/* NULL does nothing. The store stays. No request may be under way. */
REDBUCKET_API void redbucket_limiter_destroy(struct redbucket_limiter *limiter);

/*
 * Adds a limit under a name of 1 to REDBUCKET_ZONE_MAX bytes, which ends with a NUL. Everything is
 * copied. ERROR_LIMIT when it is none (the message says why), ERROR_DUPLICATE when the name or its
 * zone is taken. Not safe beside other calls on the same limiter.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_limiter_add(struct redbucket_limiter *limiter, const char *name,
                      const struct redbucket_limit *limit, struct redbucket_error *error);

/*
 * How many limits there are, and one of them in the order added (index below the count); the
 * pointers live as long as the limiter. `limit->size` is as in redbucket_limiter_add and says how
 * much room there is: fields beyond it are not written. Afterwards it says how much was. False, and
 * nothing written, when there is no such index, or when the size can't be one.
 */
REDBUCKET_API size_t redbucket_limiter_count(const struct redbucket_limiter *limiter);

REDBUCKET_API bool redbucket_limiter_get(const struct redbucket_limiter *limiter, size_t index,
                                         const char **name, struct redbucket_limit *limit);

/* ---- Requests ----------------------------------------------------------------------------- */

/* The most limits that one request may name. */
#define REDBUCKET_KEYS_MAX 64

/*
 * A key under a limit.
 *
 *   limit      the limit's name
 *   key        any bytes; the empty key is a key like any other
 *   key_len    how many; 0 when `key` ends with a NUL (so pass "", not a bare pointer, for an empty
 *              one)
 *   limit_len  the length of the name, or 0 when it ends with a NUL
 */
struct redbucket_key {
    const char *limit;
    const char *key;
    size_t key_len;
    size_t limit_len;
};

/*
 * The answer of one limit for itself alone.
 *
 *   accepted     whether this limit had room
 *   delay        seconds to wait before going on, when it had; else 0
 *   retry_after  seconds after which the same request would be accepted if nobody else asked, when
 *                it had none (rounded up so that waiting that long succeeds), INFINITY for never;
 *                else 0
 *   reset_after  seconds until the bucket is empty, after the decision
 *   remaining    how many requests of cost 1 would be accepted at once, after the decision
 */
struct redbucket_verdict {
    bool accepted;
    double delay;
    double retry_after;
    double reset_after;
    int64_t remaining;
};

/* Of redbucket_response.decided: no limit delays or rejects. */
#define REDBUCKET_NONE SIZE_MAX

/*
 * The answer of all named limits together: accepted when each has room, the longest delay, the
 * longest retry_after, the longest reset_after, the smallest remaining (INT64_MAX when no limit is
 * named, which is always accepted).
 *
 *   degraded        the store failed and a failure policy answered
 *   ..._us          the same waits in whole microseconds, rounded up; UINT64_MAX for never
 *   decided         which key's limit has the longest retry_after, or else the longest delay, of
 *                   equals the first; an index, or REDBUCKET_NONE
 *   time            when it was decided, by the store's clock, in seconds; when a permit was taken
 *                   that was taken ahead
 *
 * For refund, charge, give back and reset: accepted is true, the waits 0, reset_after and remaining
 * tell of what is left.
 */
struct redbucket_response {
    bool accepted;
    bool degraded;
    double delay;
    double retry_after;
    double reset_after;
    uint64_t delay_us;
    uint64_t retry_after_us;
    uint64_t reset_after_us;
    int64_t remaining;
    size_t decided;
    double time;
};

/*
 *   REQUEST    takes `cost` from every limit, or nothing from any
 *   PEEK       answers as REQUEST would and changes nothing
 *   REFUND     gives `cost` back, never below empty; a key without a bucket stays without
 *   CHARGE     takes `cost` without asking; the bucket may pass every bound (up to 1e15), and
 *              requests are then rejected until it has drained
 *   RESET      forgets the bucket
 *   GIVE_BACK  gives back a permit taken at `taken_at` and not used: only what can't have drained
 *              since, so that no more gets in than the limit allows
 */
enum redbucket_operation {
    REDBUCKET_REQUEST,
    REDBUCKET_PEEK,
    REDBUCKET_REFUND,
    REDBUCKET_CHARGE,
    REDBUCKET_RESET,
    REDBUCKET_GIVE_BACK,
};

/*
 * One request of an array. In: operation, keys, keys_len, cost (from 1e-3 to 1e12; RESET ignores
 * it), taken_at (GIVE_BACK: response.time of the permit), verdicts (NULL, or room for keys_len
 * answers). Out: status; where that is OK, response and verdicts; where it isn't, `failed`: which
 * key it is about, or REDBUCKET_NONE.
 */
struct redbucket_request {
    enum redbucket_operation operation;
    const struct redbucket_key *keys;
    size_t keys_len;
    double cost;
    double taken_at;
    struct redbucket_verdict *verdicts;
    enum redbucket_status status;
    size_t failed;
    struct redbucket_response response;
};

/*
 * Asks for a permit of cost 1. OK: there is an answer in *response. Everything else is an error,
 * and nothing was taken; but after ERROR_TIMEOUT, IO and PROTOCOL of a store on a server, and TLS
 * and MEMORY in the middle of a call, that is unknown (docs/failure.md).
 *
 * ERROR_UNKNOWN_LIMIT, ERROR_DUPLICATE and ERROR_ARGUMENT (too many keys, a cost out of range) are
 * found before anything is read. ERROR_KEY, ERROR_FULL, ERROR_STATE, ERROR_TIMEOUT come from the
 * store. Decides atomically over all keys, whatever their order; allocates nothing; safe from any
 * thread; borrows its arguments for the call.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_request(struct redbucket_limiter *limiter, const struct redbucket_key *keys,
                  size_t keys_len, struct redbucket_response *response);

/*
 * Decides an array of independent requests in its order, each atomic by itself; a later one sees
 * what an earlier one took. One that fails doesn't stop the others. OK when all are OK, otherwise
 * the status of the first that is not. Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_decide(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                 size_t requests_len);

/*
 * The same by the caller's clock: `now` in seconds, any finite number. For embedded stores alone
 * (ERROR_UNSUPPORTED elsewhere). A clock that steps back drains nothing. All who use one store must
 * use one clock.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_decide_at(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                    size_t requests_len, double now);

/* A bucket as stored: `value` requests had not drained at `timestamp`. */
struct redbucket_state {
    bool exists;
    double timestamp;
    double value;
};

/* Reads the state of one key, drained or not. ERROR_STATE when it is there and can't be read.
 * Safe from any thread. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_read(struct redbucket_limiter *limiter, const struct redbucket_key *key,
               struct redbucket_state *state);

/*
 * Tells in full why an array's request failed, once its status isn't OK: "limit ip, key 192.0.2.7:
 * stored state can't be read". Bytes of the key that don't print are escaped, a long key is cut.
 */
REDBUCKET_API void redbucket_request_error(const struct redbucket_request *request,
                                           struct redbucket_error *error);

#ifdef __cplusplus
}
#endif

#endif
