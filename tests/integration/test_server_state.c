/* SPDX-License-Identifier: MIT */
/*
 * What is stored, byte for byte, for how long, and that nothing else on the server is touched. The
 * original writes and reads the same keys, so none of this can change.
 */
#include "monitor.h"
#include "processes.h"
#include "served.h"
#include "wire/call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct redbucket_limit plenty = {.rate = 1, .burst = 1e6};

/* Bytes as a part of a URL's query. */
static const char *encoded(const char *text, char *out)
{
    char *to = out;

    for (; *text != '\0'; text++)
        to += sprintf(to, "%%%02x", (unsigned char)*text);
    return out;
}

static void check_only_key(const struct served *served, const char *name, size_t len)
{
    redisReply *keys = served_ask(served, "KEYS", "*", NULL);

    assert_int_equal(keys->elements, 1);
    assert_int_equal(keys->element[0]->len, len);
    assert_memory_equal(keys->element[0]->str, name, len);
    freeReplyObject(keys);
}

static void take(struct served *served, const struct redbucket_key *key)
{
    struct redbucket_response response;

    assert_int_equal(redbucket_request(served->limiter, key, 1, &response), REDBUCKET_OK);
    assert_true(response.accepted);
}

static void keys_are_named_by_the_format(void **state)
{
    static const struct {
        const char *format, *zone, *key, *name;
    } names[] = {
        {NULL, "user", "alice", "redbucket:user:alice"},
        {NULL, "user", "", "redbucket:user:"},
        {NULL, "{key}", "{zone}", "redbucket:{key}:{zone}"},
        {NULL, "%s%n", "%d %_ $1 *", "redbucket:%s%n:%d %_ $1 *"},
        {NULL, "z", "h\xc3\xa9llo \xe2\x98\x83", "redbucket:z:h\xc3\xa9llo \xe2\x98\x83"},
        {NULL, "z", "a\r\nb \"c\"\\", "redbucket:z:a\r\nb \"c\"\\"},
        {"{zone}{key}", "z", "k", "zk"},
        {"{key}@{zone}", "z", "k", "k@z"},
        {"r:{{{zone}:{key}}}", "z", "k", "r:{z:k}"},
        {"{{{key}}}:{zone}:{key}", "z", "k", "{k}:z:k"},
        {"r {{}} & ? = # {zone} \xc3\xa9 {key}", "z", "k", "r {} & ? = # z \xc3\xa9 k"},
    };
    struct served *served = *state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct redbucket_key key = {.limit = "a", .key = names[i].key};
        struct redbucket_limit limit = plenty;
        char query[256] = "", hex[200];

        if (names[i].format != NULL)
            (void)snprintf(query, sizeof query, "key_format=%s", encoded(names[i].format, hex));
        served_again(served, query);
        limit.zone = names[i].zone;
        served_limit(served, "a", limit);
        take(served, &key);
        check_only_key(served, names[i].name, strlen(names[i].name));
        assert_true(test_server_do(served->server, "FLUSHALL", NULL));
    }
}

static void keys_are_bytes_of_any_value_and_length(void **state)
{
    static const char binary[] = "redbucket:a:a\0b\xff\xfe\0";
    struct served *served = *state;
    struct redbucket_key key = {.limit = "a", .key = "a\0b\xff\xfe\0", .key_len = 6};
    char *large = malloc(10240 + 12);

    assert_non_null(large);
    served_limit(served, "a", plenty);
    take(served, &key);
    check_only_key(served, binary, sizeof binary - 1);
    assert_true(test_server_do(served->server, "FLUSHALL", NULL));

    memcpy(large, "redbucket:a:", 12);
    for (size_t i = 0; i < 10240; i++)
        large[12 + i] = (char)(i * 7);
    key.key = large + 12;
    key.key_len = 10240;
    take(served, &key);
    check_only_key(served, large, 12 + 10240);
    free(large);
}

