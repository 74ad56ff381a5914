/* SPDX-License-Identifier: MIT */
/*
 * Packing requests for the script, and reading what it says of them.
 */
#include "wire/call.h"

#include "wire/script.h"

#include <stdlib.h>
#include <string.h>

/* What is kept of the names' memory from call to call. */
#define NAMES_KEPT ((size_t)64 << 10)

/* What the first packed byte says. */
#define FLAG_TWICE 1u
#define FLAG_JSON  2u

/* As many as a run's first byte can count. */
#define RUN_MAX 255u

/* In a reply: so much and the number of a claim whose state can't be read. */
#define UNREADABLE 128u

#ifdef RBK_TEST_CLOCK
double rbk_test_now;
#endif

void rbk_call_init(struct rbk_call *call, const struct rbk_key_format *key_format,
                   enum rbk_codec codec)
{
    call->key_format = key_format;
    call->codec = codec;
    call->names = NULL;
    call->names_size = 0;
    rbk_call_clear(call);
}

void rbk_call_fini(struct rbk_call *call)
{
    free(call->names);
    call->names = NULL;
    call->names_size = 0;
}

void rbk_call_clear(struct rbk_call *call)
{
    if (call->names_size > NAMES_KEPT)
        rbk_call_fini(call);
    call->names_len = 0;
    call->claims_len = 0;
    call->requests_len = 0;
    call->packed_len = RBK_CALL_HEAD_SIZE;
    call->run = 0;
}

static bool add_name(struct rbk_call *call, const struct rbk_key *key)
{
    size_t len = rbk_key_format_len(call->key_format, key);
    size_t wanted = call->names_len + len;

    if (wanted > call->names_size) {
        size_t size = wanted < 2048 ? 4096 : wanted * 2;
        unsigned char *names = realloc(call->names, size);

        if (names == NULL)
            return false;
        call->names = names;
        call->names_size = size;
    }
    rbk_key_format_write(call->key_format, key, call->names + call->names_len);
    call->name_len[call->claims_len++] = len;
    call->names_len = wanted;
    return true;
}

static void pack_byte(struct rbk_call *call, unsigned byte)
{
    call->packed[call->packed_len++] = (unsigned char)byte;
}

static void pack_double(struct rbk_call *call, double number)
{
    rbk_double_write(number, call->packed + call->packed_len);
    call->packed_len += 8;
}

/* Takes off the run that was packed last when it says what the one before it says, which then
 * counts one more: a limit that many ask for crosses once. */
static void join_runs(struct rbk_call *call, size_t run)
{
    unsigned char *last = call->packed + call->run;
    const unsigned char *made = call->packed + run;
    size_t len = call->packed_len - run;

    if (call->run > 0 && run - call->run == len && last[0] < RUN_MAX &&
        memcmp(last + 1, made + 1, len - 1) == 0) {
        last[0]++;
        call->packed_len = run;
    } else {
        call->run = run;
    }
}

bool rbk_call_add(struct rbk_call *call, const struct rbk_ask *ask, const struct rbk_key *keys,
                  const struct rbk_claim *claims, size_t len)
{
    /* The script has nothing to say of a request that names no limit. */
    if (len == 0)
        return true;

    size_t run = call->packed_len;

    pack_byte(call, 1);
    pack_byte(call, ask->operation);
    pack_byte(call, (unsigned)len);
    pack_double(call, ask->cost);
    pack_double(call, ask->taken_at);
    for (size_t i = 0; i < len; i++) {
        if (!add_name(call, &keys[i]))
            return false;
        pack_double(call, claims[i].limit.rate);
        pack_double(call, claims[i].limit.burst);
        pack_double(call, claims[i].limit.delay);
        pack_double(call, claims[i].expiry);
    }
    call->requests_len++;
    join_runs(call, run);
    return true;
}

static void argue(struct rbk_call *call, size_t *len, const void *bytes, size_t bytes_len)
{
    call->arguments[(*len)++] = (struct rbk_argument){bytes, bytes_len};
}

/* True when two claims have one name. */
static bool comes_twice(const struct rbk_call *call)
{
    const unsigned char *name = call->names;

    for (size_t i = 0; i < call->claims_len; i++) {
        const unsigned char *other = name + call->name_len[i];

        for (size_t j = i + 1; j < call->claims_len; j++) {
            if (call->name_len[i] == call->name_len[j] &&
                memcmp(name, other, call->name_len[i]) == 0)
                return true;
            other += call->name_len[j];
        }
        name += call->name_len[i];
    }
    return false;
}

