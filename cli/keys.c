/* SPDX-License-Identifier: MIT */
/*
 * `redbucket keys`: which buckets there are, and what is in them.
 *
 * With NAME=KEY words those buckets and no others; without, a walk through the store, printed as it
 * goes, so that it takes no memory however much there is.
 */
#include "commands.h"
#include "keys_print.h"
#include "named_keys.h"
#include "walk.h"

#include <string.h>

enum {
    KEYS_ALL = CLI_OPTION_OWN,
    KEYS_ZONE,
    KEYS_PREFIX,
    KEYS_MAX,
    KEYS_PACE,
};

struct keys {
    struct cli_walk_plan plan;
    struct cli_listing listing;
    const char *prefix;
    uint64_t max; /* 0: no bound */
    bool all;
    bool paced;
    bool enough;
};

/* ---- A walk --------------------------------------------------------------------------------- */

static void visit(void *data, const struct redbucket_bucket *bucket)
{
    struct keys *keys = data;
    const size_t prefix_len = keys->prefix != NULL ? strlen(keys->prefix) : 0;
    const struct cli_seen seen = rbk_seen(keys->plan.context, bucket);

    if (keys->enough || prefix_len > bucket->key_len ||
        (prefix_len > 0 && memcmp(bucket->key, keys->prefix, prefix_len) != 0))
        return;
    if (!keys->all && seen.known && seen.level <= 0.0) {
        keys->listing.drained++;
        return;
    }
    rbk_keys_print(&keys->listing, bucket);
    keys->enough = keys->max > 0 && keys->listing.shown >= keys->max;
}

static int list(struct keys *keys)
{
    int result;

    if (!keys->paced)
        keys->plan.pace = rbk_walk_pace(keys->plan.context);
    result = rbk_walk_all(&keys->plan, visit, keys, &keys->enough);
    if (result == CLI_DONE || keys->listing.shown > 0)
        rbk_keys_print_end(&keys->listing);
    return result;
}

/* ---- Buckets by name ------------------------------------------------------------------------ */

static int fail_key(const struct keys *keys, const struct redbucket_key *key,
                    enum redbucket_status status)
{
    const struct redbucket_request request = {
        .keys = key, .keys_len = 1, .status = status, .failed = 0};
    struct redbucket_error error;

    redbucket_request_error(&request, &error);
    return rbk_cli_fail_store("store", keys->plan.store, status, error.message);
}

/* A peek tells the time by the store's clock. */
static enum redbucket_status look(const struct keys *keys, const struct redbucket_key *key,
                                  struct redbucket_bucket *bucket)
{
    struct redbucket_request peek = {
        .operation = REDBUCKET_PEEK, .keys = key, .keys_len = 1, .cost = 1.0};
    enum redbucket_status status = redbucket_read(keys->plan.limiter, key, &bucket->state);

    if (status == REDBUCKET_OK)
        status = redbucket_decide(keys->plan.limiter, &peek, 1);
    if (status == REDBUCKET_OK)
        bucket->now = peek.response.time;
    bucket->status = status;
    return status == REDBUCKET_ERROR_STATE ? REDBUCKET_OK : status;
}

static int inspect(struct keys *keys, const struct cli_keys *named)
{
    const struct cli_context *context = keys->plan.context;

    for (size_t i = 0; i < named->len; i++) {
        const struct redbucket_key *key = &named->items[i];
        const char *zone = context->limits[named->limits[i]]->zone;
        struct redbucket_bucket bucket = {
            .zone = zone, .zone_len = strlen(zone), .key = key->key, .key_len = strlen(key->key)};
        const enum redbucket_status status = look(keys, key, &bucket);

        if (status != REDBUCKET_OK)
            return fail_key(keys, key, status);
        rbk_keys_print(&keys->listing, &bucket);
    }
    return CLI_DONE;
}

/* ---- The command ---------------------------------------------------------------------------- */

/* CLI_OPTION_STOP, or CLI_DONE at the end of the options. */
static int read_options(struct cli_context *context, int argc, char **argv, struct keys *keys)
{
    static const uint64_t max_range[] = {1, UINT64_C(1000000000000)};
    static const uint64_t pace_range[] = {0, 1000000};
    int status = CLI_DONE;

    while (status == CLI_DONE) {
        switch (rbk_cli_option(context, argc, argv)) {
        case KEYS_ALL:
            keys->all = true;
            break;
        case KEYS_ZONE:
            keys->plan.zone = optarg;
            break;
        case KEYS_PREFIX:
            keys->prefix = optarg;
            break;
        case KEYS_MAX:
            status = rbk_cli_count_option("--max", optarg, max_range, &keys->max);
            break;
        case KEYS_PACE:
            keys->paced = true;
            status = rbk_cli_count_option("--pace", optarg, pace_range, &keys->plan.pace);
            break;
        case CLI_OPTION_STOP:
            return CLI_OPTION_STOP;
        default:
            return CLI_DONE;
        }
    }
    return status;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    struct keys keys = {.plan = {.context = context}, .listing = {.context = context}};
    struct cli_keys named = {.len = 0};
    int result = read_options(context, argc, argv, &keys);

    if (result == CLI_OPTION_STOP)
        return context->exit_status;
    context->only_look = true;
    if (result == CLI_DONE)
        result = rbk_walk_check_zone(keys.plan.zone);
    if (result == CLI_DONE)
        result = rbk_cli_configure(context);
    if (result == CLI_DONE && optind < argc)
        result = rbk_cli_keys(context, argv + optind, argc - optind, &named);
    if (result == CLI_DONE)
        result = rbk_cli_open(context, &keys.plan.store, &keys.plan.limiter);
    if (result != CLI_DONE)
        return result;
    result = named.len > 0 ? inspect(&keys, &named) : list(&keys);
    rbk_cli_close(keys.plan.store, keys.plan.limiter);
    return result;
}

static const struct option options[] = {
    {"all", no_argument, NULL, KEYS_ALL},
    {"zone", required_argument, NULL, KEYS_ZONE},
    {"prefix", required_argument, NULL, KEYS_PREFIX},
    {"max", required_argument, NULL, KEYS_MAX},
    {"pace", required_argument, NULL, KEYS_PACE},
    {NULL, 0, NULL, 0},
};

const struct cli_command rbk_cli_keys_command = {
    .name = "keys",
    .arguments = "[OPTIONS] [NAME=KEY...]",
    .summary = "list the buckets of a store, or look at some",
    .help = "Goes through the store and prints a line for each bucket that isn't empty: its\n"
            "level, the most that it can hold, and when it will be empty. With NAME=KEY it\n"
            "prints those buckets alone. Nothing is changed.\n"
            "\n"
            "  --zone ZONE    only buckets of this zone\n"
            "  --prefix TEXT  only keys that begin so\n"
            "  --max N        stop after so many\n"
            "  --all          buckets that have drained by now, too\n"
            "  --pace N       at most so many steps a second, of some 100 keys each; 0: any\n"
            "\n"
            "A server is gone through by SCAN, all masters of a cluster, and may show a key\n"
            "twice. It doesn't know rates: levels are those of the limits configured here,\n"
            "and without one \"<=\" and what was stored. A zone with \"?\" could be a longer one.\n"
            "Bytes that don't print are shown as \\xNN.\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed, or a part of it.\n"
            "\n"
            "Examples:\n"
            "  redbucket keys --zone ip --max 20\n"
            "  redbucket -s redis://localhost -l ip:5/s,burst=10 --json keys ip=192.0.2.7\n",
    .options = options,
    .run = run,
};
