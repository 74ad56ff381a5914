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

#include <string.h>

#define PORT_SERVER         6379
#define PORT_SENTINEL       26379
#define DB_MAX              2147483647u
#define CONNECTIONS_DEFAULT 8
#define CONNECTIONS_MAX     1024

#define PARAMETERS          "timeout connections codec key_format method denial_time on_error local_share"
#define PARAMETERS_SERVER   PARAMETERS " db"
#define PARAMETERS_SENTINEL PARAMETERS " db sentinel_user sentinel_password"
#define PARAMETERS_TLS      " ca cert key verify"

static const struct scheme {
    const char *name;
    const char *parameters;
    enum rbk_redis_kind kind;
    bool is_unix;
    bool tls;
} schemes[] = {
    {"redis", PARAMETERS_SERVER, RBK_KIND_SERVER, false, false},
    {"rediss", PARAMETERS_SERVER PARAMETERS_TLS, RBK_KIND_SERVER, false, true},
    {"unix", PARAMETERS_SERVER, RBK_KIND_SERVER, true, false},
    {"redis+sentinel", PARAMETERS_SENTINEL, RBK_KIND_SENTINEL, false, false},
    {"rediss+sentinel", PARAMETERS_SENTINEL PARAMETERS_TLS, RBK_KIND_SENTINEL, false, true},
    {"redis+cluster", PARAMETERS, RBK_KIND_CLUSTER, false, false},
    {"rediss+cluster", PARAMETERS PARAMETERS_TLS, RBK_KIND_CLUSTER, false, true},
};

static const struct scheme *scheme_of(const char *name)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
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
    if (options->kind == RBK_KIND_CLUSTER && method == RBK_METHOD_TRANSACTION)
        return refuse("method", "auto or script, since a cluster decides by script alone", error);
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

/* The database is what stands behind the / of a path that isn't a socket's ("" for nothing), or the
 * parameter. */
static enum redbucket_status read_db(struct rbk_redis_options *options, const char *in_path,
                                     struct redbucket_error *error)
{
    const char *text = rbk_url_get(&options->url, "db");

    if (in_path[0] != '\0' && text != NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: db given twice");
    if (in_path[0] != '\0')
        text = in_path;
    if (text != NULL && !rbk_url_number(text, 0, DB_MAX, &options->db))
        return refuse(text == in_path ? "database behind the /" : "db", "a number from 0", error);
    return REDBUCKET_OK;
}

static enum redbucket_status read_unix(struct rbk_redis_options *options,
                                       const struct rbk_url_authority *authority,
                                       struct redbucket_error *error)
{
    if (authority->hosts[0] != '\0' || strlen(authority->path) < 2)
        return refuse("unix", "unix://[USER[:PASSWORD]@]/PATH", error);
    if (!rbk_endpoint_set_path(&options->hosts[0], authority->path))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: unix: the path is longer than %d bytes", RBK_UNIX_PATH_MAX);
    options->hosts_len = 1;
    return read_db(options, "", error);
}

/* Reads HOST[:PORT],HOST[:PORT]..., in place. */
static enum redbucket_status read_hosts(struct rbk_redis_options *options, char *list,
                                        struct redbucket_error *error)
{
    while (list != NULL) {
        struct rbk_url_host host = {.port = options->kind == RBK_KIND_SENTINEL ? PORT_SENTINEL
                                                                               : PORT_SERVER};
        char *next = strchr(list, ',');

        if (next != NULL)
            *next++ = '\0';
        if (options->hosts_len == RBK_HOSTS_MAX)
            return refuse(options->url.scheme, "at most 32 hosts", error);
        enum redbucket_status status = rbk_url_host(list, &host, error);

        if (status != REDBUCKET_OK)
            return status;
        (void)rbk_endpoint_set_host(&options->hosts[options->hosts_len++], host.name, host.port);
        list = next;
    }
    return REDBUCKET_OK;
}

/* Splits "/SERVICE[/DB]" in place. */
static enum redbucket_status read_service(struct rbk_redis_options *options, char *path,
                                          struct redbucket_error *error)
{
    char *service = path + (path[0] == '/');
    char *db = service + strcspn(service, "/");

    if (service == db)
        return refuse(options->url.scheme, "HOST[:PORT],HOST[:PORT].../SERVICE[/DB]", error);
    if (*db != '\0')
        *db++ = '\0';
    options->service = service;
    options->sentinel_user = rbk_url_get(&options->url, "sentinel_user");
    options->sentinel_password = rbk_url_get(&options->url, "sentinel_password");
    if (options->sentinel_user != NULL && options->sentinel_password == NULL)
        return refuse("sentinel_user", "a sentinel_password beside it", error);
    return read_db(options, db, error);
}

static enum redbucket_status read_host(struct rbk_redis_options *options,
                                       const struct rbk_url_authority *authority,
                                       struct redbucket_error *error)
{
    const char *behind = authority->path + (authority->path[0] == '/');

    if (options->kind == RBK_KIND_SERVER && strchr(authority->hosts, ',') != NULL)
        return refuse(options->url.scheme, "one server, HOST[:PORT]", error);
    if (options->kind == RBK_KIND_CLUSTER && behind[0] != '\0')
        return refuse("database behind the /", "none, since a cluster has but one", error);
    enum redbucket_status status = read_hosts(options, authority->hosts, error);

    if (status != REDBUCKET_OK || options->kind == RBK_KIND_CLUSTER)
        return status;
    return options->kind == RBK_KIND_SENTINEL ? read_service(options, authority->path, error)
                                              : read_db(options, behind, error);
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

/* That a cluster has no databases deserves better than "unknown parameter". */
static enum redbucket_status know_parameters(const struct rbk_url *url, const struct scheme *scheme,
                                             struct redbucket_error *error)
{
    if (scheme->kind == RBK_KIND_CLUSTER && rbk_url_get(url, "db") != NULL)
        return refuse("db", "no such parameter, since a cluster has but one database", error);
    return rbk_url_known(url, scheme->parameters, error);
}

enum redbucket_status rbk_redis_options_parse(const struct rbk_url *url,
                                              struct rbk_redis_options *options,
                                              struct redbucket_error *error)
{
    const struct scheme *scheme = scheme_of(url->scheme);
    enum redbucket_status status;

    if (scheme == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: expected " RBK_URL_SERVERS);
    memset(options, 0, sizeof *options);
    options->kind = scheme->kind;
    options->timeout = RBK_TIMEOUT_DEFAULT;
    options->connections = CONNECTIONS_DEFAULT;
    options->tls = scheme->tls;
    options->tls_verify = true;
    rbk_url_copy(url, &options->url);
    status = know_parameters(url, scheme, error);
    if (status == REDBUCKET_OK)
        status = read_place(options, scheme->is_unix, error);
    if (status == REDBUCKET_OK)
        status = read_tls(options, error);
    return status == REDBUCKET_OK ? read_parameters(options, error) : status;
}
