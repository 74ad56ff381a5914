/* SPDX-License-Identifier: MIT */
/*
 * Store URLs, taken apart: SCHEME:BODY[?NAME=VALUE[&NAME=VALUE]...]
 *
 * A body that begins with two slashes is //[USER[:PASSWORD]@]HOSTS[/PATH], and is left as it is for
 * rbk_url_split. Percent-encoding is decoded in every other body, in values, and in each part that
 * rbk_url_split makes, always after the splitting. A decoded NUL is refused, so everything here is
 * a string. Error messages never hold a value or a part of a body, since either may be a password.
 */
#ifndef RBK_URL_H
#define RBK_URL_H

#include "redbucket/redbucket.h"

/* The kinds of stores, for messages. */
#define RBK_URL_SERVERS "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"
#define RBK_URL_KINDS   "memory:, shm:NAME, " RBK_URL_SERVERS

#define RBK_URL_MAX        4096
#define RBK_URL_PARAMETERS 32

/* The sizes that a store may have, in bytes. */
#define RBK_URL_SIZE_MIN ((size_t)32 << 10)
#if SIZE_MAX > UINT32_MAX
#define RBK_URL_SIZE_MAX  ((size_t)200 << 30)
#define RBK_URL_SIZE_MOST "200g"
#else
#define RBK_URL_SIZE_MAX  ((size_t)1 << 30) /* of all that a process can address */
#define RBK_URL_SIZE_MOST "1g"
#endif

struct rbk_url_parameter {
    const char *name;
    const char *value;
};

/* Strings point into `text`: not to be copied but by rbk_url_copy. */
struct rbk_url {
    const char *scheme;
    const char *body;
    bool slashes;      /* the body begins with two, as written, and is not decoded yet */
    bool query_has_at; /* an @ behind the ?, so perhaps the rest of a password with a ? in it */
    struct rbk_url_parameter parameters[RBK_URL_PARAMETERS];
    size_t parameters_len;
    char text[RBK_URL_MAX];
};

enum redbucket_status rbk_url_parse(const char *text, struct rbk_url *url,
                                    struct redbucket_error *error);

/* Decodes percent-encoding in place; ERROR_URL for half an encoding or a NUL. */
enum redbucket_status rbk_url_decode(char *text, struct redbucket_error *error);

void rbk_url_copy(const struct rbk_url *url, struct rbk_url *copy);

/*
 * What stands behind the two slashes. `hosts` is not decoded yet and may be a list; `path` begins
 * with a slash or is empty. A user who gives no password has the empty one; both are NULL when
 * there is neither.
 */
struct rbk_url_authority {
    const char *user;
    const char *password;
    char *hosts;
    char *path;
};

/* Splits the body in place, so that it can be done once. ERROR_URL when it has no two slashes. */
enum redbucket_status rbk_url_split(struct rbk_url *url, struct rbk_url_authority *authority,
                                    struct redbucket_error *error);

/* A host's name or numeric address, without brackets. */
struct rbk_url_host {
    const char *name;
    unsigned port;
    bool ipv6;
};

#define RBK_URL_HOST_MAX 253

/* Reads HOST[:PORT] or [IPV6][:PORT], in place. `host->port` is what there is when none is given.
 */
enum redbucket_status rbk_url_host(char *text, struct rbk_url_host *host,
                                   struct redbucket_error *error);

/* Reads digits and nothing else; false when that isn't a number from `min` to `max`. */
bool rbk_url_number(const char *text, unsigned min, unsigned max, unsigned *number);

/* ERROR_URL for a parameter that isn't among `known`, a list of words set off by spaces. */
enum redbucket_status rbk_url_known(const struct rbk_url *url, const char *known,
                                    struct redbucket_error *error);

/* Seconds that a call may take where `timeout` isn't given. */
#define RBK_TIMEOUT_DEFAULT 1.0

/* The value of a parameter, or NULL. */
const char *rbk_url_get(const struct rbk_url *url, const char *name);

/*
 * Values of a kind: a number of bytes, from 32k to 200g (1g where a size_t has 32 bits), with an
 * optional k, m or g (of 1024); an access mode in octal that lets its owner read and write; a
 * duration above 0 of at most an hour, in seconds. Each leaves *value alone when the parameter is
 * absent.
 */
enum redbucket_status rbk_url_size(const struct rbk_url *url, const char *name, size_t *value,
                                   struct redbucket_error *error);
enum redbucket_status rbk_url_mode(const struct rbk_url *url, const char *name, unsigned *value,
                                   struct redbucket_error *error);
enum redbucket_status rbk_url_duration(const struct rbk_url *url, const char *name, double *value,
                                       struct redbucket_error *error);

#endif
