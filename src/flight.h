/* SPDX-License-Identifier: MIT */
/*
 * Requests of several callers, copied side by side with all that they point to, so that no caller
 * has to stay for as long as the call takes.
 */
#ifndef RBK_FLIGHT_H
#define RBK_FLIGHT_H

#include "store.h"

struct rbk_flight {
    struct rbk_request *requests;
    size_t len;
    void *memory;
    struct rbk_key *keys;
    struct rbk_claim *claims;
    unsigned char *bytes; /* of keys and zones */
};

/* What has to be copied. Zeros at first. */
struct rbk_flight_size {
    size_t requests;
    size_t claims;
    size_t bytes;
};

void rbk_flight_measure(struct rbk_flight_size *size, const struct rbk_request *requests,
                        size_t len);

/* Room for as much as was measured; false without memory. */
bool rbk_flight_init(struct rbk_flight *flight, const struct rbk_flight_size *size);
void rbk_flight_fini(struct rbk_flight *flight);

/* Copies requests behind those that are there. */
void rbk_flight_board(struct rbk_flight *flight, const struct rbk_request *requests, size_t len);

/* Copies back what became of them, from the first of theirs on. */
void rbk_flight_leave(const struct rbk_request *decided, struct rbk_request *requests, size_t len);

#endif
