/* SPDX-License-Identifier: MIT */
/*
 * A list under one lock. Grants of draining buckets are kept one by one, of the others their sum.
 */
#include "accounts.h"

#include "sleepers.h"
#include "window.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE   48
#define CENT       0.01 /* what a book drains while the test lasts, and more */
#define TICK_S     2e-6
#define FAULTS_MAX 20

struct account {
    struct account *next;
    const struct named_limit *limit;
    char key[KEY_SIZE];
    double base;
    double asked;
    double told;
    double doubt;
    double doubted_s;
    struct account *twin;
    struct grant *grants;
    size_t grants_len;
    size_t grants_size;
};

const struct named_limit account_limits[] = {
    {"tight", WINDOW, {.rate = 15, .burst = 8, .delay = 4}},
    {"own", WINDOW, {.rate = 10, .burst = 2}},
    {"gate", WINDOW, {.rate = 25, .burst = 5}},
    {"hot", LEASED, {.rate = 20, .burst = 30, .lease = 16, .lease_time = 0.2}},
    {"book", BOOK, {.rate = BOOK_RATE, .burst = BOOK_BURST}},
    {"left", BOOK, {.rate = BOOK_RATE, .burst = BOOK_BURST}},
    {"right", BOOK, {.rate = BOOK_RATE, .burst = BOOK_BURST}},
    {"hoard", HOARD, {.rate = BOOK_RATE, .burst = BOOK_BURST, .lease = 20, .lease_time = 0.5}},
};
const size_t account_limits_len = sizeof account_limits / sizeof account_limits[0];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct account *accounts;
static atomic_uint found;

void fault(const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (atomic_fetch_add(&found, 1) < FAULTS_MAX)
        fprintf(stderr, "# FAULT: %s\n", text);
}

unsigned faults_found(void)
{
    return atomic_load(&found);
}

static const struct named_limit *limit_of(const char *name)
{
    for (size_t i = 0; i < account_limits_len; i++) {
        if (strcmp(account_limits[i].name, name) == 0)
            return &account_limits[i];
    }
    abort();
}

struct account *account_of(const char *limit, const char *key, double base)
{
    struct account *account;

    pthread_mutex_lock(&mutex);
    account = accounts;
    while (account != NULL &&
           (strcmp(account->limit->name, limit) != 0 || strcmp(account->key, key) != 0))
        account = account->next;
    if (account == NULL) {
        account = calloc(1, sizeof *account);
        if (account == NULL)
            abort();
        account->limit = limit_of(limit);
        (void)snprintf(account->key, KEY_SIZE, "%s", key);
        account->base = base;
        account->doubted_s = -1.0;
        account->next = accounts;
        accounts = account;
    }
    pthread_mutex_unlock(&mutex);
    return account;
}

static double read_locked(const double *number)
{
    double copy;

    pthread_mutex_lock(&mutex);
    copy = *number;
    pthread_mutex_unlock(&mutex);
    return copy;
}

double account_told(struct account *account)
{
    return read_locked(&account->told);
}

double account_asked(struct account *account)
{
    return read_locked(&account->asked);
}

const char *account_limit(const struct account *account)
{
    return account->limit->name;
}

double account_base(const struct account *account)
{
    return account->base;
}

double account_doubted(struct account *account)
{
    return read_locked(&account->doubted_s);
}

void account_pair(struct account *one, struct account *other)
{
    pthread_mutex_lock(&mutex);
    one->twin = other;
    pthread_mutex_unlock(&mutex);
}

void account_ask(struct account *account, double cost)
{
    pthread_mutex_lock(&mutex);
    account->asked += cost;
    pthread_mutex_unlock(&mutex);
}

void account_doubt(struct account *account, double cost)
{
    pthread_mutex_lock(&mutex);
    account->doubt += cost;
    account->doubted_s = now_s();
    pthread_mutex_unlock(&mutex);
}

static void keep_grant_locked(struct account *account, const struct grant *grant)
{
    if (account->grants_len == account->grants_size) {
        account->grants_size = 2 * account->grants_size + 256;
        account->grants =
            realloc(account->grants, account->grants_size * sizeof account->grants[0]);
        if (account->grants == NULL)
            abort();
    }
    account->grants[account->grants_len++] = *grant;
}

void account_grant(struct account *account, double cost, double begin, double end)
{
    const struct grant grant = {begin, end, cost};

    pthread_mutex_lock(&mutex);
    account->told += cost;
    if (account->limit->rule == WINDOW || account->limit->rule == LEASED)
        keep_grant_locked(account, &grant);
    pthread_mutex_unlock(&mutex);
}

/* ---- The end -------------------------------------------------------------------------------- */

/* In percent of burst + 1 + delay, and what may drain besides. */
static double close_window(struct account *account)
{
    const struct redbucket_limit *limit = &account->limit->limit;
    double more_s = TICK_S + (account->limit->rule == LEASED ? limit->lease_time : 0.0);
    double most = limit->burst + 1.0 + limit->delay + limit->rate * more_s;
    struct fullest fullest;

    window_fullest(account->grants, account->grants_len, limit->rate, &fullest);
    if (fullest.excess > most * (1.0 + 1e-12))
        fault("%s:%s: %g accepted within %.6f s from %.6f on, which is %g more than %g",
              account->limit->name, account->key, fullest.cost, fullest.length, fullest.begin,
              fullest.excess - most, most + limit->rate * fullest.length);
    return 100.0 * fullest.excess / most;
}

static double stored(struct behind *behind, const struct account *account)
{
    double value = 0.0;

    (void)behind_value(behind, account->limit->name, account->key, &value);
    return value;
}

static void close_book(struct behind *behind, const struct account *account)
{
    double taken = stored(behind, account) - account->base;

    if (taken < account->told - CENT)
        fault("%s:%s: %.3f were told, and %.3f taken", account->limit->name, account->key,
              account->told, taken);
    if (account->limit->rule == BOOK && taken > account->told + account->doubt + CENT)
        fault("%s:%s: %.3f were told, %.3f more in doubt, and %.3f taken", account->limit->name,
              account->key, account->told, account->doubt, taken);
    if (account->twin != NULL && fabs(taken - stored(behind, account->twin)) > CENT)
        fault("%s:%s: %.3f taken, and of %s:%s %.3f", account->limit->name, account->key, taken,
              account->twin->limit->name, account->twin->key, stored(behind, account->twin));
}

double accounts_close(struct behind *behind, char *where)
{
    double worst = 0.0;

    where[0] = '\0';
    for (struct account *account = accounts; account != NULL; account = account->next) {
        if (account->limit->rule == BOOK || account->limit->rule == HOARD) {
            close_book(behind, account);
            continue;
        }
        double use = close_window(account);

        if (use <= worst)
            continue;
        worst = use;
        (void)snprintf(where, 64, "%s:%s", account->limit->name, account->key);
    }
    while (accounts != NULL) {
        struct account *account = accounts;

        accounts = account->next;
        free(account->grants);
        free(account);
    }
    return worst;
}
