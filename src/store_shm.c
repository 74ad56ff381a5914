/* SPDX-License-Identifier: MIT */
/*
 * The shm: store: a table in memory that processes of this machine share.
 *
 * Each shard has a robust mutex: when its holder dies, the next one is told, and undoes what had
 * been begun. When its holder is stopped instead, waiting ends at the deadline with an error.
 */
#include "embedded.h"
#include "interrupt.h"
#include "shm_file.h"
#include "url.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 200

/* Seconds for which locks are held at the most, when their holders run. */
#define SHORTLY 50e-6
#define NOTICED 0.05

struct shm {
    struct rbk_embedded embedded;
    struct rbk_table table;
    struct rbk_shm_file file;
    double timeout;
};

static struct shm *shm_of(struct rbk_embedded *embedded)
{
    return (struct shm *)embedded;
}

#ifdef HAVE_CLOCKLOCK
static int lock_until(pthread_mutex_t *mutex, const struct rbk_deadline *until)
{
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until->at);
}
#else
/* Without pthread_mutex_clocklock there is only a wait by the clock that can be set: set back in
 * the middle of it, it would last as much longer. So look again and again instead. */
static int lock_until(pthread_mutex_t *mutex, const struct rbk_deadline *until)
{
    const struct timespec nap = {.tv_nsec = 50000};
    int number;

    while ((number = pthread_mutex_trylock(mutex)) == EBUSY && rbk_deadline_left(until) > 0.0)
        (void)nanosleep(&nap, NULL);
    return number == EBUSY ? ETIMEDOUT : number;
}
#endif

/* Waits for a lock that somebody holds, for as long as the call has left to wait. A fiber waits
 * only for as long as a lock is usually held; for a host that looks after its signals, only for as
 * long as nobody notices, since it holds other locks, and is asked when it holds none. */
static int wait_for(pthread_mutex_t *mutex, double timeout, double *waited)
{
    double left = timeout - *waited;
    double piece = rbk_wait_on_fiber() ? SHORTLY : rbk_interrupt_wanted() ? NOTICED : left;
    bool shortly = piece < left;
    double most = shortly ? piece : left;
    struct rbk_deadline deadline;
    int number;

    if (left <= 0.0 || rbk_wait_is_over())
        return ETIMEDOUT;
    rbk_deadline_start(&deadline, most);
    number = lock_until(mutex, &deadline);
    *waited += most - rbk_deadline_left(&deadline);
    return number == ETIMEDOUT && shortly ? EBUSY : number;
}

static enum redbucket_status lock(struct rbk_embedded *embedded, unsigned shard, double *waited)
{
    pthread_mutex_t *mutex = &shm_of(embedded)->file.header->locks[shard].mutex;
    int number = pthread_mutex_trylock(mutex);

    if (number == EBUSY)
        number = wait_for(mutex, shm_of(embedded)->timeout, waited);
    /* The journal, not the mutex, tells whether there is anything to undo. */
    if (number == EOWNERDEAD)
        number = pthread_mutex_consistent(mutex);
    if (number == 0)
        return REDBUCKET_OK;
    if (number == EBUSY)
        return REDBUCKET_ERROR_CONFLICT;
    return number == ETIMEDOUT ? REDBUCKET_ERROR_TIMEOUT : REDBUCKET_ERROR_SYSTEM;
}

static void unlock(struct rbk_embedded *embedded, unsigned shard)
{
    (void)pthread_mutex_unlock(&shm_of(embedded)->file.header->locks[shard].mutex);
}

static void close_shm(struct redbucket_store *store)
{
    struct shm *shm = (struct shm *)store;

    rbk_shm_file_close(&shm->file);
    free(shm);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    enum redbucket_status status = rbk_embedded_statistics(store, out);

    out->bytes = ((struct shm *)store)->file.size;
    return status;
}

static const struct rbk_store_ops shm_ops = {
    .decide = rbk_embedded_decide,
    .read = rbk_embedded_read,
    .walk = rbk_embedded_walk,
    .statistics = statistics,
    .key_max = rbk_embedded_key_max,
    .enroll = rbk_embedded_enroll,
    .zones = rbk_embedded_zones,
    .close = close_shm,
    .own_clock_only = false,
};

/* A name is one file name in the directory of shared memory. */
static enum redbucket_status check_name(const char *name, struct redbucket_error *error)
{
    if (name[0] == '\0')
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: expected shm:NAME");
    if (strlen(name) > NAME_MAX_LEN)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: shm: name longer than %d bytes",
                        NAME_MAX_LEN);
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: shm: expected a name without /, not \"%s\"", name);
    return REDBUCKET_OK;
}

static enum redbucket_status read_create(const struct rbk_url *url, bool *no_other,
                                         struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, "create");

    *no_other = text != NULL && strcmp(text, "no") == 0;
    if (text == NULL || *no_other || strcmp(text, "yes") == 0)
        return REDBUCKET_OK;
    return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: create: expected yes or no");
}

static enum redbucket_status configure(const struct rbk_url *url, struct rbk_shm_wanted *wanted,
                                       struct redbucket_error *error)
{
    enum redbucket_status status =
        rbk_url_known(url, "size mode timeout create on_error local_share", error);

    wanted->name = url->body;
    wanted->timeout = RBK_TIMEOUT_DEFAULT;
    if (status == REDBUCKET_OK)
        status = check_name(url->body, error);
    if (status == REDBUCKET_OK)
        status = rbk_url_size(url, "size", &wanted->size, error);
    if (status == REDBUCKET_OK)
        status = rbk_url_mode(url, "mode", &wanted->mode, error);
    if (status == REDBUCKET_OK)
        status = rbk_url_duration(url, "timeout", &wanted->timeout, error);
    if (status == REDBUCKET_OK)
        status = read_create(url, &wanted->no_other, error);
    return status;
}

enum redbucket_status rbk_shm_open(const struct rbk_url *url, struct redbucket_store **store,
                                   struct redbucket_error *error)
{
    struct rbk_shm_wanted wanted = {0};
    enum redbucket_status status = configure(url, &wanted, error);

    if (status != REDBUCKET_OK)
        return status;
    struct shm *shm = calloc(1, sizeof *shm);

    if (shm == NULL)
        return rbk_fail_system(error, ENOMEM, "shm: store");
    shm->embedded.store.ops = &shm_ops;
    shm->embedded.table = &shm->table;
    shm->embedded.lock = lock;
    shm->embedded.unlock = unlock;
    shm->timeout = wanted.timeout;
    shm->embedded.store.timeout = wanted.timeout;
    status = rbk_shm_file_open(&wanted, &shm->file, error);
    if (status == REDBUCKET_OK &&
        !rbk_table_attach(&shm->table, shm->file.table, shm->file.table_size))
        status = rbk_fail(error, REDBUCKET_ERROR_FOREIGN, -1,
                          "shm:%s: was made by another version of this library, or is damaged",
                          wanted.name);
    if (status != REDBUCKET_OK) {
        close_shm(&shm->embedded.store);
        return status;
    }
    *store = &shm->embedded.store;
    return REDBUCKET_OK;
}
