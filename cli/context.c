/* SPDX-License-Identifier: MIT */
/*
 * Makes one context of options, environment and file, and a limiter of the context.
 *
 * Invariant: once rbk_cli_configure() is done, names are unique and so are zones, so that creating
 * a limiter can only fail where the store does.
 */
#include "cli.h"

#include "config_file.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_STORE "shm:redbucket"
#define SHOWN         100 /* bytes of an argument in a message */

size_t rbk_cli_find_limit(const struct cli_context *context, const char *name, size_t name_len)
{
    for (size_t i = 0; i < context->limits_len; i++)
        if (strlen(context->limits[i]->name) == name_len &&
            memcmp(context->limits[i]->name, name, name_len) == 0)
            return i;
    return SIZE_MAX;
}

int rbk_cli_need_limits(const struct cli_context *context)
{
    if (context->limits_len > 0)
        return CLI_DONE;
    return rbk_cli_fail(
        CLI_USAGE, context->command->name,
        "there are no limits: give one with -l, for instance -l ip:5/s,burst=10, "
        "or in a file (-c, $REDBUCKET_CONFIG, redbucket.conf, /etc/redbucket.conf)");
}

int rbk_cli_put_limit(struct cli_context *context, struct redbucket_named_limit *limit)
{
    const size_t index = rbk_cli_find_limit(context, limit->name, strlen(limit->name));
    struct redbucket_named_limit **grown;

    if (index != SIZE_MAX) {
        free(context->limits[index]);
        context->limits[index] = limit;
        return CLI_DONE;
    }
    grown = realloc(context->limits, (context->limits_len + 1) * sizeof(*grown));
    if (grown == NULL) {
        free(limit);
        return rbk_cli_fail(CLI_STORE, "-l", "out of memory");
    }
    context->limits = grown;
    grown[context->limits_len++] = limit;
    return CLI_DONE;
}

int rbk_cli_limit_option(const char *text, struct redbucket_named_limit **made)
{
    struct redbucket_named_limit *limit = malloc(sizeof(*limit));
    struct redbucket_error error;

    if (limit == NULL)
        return rbk_cli_fail(CLI_STORE, "-l", "out of memory");
    if (redbucket_limit_parse(text, limit, &error) != REDBUCKET_OK) {
        free(limit);
        return rbk_cli_fail(CLI_USAGE, NULL, "-l %.*s: %s", SHOWN, text, error.message);
    }
    *made = limit;
    return CLI_DONE;
}

static int add_option_limit(struct cli_context *context, const char *text)
{
    struct redbucket_named_limit *limit = NULL;
    const int result = rbk_cli_limit_option(text, &limit);

    return limit != NULL ? rbk_cli_put_limit(context, limit) : result;
}

/* Two -l of one name are a mistake: neither of them is the file's that the other could replace. */
static int check_option_names(const struct cli_context *context)
{
    for (size_t i = 0; i < context->option_limits_len; i++) {
        const char *text = context->option_limits[i];
        const size_t len = strcspn(text, ":");

        for (size_t j = 0; j < i; j++)
            if (strncmp(context->option_limits[j], text, len + 1) == 0)
                return rbk_cli_fail(CLI_USAGE, NULL, "-l %.*s: limit %.*s is there twice", SHOWN,
                                    text, (int)len, text);
    }
    return CLI_DONE;
}

int rbk_cli_check_zones(struct redbucket_named_limit *const *limits, size_t limits_len)
{
    for (size_t i = 0; i < limits_len; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(limits[i]->zone, limits[j]->zone) == 0)
                return rbk_cli_fail(CLI_USAGE, "-l", "limits %.*s and %.*s: both on zone %.*s",
                                    SHOWN, limits[j]->name, SHOWN, limits[i]->name, SHOWN,
                                    limits[i]->zone);
    return CLI_DONE;
}

