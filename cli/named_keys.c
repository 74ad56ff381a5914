/* SPDX-License-Identifier: MIT */
/*
 * NAME=KEY, split at the first '=', so a key may hold more of them, or be empty. What names no
 * limit is found here, before the store is opened, and answered with the names that there are.
 */
#include "named_keys.h"

#include <string.h>

#define NAMES_SIZE 300
#define SHOWN      100

/* "user, ip, ..." as far as there is room. */
static const char *list_names(const struct cli_context *context, char out[NAMES_SIZE])
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < context->limits_len; i++) {
        const char *name = context->limits[i]->name;

        if (used + strlen(name) + sizeof(", ...") >= NAMES_SIZE) {
            snprintf(out + used, NAMES_SIZE - used, ", ...");
            break;
        }
        used += (size_t)snprintf(out + used, NAMES_SIZE - used, "%s%s", i > 0 ? ", " : "", name);
    }
    return out;
}

static int add_word(const struct cli_context *context, const char *word, struct cli_keys *keys)
{
    const char *where = context->command->name;
    const char *equals = strchr(word, '=');
    char names[NAMES_SIZE];
    size_t index;

    if (equals == NULL)
        return rbk_cli_fail(CLI_USAGE, where, "\"%.*s\": expected NAME=KEY, NAME one of %s", SHOWN,
                            word, list_names(context, names));
    index = rbk_cli_find_limit(context, word, (size_t)(equals - word));
    if (index == SIZE_MAX)
        return rbk_cli_fail(CLI_USAGE, where, "\"%.*s\": no such limit, expected one of %s",
                            (int)(equals - word < SHOWN ? equals - word : SHOWN), word,
                            list_names(context, names));
    for (size_t i = 0; i < keys->len; i++)
        if (keys->limits[i] == index)
            return rbk_cli_fail(CLI_USAGE, where, "limit %s is named twice, expected once",
                                context->limits[index]->name);
    if (keys->len == REDBUCKET_KEYS_MAX)
        return rbk_cli_fail(CLI_USAGE, where, "more than %d limits in one request",
                            REDBUCKET_KEYS_MAX);
    keys->limits[keys->len] = index;
    keys->items[keys->len++] = (struct redbucket_key){
        .limit = context->limits[index]->name,
        .key = equals + 1,
    };
    return CLI_DONE;
}

int rbk_cli_keys(const struct cli_context *context, char **words, int words_len,
                 struct cli_keys *keys)
{
    char names[NAMES_SIZE];
    int result = rbk_cli_need_limits(context);

    keys->len = 0;
    if (result == CLI_DONE && words_len <= 0)
        return rbk_cli_fail(CLI_USAGE, context->command->name,
                            "expected NAME=KEY for at least one limit, NAME one of %s",
                            list_names(context, names));
    for (int i = 0; i < words_len && result == CLI_DONE; i++)
        result = add_word(context, words[i], keys);
    return result;
}
