/* SPDX-License-Identifier: MIT */
/*
 * A server that speaks TLS as a test wants it, and the certificates for it, good ones and bad.
 */
#ifndef TEST_TLS_ACTOR_H
#define TEST_TLS_ACTOR_H

#include "actor.h"

#include <semaphore.h>
#include <stdbool.h>

/*
 *   cert        the name of its certificate: server, elsewhere, intruder (tests/certificates), or
 *               expired
 *   version     of TLS, at most this one, 0 for any
 *   wants_ours  a certificate of the client's
 *   answer      to whatever it hears
 *   piece       bytes of the answer that go out together, 0 for all
 *   shaken      told when a handshake is over, and the tickets are sent; or NULL
 *   resets      resets the connection after an answer, once told to; or NULL
 *   name        that the client asked for, set by the server
 */
struct test_tls_server {
    const char *cert;
    int version;
    bool wants_ours;
    const char *answer;
    size_t piece;
    sem_t *shaken;
    sem_t *resets;
    char name[64];
};

/* Where the certificates are: NAME.pem and NAME.key. */
extern char test_tls_folder[];

/* The set-up and the tear-down of a group of tests. Beside those of tests/certificates there is
 * "expired", and "locked.key", which wants a passphrase. */
int test_tls_make(void **state);
int test_tls_remove(void **state);

/* What the server does with a connection; `data` is a struct test_tls_server. */
test_actor_act test_tls_serve;

#endif
