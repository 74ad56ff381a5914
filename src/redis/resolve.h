/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a host, under a deadline.
 *
 * Numeric addresses are read at once. A name is looked up by a thread of its own, since nothing
 * else ends a look-up that hangs. There is at most one such thread for a resolver: who asks while
 * it is still busy waits for the same answer, so that a name server that is away costs one thread,
 * not one for each try. (The C library's getaddrinfo_a is no help: a child that is forked while one
 * of its threads idles waits for that thread for ever.)
 */
#ifndef RBK_REDIS_RESOLVE_H
#define RBK_REDIS_RESOLVE_H

#include "deadline.h"
#include "redbucket/redbucket.h"

#include <sys/socket.h>

#define RBK_ADDRESSES_MAX 16

struct rbk_address {
    struct sockaddr_storage bytes;
    socklen_t len;
};

struct rbk_addresses {
    struct rbk_address at[RBK_ADDRESSES_MAX];
    size_t len;
};

struct addrinfo;

/* Has the shape of getaddrinfo. */
typedef int rbk_lookup(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

/* For one host, from any thread, and in a child after fork. */
struct rbk_resolver;

/* `lookup` is getaddrinfo, or a test's; what it finds is freed by freeaddrinfo. `host` is borrowed.
 * ERROR_MEMORY, ERROR_SYSTEM, ERROR_UNSUPPORTED. */
enum redbucket_status rbk_resolver_create(rbk_lookup *lookup, const char *host, unsigned port,
                                          struct rbk_resolver **resolver,
                                          struct redbucket_error *error);

/* Nobody waits in it any more. A look-up under way frees what it uses when it ends. NULL does
 * nothing. */
void rbk_resolver_destroy(struct rbk_resolver *resolver);

/*
 * Finds at least one address. ERROR_TIMEOUT at the deadline, ERROR_UNAVAILABLE when there is no
 * such name or nobody who would know it, ERROR_SYSTEM without a thread or descriptor, ERROR_MEMORY;
 * and *reason in a few static words.
 */
enum redbucket_status rbk_resolve(struct rbk_resolver *resolver,
                                  const struct rbk_deadline *deadline,
                                  struct rbk_addresses *addresses, const char **reason);

#endif
