/* SPDX-License-Identifier: MIT */
#include "clustered.h"

#include "wire/key_format.h"
#include "wire/slot.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WAYS_MAX  8
#define WORDS_MAX 16
#define NAME_SIZE 32768

static struct test_cluster *clusters[TEST_SERVER_KINDS];

static const struct clustered all_ways[WAYS_MAX] = {
    {TEST_REDIS, "struct", RBK_KEY_FORMAT_DEFAULT, NULL, NULL, NULL},
    {TEST_REDIS, "json", RBK_KEY_FORMAT_DEFAULT, NULL, NULL, NULL},
    {TEST_REDIS, "struct", CLUSTERED_TOGETHER, NULL, NULL, NULL},
    {TEST_REDIS, "json", CLUSTERED_TOGETHER, NULL, NULL, NULL},
    {TEST_VALKEY, "struct", RBK_KEY_FORMAT_DEFAULT, NULL, NULL, NULL},
    {TEST_VALKEY, "json", RBK_KEY_FORMAT_DEFAULT, NULL, NULL, NULL},
    {TEST_VALKEY, "struct", CLUSTERED_TOGETHER, NULL, NULL, NULL},
    {TEST_VALKEY, "json", CLUSTERED_TOGETHER, NULL, NULL, NULL},
};

static bool is_tagged(const struct clustered *way)
{
    return strcmp(way->key_format, CLUSTERED_TOGETHER) == 0;
}

static bool is_among(unsigned ways, const struct clustered *way)
{
    return ((ways & CLUSTERED_STRUCT) == 0 || strcmp(way->codec, "struct") == 0) &&
           ((ways & CLUSTERED_TAGGED) == 0 || is_tagged(way)) &&
           ((ways & CLUSTERED_UNTAGGED) == 0 || !is_tagged(way)) &&
           ((ways & CLUSTERED_REDIS) == 0 || way->kind == TEST_REDIS) &&
           ((ways & CLUSTERED_VALKEY) == 0 || way->kind == TEST_VALKEY);
}

/* ---- Stores --------------------------------------------------------------------------------- */

/* Percent-encodes what isn't plain. */
static void encode(const char *text, char *out)
{
    for (; *text != '\0'; text++)
        out += sprintf(out, strchr("{}:", *text) != NULL ? "%%%02x" : "%c", (unsigned)*text);
    *out = '\0';
}

struct redbucket_store *clustered_open(const struct clustered *clustered, const char *query)
{
    char format[256], parameters[512], url[1024];
    struct redbucket_store *store;
    struct redbucket_error error;

    encode(clustered->key_format, format);
    /* Nobody here waits for a time-out unless a case says so; a machine may be slow. Where the
     * servers' clock is moved, what was rejected before says nothing. */
    (void)snprintf(parameters, sizeof parameters, "%sdenial_time=0&codec=%s&key_format=%s%s%s",
                   strstr(query, "timeout=") != NULL ? "" : "timeout=20s&", clustered->codec,
                   format, query[0] != '\0' ? "&" : "", query);
    test_cluster_url(clustered->cluster, TEST_BY_PORT, parameters, url, sizeof url);
    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK)
        fail_msg("%s", error.message);
    return store;
}

static void open_all(struct clustered *clustered, const char *query)
{
    clustered->store = clustered_open(clustered, query);
    assert_int_equal(redbucket_limiter_create(clustered->store, &clustered->limiter, NULL),
                     REDBUCKET_OK);
}

static void close_all(struct clustered *clustered)
{
    redbucket_limiter_destroy(clustered->limiter);
    redbucket_store_close(clustered->store);
}

void clustered_again(struct clustered *clustered, const char *query)
{
    close_all(clustered);
    open_all(clustered, query);
}

void clustered_limit(struct clustered *clustered, const char *name, struct redbucket_limit limit)
{
    struct redbucket_error error;

    if (redbucket_limiter_add(clustered->limiter, name, &limit, &error) != REDBUCKET_OK)
        fail_msg("%s", error.message);
}

/* ---- Running -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct clustered *clustered = malloc(sizeof *clustered);

    assert_non_null(clustered);
    memcpy(clustered, *state, sizeof *clustered);
    *state = clustered;
    if (clusters[clustered->kind] == NULL)
        clusters[clustered->kind] =
            test_cluster_start(&(struct test_server_options){.kind = clustered->kind});
    assert_non_null(clusters[clustered->kind]);
    clustered->cluster = clusters[clustered->kind];
    clustered_flush(clustered);
    open_all(clustered, "");
    return 0;
}

static int tear_down(void **state)
{
    close_all(*state);
    free(*state);
    return 0;
}

static struct CMUnitTest one_test(const struct clustered_case *one, const struct clustered *way)
{
    char name[192];

    (void)snprintf(name, sizeof name, "%s by %s, %s, %s", one->name, test_server_name(way->kind),
                   way->codec, is_tagged(way) ? "in one slot" : "in many slots");
    return (struct CMUnitTest){.name = strdup(name),
                               .test_func = one->body,
                               .setup_func = set_up,
                               .teardown_func = tear_down,
                               .initial_state = (void *)(uintptr_t)way};
}

static void server_is_missing(void **state)
{
    (void)state;
    skip();
}

int clustered_run(const char *group, const struct clustered_case *cases, size_t len)
{
    struct CMUnitTest *tests = calloc(len * WAYS_MAX + 1, sizeof *tests);
    size_t count = 0;

    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < len * WAYS_MAX; i++) {
        const struct clustered *way = &all_ways[i % WAYS_MAX];

        if (is_among(cases[i / WAYS_MAX].ways, way) && test_server_have(way->kind))
            tests[count++] = one_test(&cases[i / WAYS_MAX], way);
    }
    if (!test_server_have(TEST_VALKEY))
        tests[count++] =
            (struct CMUnitTest){.name = strdup("valkey is there"), .test_func = server_is_missing};
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);

    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tests[i].name);
    free(tests);
    for (size_t kind = 0; kind < TEST_SERVER_KINDS; kind++)
        test_cluster_stop(clusters[kind]);
    return failed;
}

/* ---- What is where -------------------------------------------------------------------------- */

