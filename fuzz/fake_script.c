/* SPDX-License-Identifier: MIT */
/*
 * What the script would answer, worked out by the model from the command alone: so the client,
 * which works out the same, has to agree with it. src/wire/script.lua says what the bytes
 * mean.
 */
#include "fake_server.h"

#include "model/decide.h"
#include "wire/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What is said of the buckets, one after the other; `given` is the state of all of them, or NULL
 * where the server keeps theirs. */
struct script {
    const struct rbk_argument *names;
    const struct rbk_state *given;
    struct fake_bytes outcomes;
    struct fake_bytes states;
};

static void tell_state(struct script *script, const struct rbk_state *state)
{
    unsigned char bytes[16];

    memset(bytes, 255, sizeof bytes);
    if (state->exists && rbk_state_readable(state)) {
        rbk_double_write(state->timestamp, bytes);
        rbk_double_write(state->value, bytes + 8);
    }
    rbk_fake_append(&script->states, bytes, sizeof bytes);
}

static void keep(const struct rbk_argument *name, const struct rbk_claim *claim)
{
    struct rbk_state *kept = rbk_fake_kept(name->bytes, name->len);

    if (claim->change == RBK_WRITE)
        *kept = claim->state;
    else if (claim->change == RBK_FORGET)
        kept->exists = false;
}

/* What becomes of one request. */
static unsigned decide(struct script *script, const struct rbk_ask *ask, struct rbk_claim *claims,
                       size_t len)
{
    const struct rbk_state *given = script->given;
    struct rbk_answer answer;

    for (size_t i = 0; i < len; i++) {
        const struct rbk_argument *name = &script->names[i];

        claims[i].state = given != NULL ? *given : *rbk_fake_kept(name->bytes, name->len);
        tell_state(script, &claims[i].state);
    }
    if (given != NULL && !rbk_state_readable(given))
        return ask->operation != RBK_RESET ? UNREADABLE + 1 : DONE;
    rbk_decide(ask, claims, len, &answer);
    for (size_t i = 0; given == NULL && i < len; i++)
        keep(&script->names[i], &claims[i]);
    rbk_fake.accepted += answer.accepted && ask->operation == RBK_REQUEST;
    return answer.accepted ? DONE : REJECTED;
}

/* One run of like requests: adds what becomes of each. */
static void run(struct packed *packed, struct script *script)
{
    struct rbk_claim claims[CLAIMS_MAX] = {0};
    unsigned count = *take(packed, 1);
    struct rbk_ask ask = {.operation = (enum rbk_operation) * take(packed, 1),
                          .now = rbk_fake_clock()};
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
        unsigned char outcome = (unsigned char)decide(script, &ask, claims, len);

        rbk_fake_append(&script->outcomes, &outcome, 1);
        script->names += len;
    }
}

void rbk_fake_script(struct fake_bytes *out, const struct rbk_command *command,
                     const uint8_t *state)
{
    static const struct rbk_state none = {.exists = false};
    const struct rbk_argument *last = &command->arguments[command->len - 1];
    struct packed packed = {last->bytes, last->len};
    struct script script = {.names = command->arguments + 3,
                            .given = rbk_fake.keeps ? NULL : &none};
    struct rbk_state given;
    unsigned char now[8];
    char head[32];

    if (state != NULL) {
        given = (struct rbk_state){true, rbk_double_read(state), rbk_double_read(state + 8)};
        script.given = &given;
    }
    (void)take(&packed, 1);
    while (packed.left > 0)
        run(&packed, &script);
    if (script.names != last)
        abort();
    rbk_double_write(rbk_fake_clock(), now);
    (void)snprintf(head, sizeof head, "$%zu\r\n",
                   sizeof now + script.outcomes.len + script.states.len);
    rbk_fake_append(out, head, strlen(head));
    rbk_fake_append(out, now, sizeof now);
    rbk_fake_append(out, script.outcomes.bytes, script.outcomes.len);
    rbk_fake_append(out, script.states.bytes, script.states.len);
    rbk_fake_append(out, "\r\n", 2);
    free(script.outcomes.bytes);
    free(script.states.bytes);
}
