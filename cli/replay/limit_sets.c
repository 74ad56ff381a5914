/* SPDX-License-Identifier: MIT */
/*
 * Making sets of limits. Limits of the configuration are shared by all sets that don't replace
 * them; those of a --try belong to the sets, so that each is freed once.
 */
#include "limit_sets.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(void)
{
    return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
}

int rbk_limit_sets_check_name(const char *name, const struct rbk_tries *tries)
{
    const size_t len = strlen(name);

    if (len == 0 || len > RBK_LIMIT_SETS_NAME ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != len)
        return rbk_cli_fail(
            CLI_USAGE, "replay",
            "--try %.60s: expected a name of 1 to %zu characters, A-Z a-z 0-9 _ . -", name,
            RBK_LIMIT_SETS_NAME);
    for (size_t i = 0; i < tries->len; i++)
        if (strcmp(tries->tries[i].name, name) == 0)
            return rbk_cli_fail(CLI_USAGE, "replay", "--try %s: this name is there twice", name);
    return CLI_DONE;
}

/* The address that every set uses for this name. */
static const char *name_of(struct rbk_limit_sets *sets, const char *name)
{
    for (const char **known = sets->names; *known; known++)
        if (strcmp(*known, name) == 0)
            return *known;
    sets->names[sets->names_len++] = name;
    return name;
}

/* Begins a set with the limits of the context and room for `more`, and a NULL. */
static int set_begin(struct rbk_limit_sets *sets, const struct cli_context *context,
                     const char *name, size_t more)
{
    struct rbk_limit_set *set = &sets->sets[sets->len++];
    const size_t most = context->limits_len + more + 1;

    set->name = name;
    set->limits = calloc(most, sizeof(struct redbucket_named_limit *));
    set->names = calloc(most, sizeof(char *));
    if (!set->limits || !set->names)
        return out_of_memory();
    for (size_t i = 0; i < context->limits_len; i++) {
        set->limits[i] = context->limits[i];
        set->names[i] = name_of(sets, context->limits[i]->name);
    }
    set->limits_len = context->limits_len;
    return CLI_DONE;
}

/* Adds the limit, or puts it in the place of the one of its name. */
static void set_put(struct rbk_limit_sets *sets, struct redbucket_named_limit *limit)
{
    struct rbk_limit_set *set = &sets->sets[sets->len - 1];
    size_t at = 0;

    while (set->limits[at] && strcmp(set->limits[at]->name, limit->name) != 0)
        at++;
    set->limits[at] = limit;
    set->names[at] = name_of(sets, limit->name);
    if (at == set->limits_len)
        set->limits_len++;
}

/* A limit that this --try has already is a mistake, as two -l of one name are elsewhere. */
static int check_unique(const struct rbk_limit_sets *sets, size_t from, const char *text)
{
    const struct redbucket_named_limit *last = sets->owned[sets->owned_len - 1];

    for (size_t i = from; i + 1 < sets->owned_len; i++)
        if (strcmp(sets->owned[i]->name, last->name) == 0)
            return rbk_cli_fail(CLI_USAGE, NULL, "-l %.100s: limit %s is there twice in --try %s",
                                text, last->name, sets->sets[sets->len - 1].name);
    return CLI_DONE;
}

static int try_make(struct rbk_limit_sets *sets, const struct cli_context *context,
                    const struct rbk_tries *tries, size_t index)
{
    const struct rbk_try *try = &tries->tries[index];
    const size_t end = index + 1 < tries->len ? tries->tries[index + 1].first : tries->texts_len;
    const size_t from = sets->owned_len;
    int exit_status;

    if (try->first == end)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--try %s: expected one -l LIMIT or more behind it", try->name);
    exit_status = set_begin(sets, context, try->name, end - try->first);
    for (size_t i = try->first; exit_status == CLI_DONE && i < end; i++) {
        exit_status = rbk_cli_limit_option(tries->texts[i], &sets->owned[sets->owned_len]);
        if (exit_status != CLI_DONE)
            break;
        sets->owned_len++;
        exit_status = check_unique(sets, from, tries->texts[i]);
        if (exit_status == CLI_DONE)
            set_put(sets, sets->owned[sets->owned_len - 1]);
    }
    if (exit_status == CLI_DONE)
        exit_status = rbk_cli_check_zones(sets->sets[sets->len - 1].limits,
                                          sets->sets[sets->len - 1].limits_len);
    return exit_status;
}

static int base_make(struct rbk_limit_sets *sets, const struct cli_context *context,
                     const struct rbk_tries *tries)
{
    if (tries->len > 0 && context->limits_len == 0)
        return CLI_DONE;
    for (size_t i = 0; i < tries->len; i++)
        if (strcmp(tries->tries[i].name, RBK_LIMIT_SETS_BASE) == 0)
            return rbk_cli_fail(CLI_USAGE, "replay",
                                "--try %s: the limits before the first --try have this name",
                                RBK_LIMIT_SETS_BASE);
    return set_begin(sets, context, tries->len > 0 ? RBK_LIMIT_SETS_BASE : NULL, 0);
}

int rbk_limit_sets_make(struct rbk_limit_sets *sets, const struct cli_context *context,
                        const struct rbk_tries *tries)
{
    const bool base = context->limits_len > 0;
    int exit_status;

    if (tries->len + base > RBK_LIMIT_SETS_MAX)
        return rbk_cli_fail(CLI_USAGE, "replay", "%zu sets of limits%s: at most %d are compared",
                            tries->len + base, base ? ", with those before the first --try" : "",
                            RBK_LIMIT_SETS_MAX);
    sets->names = calloc(context->limits_len + tries->texts_len + 1, sizeof(char *));
    sets->owned = calloc(tries->texts_len + 1, sizeof(struct redbucket_named_limit *));
    if (!sets->names || !sets->owned)
        return out_of_memory();
    exit_status = base_make(sets, context, tries);
    for (size_t i = 0; exit_status == CLI_DONE && i < tries->len; i++)
        exit_status = try_make(sets, context, tries, i);
    return exit_status;
}

void rbk_limit_sets_fini(struct rbk_limit_sets *sets)
{
    for (size_t i = 0; i < sets->len; i++) {
        free(sets->sets[i].limits);
        free(sets->sets[i].names);
    }
    for (size_t i = 0; i < sets->owned_len; i++)
        free(sets->owned[i]);
    free(sets->owned);
    free(sets->names);
}
