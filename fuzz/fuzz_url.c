/* SPDX-License-Identifier: MIT */
/*
 * Any text as the URL of a store on a server: what is read is within its bounds, and no message
 * holds what stands where a password does. Links the library's private reader of URLs.
 */
#include "redis/options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const struct rbk_endpoint *host)
{
    if (host->name[0] == '\0' || host->where[0] == '\0' || host->port > 65535)
        abort();
    if (host->port == 0 && strlen(host->name) > RBK_UNIX_PATH_MAX)
        abort();
}

static void check(const struct rbk_redis_options *options)
{
    if (options->hosts_len == 0 || options->hosts_len > RBK_HOSTS_MAX)
        abort();
    if (options->kind == RBK_KIND_SERVER && options->hosts_len > 1)
        abort();
    if ((options->kind == RBK_KIND_SENTINEL) != (options->service != NULL))
        abort();
    if (options->sentinel_user != NULL && options->sentinel_password == NULL)
        abort();
    for (size_t i = 0; i < options->hosts_len; i++)
        check_host(&options->hosts[i]);
    if (options->user != NULL && options->password == NULL)
        abort();
    if (options->connections == 0 || !(options->timeout > 0))
        abort();
    if ((options->tls_cert == NULL) != (options->tls_key == NULL))
        abort();
}

/* Marked, so that it is found wherever it gets to. */
static void hide(const char *text)
{
    static const char mark[] = "//:ZQXJ@";
    char marked[RBK_URL_MAX * 2];
    const char *slashes = strstr(text, "//");
    struct redbucket_error error = {.message = ""};
    struct rbk_redis_options options;
    struct rbk_url url;

    if (slashes == NULL)
        return;
    memcpy(marked, text, (size_t)(slashes - text));
    memcpy(marked + (slashes - text), mark, sizeof mark - 1);
    memcpy(marked + (slashes - text) + sizeof mark - 1, slashes + 2, strlen(slashes + 2) + 1);
    enum redbucket_status status = rbk_url_parse(marked, &url, &error);

    if (status == REDBUCKET_OK)
        status = rbk_redis_options_parse(&url, &options, &error);
    for (size_t i = 0; status == REDBUCKET_OK && i < options.hosts_len; i++) {
        if (strstr(options.hosts[i].where, "ZQXJ") != NULL && strstr(text, "ZQXJ") == NULL)
            abort();
    }
    if (strstr(error.message, "ZQXJ") != NULL && strstr(text, "ZQXJ") == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rbk_redis_options options;
    struct rbk_url url;
    char text[RBK_URL_MAX + 8];

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (rbk_url_parse(text, &url, NULL) == REDBUCKET_OK &&
        rbk_redis_options_parse(&url, &options, NULL) == REDBUCKET_OK)
        check(&options);
    hide(text);
    return 0;
}
