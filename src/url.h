/* SPDX-License-Identifier: MIT */
/*
 * Store URLs, taken apart: SCHEME:BODY[?NAME=VALUE[&NAME=VALUE]...]
 *
 * Percent-encoding is decoded in the body and in values; a decoded NUL is refused, so everything
 * here is a string. Error messages never hold a value, since a value may be a password.
 */
#ifndef RBK_URL_H
#define RBK_URL_H

#include "redbucket/redbucket.h"

#define RBK_URL_MAX        4096
#define RBK_URL_PARAMETERS 32

/* The sizes that a store may have, in bytes. */
#define RBK_URL_SIZE_MIN ((uint64_t)32 << 10)
#define RBK_URL_SIZE_MAX ((uint64_t)200 << 30)

struct rbk_url_parameter {
    const char *name;
    const char *value;
};

/* Strings point into `text`. */
struct rbk_url {
    const char *scheme;
    const char *body;
    struct rbk_url_parameter parameters[RBK_URL_PARAMETERS];
    size_t parameters_len;
    char text[RBK_URL_MAX];
};

enum redbucket_status rbk_url_parse(const char *text, struct rbk_url *url,
                                    struct redbucket_error *error);

/* ERROR_URL for a parameter that isn't among `known`, a list of words set off by spaces. */
enum redbucket_status rbk_url_known(const struct rbk_url *url, const char *known,
                                    struct redbucket_error *error);

/* The value of a parameter, or NULL. */
const char *rbk_url_get(const struct rbk_url *url, const char *name);

/*
 * Values of a kind: a number of bytes, from 32k to 200g, with an optional k, m or g (of 1024); an
 * access mode in octal that lets its owner read and write; a duration above 0 of at most an hour,
 * in seconds. Each leaves *value alone when the parameter is absent.
 */
enum redbucket_status rbk_url_size(const struct rbk_url *url, const char *name, size_t *value,
                                   struct redbucket_error *error);
enum redbucket_status rbk_url_mode(const struct rbk_url *url, const char *name, unsigned *value,
                                   struct redbucket_error *error);
enum redbucket_status rbk_url_duration(const struct rbk_url *url, const char *name, double *value,
                                       struct redbucket_error *error);

#endif