/* A key that another one is the beginning of, up to a NUL or to 255 bytes, is another key. */
static void keys_are_never_cut(void **state)
{
    struct served *served = *state;
    char text[400];

    served_limit(served, "a", (struct redbucket_limit){.rate = 0.001});
    memset(text, 'A', sizeof text);
    const size_t lengths[] = {1, 254, 255, 256, 257, 300, 400};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        take(served, &(struct redbucket_key){.limit = "a", .key = text, .key_len = lengths[i]});
    text[1] = '\0';
    for (size_t i = 1; i < sizeof lengths / sizeof lengths[0]; i++)
        take(served, &(struct redbucket_key){.limit = "a", .key = text, .key_len = lengths[i]});
    redisReply *size = served_ask(served, "DBSIZE", NULL);

    assert_int_equal(size->integer, 13);
    freeReplyObject(size);
}

static void the_longest_key_is_taken_and_a_longer_one_refused(void **state)
{
    enum { LONGEST = 1 << 20 };
    static const size_t lengths[] = {65535, 65536, LONGEST};
    struct served *served = *state;
    char *text = malloc(LONGEST + 1);
    struct redbucket_key key = {.limit = "a", .key = text};
    struct redbucket_response response;

    assert_non_null(text);
    memset(text, 'B', LONGEST + 1);
    served_limit(served, "a", (struct redbucket_limit){.rate = 0.001});
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        key.key_len = lengths[i];
        take(served, &key);
    }
    assert_int_equal(redbucket_request(served->limiter, &key, 1, &response), REDBUCKET_OK);
    assert_false(response.accepted);
    key.key_len++;
    assert_int_equal(redbucket_request(served->limiter, &key, 1, &response), REDBUCKET_ERROR_KEY);
    free(text);
}

static void a_struct_is_sixteen_bytes(void **state)
{
    static const unsigned char expected[16] = {0, 0, 0x40, 0x5c, 0x32, 0x4c, 0xd9, 0x41,
                                               0, 0, 0,    0,    0,    0,    0xf0, 0x3f};
    struct served *served = *state;

    served_limit(served, "a", plenty);
    (void)served_request(served, "k");
    redisReply *stored = served_get(served, "redbucket:a:k");

    assert_non_null(stored);
    assert_int_equal(stored->len, 16);
    assert_memory_equal(stored->str, expected, 16);
    freeReplyObject(stored);
}

/* A text of t and v, in which the numbers are those that were decided with, to the last bit. */
static void json_reads_back_exactly(void **state)
{
    static const double times[] = {0, 1582534960.134661, 1700000000.1, 4294967296.000001, 1e9 / 3};
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 0.1, .burst = 1e6});
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const struct redbucket_key key = {.limit = "a", .key = "k"};
        struct redbucket_request charge = {
            .operation = REDBUCKET_CHARGE, .keys = &key, .keys_len = 1, .cost = 1.0 / 3};
        double timestamp, value;
        int end = 0;

        rbk_test_now = times[i];
        assert_true(test_server_do(served->server, "DEL", "redbucket:a:k", NULL));
        assert_int_equal(redbucket_decide(served->limiter, &charge, 1), REDBUCKET_OK);
        redisReply *stored = served_get(served, "redbucket:a:k");

        assert_non_null(stored);
        assert_int_equal(sscanf(stored->str, "{\"t\":%lf,\"v\":%lf}%n", &timestamp, &value, &end),
                         2);
        assert_int_equal(end, stored->len);
        assert_same(timestamp, times[i]);
        assert_same(value, 1.0 / 3);
        freeReplyObject(stored);
    }
}

static void put_in(struct served *served, enum redbucket_operation operation, double cost)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request request = {
        .operation = operation, .keys = &key, .keys_len = 1, .cost = cost};

    assert_int_equal(redbucket_decide(served->limiter, &request, 1), REDBUCKET_OK);
    assert_true(request.response.accepted);
}

static double lived_longest(double value, double rate, double expiry)
{
    return fmin(fmax(ceil(value / rate) + 1, ceil(expiry)), 1e10);
}

