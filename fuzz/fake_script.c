/* SPDX-License-Identifier: MIT */
/*
 * What the script would answer, worked out by the model from the packed arguments alone: so the
 * client, which works out the same, has to agree with it. src/wire/script.lua says what the bytes
 * mean.
 */
#include "fake_server.h"

#include "model/decide.h"
#include "wire/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW        1000.5
#define CLAIMS_MAX 128u
#define REJECTED   0u
#define DONE       1u
#define UNREADABLE 128u

struct packed {
    const unsigned char *at;
    size_t left;
};

/* What is missing in a command was never sent. */
static const unsigned char *take(struct packed *packed, size_t len)
{
    const unsigned char *bytes = packed->at;

    if (len > packed->left)
        abort();
    packed->at += len;
    packed->left -= len;
    return bytes;
}

/* What becomes of one request, whose claims all have the state. */
static unsigned decide(const struct rbk_ask *ask, struct rbk_claim *claims, size_t len,
                       const struct rbk_state *state)
{
    struct rbk_answer answer;

    for (size_t i = 0; i < len; i++)
        claims[i].state = *state;
    if (!rbk_state_readable(state) && ask->operation != RBK_RESET)
        return UNREADABLE + 1;
    if (!rbk_state_readable(state))
        return DONE;
    rbk_decide(ask, claims, len, &answer);
    rbk_fake.accepted += answer.accepted && ask->operation == RBK_REQUEST;
    return answer.accepted ? DONE : REJECTED;
}

/* One run of like requests: adds what becomes of each; returns how many claims they have. */
static size_t run(struct packed *packed, const struct rbk_state *state, struct fake_bytes *outcomes)
{
    struct rbk_claim claims[CLAIMS_MAX] = {0};
    unsigned count = *take(packed, 1);
    struct rbk_ask ask = {.operation = (enum rbk_operation) * take(packed, 1), .now = NOW};
    size_t len = *take(packed, 1);

    if (count == 0 || len == 0 || len > CLAIMS_MAX || ask.operation > RBK_GIVE_BACK)
        abort();
    ask.cost = rbk_double_read(take(packed, 8));
    ask.taken_at = rbk_double_read(take(packed, 8));
    for (size_t i = 0; i < len; i++) {
        claims[i].limit.rate = rbk_double_read(take(packed, 8));
        claims[i].limit.burst = rbk_double_read(take(packed, 8));
        claims[i].limit.delay = rbk_double_read(take(packed, 8));
        claims[i].expiry = rbk_double_read(take(packed, 8));
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned char outcome = (unsigned char)decide(&ask, claims, len, state);

        rbk_fake_append(outcomes, &outcome, 1);
    }
    return count * len;
}

void rbk_fake_script(struct fake_bytes *out, const struct rbk_command *command,
                     const uint8_t *state)
{
    static const unsigned char none[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255};
    const struct rbk_argument *last = &command->arguments[command->len - 1];
    struct packed packed = {last->bytes, last->len};
    struct fake_bytes answer = {NULL, 0, 0};
    struct rbk_state given = {.exists = false};
    unsigned char now[8];
    char head[32];
    size_t claims = 0;

    if (state != NULL && memcmp(state, none, sizeof none) != 0)
        given = (struct rbk_state){true, rbk_double_read(state), rbk_double_read(state + 8)};
    rbk_double_write(NOW, now);
    rbk_fake_append(&answer, now, sizeof now);
    (void)take(&packed, 1);
    while (packed.left > 0)
        claims += run(&packed, &given, &answer);
    if (claims != command->len - 4)
        abort();
    bool told = given.exists && rbk_state_readable(&given);

    for (size_t i = 0; i < claims; i++)
        rbk_fake_append(&answer, told ? state : none, sizeof none);
    (void)snprintf(head, sizeof head, "$%zu\r\n", answer.len);
    rbk_fake_append(out, head, strlen(head));
    rbk_fake_append(out, answer.bytes, answer.len);
    rbk_fake_append(out, "\r\n", 2);
    free(answer.bytes);
}
