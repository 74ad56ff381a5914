/* SPDX-License-Identifier: MIT */
/*
 * A volley goes in rounds: find out whom to ask, send everything, read everything. A round ends
 * what has an answer and leaves what was redirected to the next.
 */
#include "redis/volley.h"

#include "redis/method.h"

#include <stdint.h>
#include <string.h>

/* How often one call may be sent on: a slot on its way to and fro, and a script forgotten. */
#define HOPS_MAX 6u

/* What one node is asked in a round. */
struct target {
    struct rbk_node *node;
    struct rbk_use use;
    enum redbucket_status status; /* how the use of the connection went */
    size_t first;                 /* its commands and replies */
    size_t len;
};

struct round {
    struct rbk_nodes *nodes;
    const struct rbk_deadline *deadline;
    struct rbk_shot *shots;
    size_t len;
    struct target targets[RBK_VOLLEY_MAX];
    size_t targets_len;
    struct rbk_command commands[2 * RBK_VOLLEY_MAX]; /* an ASKING before each, at most */
    struct rbk_reply replies[2 * RBK_VOLLEY_MAX];
    size_t commands_len;
};

static void end(struct rbk_shot *shot, enum redbucket_status status)
{
    if (status != REDBUCKET_OK)
        rbk_errand_fail(&shot->errand, status);
    shot->ended = true;
}

/* ---- Whom to ask --------------------------------------------------------------------------- */

/* Everybody's nodes are in one order, whatever slots they serve: two who each hold a connection
 * that the other waits for would wait until their deadlines. */
static void add_target(struct round *round, struct rbk_node *node)
{
    struct target *targets = round->targets;
    size_t at = round->targets_len;

    while (at > 0 && (uintptr_t)targets[at - 1].node > (uintptr_t)node)
        at--;
    if (at > 0 && targets[at - 1].node == node)
        return;
    memmove(&targets[at + 1], &targets[at], (round->targets_len - at) * sizeof *targets);
    targets[at] = (struct target){.node = node};
    round->targets_len++;
}

/* The nodes of all shots that are still to be answered, each once. */
static void aim(struct round *round)
{
    round->targets_len = 0;
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (shot->ended)
            continue;
        if (shot->node == NULL)
            shot->node = rbk_nodes_owner(round->nodes, shot->slot);
        add_target(round, shot->node);
    }
}

/* Of a node that is left alone for a while: what waiting won't mend is said each time. */
static enum redbucket_status reason(struct rbk_node *node, enum redbucket_status status)
{
    struct redbucket_error last;

    if (status != REDBUCKET_ERROR_UNAVAILABLE)
        return status;
    rbk_pool_last(&node->pool, &last);
    switch (last.status) {
    case REDBUCKET_ERROR_AUTH:
    case REDBUCKET_ERROR_TLS:
    case REDBUCKET_ERROR_UNSUPPORTED:
        return last.status;
    default:
        return status;
    }
}

/* A node that can't be reached took nothing. When another serves the slot by now, that one is asked
 * in the next round. */
static void give_up(struct round *round, const struct rbk_node *node, enum redbucket_status status)
{
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (shot->ended || shot->node != node)
            continue;
        struct rbk_node *owner = rbk_nodes_owner(round->nodes, shot->slot);

        shot->asking = false;
        shot->node = owner;
        if (owner == node || ++shot->hops > HOPS_MAX)
            end(shot, status);
    }
}

/* Borrows a connection to each node. Waiting for one and connecting must not take the others' time,
 * so each has a part of what is left. */
static void reach(struct round *round)
{
    size_t reached = 0;

    for (size_t i = 0; i < round->targets_len; i++) {
        struct target target = round->targets[i];
        size_t still = round->targets_len - i;
        struct rbk_deadline part = *round->deadline;

        if (round->targets_len > 1)
            rbk_deadline_start(&part, rbk_deadline_left(round->deadline) / (double)(still + 1));
        target.use = (struct rbk_use){.pool = &target.node->pool, .deadline = round->deadline};
        target.status =
            rbk_pool_take_by(&target.node->pool, round->deadline, &part, &target.use.peer);
        if (target.status == REDBUCKET_OK) {
            target.use.usable = true;
            round->targets[reached++] = target;
            continue;
        }
        rbk_nodes_blame(round->nodes, target.node);
        rbk_nodes_doubt(round->nodes);
        rbk_nodes_refresh(round->nodes, round->deadline);
        give_up(round, target.node, reason(target.node, target.status));
    }
    round->targets_len = reached;
}

/* ---- Sending ------------------------------------------------------------------------------- */

static void load(struct round *round)
{
    static const struct rbk_argument asking = {"ASKING", 6};

    round->commands_len = 0;
    for (size_t i = 0; i < round->targets_len; i++) {
        struct target *target = &round->targets[i];

        target->first = round->commands_len;
        for (size_t j = 0; j < round->len; j++) {
            const struct rbk_shot *shot = &round->shots[j];

            if (shot->ended || shot->node != target->node)
                continue;
            if (shot->asking)
                round->commands[round->commands_len++] = (struct rbk_command){&asking, 1};
            round->commands[round->commands_len++] = rbk_errand_command(&shot->errand);
        }
        target->len = round->commands_len - target->first;
    }
}

