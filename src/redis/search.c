/* SPDX-License-Identifier: MIT */
/*
 * Sentinels may be down, silent, or not have heard of a failover yet; what they name may be gone or
 * have become a replica. Each of that leads on to the next sentinel, under one deadline.
 */
#include "redis/search.h"

#include "error.h"
#include "redis/handshake.h"
#include "redis/sentinel.h"

#include <stdio.h>

/* However long the deadline is, one place that is silent takes no more than this, or than a quarter
 * of what a decision may take: it is asked again soon. */
#define SHARE_MOST_S    1.0
#define SHARE_MOST_PART 0.25

static bool is_ours(enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_MEMORY || status == REDBUCKET_ERROR_SYSTEM;
}

static bool is_silence(enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_TIMEOUT ||
           status == REDBUCKET_ERROR_IO;
}

static void start_share(const struct rbk_search *search, const struct rbk_deadline *deadline,
                        size_t untried, struct rbk_deadline *share)
{
    double most = search->options->timeout * SHARE_MOST_PART;
    double fair = rbk_deadline_left(deadline) / (double)untried;

    if (most < SHARE_MOST_S)
        most = SHARE_MOST_S;
    rbk_deadline_start(share, fair < most ? fair : most);
}

/* Whether there is nothing more telling yet. */
static bool tells(struct rbk_search *search, enum rbk_search_failure failure)
{
    if (search->failure.status != REDBUCKET_OK && failure < search->worst)
        return false;
    search->worst = failure;
    return true;
}

static bool was_tried(const struct rbk_search *search, const struct rbk_endpoint *endpoint)
{
    for (size_t i = 0; i < search->tried_len; i++) {
        if (rbk_endpoint_same(&search->tried[i], endpoint))
            return true;
    }
    return false;
}

/* A sentinel that doesn't know of the failover yet names a replica. */
static void blame_master(struct rbk_search *search, const char *sentinel, const char *where,
                         const struct redbucket_error *error)
{
    if (!tells(search, RBK_SEARCH_MASTER))
        return;
    if (error->status == REDBUCKET_ERROR_READONLY)
        rbk_error_set(&search->failure, error->status, -1,
                      "sentinel %s: names %s as the master, which is a replica", sentinel, where);
    else
        rbk_error_set(&search->failure, error->status, -1, "master %s", error->message);
}

static enum redbucket_status try_master(struct rbk_search *search, const struct rbk_endpoint *named,
                                        const struct rbk_deadline *share, struct rbk_peer *peer)
{
    const char *sentinel = rbk_transport_endpoint(search->sentinels[search->at])->where;
    struct rbk_transport *transport = NULL;
    struct redbucket_error error = {.message = ""};
    enum redbucket_status status = rbk_transport_create(named, search->tls, &transport, &error);

    if (search->tried_len < RBK_SEARCH_TRIED_MAX)
        search->tried[search->tried_len++] = *named;
    if (status == REDBUCKET_OK)
        status = rbk_handshake(search->options, transport, share, peer, &error);
    if (status == REDBUCKET_OK) {
        search->found = transport;
        return REDBUCKET_OK;
    }
    rbk_transport_destroy(transport);
    blame_master(search, sentinel, named->where, &error);
    return status;
}

static void blame_sentinel(struct rbk_search *search, const struct redbucket_error *error)
{
    if (tells(search, is_silence(error->status) ? RBK_SEARCH_SILENT : RBK_SEARCH_REFUSED))
        rbk_error_set(&search->failure, error->status, -1, "sentinel %s", error->message);
}

static void note_stranger(struct rbk_search *search)
{
    search->strangers++;
    if (tells(search, RBK_SEARCH_UNKNOWN))
        rbk_error_set(&search->failure, REDBUCKET_ERROR_UNAVAILABLE, -1,
                      "sentinel %s: knows no such service, and no other answers",
                      rbk_transport_endpoint(search->sentinels[search->at])->where);
}