/* As long as expected, but for what has gone by since. */
static void check_left(const struct served *served, const char *key, double since, double expected)
{
    long long left_ms = served_number(served, "PTTL", key);
    long long gone_ms = (long long)ceil((test_now() - since) * 1000);

    assert_true(left_ms <= (long long)expected * 1000);
    assert_true(left_ms >= (long long)expected * 1000 - gone_ms - 1);
}

/* What the server was told, in digits alone; and what it made of that. */
static void check_life(struct served *served, struct monitor *monitor, double since,
                       double expected)
{
    const struct monitored *command = monitor_next(monitor);
    char digits[32];

    while (command != NULL && !monitored_is(command, "SETEX"))
        command = monitor_next(monitor);
    assert_non_null(command);
    (void)snprintf(digits, sizeof digits, "%lld", (long long)expected);
    if (!monitored_has(command, 2, digits))
        fail_msg("%s instead of %s", command->argv[2], digits);
    check_left(served, "redbucket:a:k", since, expected);
}

/* From one a day to a million a second. */
static void a_state_lives_until_its_bucket_is_empty_and_a_second(void **state)
{
    static const double rates[] = {1.0 / 86400, 1.0 / 3600, 0.3, 1, 3, 1000, 1e6, 1e-9};
    static const double expiries[] = {0, 0.2, 60, 1e6, 1e10};
    static const struct {
        enum redbucket_operation operation;
        double cost;
    } puts[] = {
        {REDBUCKET_REQUEST, 1},
        {REDBUCKET_CHARGE, 1},
        {REDBUCKET_CHARGE, 7.5},
        {REDBUCKET_CHARGE, 1e12},
    };
    struct served *served = *state;

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        for (size_t j = 0; j < sizeof expiries / sizeof expiries[0]; j++) {
            served_again(served, "");
            served_limit(served, "a",
                         (struct redbucket_limit){.rate = rates[i], .expiry = expiries[j]});
            for (size_t k = 0; k < sizeof puts / sizeof puts[0]; k++) {
                struct monitor *monitor = monitor_start(served->server);
                double since = test_now();

                assert_true(test_server_do(served->server, "DEL", "redbucket:a:k", NULL));
                put_in(served, puts[k].operation, puts[k].cost);
                check_life(served, monitor, since,
                           lived_longest(puts[k].cost, rates[i], expiries[j]));
                monitor_stop(monitor);
            }
        }
    }
}

/* In one call, where lives are shared by those that are as long. */
static void each_of_a_batch_lives_its_own_life(void **state)
{
    static const double rates[] = {1, 1, 1, 0.01, 0.01, 1e-9, 1e6, 3};
    static const double expiries[] = {0, 60, 60, 60, 1e6, 0, 0.2, 1e10};
    enum { LEN = sizeof rates / sizeof rates[0] };
    struct redbucket_request batch[LEN];
    struct redbucket_key keys[LEN];
    char names[LEN][2] = {{0}};
    struct served *served = *state;
    double since = test_now();

    for (int i = 0; i < LEN; i++) {
        names[i][0] = (char)('a' + i);
        served_limit(served, names[i],
                     (struct redbucket_limit){.rate = rates[i], .expiry = expiries[i]});
        keys[i] = (struct redbucket_key){.limit = names[i], .key = "k"};
        batch[i] = (struct redbucket_request){
            .operation = REDBUCKET_CHARGE, .keys = &keys[i], .keys_len = 1, .cost = 1 + i};
    }
    assert_int_equal(redbucket_decide(served->limiter, batch, LEN), REDBUCKET_OK);
    for (int i = 0; i < LEN; i++) {
        char name[] = "redbucket:a:k";

        name[10] = names[i][0];
        check_left(served, name, since, lived_longest(1 + i, rates[i], expiries[i]));
    }
}

