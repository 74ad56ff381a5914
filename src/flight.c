/* SPDX-License-Identifier: MIT */
/*
 * Copying requests to and fro. All is one piece of memory: requests, claims, keys, and then bytes.
 */
#include "flight.h"

#include <stdlib.h>
#include <string.h>

void rbk_flight_measure(struct rbk_flight_size *size, const struct rbk_request *requests,
                        size_t len)
{
    size->requests += len;
    for (size_t i = 0; i < len; i++) {
        size->claims += requests[i].len;
        for (size_t j = 0; j < requests[i].len; j++)
            size->bytes += requests[i].keys[j].key_len + requests[i].keys[j].zone_len;
    }
}

bool rbk_flight_init(struct rbk_flight *flight, const struct rbk_flight_size *size)
{
    size_t whole = size->requests * sizeof *flight->requests +
                   size->claims * (sizeof *flight->claims + sizeof *flight->keys) + size->bytes;

    *flight = (struct rbk_flight){.memory = malloc(whole)};
    if (flight->memory == NULL)
        return false;
    flight->requests = flight->memory;
    flight->claims = (struct rbk_claim *)(flight->requests + size->requests);
    flight->keys = (struct rbk_key *)(flight->claims + size->claims);
    flight->bytes = (unsigned char *)(flight->keys + size->claims);
    return true;
}

void rbk_flight_fini(struct rbk_flight *flight)
{
    free(flight->memory);
}

static const unsigned char *copy(struct rbk_flight *flight, const unsigned char *bytes, size_t len)
{
    unsigned char *made = flight->bytes;

    if (len > 0)
        memcpy(made, bytes, len);
    flight->bytes += len;
    return made;
}

void rbk_flight_board(struct rbk_flight *flight, const struct rbk_request *requests, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct rbk_request *made = &flight->requests[flight->len++];
        size_t claims = requests[i].len;

        *made = requests[i];
        made->keys = flight->keys;
        made->claims = flight->claims;
        for (size_t j = 0; j < claims; j++) {
            const struct rbk_key *key = &requests[i].keys[j];

            flight->claims[j] = requests[i].claims[j];
            flight->keys[j] = *key;
            flight->keys[j].zone = copy(flight, key->zone, key->zone_len);
            flight->keys[j].key = copy(flight, key->key, key->key_len);
        }
        flight->keys += claims;
        flight->claims += claims;
    }
}

void rbk_flight_leave(const struct rbk_request *decided, struct rbk_request *requests, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        requests[i].ask.now = decided[i].ask.now;
        requests[i].status = decided[i].status;
        requests[i].failed = decided[i].failed;
        requests[i].answer = decided[i].answer;
        for (size_t j = 0; j < requests[i].len; j++)
            requests[i].claims[j] = decided[i].claims[j];
    }
}