/* Asks the sentinel at `at`. OK with no name: it knows no such service. */
static enum redbucket_status ask(struct rbk_search *search, const struct rbk_deadline *share,
                                 struct rbk_sentinel_answer *answer)
{
    struct redbucket_error error = {.message = ""};
    enum redbucket_status status =
        rbk_sentinel_ask(search->options, search->sentinels[search->at], share, answer, &error);

    if (status != REDBUCKET_OK)
        blame_sentinel(search, &error);
    else if (answer->master.name[0] == '\0')
        note_stranger(search);
    return status;
}

/* Asks one sentinel, and the place that it names. */
static enum redbucket_status try_sentinel(struct rbk_search *search,
                                          const struct rbk_deadline *share, struct rbk_peer *peer)
{
    struct rbk_sentinel_answer answer = {.watch = search->watch};
    enum redbucket_status status = ask(search, share, &answer);

    if (status != REDBUCKET_OK)
        return status;
    status = REDBUCKET_ERROR_UNAVAILABLE;
    if (answer.master.name[0] != '\0' && !was_tried(search, &answer.master))
        status = try_master(search, &answer.master, share, peer);
    if (status != REDBUCKET_OK)
        rbk_sentinel_hang_up(search->watch);
    return status;
}

static enum redbucket_status fail_unknown(const struct rbk_search *search,
                                          enum redbucket_status status,
                                          struct redbucket_error *error)
{
    char words[RBK_SERVER_WORDS_SIZE];

    rbk_server_words(search->options->service, words);
    return rbk_fail(error, status, -1, "no sentinel knows a service \"%.60s\"", words);
}

/* Nothing was decided: that a connection broke or a share of the time was over is no reason to
 * think otherwise. */
static enum redbucket_status tell(const struct rbk_search *search,
                                  const struct rbk_deadline *deadline,
                                  struct redbucket_error *error)
{
    enum redbucket_status status = search->failure.status;

    if (is_silence(status))
        status = rbk_deadline_left(deadline) > 0.0 ? REDBUCKET_ERROR_UNAVAILABLE
                                                   : REDBUCKET_ERROR_TIMEOUT;
    if (search->strangers == search->options->hosts_len)
        return fail_unknown(search, status, error);
    if (search->worst == RBK_SEARCH_SILENT)
        return rbk_fail(error, status, -1, "no sentinel answers; %s", search->failure.message);
    return rbk_fail(error, status, -1, "%s", search->failure.message);
}

enum redbucket_status rbk_search(struct rbk_search *search, const struct rbk_deadline *deadline,
                                 struct rbk_peer *peer, struct redbucket_error *error)
{
    size_t len = search->options->hosts_len;

    for (size_t i = 0; i < len; i++) {
        struct rbk_deadline share;

        search->at = (search->first + i) % len;
        start_share(search, deadline, len - i, &share);
        enum redbucket_status status = try_sentinel(search, &share, peer);

        if (status == REDBUCKET_OK)
            return status;
        if (is_ours(status) || rbk_deadline_left(deadline) <= 0.0)
            break;
    }
    return tell(search, deadline, error);
}

bool rbk_search_ask(struct rbk_search *search, const struct rbk_deadline *deadline,
                    struct rbk_endpoint *master)
{
    size_t len = search->options->hosts_len;

    for (size_t i = 0; i < len && rbk_deadline_left(deadline) > 0.0; i++) {
        struct rbk_sentinel_answer answer = {.watch = search->watch};
        struct rbk_deadline share;

        search->at = (search->first + i) % len;
        start_share(search, deadline, len - i, &share);
        if (ask(search, &share, &answer) != REDBUCKET_OK)
            continue;
        if (answer.master.name[0] != '\0') {
            *master = answer.master;
            return true;
        }
        rbk_sentinel_hang_up(search->watch);
    }
    return false;
}
