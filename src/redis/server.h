/* SPDX-License-Identifier: MIT */
/*
 * What a server is, asked once a connection, and what its errors mean.
 */
#ifndef RBK_REDIS_SERVER_H
#define RBK_REDIS_SERVER_H

#include "redbucket/redbucket.h"
#include "wire/reply.h"

/* Versions are 0 where the server doesn't say. */
struct rbk_server {
    unsigned version[3]; /* of Redis, or the Redis version that it is compatible with */
    unsigned valkey[3];  /* of Valkey, or 0 */
    bool replica;
    bool cluster;         /* a node of one */
    bool alone;           /* says that it is none; neither is known where it doesn't say */
    bool sentinel;        /* knows where servers are and is none itself */
    bool aof;             /* keeps a file of what was written */
    bool counts_replicas; /* says how many follow it: */
    unsigned replicas;
    char eviction[32];            /* maxmemory-policy, "" when unknown */
    unsigned long long maxmemory; /* bytes, 0 for no bound (or unknown): then nothing is evicted */
};

/* Reads "7.0.15", "7.1", "8", "7.2.4-rc2"; false, and all zeros, for what begins with no number. */
bool rbk_server_version(const char *text, unsigned version[3]);

/* Takes the reply of INFO; an error or anything unreadable leaves everything unknown. */
void rbk_server_read_info(struct rbk_server *server, const struct rbk_reply *info);

/* Takes the reply of ROLE, likewise. */
void rbk_server_read_role(struct rbk_server *server, const struct rbk_reply *role);

/*
 * The status that an error reply stands for, and whether the connection may be used on. Texts of
 * Redis 2.8 to 8 and Valkey, errors from within scripts included. UNAVAILABLE: nothing was done,
 * and trying later may help. UNSUPPORTED: this server never does it. SERVER for what isn't known
 * here.
 */
enum redbucket_status rbk_server_error(const char *text, bool *usable);

/* Room for a server's words in a message. */
#define RBK_SERVER_WORDS_SIZE 160

/* Copies an error's text for people: one printable line, without the arguments that some servers
 * repeat of a command which they don't know, since those may be a password. */
void rbk_server_words(const char *text, char words[RBK_SERVER_WORDS_SIZE]);

/* The same; but words that hold the secret (there is none when it is NULL or empty), or end in the
 * middle of it, are left out: there are servers, and proxies more so, that quote what they don't
 * understand. */
void rbk_server_words_without(const char *text, const char *secret,
                              char words[RBK_SERVER_WORDS_SIZE]);

/* True for what a node of a cluster says of a key that isn't its own, or of keys that lie apart:
 * MOVED, ASK, CROSSSLOT. */
bool rbk_server_is_node(const char *text);

/* True for what a node says while some keys of a call have moved to another and some have not:
 * TRYAGAIN. */
bool rbk_server_is_torn(const char *text);

/* True for what a node says of a slot that nobody serves, while it serves its own. */
bool rbk_server_lacks_slot(const char *text);

/* True for NOSCRIPT. */
bool rbk_server_forgot_script(const char *text);

#endif