static void fire(struct round *round)
{
    struct rbk_exchange exchanges[RBK_VOLLEY_MAX];

    for (size_t i = 0; i < round->targets_len; i++) {
        const struct target *target = &round->targets[i];

        exchanges[i] = (struct rbk_exchange){.connection = target->use.peer->connection,
                                             .commands = &round->commands[target->first],
                                             .len = target->len,
                                             .replies = &round->replies[target->first]};
    }
    rbk_connections_call(exchanges, round->targets_len, round->deadline);
    for (size_t i = 0; i < round->targets_len; i++)
        round->targets[i].status = exchanges[i].status;
}

/* ---- What came back ------------------------------------------------------------------------ */

/* The keys are elsewhere, which says nothing against this node. */
static void follow(struct round *round, struct rbk_shot *shot, const struct rbk_redirect *redirect)
{
    struct rbk_node *node = rbk_nodes_redirected(round->nodes, redirect);

    if (!redirect->ask)
        rbk_nodes_doubt(round->nodes);
    shot->node = node;
    shot->asking = redirect->ask;
    if (node == NULL || ++shot->hops > HOPS_MAX)
        end(shot, REDBUCKET_ERROR_UNAVAILABLE);
}

static void refused(struct round *round, struct target *target, struct rbk_shot *shot,
                    const struct rbk_reply *reply)
{
    struct rbk_redirect redirect;
    bool usable = target->use.usable;

    if (rbk_redirect_read(reply->text, &target->node->place, &redirect) &&
        redirect.slot == shot->slot) {
        follow(round, shot, &redirect);
        return;
    }
    if (rbk_server_is_torn(reply->text)) {
        shot->torn = true;
        end(shot, REDBUCKET_ERROR_UNAVAILABLE);
        return;
    }
    enum redbucket_status status = rbk_method_refused(&target->use, reply);

    target->use.usable = usable && target->use.usable;
    if (status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_READONLY)
        rbk_nodes_doubt(round->nodes);
    rbk_nodes_blame(round->nodes, target->node);
    target->status = status;
    end(shot, status);
}

static void settle(struct round *round, struct target *target, struct rbk_shot *shot,
                   const struct rbk_reply *reply)
{
    switch (rbk_errand_settle(&shot->errand, reply)) {
    case RBK_SETTLED:
        end(shot, REDBUCKET_OK);
        break;
    case RBK_FORGOTTEN:
        if (++shot->hops > HOPS_MAX)
            end(shot, REDBUCKET_ERROR_UNAVAILABLE);
        break;
    case RBK_REFUSED:
        refused(round, target, shot, reply);
        break;
    case RBK_NONSENSE:
    default:
        target->use.usable = false;
        target->status = REDBUCKET_ERROR_PROTOCOL;
        rbk_pool_note(&target->node->pool, target->status,
                      "the server's answer to the script makes no sense");
        rbk_nodes_blame(round->nodes, target->node);
        end(shot, target->status);
        break;
    }
}

/* The connection broke, or time is up. Only what was not sent at all may go elsewhere. */
static void lose(struct round *round, struct target *target)
{
    target->use.usable = false;
    rbk_method_lost(&target->use, target->status);
    rbk_nodes_blame(round->nodes, target->node);
    rbk_nodes_doubt(round->nodes);
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (shot->ended || shot->node != target->node || shot->heard)
            continue;
        shot->heard = true;
        if (target->status != REDBUCKET_ERROR_UNAVAILABLE || ++shot->hops > HOPS_MAX)
            end(shot, target->status);
        shot->asking = false;
        shot->node = NULL;
    }
}

/* Replies are the connection's until it is given back. A shot that was heard may name a node
 * already that it is to be sent to next. */
static void hear(struct round *round, struct target *target)
{
    const struct rbk_reply *reply = &round->replies[target->first];

    if (target->status != REDBUCKET_OK) {
        lose(round, target);
        return;
    }
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (shot->ended || shot->node != target->node || shot->heard)
            continue;
        /* What ASKING was answered shows in what came of the call behind it. */
        reply += shot->asking;
        shot->heard = true;
        settle(round, target, shot, reply++);
    }
}

static bool is_over(const struct rbk_shot *shots, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!shots[i].ended)
            return false;
    }
    return true;
}

void rbk_volley(struct rbk_nodes *nodes, struct rbk_shot *shots, size_t len,
                const struct rbk_deadline *deadline)
{
    struct round round = {.nodes = nodes, .deadline = deadline, .shots = shots, .len = len};

    while (!is_over(shots, len)) {
        rbk_nodes_refresh(nodes, deadline);
        for (size_t i = 0; i < len; i++)
            shots[i].heard = false;
        aim(&round);
        reach(&round);
        load(&round);
        fire(&round);
        for (size_t i = 0; i < round.targets_len; i++) {
            struct target *target = &round.targets[i];

            hear(&round, target);
            rbk_pool_give(&target->node->pool, target->use.peer, target->status,
                          target->use.usable);
        }
    }
}
