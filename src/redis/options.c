/* SPDX-License-Identifier: MIT */
/*
 * Reading the URL of a server.
 *
 * The parts before the query are split before they are decoded; a parameter that means nothing here
 * is refused, those for TLS where there is none included, since whoever gives one expects what it
 * says to be checked.
 */
#include "redis/options.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

#define PORT_DEFAULT        6379
#define DB_MAX              2147483647u
#define CONNECTIONS_DEFAULT 8
#define CONNECTIONS_MAX     1024

#define PARAMETERS     "timeout connections codec key_format method on_error local_share db"
#define PARAMETERS_TLS " ca cert key verify"

static const struct kind {
    const char *scheme;
    const char *parameters;
    bool is_unix;
    bool tls;
} kinds[] = {
    {"redis", PARAMETERS, false, false},
    {"rediss", PARAMETERS PARAMETERS_TLS, false, true},
    {"unix", PARAMETERS, true, false},
};

static const struct kind *kind_of(const char *scheme)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].scheme, scheme) == 0)
            return &kinds[i];
    }
    return NULL;
}

static enum redbucket_status refuse(const char *name, const char *expected,
                                    struct redbucket_error *error)
{
    return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: %s: expected %s", name, expected);
}

/* Leaves *chosen alone when the parameter is absent. `words` ends with a NULL. */
static bool choose(const struct rbk_url *url, const char *name, const char *const *words,
                   unsigned *chosen)
{
    const char *text = rbk_url_get(url, name);

    if (text == NULL)
        return true;
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *chosen = i;
            return true;
        }
    }
    return false;
}

static enum redbucket_status read_choices(struct rbk_redis_options *options,
                                          struct redbucket_error *error)
{
    static const char *const methods[] = {[RBK_METHOD_AUTO] = "auto",
                                          [RBK_METHOD_SCRIPT] = "script",
                                          [RBK_METHOD_TRANSACTION] = "transaction",
                                          NULL};
    static const char *const codecs[] = {
        [RBK_CODEC_STRUCT] = "struct", [RBK_CODEC_JSON] = "json", NULL};
    unsigned method = RBK_METHOD_AUTO;
    unsigned codec = RBK_CODEC_STRUCT;

    if (!choose(&options->url, "method", methods, &method))
        return refuse("method", "auto, script or transaction", error);
    if (!choose(&options->url, "codec", codecs, &codec))
        return refuse("codec", "struct or json", error);
    options->method = (enum rbk_redis_method)method;
    options->codec = (enum rbk_codec)codec;
    return REDBUCKET_OK;
}

static enum redbucket_status read_key_format(struct rbk_redis_options *options,
                                             struct redbucket_error *error)
{
    const char *text = rbk_url_get(&options->url, "key_format");
    const char *fault =
        rbk_key_format_parse(text == NULL ? RBK_KEY_FORMAT_DEFAULT : text, &options->key_format);

    if (fault != NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: key_format: %s", fault);
    return REDBUCKET_OK;
}

/* The database is the path's, where the path isn't that of a socket, or the parameter's. */
static enum redbucket_status read_db(struct rbk_redis_options *options, const char *path,
                                     struct redbucket_error *error)
{
    const char *text = rbk_url_get(&options->url, "db");
    bool in_path = path[0] != '\0' && path[1] != '\0';

