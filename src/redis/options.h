/* SPDX-License-Identifier: MIT */
/*
 * What a redis://, rediss:// or unix:// URL asks for.
 *
 *   redis://[user[:password]@]host[:port][/db]      rediss:// with TLS
 *   unix://[user[:password]@]/path[?db=N]
 *
 * Immutable once read. Everything that may be a password stays out of every message.
 */
#ifndef RBK_REDIS_OPTIONS_H
#define RBK_REDIS_OPTIONS_H

#include "url.h"
#include "wire/codec.h"
#include "wire/key_format.h"

enum rbk_redis_method {
    RBK_METHOD_AUTO,
    RBK_METHOD_SCRIPT,
    RBK_METHOD_TRANSACTION,
};

/* The longest path of a Unix socket, without its NUL. */
#define RBK_UNIX_PATH_MAX 107

/* Room for a host or a path with a port, for messages. */
#define RBK_WHERE_SIZE 272

/* Holds pointers into itself: not to be copied. */
struct rbk_redis_options {
    const char *host; /* a name or a numeric address, without brackets; NULL for a Unix socket */
    const char *path; /* of the Unix socket, or NULL */
    unsigned port;
    unsigned db;
    const char *user;     /* or NULL; with a user there is a password, perhaps the empty one */
    const char *password; /* or NULL */

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

    char where[RBK_WHERE_SIZE]; /* "host:port", "[v6]:port" or the path, for messages */
    struct rbk_url url;         /* holds the strings */
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
