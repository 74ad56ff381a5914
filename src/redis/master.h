/* SPDX-License-Identifier: MIT */
/*
 * The master of a service, where the sentinels say that it is.
 *
 * They are asked one after the other, each for a share of the time that is left, so that one that
 * is silent leaves some for the next; and none is believed before the place that it names has taken
 * a connection and called itself a master. What was found holds until it is lost: then the
 * connections that were made to it are of an older generation, and the next one begins with asking.
 *
 * A master that is asked to step down goes on taking requests for seconds, which its successor
 * never hears of. So the sentinel that named it is listened to, and asked again when it says
 * anything.
 */
#ifndef RBK_REDIS_MASTER_H
#define RBK_REDIS_MASTER_H

#include "redis/pool.h"

/* Used from any thread, and after a fork in the child as well, which asks for itself. */
struct rbk_master;

/* Options and certificates are borrowed. ERROR_MEMORY, ERROR_SYSTEM, ERROR_UNSUPPORTED. Asks nobody
 * yet. */
enum redbucket_status rbk_master_create(const struct rbk_redis_options *options,
                                        struct rbk_tls *tls, struct rbk_master **master,
                                        struct redbucket_error *error);

/* Nobody is in it any more. NULL does nothing. */
void rbk_master_destroy(struct rbk_master *master);

/*
 * Connects a peer to the master, as rbk_handshake does to a server, and notes the generation in it.
 * Of several threads one alone asks the sentinels; the others wait for what it finds.
 *
 * Nothing was decided, whatever fails: ERROR_UNAVAILABLE when no sentinel answers, none knows the
 * service, or what they name is no master that answers; ERROR_TIMEOUT at the deadline; or whatever
 * keeps the sentinels or the master from being asked (ERROR_AUTH, ERROR_TLS...).
 */
enum redbucket_status rbk_master_connect(struct rbk_master *master,
                                         const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                         struct redbucket_error *error);

/*
 * Looks, now and then, whether the sentinel has said anything, and asks again when it has; at least
 * every few seconds where it says nothing of itself. A master that has moved is then lost. For at
 * most a quarter of the time that is left: who was found goes on being good enough.
 */
void rbk_master_look(struct rbk_master *master, const struct rbk_deadline *deadline);

/* False when the place that the peer is connected to has been lost since. Costs next to nothing. */
bool rbk_master_is_current(const struct rbk_master *master, const struct rbk_peer *peer);

/* The place that the peer was connected to is the master's no more, or answers no more. What an
 * older generation meets says nothing of this one. */
void rbk_master_lost(struct rbk_master *master, const struct rbk_peer *peer);

/* Copies where the master was found last, and the sentinel that said so; both "" before that. */
void rbk_master_tell(struct rbk_master *master, char where[RBK_WHERE_SIZE],
                     char sentinel[RBK_WHERE_SIZE]);

#endif
