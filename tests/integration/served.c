/* SPDX-License-Identifier: MIT */
#include "served.h"

#include "wire/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WAYS_MAX 10

static struct test_server *servers[TEST_SERVER_KINDS];

static const struct served all_ways[WAYS_MAX] = {
    {TEST_REDIS, "script", "struct", NULL, NULL, NULL},
    {TEST_REDIS, "script", "json", NULL, NULL, NULL},
    {TEST_REDIS, "transaction", "struct", NULL, NULL, NULL},
    {TEST_REDIS, "transaction", "json", NULL, NULL, NULL},
    {TEST_VALKEY, "script", "struct", NULL, NULL, NULL},
    {TEST_VALKEY, "script", "json", NULL, NULL, NULL},
    {TEST_VALKEY, "transaction", "struct", NULL, NULL, NULL},
    {TEST_VALKEY, "transaction", "json", NULL, NULL, NULL},
    {TEST_OLD_REDIS, "transaction", "struct", NULL, NULL, NULL},
    {TEST_OLD_REDIS, "transaction", "json", NULL, NULL, NULL},
};

bool served_by_script(const struct served *served)
{
    return strcmp(served->method, "script") == 0;
}

bool served_json(const struct served *served)
{
    return strcmp(served->codec, "json") == 0;
}

static struct test_server *server_of(enum test_server_kind kind)
{
    const struct test_server_options options = {.kind = kind};

    if (servers[kind] == NULL)
        servers[kind] = test_server_start(&options);
    assert_non_null(servers[kind]);
    return servers[kind];
}

struct redbucket_store *served_open(const struct served *served, const char *query)
{
    char parameters[256], url[512];
    struct redbucket_store *store;
    struct redbucket_error error;

    /* Nobody here waits for a time-out; a machine may be slow. The server's clock goes by itself,
     * and what was rejected before it was moved says nothing. */
    (void)snprintf(parameters, sizeof parameters,
                   "timeout=20s&denial_time=0&method=%s&codec=%s%s%s", served->method,
                   served->codec, query[0] != '\0' ? "&" : "", query);
    test_server_url(served->server, TEST_BY_SOCKET, parameters, url, sizeof url);
    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK)
        fail_msg("%s", error.message);
    return store;
}

static void open_all(struct served *served, const char *query)
{
    served->store = served_open(served, query);
    assert_int_equal(redbucket_limiter_create(served->store, &served->limiter, NULL), REDBUCKET_OK);
}

static void close_all(struct served *served)
{
    redbucket_limiter_destroy(served->limiter);
    redbucket_store_close(served->store);
}

void served_again(struct served *served, const char *query)
{
    close_all(served);
    open_all(served, query);
}

static int set_up(void **state)
{
    struct served *served = malloc(sizeof *served);

    assert_non_null(served);
    memcpy(served, *state, sizeof *served);
    served->server = server_of(served->kind);
    assert_true(test_server_do(served->server, "FLUSHALL", NULL));
    open_all(served, "");
    rbk_test_now = SERVED_NOW;
    *state = served;
    return 0;
}

static int tear_down(void **state)
{
    close_all(*state);
    free(*state);
    return 0;
}

static bool is_among(unsigned ways, const struct served *served)
{
    unsigned other = (served_by_script(served) ? SERVED_TRANSACTION : SERVED_SCRIPT) |
                     (served_json(served) ? SERVED_STRUCT : SERVED_JSON);

    return (ways & other) == 0;
}

static void server_is_missing(void **state)
{
    (void)state;
    skip();
}

static struct CMUnitTest one_test(const struct served_case *one, const struct served *way)
{
    char name[192];

    (void)snprintf(name, sizeof name, "%s by %s %s, %s", one->name, test_server_name(way->kind),
                   way->method, way->codec);
    return (struct CMUnitTest){.name = strdup(name),
                               .test_func = one->body,
                               .setup_func = set_up,
                               .teardown_func = tear_down,
                               .initial_state = (void *)(uintptr_t)way};
}

static struct CMUnitTest missing(enum test_server_kind kind)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s is there", test_server_name(kind));
    return (struct CMUnitTest){.name = strdup(name), .test_func = server_is_missing};
}

int served_run(const char *group, const struct served_case *cases, size_t len)
{
    struct CMUnitTest *tests = calloc(len * WAYS_MAX + TEST_SERVER_KINDS, sizeof *tests);
    size_t count = 0;

    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < len * WAYS_MAX; i++) {
        const struct served *way = &all_ways[i % WAYS_MAX];

        if (is_among(cases[i / WAYS_MAX].ways, way) && test_server_have(way->kind))
            tests[count++] = one_test(&cases[i / WAYS_MAX], way);
    }
    for (int kind = 0; kind < TEST_SERVER_KINDS; kind++) {
        if (!test_server_have((enum test_server_kind)kind))
            tests[count++] = missing((enum test_server_kind)kind);
    }
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);

    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tests[i].name);
    free(tests);
    for (int kind = 0; kind < TEST_SERVER_KINDS; kind++)
        test_server_stop(servers[kind]);
    return failed;
}

void served_limit(struct served *served, const char *name, struct redbucket_limit limit)
{
    struct redbucket_error error;

    if (redbucket_limiter_add(served->limiter, name, &limit, &error) != REDBUCKET_OK)
        fail_msg("%s", error.message);
}

static redisReply *good(redisReply *reply)
{
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    return reply;
}

redisReply *served_ask(const struct served *served, const char *word, ...)
{
    const char *argv[16];
    int argc = 0;
    va_list words;

    va_start(words, word);
    for (; word != NULL && argc < 16; word = va_arg(words, const char *))
        argv[argc++] = word;
    va_end(words);
    assert_null(word);
    return good(test_server_call(served->server, argc, argv, NULL));
}

void served_put(const struct served *served, const char *key, const void *value, size_t len)
{
    const char *argv[] = {"SET", key, value};
    const size_t lengths[] = {3, strlen(key), len};

    freeReplyObject(good(test_server_call(served->server, 3, argv, lengths)));
}

redisReply *served_get(const struct served *served, const char *key)
{
    redisReply *reply = served_ask(served, "GET", key, NULL);

    if (reply->type == REDIS_REPLY_STRING)
        return reply;
    freeReplyObject(reply);
    return NULL;
}

long long served_number(const struct served *served, const char *command, const char *key)
{
    redisReply *reply = served_ask(served, command, key, NULL);
    long long number = reply->integer;

    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    return number;
}

size_t served_encode(const struct served *served, double timestamp, double value,
                     unsigned char out[96])
{
    const struct rbk_state state = {true, timestamp, value};

    return rbk_state_encode(served_json(served) ? RBK_CODEC_JSON : RBK_CODEC_STRUCT, &state, out);
}

struct redbucket_response served_request(struct served *served, const char *key)
{
    const struct redbucket_key named = {.limit = "a", .key = key};
    struct redbucket_response response;

    assert_int_equal(redbucket_request(served->limiter, &named, 1, &response), REDBUCKET_OK);
    return response;
}