/* How many claims there are, which is all of the call that is text; returns its length. snprintf
 * would take a tenth of the time that a request takes here. */
static size_t write_claims_len(struct rbk_call *call)
{
    char *end = call->claims_text + sizeof call->claims_text;
    char *digits = end;
    size_t number = call->claims_len;

    do {
        *--digits = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    memmove(call->claims_text, digits, (size_t)(end - digits));
    return (size_t)(end - digits);
}

struct rbk_command rbk_call_command(struct rbk_call *call, bool with_text)
{
    const unsigned char *name = call->names;
    size_t len = 0;

    call->packed[0] = (unsigned char)((comes_twice(call) ? FLAG_TWICE : 0) |
                                      (call->codec == RBK_CODEC_JSON ? FLAG_JSON : 0));

    size_t digits = write_claims_len(call);

    if (with_text) {
        argue(call, &len, "EVAL", 4);
        argue(call, &len, rbk_script_text, rbk_script_len);
    } else {
        argue(call, &len, "EVALSHA", 7);
        argue(call, &len, rbk_script_sha, 40);
    }
    argue(call, &len, call->claims_text, digits);
    for (size_t i = 0; i < call->claims_len; i++) {
        argue(call, &len, name, call->name_len[i]);
        name += call->name_len[i];
    }
    argue(call, &len, call->packed, call->packed_len);
#ifdef RBK_TEST_CLOCK
    rbk_double_write(rbk_test_now, call->test_time);
    argue(call, &len, call->test_time, sizeof call->test_time);
#endif
    return (struct rbk_command){call->arguments, len};
}

bool rbk_call_read_begin(struct rbk_call_reader *reader, const struct rbk_call *call,
                         const struct rbk_reply *reply)
{
    if (reply->type != RBK_REPLY_STRING || reply->len < 8 + call->requests_len)
        return false;
    reader->outcomes = (const unsigned char *)reply->text + 8;
    reader->states = reader->outcomes + call->requests_len;
    reader->end = (const unsigned char *)reply->text + reply->len;
    reader->now = rbk_double_read((const unsigned char *)reply->text);
    return rbk_within(reader->now, -1e15, 1e15);
}

/* A state as it was, or all bits set for none; false for what is neither. */
static bool read_state(const unsigned char *packed, struct rbk_state *state)
{
    static const unsigned char none[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    *state = (struct rbk_state){.exists = false};
    return memcmp(packed, none, sizeof none) == 0 ||
           rbk_state_decode(RBK_CODEC_STRUCT, packed, sizeof none, state);
}

/* What the script says of one request, its own verdict aside. */
static enum rbk_outcome read_claims(struct rbk_call_reader *reader, unsigned *outcome,
                                    struct rbk_claim *claims, size_t len)
{
    const unsigned char *at = reader->states;

    if ((size_t)(reader->end - at) < len * 16)
        return RBK_OUTCOME_NONSENSE;
    *outcome = *reader->outcomes++;
    reader->states += len * 16;
    if (*outcome > UNREADABLE && *outcome <= UNREADABLE + len) {
        reader->failed = *outcome - UNREADABLE - 1;
        return RBK_OUTCOME_STATE;
    }
    for (size_t i = 0; i < len; i++) {
        if (!read_state(at + i * 16, &claims[i].state))
            return RBK_OUTCOME_NONSENSE;
    }
    return RBK_OUTCOME_DECIDED;
}

enum rbk_outcome rbk_call_read(struct rbk_call_reader *reader, struct rbk_ask *ask,
                               struct rbk_claim *claims, size_t len, struct rbk_answer *answer)
{
    unsigned outcome = 1;
    enum rbk_outcome read =
        len == 0 ? RBK_OUTCOME_DECIDED : read_claims(reader, &outcome, claims, len);

    if (read != RBK_OUTCOME_DECIDED)
        return read;
    ask->now = reader->now;
    rbk_decide(ask, claims, len, answer);
    return outcome == answer->accepted ? RBK_OUTCOME_DECIDED : RBK_OUTCOME_NONSENSE;
}

bool rbk_call_read_end(const struct rbk_call_reader *reader)
{
    return reader->states == reader->end;
}
