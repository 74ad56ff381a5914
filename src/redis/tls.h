/* SPDX-License-Identifier: MIT */
/*
 * TLS around a socket, by OpenSSL: version 1.2 or later, the server verified by the name or address
 * that was connected to.
 *
 * OpenSSL gets at the socket through functions of ours, so that writing raises no SIGPIPE and it is
 * known whether anything was sent. Its queue of errors, which is the thread's, is left empty.
 */
#ifndef RBK_REDIS_TLS_H
#define RBK_REDIS_TLS_H

#include "redis/options.h"
#include "redis/stream.h"

/* What the connections of one store share, to however many servers: the certificates. Used from any
 * thread. */
struct rbk_tls;

/* Reads the files; *tls is NULL when the options ask for no TLS. ERROR_TLS when a file is of no
 * use, ERROR_MEMORY. */
enum redbucket_status rbk_tls_create(const struct rbk_redis_options *options, struct rbk_tls **tls,
                                     struct redbucket_error *error);

/* NULL does nothing. */
void rbk_tls_destroy(struct rbk_tls *tls);

/*
 * The handshake on a connected socket. ERROR_TLS with the stream's `failure` set when the server
 * can't be verified or speaks no TLS, ERROR_UNAVAILABLE when it hangs up, ERROR_TIMEOUT,
 * ERROR_MEMORY.
 */
enum redbucket_status rbk_tls_start(struct rbk_tls *tls, const char *host,
                                    struct rbk_stream *stream, const struct rbk_deadline *deadline);

enum rbk_moved rbk_tls_write(struct rbk_stream *stream, const void *bytes, size_t len,
                             size_t *done);
enum rbk_moved rbk_tls_read(struct rbk_stream *stream, void *bytes, size_t size, size_t *done);
bool rbk_tls_holds(const struct rbk_stream *stream);

/* Frees what rbk_tls_start made; says no goodbye. */
void rbk_tls_free(struct rbk_stream *stream);

#endif
