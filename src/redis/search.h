/* SPDX-License-Identifier: MIT */
/*
 * One search for the master of a service: from sentinel to sentinel until one names a place that
 * is a master.
 */
#ifndef RBK_REDIS_SEARCH_H
#define RBK_REDIS_SEARCH_H

#include "redis/pool.h"

/* Places that were tried once in a search are not tried again; so many are remembered. */
#define RBK_SEARCH_TRIED_MAX 4

/* What a search knows of why it hasn't found the master, the more telling later. */
enum rbk_search_failure {
    RBK_SEARCH_SILENT,  /* a sentinel doesn't answer */
    RBK_SEARCH_UNKNOWN, /* a sentinel knows no such service */
    RBK_SEARCH_REFUSED, /* a sentinel won't say, or makes no sense */
    RBK_SEARCH_MASTER,  /* what a sentinel named is no master, or can't be used */
};

/*
 *   sentinels  options->hosts_len of them, and with which to begin
 *   at         out: which sentinel named the master
 *   found      out: the transport to the master, the caller's to destroy
 *   watch      where the connection to a sentinel is put, NULL at first; the one on which that
 *              sentinel says something when its answer changes is left there, the caller's to close
 */
struct rbk_search {
    const struct rbk_redis_options *options;
    struct rbk_tls *tls;
    struct rbk_transport *const *sentinels;
    size_t first;
    struct rbk_connection **watch;

    size_t at;
    struct rbk_transport *found;

    struct rbk_endpoint tried[RBK_SEARCH_TRIED_MAX];
    size_t tried_len;
    size_t strangers; /* sentinels that know no such service */
    enum rbk_search_failure worst;
    struct redbucket_error failure; /* the last of the worst */
};

/* Fails as rbk_master_connect does. Only what comes before `at` need be set. */
enum redbucket_status rbk_search(struct rbk_search *search, const struct rbk_deadline *deadline,
                                 struct rbk_peer *peer, struct redbucket_error *error);

/* Asks where the master is, and connects to nobody: the first answer holds. Sets `at`.
 * False when no sentinel names a place. */
bool rbk_search_ask(struct rbk_search *search, const struct rbk_deadline *deadline,
                    struct rbk_endpoint *master);

#endif
