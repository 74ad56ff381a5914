/* SPDX-License-Identifier: MIT */
/*
 * What the URL of a store on a server, or on several, asks for.
 *
 *   redis://[user[:password]@]host[:port][/db]
 *   unix://[user[:password]@]/path[?db=N]
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../service[/db]
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...
 *
 * and the same with rediss, for TLS. Immutable once read. Everything that may be a password stays
 * out of every message.
 */
#ifndef RBK_REDIS_OPTIONS_H
#define RBK_REDIS_OPTIONS_H

#include "redis/endpoint.h"
#include "wire/codec.h"
#include "wire/key_format.h"

enum rbk_redis_method {
    RBK_METHOD_AUTO,
    RBK_METHOD_SCRIPT,
    RBK_METHOD_TRANSACTION,
};

/* What stands behind the hosts of a URL. */
enum rbk_redis_kind {
    RBK_KIND_SERVER,   /* one server, the only host */
    RBK_KIND_SENTINEL, /* sentinels, who know where the service's master is */
    RBK_KIND_CLUSTER,  /* some nodes of a cluster, who know the others */
};

/* Hosts in one URL. */
#define RBK_HOSTS_MAX 32u

/* Holds pointers into itself: not to be copied. */
struct rbk_redis_options {
    enum rbk_redis_kind kind;
    struct rbk_endpoint hosts[RBK_HOSTS_MAX];
    size_t hosts_len;     /* at least 1 */
    unsigned db;          /* 0 in a cluster */
    const char *user;     /* or NULL; with a user there is a password, perhaps the empty one */
    const char *password; /* or NULL */

    const char *service;           /* NULL but for sentinels */
    const char *sentinel_user;     /* or NULL; with a user there is a password */
    const char *sentinel_password; /* or NULL */

    bool tls;
    bool tls_verify;      /* false only for verify=none */
    const char *tls_ca;   /* a PEM file, or NULL for the system's */
    const char *tls_cert; /* PEM files, both or neither */
    const char *tls_key;

    double timeout;       /* seconds, for a whole decision; default 1 */
    unsigned connections; /* at most so many; default 8 */
    enum rbk_redis_method method;
    enum rbk_codec codec;
    struct rbk_key_format key_format;

    struct rbk_url url; /* holds the strings */
};

/*
 * ERROR_URL with a message that says which part is wrong and what was expected. The parameters
 * on_error and local_share are let pass: what they say is read by who answers for a store that
 * failed.
 */
enum redbucket_status rbk_redis_options_parse(const struct rbk_url *url,
                                              struct rbk_redis_options *options,
                                              struct redbucket_error *error);

#endif
