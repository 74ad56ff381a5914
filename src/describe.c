/* SPDX-License-Identifier: MIT */
/*
 * Telling people why a request failed. Keys are strangers' bytes: what doesn't print is escaped,
 * and what is long is cut.
 */
#include "error.h"
#include "limiter.h"
#include "model/limit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Writes the bytes to `out` as printable ASCII, "..." for what doesn't fit. */
static void escape(const char *bytes, size_t len, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char piece[5];
        int piece_len = byte >= 0x20 && byte < 0x7f && byte != '\\'
                            ? snprintf(piece, sizeof piece, "%c", byte)
                            : snprintf(piece, sizeof piece, "\\x%02x", byte);

        if (used + (size_t)piece_len + sizeof "..." > size) {
            memcpy(out + used, "...", sizeof "...");
            return;
        }
        memcpy(out + used, piece, (size_t)piece_len);
        used += (size_t)piece_len;
    }
    out[used] = '\0';
}

static void describe_argument(const struct redbucket_request *request,
                              struct redbucket_error *error)
{
    char number[REDBUCKET_NUMBER_SIZE];

    if ((unsigned)request->operation > REDBUCKET_GIVE_BACK) {
        rbk_error_set(error, request->status, -1, "operation: %d is none", (int)request->operation);
    } else if (request->keys_len > REDBUCKET_KEYS_MAX) {
        rbk_error_set(error, request->status, -1, "request: names %zu keys, at most %d are allowed",
                      request->keys_len, REDBUCKET_KEYS_MAX);
    } else if (request->operation != REDBUCKET_RESET &&
               !rbk_within(request->cost, RBK_COST_MIN, RBK_COST_MAX)) {
        redbucket_number_format(request->cost, number);
        rbk_error_set(error, request->status, -1, "cost: %s is out of range, expected 1e-3 to 1e12",
                      number);
    } else {
        rbk_error_set(error, request->status, -1,
                      "request: a time that isn't finite, or a key without text");
    }
}

void redbucket_request_error(const struct redbucket_request *request, struct redbucket_error *error)
{
    const char *text = redbucket_status_text(request->status);
    char limit[80];
    char key[100];

    if (request->failed >= request->keys_len) {
        if (request->status == REDBUCKET_ERROR_ARGUMENT)
            describe_argument(request, error);
        else
            rbk_error_set(error, request->status, -1, "%s", text);
        return;
    }
    const struct redbucket_key *named = &request->keys[request->failed];

    if (named->limit == NULL || named->key == NULL) {
        describe_argument(request, error);
        return;
    }
    escape(named->limit, rbk_given_len(named->limit, named->limit_len), limit, sizeof limit);
    escape(named->key, rbk_given_len(named->key, named->key_len), key, sizeof key);
    if (request->status == REDBUCKET_ERROR_UNKNOWN_LIMIT)
        rbk_error_set(error, request->status, -1, "there is no limit %s", limit);
    else if (request->status == REDBUCKET_ERROR_DUPLICATE)
        rbk_error_set(error, request->status, -1, "limit %s: named twice", limit);
    else
        rbk_error_set(error, request->status, -1, "limit %s, key %s: %s", limit, key, text);
}
