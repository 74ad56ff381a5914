/* SPDX-License-Identifier: MIT */
/*
 * Grouping limits by what it takes to have them in one slot: nothing, equal keys, or a common hash
 * tag in the keys. Who is together with the same limit is together, so each is only compared with
 * the first of each group, and many limits make few lines.
 */
#include "slots.h"

#include <stdlib.h>

#define BONDS 3

static const struct bond {
    enum redbucket_colocation most; /* what the library calls it */
    const char *name;               /* in JSON */
    const char *when;
} bonds[BONDS] = {
    {REDBUCKET_COLOCATION_ONE_SLOT, "always", "always"},
    {REDBUCKET_COLOCATION_SAME_KEY, "same_key",
     "for the same key, or keys that begin with the same hash tag"},
    {REDBUCKET_COLOCATION_SAME_TAG, "same_tag", "only for keys that begin with the same hash tag"},
};

enum { ALWAYS, SAME_KEY, SAME_TAG };

/* Those limits whose number in `of` is `is`. */
struct group {
    const size_t *of;
    size_t is;
    const struct bond *bond;
};

struct cli_slots {
    const struct cli_context *context;
    const struct redbucket_store *store; /* while it is read */
    size_t *first[BONDS]; /* of each limit: the first that it is together with by this bond */
    size_t *alone;        /* of each limit: 1 when all its buckets are in one slot, or 0 */
    struct group *groups; /* of several, each but once, by the least that it takes */
    size_t groups_len;
    size_t *memory;
};

/* ---- Reading -------------------------------------------------------------------------------- */

static enum redbucket_colocation of_two(const struct cli_slots *slots, size_t a, size_t b)
{
    struct redbucket_named_limit *const *limits = slots->context->limits;

    return redbucket_store_colocation(slots->store, limits[a]->zone, 0, limits[b]->zone, 0);
}

static size_t find_first(const struct cli_slots *slots, size_t bond, size_t limit)
{
    for (size_t i = 0; i < limit; i++) {
        if (slots->first[bond][i] == i && of_two(slots, i, limit) <= bonds[bond].most)
            return i;
    }
    return limit;
}

/* True when this bond has others together with a limit than the one before it. */
static bool makes_group(const struct cli_slots *slots, size_t bond, size_t limit)
{
    for (size_t i = limit + 1; i < slots->context->limits_len; i++) {
        if (slots->first[bond][i] == limit &&
            (bond == ALWAYS || slots->first[bond - 1][i] != limit))
            return true;
    }
    return false;
}

static void read_bond(struct cli_slots *slots, size_t bond)
{
    size_t *first = slots->first[bond];

    for (size_t i = 0; i < slots->context->limits_len; i++)
        first[i] = find_first(slots, bond, i);
    for (size_t i = 0; i < slots->context->limits_len; i++) {
        if (first[i] == i && makes_group(slots, bond, i))
            slots->groups[slots->groups_len++] = (struct group){first, i, &bonds[bond]};
    }
}

static struct cli_slots *create(size_t len)
{
    struct cli_slots *slots = calloc(1, sizeof *slots);

    if (slots == NULL)
        return NULL;
    slots->memory = calloc(len, (BONDS + 1) * sizeof *slots->memory);
    slots->groups = calloc(len, BONDS * sizeof *slots->groups);
    if (slots->memory == NULL || slots->groups == NULL) {
        rbk_slots_destroy(slots);
        return NULL;
    }
    for (size_t bond = 0; bond < BONDS; bond++)
        slots->first[bond] = slots->memory + bond * len;
    slots->alone = slots->memory + BONDS * len;
    return slots;
}

int rbk_slots_read(const struct cli_context *context, const struct redbucket_store *store,
                   struct cli_slots **slots)
{
    struct cli_slots *read;

    *slots = NULL;
    if (context->limits_len == 0 ||
        redbucket_store_colocation(store, "a", 0, "a", 0) == REDBUCKET_COLOCATION_ALWAYS)
        return CLI_DONE;
    read = create(context->limits_len);
    if (read == NULL)
        return rbk_cli_fail(CLI_STORE, "check", "out of memory");
    read->context = context;
    read->store = store;
    for (size_t i = 0; i < context->limits_len; i++)
        read->alone[i] = of_two(read, i, i) == REDBUCKET_COLOCATION_ONE_SLOT;
    for (size_t bond = 0; bond < BONDS; bond++)
        read_bond(read, bond);
    read->store = NULL;
    *slots = read;
    return CLI_DONE;
}

void rbk_slots_destroy(struct cli_slots *slots)
{
    if (slots == NULL)
        return;
    free(slots->groups);
    free(slots->memory);
    free(slots);
}

/* ---- What follows from it ------------------------------------------------------------------- */

/* The least that it takes for all limits; BONDS when nothing does. */
static size_t bond_of_all(const struct cli_slots *slots)
{
    size_t bond = 0;

    for (size_t i = 0; i < slots->context->limits_len && bond < BONDS;) {
        if (slots->first[bond][i] == 0)
            i++;
        else
            bond++;
    }
    return bond;
}

