/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the answer to CLUSTER SLOTS, and any error as a redirection: what is taken is within
 * its bounds, and what is not leaves everything as it was. Links the library's private reader.
 */
#include "redis/reader.h"
#include "wire/redirect.h"
#include "wire/topology.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rbk_place asked = {"192.0.2.9", 7000};

static void check_place(const struct rbk_place *place)
{
    size_t len = strlen(place->host);

    if (len == 0 || len > RBK_PLACE_HOST_MAX || place->port == 0 || place->port > 65535)
        abort();
    if (strspn(place->host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "._-:%") != len)
        abort();
}

static void check_topology(const struct rbk_topology *topology)
{
    size_t owned = 0;

    if (topology->places_len > RBK_PLACES_MAX || topology->masters_len == 0 ||
        topology->masters_len > topology->places_len)
        abort();
    for (size_t i = 0; i < RBK_SLOTS; i++) {
        if (topology->owner[i] != RBK_NO_OWNER && topology->owner[i] >= topology->masters_len)
            abort();
        owned += topology->owner[i] != RBK_NO_OWNER;
    }
    if (owned == 0)
        abort();
    for (size_t i = 0; i < topology->places_len; i++) {
        check_place(&topology->places[i]);
        for (size_t k = 0; k < i && topology->places_len < 64; k++) {
            if (rbk_place_same(&topology->places[i], &topology->places[k]))
                abort();
        }
    }
}

static void take_topology(const struct rbk_reply *reply, struct rbk_topology *topology)
{
    struct rbk_topology before = *topology;
    enum redbucket_status status = rbk_topology_read(reply, &asked, topology);

    if (status == REDBUCKET_OK)
        check_topology(topology);
    else if (status != REDBUCKET_ERROR_PROTOCOL || topology->places != before.places ||
             memcmp(topology->owner, before.owner, sizeof before.owner) != 0)
        abort();
}

static void take_redirect(const char *text)
{
    struct rbk_redirect redirect;

    if (!rbk_redirect_read(text, &asked, &redirect))
        return;
    check_place(&redirect.place);
    if (redirect.slot >= RBK_SLOTS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rbk_reader *reader = rbk_reader_create();
    struct rbk_topology topology;
    struct rbk_reply reply;
    bool complete = true;

    if (reader == NULL || rbk_reader_feed(reader, data, size) != REDBUCKET_OK)
        abort();
    rbk_topology_init(&topology);
    while (complete && rbk_reader_next(reader, &reply, &complete) == REDBUCKET_OK && complete) {
        take_topology(&reply, &topology);
        if (reply.type == RBK_REPLY_ERROR || reply.type == RBK_REPLY_STRING)
            take_redirect(reply.text);
    }
    rbk_topology_fini(&topology);
    rbk_reader_destroy(reader);
    return 0;
}