void clustered_everywhere(const struct clustered *clustered, const char *word, ...)
{
    static struct test_cluster_view view;
    const char *argv[WORDS_MAX];
    int argc = 0;
    va_list words;

    va_start(words, word);
    for (; word != NULL && argc < WORDS_MAX; word = va_arg(words, const char *))
        argv[argc++] = word;
    va_end(words);
    assert_true(test_cluster_look(clustered->cluster, 0, &view));
    for (size_t i = 0; i < clustered->cluster->nodes_len; i++) {
        if (view.master_of[i] != i)
            continue;
        redisReply *reply = test_server_call(clustered->cluster->nodes[i], argc, argv, NULL);

        assert_non_null(reply);
        if (reply->type == REDIS_REPLY_ERROR)
            fail_msg("%s", reply->str);
        freeReplyObject(reply);
    }
}

void clustered_flush(const struct clustered *clustered)
{
    clustered_everywhere(clustered, "FLUSHALL", NULL);
}

size_t clustered_name(const struct clustered *clustered, const char *zone, const void *key,
                      size_t key_len, unsigned char *out, size_t size)
{
    const struct rbk_key named = {(const unsigned char *)zone, strlen(zone), key, key_len};
    struct rbk_key_format format;

    assert_null(rbk_key_format_parse(clustered->key_format, &format));
    assert_true(rbk_key_format_len(&format, &named) <= size);
    rbk_key_format_write(&format, &named, out);
    return rbk_key_format_len(&format, &named);
}

size_t clustered_node(const struct clustered *clustered, const char *zone, const char *key,
                      unsigned *slot)
{
    static unsigned char name[NAME_SIZE];
    size_t len = clustered_name(clustered, zone, key, strlen(key), name, sizeof name);
    unsigned its = rbk_slot_of(name, len);

    if (slot != NULL)
        *slot = its;
    return test_cluster_owner(clustered->cluster, its);
}

void clustered_key_at(const struct clustered *clustered, const char *zone, size_t node,
                      const char *prefix, char out[48])
{
    static struct test_cluster_view view;
    unsigned char name[512];

    assert_true(test_cluster_look(clustered->cluster, node, &view));
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(out, 48, "%s-%d", prefix, i);
        size_t len = clustered_name(clustered, zone, out, strlen(out), name, sizeof name);

        if (view.owner[rbk_slot_of(name, len)] == node)
            return;
    }
    fail_msg("no key at node %zu", node);
}

redisReply *clustered_ask(const struct clustered *clustered, const char *zone, const char *key,
                          const char *word, ...)
{
    static unsigned char name[NAME_SIZE];
    const char *argv[WORDS_MAX] = {word, (const char *)name};
    size_t lengths[WORDS_MAX] = {strlen(word)};
    size_t node = clustered_node(clustered, zone, key, NULL);
    int argc = 2;
    va_list words;

    lengths[1] = clustered_name(clustered, zone, key, strlen(key), name, sizeof name);
    va_start(words, word);
    for (const char *more = va_arg(words, const char *); more != NULL && argc < WORDS_MAX;
         more = va_arg(words, const char *)) {
        lengths[argc] = strlen(more);
        argv[argc++] = more;
    }
    va_end(words);
    assert_true(node < TEST_CLUSTER_NODES);
    redisReply *reply = test_server_call(clustered->cluster->nodes[node], argc, argv, lengths);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    return reply;
}

/* ---- Asking the store ----------------------------------------------------------------------- */

enum redbucket_status clustered_request(struct clustered *clustered, const char *limits,
                                        const char *key, struct redbucket_response *response)
{
    struct redbucket_key keys[WORDS_MAX];
    struct redbucket_response unwanted;
    size_t len = 0;

    for (const char *at = limits; *at != '\0' && len < WORDS_MAX; at += strspn(at, " ")) {
        size_t name_len = strcspn(at, " ");

        keys[len++] = (struct redbucket_key){.limit = at, .limit_len = name_len, .key = key};
        at += name_len;
    }
    return redbucket_request(clustered->limiter, keys, len,
                             response != NULL ? response : &unwanted);
}

double clustered_value(struct clustered *clustered, const char *limit, const char *key)
{
    const struct redbucket_key named = {.limit = limit, .key = key};
    struct redbucket_state state;

    assert_int_equal(redbucket_read(clustered->limiter, &named, &state), REDBUCKET_OK);
    return state.exists ? state.value : 0.0;
}