    if (in_path && text != NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: db given twice");
    if (in_path)
        text = path + 1;
    if (text != NULL && !rbk_url_number(text, 0, DB_MAX, &options->db))
        return refuse(in_path ? "database behind the /" : "db", "a number from 0", error);
    return REDBUCKET_OK;
}

/* A message is a line, whatever a URL has decoded. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

static enum redbucket_status read_unix(struct rbk_redis_options *options,
                                       const struct rbk_url_authority *authority,
                                       struct redbucket_error *error)
{
    size_t len = strlen(authority->path);

    if (authority->hosts[0] != '\0' || len < 2)
        return refuse("unix", "unix://[USER[:PASSWORD]@]/PATH", error);
    if (len > RBK_UNIX_PATH_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: unix: the path is longer than %d bytes", RBK_UNIX_PATH_MAX);
    options->path = authority->path;
    (void)snprintf(options->where, sizeof options->where, "%s", options->path);
    make_printable(options->where);
    return read_db(options, "", error);
}

static enum redbucket_status read_host(struct rbk_redis_options *options,
                                       const struct rbk_url_authority *authority,
                                       struct redbucket_error *error)
{
    struct rbk_url_host host = {.port = PORT_DEFAULT};
    enum redbucket_status status;

    if (strchr(authority->hosts, ',') != NULL)
        return refuse(options->url.scheme, "one server, HOST[:PORT]", error);
    status = rbk_url_host(authority->hosts, &host, error);
    if (status != REDBUCKET_OK)
        return status;
    options->host = host.name;
    options->port = host.port;
    (void)snprintf(options->where, sizeof options->where, host.ipv6 ? "[%s]:%u" : "%s:%u",
                   host.name, host.port);
    make_printable(options->where);
    return read_db(options, authority->path, error);
}

static enum redbucket_status read_place(struct rbk_redis_options *options, bool is_unix,
                                        struct redbucket_error *error)
{
    struct rbk_url_authority authority;
    enum redbucket_status status = rbk_url_split(&options->url, &authority, error);

    if (status != REDBUCKET_OK)
        return status;
    options->user = authority.user;
    options->password = authority.password;
    return is_unix ? read_unix(options, &authority, error) : read_host(options, &authority, error);
}

static enum redbucket_status read_tls(struct rbk_redis_options *options,
                                      struct redbucket_error *error)
{
    const char *verify = rbk_url_get(&options->url, "verify");

    if (verify != NULL && strcmp(verify, "none") != 0)
        return refuse("verify", "none, or no such parameter", error);
    options->tls_verify = verify == NULL;
    options->tls_ca = rbk_url_get(&options->url, "ca");
    options->tls_cert = rbk_url_get(&options->url, "cert");
    options->tls_key = rbk_url_get(&options->url, "key");
    if (options->tls_ca != NULL && !options->tls_verify)
        return refuse("ca", "no verify=none beside it", error);
    if ((options->tls_cert == NULL) != (options->tls_key == NULL))
        return refuse("cert", "both cert and key, or neither", error);
    return REDBUCKET_OK;
}

static enum redbucket_status read_parameters(struct rbk_redis_options *options,
                                             struct redbucket_error *error)
{
    const char *connections = rbk_url_get(&options->url, "connections");
    enum redbucket_status status =
        rbk_url_duration(&options->url, "timeout", &options->timeout, error);

    if (status != REDBUCKET_OK)
        return status;
    if (connections != NULL &&
        !rbk_url_number(connections, 1, CONNECTIONS_MAX, &options->connections))
        return refuse("connections", "a number from 1 to 1024", error);
    status = read_choices(options, error);
    return status == REDBUCKET_OK ? read_key_format(options, error) : status;
}

enum redbucket_status rbk_redis_options_parse(const struct rbk_url *url,
                                              struct rbk_redis_options *options,
                                              struct redbucket_error *error)
{
    const struct kind *kind = kind_of(url->scheme);
    enum redbucket_status status;

    if (kind == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected redis://, rediss:// or unix://");
    memset(options, 0, sizeof *options);
    options->timeout = 1.0;
    options->connections = CONNECTIONS_DEFAULT;
    options->tls = kind->tls;
    options->tls_verify = true;
    rbk_url_copy(url, &options->url);
    status = rbk_url_known(url, kind->parameters, error);
    if (status == REDBUCKET_OK)
        status = read_place(options, kind->is_unix, error);
    if (status == REDBUCKET_OK)
        status = read_tls(options, error);
    return status == REDBUCKET_OK ? read_parameters(options, error) : status;
}
