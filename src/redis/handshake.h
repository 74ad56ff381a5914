/* SPDX-License-Identifier: MIT */
/*
 * From a socket to a server that is ready: user, database, and what it is.
 */
#ifndef RBK_REDIS_HANDSHAKE_H
#define RBK_REDIS_HANDSHAKE_H

#include "redis/pool.h"

/*
 * Connects the peer and asks the server, in one round trip, what it is. What may be refused (INFO,
 * ROLE) is taken as unknown. ERROR_READONLY for a replica: its rejections would write nothing and
 * never show it. But in a cluster a replica says by itself who is to be asked instead. On failure
 * the peer is not connected.
 */
enum redbucket_status rbk_handshake(const struct rbk_redis_options *options,
                                    struct rbk_transport *transport,
                                    const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                    struct redbucket_error *error);

/* Takes the connection, if there is one, from the peer before closing it: a child that is forked in
 * the middle must not find one that is half gone. */
void rbk_hang_up(struct rbk_peer *peer);

#endif