/* An empty bucket too is written with a life, of a whole second at least. */
static void what_is_given_back_lives_shorter(void **state)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request back = {
        .operation = REDBUCKET_REFUND, .keys = &key, .keys_len = 1, .cost = 7};
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1.0 / 60, .burst = 20});
    put_in(served, REDBUCKET_CHARGE, 10);
    for (double left = 3; left >= 0; left -= 3) {
        struct monitor *monitor = monitor_start(served->server);
        double since = test_now();

        assert_int_equal(redbucket_decide(served->limiter, &back, 1), REDBUCKET_OK);
        check_life(served, monitor, since, lived_longest(left, 1.0 / 60, 0));
        monitor_stop(monitor);
        back.operation = REDBUCKET_GIVE_BACK;
        back.taken_at = SERVED_NOW;
    }
}

/* It doesn't block for ever, and lives shortly again once something is accepted. */
static void a_key_that_lost_its_life_gets_one(void **state)
{
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .expiry = 60});
    assert_true(served_request(served, "k").accepted);
    assert_int_equal(served_number(served, "PERSIST", "redbucket:a:k"), 1);
    rbk_test_now = SERVED_NOW + 0.5;
    assert_false(served_request(served, "k").accepted);
    assert_int_equal(served_number(served, "TTL", "redbucket:a:k"), -1);
    rbk_test_now = SERVED_NOW + 1.001;
    assert_true(served_request(served, "k").accepted);
    long long life = served_number(served, "TTL", "redbucket:a:k");

    assert_true(life > 0 && life <= 60);
}

/* By a lone request and by several limits at once, which the script decides apart. */
static void the_later_of_two_times_is_kept(void **state)
{
    const struct redbucket_key both[] = {{.limit = "a", .key = "k"}, {.limit = "b", .key = "k"}};
    struct redbucket_response response;
    struct redbucket_state stored;
    struct served *served = *state;

    served_limit(served, "a", plenty);
    served_limit(served, "b", plenty);
    for (size_t len = 1; len <= 2; len++) {
        for (int back = 0; back < 2; back++) {
            rbk_test_now = SERVED_NOW + (back ? 0 : 10);
            assert_int_equal(redbucket_request(served->limiter, both, len, &response),
                             REDBUCKET_OK);
        }
        assert_int_equal(redbucket_read(served->limiter, both, &stored), REDBUCKET_OK);
        assert_same(stored.timestamp, SERVED_NOW + 10);
        assert_same(stored.value, 2.0 * (double)len);
    }
}

/* The bucket is as it was under other limits: nothing is filled up, and the new ones hold. */
static void limits_can_change_and_buckets_stay(void **state)
{
    struct redbucket_response response;
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 9});
    for (int i = 0; i < 8; i++)
        assert_true(served_request(served, "k").accepted);
    served_again(served, "");
    served_limit(served, "a", (struct redbucket_limit){.rate = 2, .burst = 2});
    response = served_request(served, "k");
    assert_false(response.accepted);
    assert_true(response.retry_after >= 3 && response.retry_after < 3.00001);
}

static bool writes(const struct monitored *command)
{
    return monitored_is(command, "SETEX") || monitored_is(command, "DEL") ||
           monitored_is(command, "EXEC");
}

static void a_rejection_and_a_peek_write_nothing(void **state)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"}, fresh = {.limit = "a", .key = "f"};
    struct redbucket_request peek[] = {
        {.operation = REDBUCKET_PEEK, .keys = &key, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_PEEK, .keys = &fresh, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_REFUND, .keys = &fresh, .keys_len = 1, .cost = 1},
    };
    struct served *served = *state;
    const struct monitored *command;
    size_t count = 0;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1});
    assert_true(served_request(served, "k").accepted);
    struct monitor *monitor = monitor_start(served->server);

    assert_false(served_request(served, "k").accepted);
    assert_int_equal(redbucket_decide(served->limiter, peek, 3), REDBUCKET_OK);
    for (command = monitor_next(monitor); command != NULL; command = monitor_next(monitor)) {
        assert_false(writes(command));
        count++;
    }
    assert_true(count >= 2);
    monitor_stop(monitor);
}