/* The next member of a group, from `at` on; limits_len when there is none. */
static size_t member(const struct cli_slots *slots, const struct group *group, size_t at)
{
    while (at < slots->context->limits_len && group->of[at] != group->is)
        at++;
    return at;
}

static struct group those_alone(const struct cli_slots *slots)
{
    return (struct group){.of = slots->alone, .is = 1};
}

static bool is_any_alone(const struct cli_slots *slots)
{
    struct group alone = those_alone(slots);

    return member(slots, &alone, 0) < slots->context->limits_len;
}

/* Room for two names, and for the longer of the hints. */
#define HINTS     2
#define HINT_SIZE (2 * REDBUCKET_ZONE_MAX + 100)

/* Writes how to bring limits together that aren't; returns how many hints there are. */
static size_t give_hints(const struct cli_slots *slots, char hints[HINTS][HINT_SIZE])
{
    size_t len = 0;

    for (size_t i = 0; i < slots->groups_len && len == 0; i++) {
        const struct group *group = &slots->groups[i];
        size_t a = member(slots, group, 0), b = member(slots, group, a + 1);

        if (group->bond != &bonds[ALWAYS])
            (void)snprintf(hints[len++], HINT_SIZE, "%s={acme}a %s={acme}b have the same hash tag",
                           slots->context->limits[a]->name, slots->context->limits[b]->name);
    }
    if (bond_of_all(slots) > SAME_KEY)
        (void)snprintf(hints[len++], HINT_SIZE,
                       "key_format=redbucket:{zone}:{{{key}}} brings the same key together, "
                       "in new buckets");
    return len;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void print_names(const struct cli_slots *slots, const struct group *group)
{
    size_t first = member(slots, group, 0);

    for (size_t i = first; i < slots->context->limits_len; i = member(slots, group, i + 1))
        printf("%s%s", i == first ? "" : ", ", slots->context->limits[i]->name);
}

static void print_groups(const struct cli_slots *slots)
{
    char hints[HINTS][HINT_SIZE];
    size_t hints_len = give_hints(slots, hints);

    for (size_t i = 0; i < slots->groups_len; i++) {
        fputs("together: ", stdout);
        print_names(slots, &slots->groups[i]);
        printf(": %s\n", slots->groups[i].bond->when);
    }
    if (bond_of_all(slots) == BONDS)
        printf("apart: all %slimits, whatever their keys, by this key format\n",
               slots->groups_len > 0 ? "other " : "");
    if (bond_of_all(slots) != ALWAYS)
        puts("otherwise: a request takes one step a slot, and gives back when one rejects "
             "(docs/cluster.md)");
    for (size_t i = 0; i < hints_len; i++)
        printf("hint: %s\n", hints[i]);
}

void rbk_slots_text(const struct cli_slots *slots)
{
    struct group alone;

    if (slots == NULL)
        return;
    if (slots->context->limits_len > 1)
        print_groups(slots);
    if (!is_any_alone(slots))
        return;
    alone = those_alone(slots);
    fputs("warning: all buckets of a limit are in one slot, and so on one node: ", stdout);
    print_names(slots, &alone);
    putchar('\n');
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_names(const struct cli_slots *slots, const struct group *group, const char *name,
                        struct cli_json *json)
{
    rbk_json_array(json, name);
    for (size_t i = member(slots, group, 0); i < slots->context->limits_len;
         i = member(slots, group, i + 1))
        rbk_json_string(json, NULL, slots->context->limits[i]->name);
    rbk_json_array_end(json);
}

static void write_groups(const struct cli_slots *slots, struct cli_json *json)
{
    char hints[HINTS][HINT_SIZE];
    size_t hints_len = give_hints(slots, hints);
    size_t all = bond_of_all(slots);

    rbk_json_string(json, "together", all < BONDS ? bonds[all].name : "never");
    rbk_json_array(json, "groups");
    for (size_t i = 0; i < slots->groups_len; i++) {
        rbk_json_object(json, NULL);
        write_names(slots, &slots->groups[i], "limits", json);
        rbk_json_string(json, "together", slots->groups[i].bond->name);
        rbk_json_object_end(json);
    }
    rbk_json_array_end(json);
    rbk_json_array(json, "hints");
    for (size_t i = 0; i < hints_len; i++)
        rbk_json_string(json, NULL, hints[i]);
    rbk_json_array_end(json);
}

void rbk_slots_json(const struct cli_slots *slots, struct cli_json *json)
{
    struct group alone;

    if (slots == NULL)
        return;
    alone = those_alone(slots);
    rbk_json_object(json, "slots");
    if (slots->context->limits_len > 1)
        write_groups(slots, json);
    write_names(slots, &alone, "one_slot", json);
    rbk_json_object_end(json);
}
