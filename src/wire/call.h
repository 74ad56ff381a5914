/* SPDX-License-Identifier: MIT */
/*
 * One call of the script: a batch of independent requests on its way to the server, and what comes
 * back. script.lua says what the bytes mean.
 *
 * The reply brings the states as they were, and the answers are worked out here from these, by the
 * model, with the server's time; the script's own verdict has to agree.
 *
 * A call is used by one thread, and again and again: it keeps its memory.
 */
#ifndef RBK_WIRE_CALL_H
#define RBK_WIRE_CALL_H

#include "model/decide.h"
#include "model/key.h"
#include "wire/codec.h"
#include "wire/key_format.h"
#include "wire/reply.h"

#define RBK_CALL_REQUESTS 32u
#define RBK_CALL_CLAIMS   128u

/* Packed: flags; for each run of like requests how many they are, operation and number of claims,
 * cost and time taken; and for each of their claims rate, burst, delay, expiry. */
#define RBK_CALL_HEAD_SIZE    1u
#define RBK_CALL_REQUEST_SIZE 19u
#define RBK_CALL_CLAIM_SIZE   32u
#define RBK_CALL_PACKED_SIZE                                          \
    (RBK_CALL_HEAD_SIZE + RBK_CALL_REQUESTS * RBK_CALL_REQUEST_SIZE + \
     RBK_CALL_CLAIMS * RBK_CALL_CLAIM_SIZE)

struct rbk_call {
    const struct rbk_key_format *key_format;
    enum rbk_codec codec;
    unsigned char *names; /* of all buckets, one behind the other */
    size_t names_size;
    size_t names_len;
    size_t name_len[RBK_CALL_CLAIMS];
    size_t claims_len;
    unsigned char packed[RBK_CALL_PACKED_SIZE];
    size_t packed_len;
    size_t run;          /* where in `packed` the last run begins */
    size_t requests_len; /* but for those that name no limit */
    char claims_text[16];
    unsigned char test_time[8];
    struct rbk_argument arguments[5 + RBK_CALL_CLAIMS];
};

void rbk_call_init(struct rbk_call *call, const struct rbk_key_format *key_format,
                   enum rbk_codec codec);
void rbk_call_fini(struct rbk_call *call);

/* Forgets what was added. */
void rbk_call_clear(struct rbk_call *call);

/* Adds a request: no more than the numbers above, in all. False when there is no memory. */
bool rbk_call_add(struct rbk_call *call, const struct rbk_ask *ask, const struct rbk_key *keys,
                  const struct rbk_claim *claims, size_t len);

/* The command, which lives until the call is changed: EVALSHA, or EVAL with the script's text for a
 * server that doesn't know it yet. */
struct rbk_command rbk_call_command(struct rbk_call *call, bool with_text);

/* What became of one request. */
enum rbk_outcome {
    RBK_OUTCOME_DECIDED, /* `claims` and `answer` are filled in */
    RBK_OUTCOME_STATE,   /* the state of claim reader->failed can't be read */
    RBK_OUTCOME_NONSENSE /* the reply makes no sense, or the server computes differently */
};

/* Where reading a reply has got to. */
struct rbk_call_reader {
    const unsigned char *outcomes; /* of the requests not read yet */
    const unsigned char *states;   /* of their claims, behind the last outcome */
    const unsigned char *end;
    double now;
    size_t failed; /* which claim's state couldn't be read */
};

/* False when the reply isn't one of the script's to this call. */
bool rbk_call_read_begin(struct rbk_call_reader *reader, const struct rbk_call *call,
                         const struct rbk_reply *reply);

/* Reads what became of the next request: sets ask->now, and the states of the claims. */
enum rbk_outcome rbk_call_read(struct rbk_call_reader *reader, struct rbk_ask *ask,
                               struct rbk_claim *claims, size_t len, struct rbk_answer *answer);

/* True when every request has been read and nothing is left. */
bool rbk_call_read_end(const struct rbk_call_reader *reader);

#ifdef RBK_TEST_CLOCK
/* Test programs only: what time it is on the server. */
extern double rbk_test_now;
#endif

#endif