/* Two limits, whose values are nowhere but in what comes behind the keys. */
static void take_both(struct served *served)
{
    const struct redbucket_key keys[] = {{.limit = "user", .key = "alice"},
                                         {.limit = "ip", .key = "192.0.2.7"}};
    struct redbucket_response response;

    served_limit(served, "user", (struct redbucket_limit){.rate = 5, .burst = 10});
    served_limit(served, "ip", (struct redbucket_limit){.rate = 20, .delay = 10});
    assert_int_equal(redbucket_request(served->limiter, keys, 2, &response), REDBUCKET_OK);
}

static bool is_declared(const char *key)
{
    return strcmp(key, "redbucket:user:alice") == 0 || strcmp(key, "redbucket:ip:192.0.2.7") == 0;
}

static void check_call(const struct monitored *command)
{
    assert_true(monitored_has(command, 2, "2"));
    assert_true(monitored_has(command, 3, "redbucket:user:alice"));
    assert_true(monitored_has(command, 4, "redbucket:ip:192.0.2.7"));
    assert_true(command->argc > 5);
    for (size_t i = 5; i < command->argc; i++)
        assert_null(strstr(command->argv[i], "redbucket:"));
}

/* Servers of a cluster refuse, and some others as well, what wasn't declared. */
static void a_script_touches_the_keys_that_it_declares(void **state)
{
    struct served *served = *state;
    const struct monitored *command;
    size_t calls = 0, touched = 0;

    struct monitor *monitor = monitor_start(served->server);

    take_both(served);
    for (command = monitor_next(monitor); command != NULL; command = monitor_next(monitor)) {
        if (!command->by_script && strncasecmp(command->argv[0], "EVAL", 4) == 0) {
            check_call(command);
            calls++;
        }
        for (size_t i = 1; command->by_script && i < command->argc; i++) {
            bool is_key = i == 1 || monitored_is(command, "MGET");

            assert_true(!is_key || is_declared(command->argv[i]));
            touched++;
        }
    }
    assert_true(calls == 1 || calls == 2);
    assert_true(touched >= 6);
    monitor_stop(monitor);
}

/* Whatever the limits are, it is one script; nothing of them, nor a key, is in its text. */
static void one_script_serves_all_limits(void **state)
{
    struct served *served = *state;

    assert_true(test_server_do(served->server, "SCRIPT", "FLUSH", NULL));
    for (int i = 1; i < 20; i++) {
        served_again(served, i % 2 == 0 ? "key_format=x%7bzone%7d%7bkey%7d" : "");
        served_limit(served, "a", (struct redbucket_limit){.rate = i, .burst = i * 2.5});
        served_limit(served, "b", (struct redbucket_limit){.rate = i * 0.1, .delay = i});
        (void)served_request(served, i % 3 == 0 ? "k" : "l");
    }
    assert_int_equal(test_server_info(served->server, "number_of_cached_scripts"), 1);
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED(keys_are_named_by_the_format),
        SERVED(keys_are_bytes_of_any_value_and_length),
        SERVED(keys_are_never_cut),
        SERVED(the_longest_key_is_taken_and_a_longer_one_refused),
        SERVED_BY(SERVED_STRUCT, a_struct_is_sixteen_bytes),
        SERVED_BY(SERVED_JSON, json_reads_back_exactly),
        SERVED(a_state_lives_until_its_bucket_is_empty_and_a_second),
        SERVED(each_of_a_batch_lives_its_own_life),
        SERVED(what_is_given_back_lives_shorter),
        SERVED(a_key_that_lost_its_life_gets_one),
        SERVED(the_later_of_two_times_is_kept),
        SERVED(limits_can_change_and_buckets_stay),
        SERVED(a_rejection_and_a_peek_write_nothing),
        SERVED_BY(SERVED_SCRIPT, a_script_touches_the_keys_that_it_declares),
        SERVED_BY(SERVED_SCRIPT, one_script_serves_all_limits),
    };

    return served_run("server_state", cases, sizeof cases / sizeof cases[0]);
}