static int choose_store(struct cli_context *context, const struct cli_config *config)
{
    const char *environment = getenv("REDBUCKET_STORE");
    const char *url = DEFAULT_STORE;
    const char *origin = "default store";
    char file_origin[SHOWN + 32];

    if (context->store_option != NULL) {
        url = context->store_option;
        origin = "-s";
    } else if (environment != NULL && environment[0] != '\0') {
        url = environment;
        origin = "$REDBUCKET_STORE";
    } else if (config->store != NULL) {
        url = config->store;
        snprintf(file_origin, sizeof(file_origin), "%.*s:%d", SHOWN, context->config_path,
                 config->store_line);
        origin = file_origin;
    }
    context->store_url = strdup(url);
    context->store_origin = strdup(origin);
    if (context->store_url == NULL || context->store_origin == NULL)
        return rbk_cli_fail(CLI_STORE, NULL, "out of memory");
    return CLI_DONE;
}

int rbk_cli_configure(struct cli_context *context)
{
    struct cli_config config;
    const char *path;
    int result = rbk_config_find(context->config_option, &config, &path);

    if (result != CLI_DONE)
        return result;
    context->limits = config.limits;
    context->limits_len = config.limits_len;
    config.limits = NULL;
    config.limits_len = 0;
    if (path != NULL && (context->config_path = strdup(path)) == NULL)
        result = rbk_cli_fail(CLI_STORE, NULL, "out of memory");
    if (result == CLI_DONE)
        result = choose_store(context, &config);
    if (result == CLI_DONE)
        result = check_option_names(context);
    for (size_t i = 0; i < context->option_limits_len && result == CLI_DONE; i++)
        result = add_option_limit(context, context->option_limits[i]);
    /* The file's zones are unique already; with -l there may be new ones. */
    if (result == CLI_DONE && context->option_limits_len > 0)
        result = rbk_cli_check_zones(context->limits, context->limits_len);
    rbk_config_fini(&config);
    return result;
}

void rbk_cli_context_fini(struct cli_context *context)
{
    for (size_t i = 0; i < context->limits_len; i++)
        free(context->limits[i]);
    free(context->limits);
    free(context->option_limits);
    free(context->config_path);
    free(context->store_url);
    free(context->store_origin);
    memset(context, 0, sizeof(*context));
}

int rbk_cli_limiter_create(const struct cli_context *context, struct redbucket_store *store,
                           struct redbucket_limiter **limiter)
{
    struct redbucket_error error;

    if (redbucket_limiter_create(store, limiter, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error(context->command->name, &error);
    for (size_t i = 0; i < context->limits_len; i++) {
        const struct redbucket_named_limit *limit = context->limits[i];

        if (redbucket_limiter_add(*limiter, limit->name, &limit->limit, &error) != REDBUCKET_OK) {
            redbucket_limiter_destroy(*limiter);
            *limiter = NULL;
            return rbk_cli_fail_error(limit->name, &error);
        }
    }
    return CLI_DONE;
}

/* Who only looks makes nothing, unless the URL says itself what is to be. Freed by the caller; NULL
 * without memory. */
static char *url_to_open(const struct cli_context *context)
{
    const char *url = context->store_url;
    const char *query = strchr(url, '?');
    char *longer;

    if (!context->only_look || strncmp(url, "shm:", strlen("shm:")) != 0 ||
        (query != NULL && strstr(query, "create=") != NULL))
        return strdup(url);
    return asprintf(&longer, "%s%screate=no", url, query == NULL ? "?" : "&") < 0 ? NULL : longer;
}

static enum redbucket_status open_store(const struct cli_context *context,
                                        struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;
    char *url = url_to_open(context);

    if (url == NULL)
        snprintf(error->message, sizeof(error->message), "out of memory");
    else
        status = redbucket_store_open(url, store, error);
    error->status = status;
    free(url);
    return status;
}

int rbk_cli_open(const struct cli_context *context, struct redbucket_store **store,
                 struct redbucket_limiter **limiter)
{
    struct redbucket_error error;
    char url[CLI_URL_SIZE];
    int result;

    *store = NULL;
    *limiter = NULL;
    if (open_store(context, store, &error) != REDBUCKET_OK)
        return rbk_cli_fail(rbk_cli_exit_of(error.status), context->store_origin, "%s: %s",
                            rbk_cli_mask_url(context->store_url, url), error.message);
    result = rbk_cli_limiter_create(context, *store, limiter);
    if (result != CLI_DONE) {
        redbucket_store_close(*store);
        *store = NULL;
    }
    return result;
}

void rbk_cli_close(struct redbucket_store *store, struct redbucket_limiter *limiter)
{
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}
