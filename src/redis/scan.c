/* SPDX-License-Identifier: MIT */
/*
 * Scanning gently: a few keys for each step, none of them longer looked at than it has to be.
 *
 * Names are copied out of the reply before anything else is asked. A reply that is too large to be
 * taken, since names can be long, is asked for again in smaller pieces.
 */
#include "redis/scan.h"

#include "redis/look.h"
#include "wire/key_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURSOR_SIZE 24u

static enum redbucket_status nonsense(struct rbk_use *use, const char *what)
{
    use->usable = false;
    rbk_pool_note(use->pool, REDBUCKET_ERROR_PROTOCOL, what);
    return REDBUCKET_ERROR_PROTOCOL;
}

/* ---- Names ---------------------------------------------------------------------------------- */

static bool read_cursor(const struct rbk_reply *reply, uint64_t *cursor)
{
    uint64_t value = 0;

    if (reply->type != RBK_REPLY_STRING || reply->len == 0 || reply->len > 20)
        return false;
    for (size_t i = 0; i < reply->len; i++) {
        const unsigned char digit = (unsigned char)(reply->text[i] - '0');

        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *cursor = value;
    return true;
}

static bool are_names(const struct rbk_reply *reply, size_t *bytes)
{
    *bytes = 0;
    if (reply->type != RBK_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < reply->len; i++) {
        if (reply->elements[i].type != RBK_REPLY_STRING)
            return false;
        *bytes += reply->elements[i].len;
    }
    return true;
}

static enum redbucket_status take_names(struct rbk_use *use, const struct rbk_reply *reply,
                                        struct rbk_walk *walk, struct rbk_scan *scan)
{
    const bool pair = reply->type == RBK_REPLY_ARRAY && reply->len == 2;
    uint64_t cursor;
    size_t bytes, used = 0;

    if (!pair || !read_cursor(&reply->elements[0], &cursor) ||
        !are_names(&reply->elements[1], &bytes))
        return nonsense(use, "the server's answer to SCAN makes no sense");
    const struct rbk_reply *names = &reply->elements[1];

    scan->names = malloc(bytes + 1);
    scan->found = calloc(names->len + 1, sizeof scan->found[0]);
    if (scan->names == NULL || scan->found == NULL)
        return REDBUCKET_ERROR_MEMORY;
    for (size_t i = 0; i < names->len; i++) {
        scan->found[i] = (struct rbk_scanned){.begin = used, .len = names->elements[i].len};
        memcpy(scan->names + used, names->elements[i].text, names->elements[i].len);
        used += names->elements[i].len;
    }
    scan->len = names->len;
    walk->cursor = cursor;
    return REDBUCKET_OK;
}

static enum redbucket_status ask_names(struct rbk_use *use, struct rbk_walk *walk,
                                       struct rbk_scan *scan)
{
    unsigned char pattern[RBK_KEY_PATTERN_SIZE];
    char cursor[CURSOR_SIZE], count[CURSOR_SIZE];
    struct rbk_reply reply;

    const struct rbk_argument arguments[] = {
        {"SCAN", 4},  {cursor, (size_t)snprintf(cursor, sizeof cursor, "%" PRIu64, walk->cursor)},
        {"MATCH", 5}, {pattern, rbk_key_pattern(&scan->options->key_format, walk->only, pattern)},
        {"COUNT", 5}, {count, (size_t)snprintf(count, sizeof count, "%u", walk->batch)}};
    const struct rbk_command command = {arguments, 6};
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    if (status != REDBUCKET_OK)
        return status;
    if (reply.type == RBK_REPLY_ERROR)
        return rbk_method_refused(use, &reply);
    return take_names(use, &reply, walk, scan);
}

/* ---- States --------------------------------------------------------------------------------- */

/* What a round trip over some names takes. */
struct round {
    struct rbk_command *commands;
    struct rbk_argument *arguments;
    struct rbk_reply *replies;
};

static bool make_round(struct round *round, size_t len)
{
    round->commands = calloc(len + 1, sizeof round->commands[0]);
    round->arguments = calloc(4 * len + 1, sizeof round->arguments[0]);
    round->replies = calloc(len + 1, sizeof round->replies[0]);
    return round->commands != NULL && round->arguments != NULL && round->replies != NULL;
}

static void free_round(struct round *round)
{
    free(round->commands);
    free(round->arguments);
    free(round->replies);
}

static struct rbk_argument name_of(const struct rbk_scan *scan, const struct rbk_scanned *found)
{
    return (struct rbk_argument){scan->names + found->begin, found->len};
}

/* Another type, or bytes that are none, is a bucket that can't be read; what has moved to another
 * node is seen there. */
static enum redbucket_status take_state(struct rbk_use *use, const struct rbk_scan *scan,
                                        struct rbk_scanned *found, const struct rbk_reply *reply)
{
    found->status = REDBUCKET_OK;
    found->there = true;
    if (reply->type == RBK_REPLY_ERROR && rbk_server_is_node(reply->text)) {
        found->there = false;
    } else if (rbk_look_refused(reply)) {
        return rbk_method_refused(use, reply);
    } else if (reply->type == RBK_REPLY_ERROR) {
        found->status = REDBUCKET_ERROR_STATE;
    } else if (reply->type != RBK_REPLY_STRING) {
        return nonsense(use, "the server's answer to GETRANGE makes no sense");
    } else if (!rbk_state_decode(scan->options->codec, (const unsigned char *)reply->text,
                                 reply->len, &found->state)) {
        found->status = REDBUCKET_ERROR_STATE;
        found->there = reply->len > 0; /* or it is asked for its type */
    }
    return REDBUCKET_OK;
}

static enum redbucket_status take_time(struct rbk_use *use, const struct rbk_reply *reply,
                                       double *now)
{
    double parts[2];

    if (reply->type == RBK_REPLY_ERROR)
        return rbk_method_refused(use, reply);
    if (reply->type != RBK_REPLY_ARRAY || reply->len != 2)
        return nonsense(use, "the server's answer to TIME makes no sense");
    for (size_t i = 0; i < 2; i++) {
        if (reply->elements[i].type != RBK_REPLY_STRING ||
            redbucket_number_parse(reply->elements[i].text, &parts[i], NULL) != REDBUCKET_OK)
            return nonsense(use, "the server's answer to TIME makes no sense");
    }
    *now = parts[0] + parts[1] * 1e-6;
    return REDBUCKET_OK;
}

static enum redbucket_status look(struct rbk_use *use, struct rbk_scan *scan, struct round *round)
{
    static const struct rbk_argument time_argument = {"TIME", 4};
    enum redbucket_status status;

    for (size_t i = 0; i < scan->len; i++) {
        round->commands[i] = (struct rbk_command){&round->arguments[4 * i], 4};
        rbk_look_range(scan->options->codec, name_of(scan, &scan->found[i]),
                       &round->arguments[4 * i]);
    }
    round->commands[scan->len] = (struct rbk_command){&time_argument, 1};
    status = rbk_method_call(use, round->commands, scan->len + 1, round->replies);
    for (size_t i = 0; status == REDBUCKET_OK && i < scan->len; i++)
        status = take_state(use, scan, &scan->found[i], &round->replies[i]);
    if (status == REDBUCKET_OK)
        status = take_time(use, &round->replies[scan->len], &scan->now);
    return status;
}

static bool looked_empty(const struct rbk_scanned *found)
{
    return !found->there && found->status == REDBUCKET_ERROR_STATE;
}

/* An empty string is there, and what is gone looks like one. */
static enum redbucket_status look_again(struct rbk_use *use, struct rbk_scan *scan,
                                        struct round *round)
{
    enum redbucket_status status = REDBUCKET_OK;
    size_t len = 0;

    for (size_t i = 0; i < scan->len; i++) {
        if (!looked_empty(&scan->found[i]))
            continue;
        round->arguments[2 * len] = (struct rbk_argument){"TYPE", 4};
        round->arguments[2 * len + 1] = name_of(scan, &scan->found[i]);
        round->commands[len] = (struct rbk_command){&round->arguments[2 * len], 2};
        len++;
    }
    if (len > 0)
        status = rbk_method_call(use, round->commands, len, round->replies);
    if (status != REDBUCKET_OK)
        return status;
    len = 0;
    for (size_t i = 0; i < scan->len; i++) {
        if (looked_empty(&scan->found[i])) {
            const struct rbk_reply *type = &round->replies[len++];

            scan->found[i].there =
                type->type == RBK_REPLY_STATUS && strcmp(type->text, "none") != 0;
        }
    }
    return REDBUCKET_OK;
}

static enum redbucket_status look_at_all(struct rbk_use *use, struct rbk_scan *scan)
{
    struct round round = {0};
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;

    if (scan->len == 0)
        return REDBUCKET_OK;
    if (make_round(&round, scan->len))
        status = look(use, scan, &round);
    if (status == REDBUCKET_OK)
        status = look_again(use, scan, &round);
    free_round(&round);
    return status;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

enum redbucket_status rbk_scan_step(struct rbk_use *use, struct rbk_walk *walk,
                                    struct rbk_scan *scan)
{
    const uint64_t before = walk->cursor;
    enum redbucket_status status;

    *scan = (struct rbk_scan){.options = use->pool->options};
    if (walk->batch == 0)
        walk->batch = RBK_SCAN_BATCH;
    use->usable = true;
    status = ask_names(use, walk, scan);
    if (status == REDBUCKET_OK)
        status = look_at_all(use, scan);
    if (status != REDBUCKET_OK)
        walk->cursor = before;
    return status;
}

static void read_name(const struct rbk_scan *scan, const struct rbk_walk *walk,
                      struct redbucket_bucket *bucket, struct rbk_key *key)
{
    const struct rbk_key_format *format = &scan->options->key_format;
    const unsigned char *name = (const unsigned char *)bucket->name;
    bool known =
        walk->only != NULL && rbk_key_name_of(format, name, bucket->name_len, walk->only, key);

    for (size_t i = 0; !known && i < walk->zones_len; i++)
        known = rbk_key_name_of(format, name, bucket->name_len, &walk->zones[i], key);
    if (known)
        return;
    *key = (struct rbk_key){.zone = NULL};
    bucket->guessed = rbk_key_name_guess(format, name, bucket->name_len, key) > 1;
}

void rbk_scan_tell(const struct rbk_scan *scan, const struct rbk_walk *walk,
                   const struct rbk_visit *visit)
{
    for (size_t i = 0; i < scan->len; i++) {
        const struct rbk_scanned *found = &scan->found[i];
        struct redbucket_bucket bucket = {
            .name = (const char *)scan->names + found->begin,
            .name_len = found->len,
            .status = found->status,
            .state = {true, found->state.timestamp, found->state.value},
            .now = scan->now,
        };
        struct rbk_key key;

        read_name(scan, walk, &bucket, &key);
        /* A pattern lets more pass than a format has names, if it names the key twice. */
        if (!found->there || key.zone == NULL || !rbk_walk_wants(walk, &key))
            continue;
        bucket.zone = (const char *)key.zone;
        bucket.zone_len = key.zone_len;
        bucket.key = (const char *)key.key;
        bucket.key_len = key.key_len;
        visit->visit(visit->data, &bucket);
    }
}

void rbk_scan_fini(struct rbk_scan *scan)
{
    free(scan->names);
    free(scan->found);
    *scan = (struct rbk_scan){0};
}

/* Smaller pieces may go where a large one was too much. */
static bool can_shrink(struct rbk_walk *walk, enum redbucket_status status)
{
    if (status != REDBUCKET_ERROR_PROTOCOL || walk->batch <= 1)
        return false;
    walk->batch = walk->batch > 8 ? walk->batch / 8 : 1;
    return true;
}

enum redbucket_status rbk_scan_pool(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                    struct rbk_walk *walk, const struct rbk_visit *visit,
                                    bool *done)
{
    struct rbk_use use = {.pool = pool, .deadline = deadline};
    struct rbk_scan scan = {0};
    enum redbucket_status status;

    do {
        rbk_scan_fini(&scan);
        status = rbk_pool_take(pool, deadline, &use.peer);
        if (status != REDBUCKET_OK)
            break;
        status = rbk_scan_step(&use, walk, &scan);
        rbk_pool_give(pool, use.peer, status, use.usable);
    } while (can_shrink(walk, status));
    *done = status != REDBUCKET_OK || walk->cursor == 0;
    if (status == REDBUCKET_OK)
        rbk_scan_tell(&scan, walk, visit);
    rbk_scan_fini(&scan);
    return status;
}
