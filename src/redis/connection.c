/* SPDX-License-Identifier: MIT */
/*
 * How a connection begins and ends: the name, the socket, TLS. What is said on it is in exchange.c.
 *
 * Invariant: a connection that isn't broken has nothing half sent and nothing half read.
 */
#include "error.h"
#include "redis/connection_inside.h"
#include "redis/dial.h"
#include "redis/resolve.h"
#include "redis/tls.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct rbk_transport {
    struct rbk_endpoint endpoint;
    struct rbk_tls *tls;           /* or NULL */
    struct rbk_resolver *resolver; /* or NULL, for a Unix socket */
};

enum redbucket_status rbk_transport_create(const struct rbk_endpoint *endpoint, struct rbk_tls *tls,
                                           struct rbk_transport **transport,
                                           struct redbucket_error *error)
{
    struct rbk_transport *made = calloc(1, sizeof *made);
    enum redbucket_status status = REDBUCKET_OK;

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, endpoint->where);
    made->endpoint = *endpoint;
    made->tls = tls;
    if (endpoint->port != 0)
        status = rbk_resolver_create(getaddrinfo, made->endpoint.name, endpoint->port,
                                     &made->resolver, error);
    if (status != REDBUCKET_OK) {
        rbk_transport_destroy(made);
        return status;
    }
    *transport = made;
    return REDBUCKET_OK;
}

void rbk_transport_destroy(struct rbk_transport *transport)
{
    if (transport == NULL)
        return;
    rbk_resolver_destroy(transport->resolver);
    free(transport);
}

const struct rbk_endpoint *rbk_transport_endpoint(const struct rbk_transport *transport)
{
    return &transport->endpoint;
}

static enum redbucket_status find(struct rbk_transport *transport,
                                  const struct rbk_deadline *deadline,
                                  struct rbk_addresses *addresses, struct redbucket_error *error)
{
    const char *reason = "the path is too long";
    enum redbucket_status status = REDBUCKET_OK;

    if (transport->endpoint.port != 0) {
        status = rbk_resolve(transport->resolver, deadline, addresses, &reason);
    } else {
        addresses->len = 1;
        if (!rbk_address_of_path(transport->endpoint.name, &addresses->at[0]))
            status = REDBUCKET_ERROR_URL;
    }
    if (status != REDBUCKET_OK)
        rbk_error_set(error, status, -1, "%s: %s", transport->endpoint.where, reason);
    return status;
}

static enum redbucket_status reach(struct rbk_transport *transport,
                                   const struct rbk_deadline *deadline, struct rbk_stream *stream,
                                   struct redbucket_error *error)
{
    struct rbk_addresses addresses;
    enum redbucket_status status = find(transport, deadline, &addresses, error);

    if (status != REDBUCKET_OK)
        return status;
    status = rbk_dial(&addresses, deadline, stream);
    if (status == REDBUCKET_OK && transport->tls != NULL)
        status = rbk_tls_start(transport->tls, transport->endpoint.name, stream, deadline);
    if (status != REDBUCKET_OK)
        rbk_error_set(error, status, -1, "%s: %s", transport->endpoint.where, stream->failure);
    return status;
}

enum redbucket_status rbk_connection_open(struct rbk_transport *transport,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_connection **connection,
                                          struct redbucket_error *error)
{
    struct rbk_connection *made = calloc(1, sizeof *made);
    enum redbucket_status status;

    *connection = NULL;
    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, transport->endpoint.where);
    made->stream.fd = -1;
    made->reader = rbk_reader_create();
    /* A child may be forked at any moment: it sees all of this, or nothing. */
    atomic_thread_fence(memory_order_release);
    *connection = made;
    if (made->reader == NULL)
        status = rbk_fail_system(error, ENOMEM, transport->endpoint.where);
    else
        status = reach(transport, deadline, &made->stream, error);
    if (status != REDBUCKET_OK) {
        *connection = NULL;
        rbk_connection_close(made);
    }
    return status;
}

void rbk_connection_close(struct rbk_connection *connection)
{
    if (connection == NULL)
        return;
    rbk_stream_close(&connection->stream);
    rbk_reader_destroy(connection->reader);
    rbk_outgoing_free(&connection->outgoing);
    free(connection);
}

void rbk_connection_abandon(struct rbk_connection *connection)
{
    if (connection != NULL && connection->stream.fd >= 0)
        (void)close(connection->stream.fd);
}

void rbk_connection_rest(struct rbk_connection *connection)
{
    rbk_reader_reset(connection->reader);
}

bool rbk_connection_good(struct rbk_connection *connection)
{
    return !connection->broken && rbk_stream_idle(&connection->stream);
}

const char *rbk_connection_failure(const struct rbk_connection *connection)
{
    return connection->stream.failure;
}
