/* SPDX-License-Identifier: MIT */
/*
 * What `check` says of a cluster before it asks it: which of the limits are decided in one step,
 * and how more of them could be. It follows from the key format, so that it is said of a cluster
 * that is down as well.
 */
#ifndef RBK_CLI_SLOTS_H
#define RBK_CLI_SLOTS_H

#include "cli.h"
#include "json.h"

struct cli_slots;

/* Creates *slots, or leaves it NULL, which prints nothing, when the store has no slots or there are
 * no limits. The context is borrowed. */
int rbk_slots_read(const struct cli_context *context, const struct redbucket_store *store,
                   struct cli_slots **slots);
void rbk_slots_destroy(struct cli_slots *slots);

void rbk_slots_text(const struct cli_slots *slots);
void rbk_slots_json(const struct cli_slots *slots, struct cli_json *json);

#endif
