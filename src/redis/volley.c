/* SPDX-License-Identifier: MIT */
/*
 * A volley goes in rounds: find out whom to ask, send everything, read everything. A round ends
 * what has an answer and leaves what was redirected to the next.
 */
#include "redis/volley.h"

#include "redis/method.h"

#include <string.h>

/* How often one call may be sent on: a slot on its way to and fro, and a script forgotten. */
#define HOPS_MAX 6u

/* Into so many parts at most what is left of the time is cut for a node. */
#define PARTS_MAX 4u

/* What one node is asked in a round. */
struct target {
    struct rbk_node *node;
    struct rbk_use use;
    enum redbucket_status status; /* how the use of the connection went */
    bool nonsense;                /* what it says is not believed any more */
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

    while (at > 0 && targets[at - 1].node->number > node->number)
        at--;
    if (at > 0 && targets[at - 1].node == node)
        return;
    memmove(&targets[at + 1], &targets[at], (round->targets_len - at) * sizeof *targets);
    targets[at] = (struct target){.node = node};
    round->targets_len++;
}

/* A node that could not be reached took nothing: another is asked if it serves the slot by now. */
static void aim_elsewhere(struct round *round, struct rbk_shot *shot)
{
    struct rbk_node *owner = rbk_nodes_owner(round->nodes, shot->slot);

    if (owner == shot->node || ++shot->hops > HOPS_MAX)
        end(shot, shot->missed);
    shot->missed = REDBUCKET_OK;
    shot->asking = false;
    shot->node = owner;
}

/* The nodes of all shots that are still to be answered, each once. */
static void aim(struct round *round)
{
    round->targets_len = 0;
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (!shot->ended && shot->missed != REDBUCKET_OK)
            aim_elsewhere(round, shot);
        if (shot->ended)
            continue;
        shot->heard = false;
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

/* Whoever waits for one of these now holds connections that others wait for: so nothing else is
 * borrowed before all have been given back, and the map is read then. */
static void miss(struct round *round, const struct target *target)
{
    rbk_nodes_blame(round->nodes, target->node);
    rbk_nodes_doubt(round->nodes);
    for (size_t i = 0; i < round->len; i++) {
        struct rbk_shot *shot = &round->shots[i];

        if (!shot->ended && shot->node == target->node)
            shot->missed = reason(target->node, target->status);
    }
}

/* Borrows a connection to each node. One that is busy or doesn't answer must not take the others'
 * time, so each has a part of what is left; most take next to nothing of theirs, so that it need
 * not be less than a quarter however many there are, or a slow connection would never be made. */
static void reach(struct round *round)
{
    size_t reached = 0;

    for (size_t i = 0; i < round->targets_len; i++) {
        struct target target = round->targets[i];
        size_t parts = round->targets_len - i + 1;
        struct rbk_deadline part = *round->deadline;

        if (round->targets_len > 1)
            rbk_deadline_start(&part, rbk_deadline_left(round->deadline) /
                                          (double)(parts < PARTS_MAX ? parts : PARTS_MAX));
        target.use = (struct rbk_use){.pool = &target.node->pool, .deadline = round->deadline};
        target.status =
            rbk_pool_take_by(&target.node->pool, round->deadline, &part, &target.use.peer);
        if (target.status == REDBUCKET_OK) {
            target.use.usable = true;
            round->targets[reached++] = target;
        } else {
            miss(round, &target);
        }
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

    if (status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_READONLY)
        rbk_nodes_doubt(round->nodes);
    rbk_nodes_blame(round->nodes, target->node);
    /* A slot that nobody serves is no fault of who says so: he serves others. */
    if (!rbk_server_lacks_slot(reply->text) &&
        (target->status == REDBUCKET_OK || !target->use.usable))
        target->status = status;
    target->use.usable = usable && target->use.usable;
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
        target->nonsense = true;
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
        /* Behind an answer that is none, who knows what the next one answers? */
        if (target->nonsense)
            end(shot, REDBUCKET_ERROR_PROTOCOL);
        else
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
