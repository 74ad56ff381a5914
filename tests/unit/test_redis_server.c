/* SPDX-License-Identifier: MIT */
/*
 * What servers say about themselves, and what their errors mean: texts of many versions.
 */
#include "redis/server.h"
#include "test.h"

static void versions_are_read(void **state)
{
    static const struct {
        const char *text;
        unsigned version[3];
    } good[] = {
        {"7.0.15", {7, 0, 15}},
        {"7.1", {7, 1, 0}},
        {"3.0.300-beta1", {3, 0, 300}},
        {"255.255.255", {255, 255, 255}},
        {"7.2.4-rc2", {7, 2, 4}},
        {"8", {8, 0, 0}},
        {"2.8.", {2, 8, 0}},
        {"6.2.x", {6, 2, 0}},
        {"1.2.3.4", {1, 2, 3}},
        {"0.0.1", {0, 0, 1}},
        {"7.99999999999999999999", {7, 1000000, 0}},
    };
    static const char *const bad[] = {"", "v7.0.15", "x", "-1", ".1", " 7"};
    unsigned version[3];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(rbk_server_version(good[i].text, version));
        assert_memory_equal(version, good[i].version, sizeof version);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(version, 1, sizeof version);
        assert_false(rbk_server_version(bad[i], version));
        assert_memory_equal(version, ((unsigned[3]){0, 0, 0}), sizeof version);
    }
}

static struct rbk_reply string(const char *text)
{
    return (struct rbk_reply){.type = RBK_REPLY_STRING, .text = text, .len = strlen(text)};
}

static struct rbk_server informed(const char *text)
{
    struct rbk_server server = {.replica = false};
    struct rbk_reply info = string(text);

    rbk_server_read_info(&server, &info);
    return server;
}

static void info_of_redis_is_read(void **state)
{
    struct rbk_server server =
        informed("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
                 "\r\n# Memory\r\nmaxmemory:1048576\r\n"
                 "maxmemory_policy:allkeys-lru\r\n# Persistence\r\n"
                 "aof_enabled:1\r\n# Replication\r\nrole:master\r\n"
                 "# Cluster\r\ncluster_enabled:0\r\n");

    (void)state;
    assert_memory_equal(server.version, ((unsigned[3]){7, 0, 15}), sizeof server.version);
    assert_int_equal(server.valkey[0], 0);
    assert_false(server.replica);
    assert_false(server.cluster);
    assert_true(server.alone);
    assert_false(server.sentinel);
    assert_true(server.aof);
    assert_string_equal(server.eviction, "allkeys-lru");
    assert_true(server.maxmemory == 1048576);
}

static void info_of_valkey_is_read(void **state)
{
    struct rbk_server server =
        informed("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.2\r\n"
                 "server_mode:cluster\r\nrole:slave\r\nmaster_host:192.0.2.1\r\n"
                 "cluster_enabled:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");

    (void)state;
    assert_memory_equal(server.version, ((unsigned[3]){7, 2, 4}), sizeof server.version);
    assert_memory_equal(server.valkey, ((unsigned[3]){8, 0, 2}), sizeof server.valkey);
    assert_true(server.replica);
    assert_true(server.cluster);
    assert_false(server.alone);
    assert_false(server.aof);
    assert_string_equal(server.eviction, "noeviction");
    assert_true(server.maxmemory == 0);
}

static void a_sentinel_is_no_server(void **state)
{
    struct rbk_reply parts[2] = {string("sentinel"), {.type = RBK_REPLY_ARRAY}};
    struct rbk_reply role = {.type = RBK_REPLY_ARRAY, .len = 2, .elements = parts};
    struct rbk_server server = {.replica = false};

    (void)state;
    assert_true(informed("redis_version:7.0.15\r\nredis_mode:sentinel\r\n").sentinel);
    rbk_server_read_role(&server, &role);
    assert_true(server.sentinel);
}

/* Whatever a proxy or a stranger answers, nothing is made up and nothing is overrun. */
static void what_is_no_info_leaves_everything_unknown(void **state)
{
    static const struct rbk_server unknown;
    static const char *const texts[] = {"",
                                        "\n",
                                        "\r\n",
                                        ":",
                                        ":\n:",
                                        "redis_version",
                                        "redis_version:",
                                        "redis_version:x\r\n",
                                        "maxmemory:\n",
                                        "maxmemory:x",
                                        "maxmemory:99999999999999999999999",
                                        "xrole:slave",
                                        "role:slave2",
                                        "# role:slave",
                                        "role :slave",
                                        "role",
                                        "\0role:slave"};
    struct rbk_reply error = {.type = RBK_REPLY_ERROR, .text = "NOPERM role:slave", .len = 17};
    struct rbk_reply nil = {.type = RBK_REPLY_NIL};
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rbk_server server = informed(texts[i]);

        assert_memory_equal(&server, &unknown, sizeof server);
    }
    struct rbk_server server = unknown;

    rbk_server_read_info(&server, &error);
    rbk_server_read_info(&server, &nil);
    assert_memory_equal(&server, &unknown, sizeof server);

    /* A line too long to be of interest, and the one behind it. */
    memset(line, 'a', sizeof line);
    memcpy(line, "maxmemory_policy:", 17);
    memcpy(line + sizeof line - 12, "\nrole:slave", 12);
    server = informed(line);
    assert_string_equal(server.eviction, "");
    assert_true(server.replica);
    line[100] = '\0';
    server = informed(line);
    assert_int_equal(strlen(server.eviction), sizeof server.eviction - 1);
}

static bool replica_by_role(struct rbk_reply *first, size_t len)
{
    struct rbk_reply role = {.type = RBK_REPLY_ARRAY, .len = len, .elements = first};
    struct rbk_server server = {.replica = false};

    rbk_server_read_role(&server, &role);
    return server.replica;
}

static void the_role_tells_a_replica(void **state)
{
    struct rbk_reply slave = string("slave"), replica = string("replica"),
                     master = string("master");
    struct rbk_reply number = {.type = RBK_REPLY_INTEGER};
    struct rbk_reply error = {.type = RBK_REPLY_ERROR, .text = "ERR unknown command", .len = 19};
    struct rbk_server server = {.replica = true};
    struct rbk_reply role = {.type = RBK_REPLY_ARRAY, .len = 1, .elements = &master};

    (void)state;
    assert_true(replica_by_role(&slave, 1));
    assert_true(replica_by_role(&replica, 1));
    assert_false(replica_by_role(&master, 1));
    assert_false(replica_by_role(&number, 1));
    assert_false(replica_by_role(NULL, 0));
    rbk_server_read_role(&server, &error);
    assert_true(server.replica); /* what INFO said stays */
    rbk_server_read_role(&server, &role);
    assert_false(server.replica);
}

#define SCRIPT "ERR Error running script (call to f_4ca5cf88cbd2d4fdb45ef4ee6cbb5a1b7eb2a6ff): "

static const struct {
    const char *text;
    enum redbucket_status status;
    bool usable;
} errors[] = {
    /* Replicas, in the words of every version, from within scripts and transactions as well. */
    {"READONLY You can't write against a read only slave.", REDBUCKET_ERROR_READONLY, false},
    {"READONLY You can't write against a read only replica. script: 4ca5cf, on @user_script:1.",
     REDBUCKET_ERROR_READONLY, false},
    {SCRIPT
     "@user_script:1: @user_script: 1: -READONLY You can't write against a read only replica. ",
     REDBUCKET_ERROR_READONLY, false},
    {SCRIPT "@user_script:12: -READONLY You can't write against a read only slave.",
     REDBUCKET_ERROR_READONLY, false},
    {SCRIPT "@user_script: 1: READONLY You can't write against a read only slave.",
     REDBUCKET_ERROR_READONLY, false},
    {"-READONLY You can't write against a read only replica.", REDBUCKET_ERROR_READONLY, false},
    {"ERR You can't write against a read only replica.", REDBUCKET_ERROR_READONLY, false},
    {"EXECABORT Transaction discarded because of: READONLY You can't write against a read only "
     "replica.",
     REDBUCKET_ERROR_READONLY, false},
    /* Not now. */
    {"LOADING Redis is loading the dataset in memory", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     REDBUCKET_ERROR_UNAVAILABLE, false},
    {"OOM command not allowed when used memory > 'maxmemory'.", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"OOM command not allowed when used memory > 'maxmemory'. script: 4ca5, on @user_script:1.",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {SCRIPT "@user_script:1: @user_script: 1: -OOM command not allowed when used memory > "
            "'maxmemory'. ",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {"EXECABORT Transaction discarded because of: OOM command not allowed when used memory > "
     "'maxmemory'.",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {"NOREPLICAS Not enough good replicas to write.", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"NOREPLICAS Not enough good slaves to write.", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on "
     "disk.",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {SCRIPT "@user_script: 1: -MISCONF Errors writing to the AOF file: No space left on device",
     REDBUCKET_ERROR_UNAVAILABLE, true},
    {"TRYAGAIN Multiple keys request during rehashing of slot", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"CLUSTERDOWN The cluster is down", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"CLUSTERDOWN Hash slot not served", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"ERR max number of clients reached", REDBUCKET_ERROR_UNAVAILABLE, false},
    {"ERR max number of clients + cluster connections reached", REDBUCKET_ERROR_UNAVAILABLE, false},
    {"no upstream host", REDBUCKET_ERROR_UNAVAILABLE, true},
    /* Another user or password, or more rights. */
    {"NOAUTH Authentication required.", REDBUCKET_ERROR_AUTH, false},
    {"NOAUTH HELLO must be called with the client already authenticated", REDBUCKET_ERROR_AUTH,
     false},
    {"WRONGPASS invalid username-password pair or user is disabled.", REDBUCKET_ERROR_AUTH, false},
    {"ERR invalid password", REDBUCKET_ERROR_AUTH, false},
    {"ERR operation not permitted", REDBUCKET_ERROR_AUTH, false},
    {"ERR Client sent AUTH, but no password is set", REDBUCKET_ERROR_AUTH, false},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure "
     "your configuration is correct?",
     REDBUCKET_ERROR_AUTH, false},
    {"ERR wrong number of arguments for 'auth' command", REDBUCKET_ERROR_AUTH, false},
    {"NOPERM this user has no permissions to run the 'evalsha' command", REDBUCKET_ERROR_AUTH,
     true},
    {"NOPERM User alice has no permissions to access one of the keys used as arguments",
     REDBUCKET_ERROR_AUTH, true},
    {SCRIPT "@user_script: 1: The user executing the script can't access at least one of the keys "
            "mentioned in the command arguments",
     REDBUCKET_ERROR_AUTH, true},
    {"NOPERM ACL failure in script: User alice has no permissions to run the 'get' command script: "
     "4ca5cf, on @user_script:1.",
     REDBUCKET_ERROR_AUTH, true},
    {"DENIED Redis is running in protected mode because protected mode is enabled",
     REDBUCKET_ERROR_AUTH, false},
    /* Never here. */
    {"ERR This instance has cluster support disabled", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR unknown command 'EVALSHA'", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR unknown command `WATCH`, with args beginning with: `a`, ", REDBUCKET_ERROR_UNSUPPORTED,
     true},
    {"ERR Unknown subcommand or wrong number of arguments for 'load'. Try SCRIPT HELP.",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR unsupported command 'watch'", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"unsupported command 'watch'", REDBUCKET_ERROR_UNSUPPORTED, true},
    {SCRIPT "@user_script: 1: Unknown Redis command called from Lua script ",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR Unknown Redis command called from script script: 4ca5cf, on @user_script:1.",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR This Redis command is not allowed from script script: 4ca5cf, on @user_script:1.",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {SCRIPT "@user_script:1: @user_script: 1: This Redis command is not allowed from scripts ",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {SCRIPT "@user_script: 3: Write commands not allowed after non deterministic commands",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ERR The user executing the script can't run this command or subcommand script: 4ca5cf, on "
     "@user_script:1.",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {SCRIPT "@user_script: 1: The user executing the script can't run this command or subcommand ",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"NOPERM ACL failure in script: User alice has no permissions to run the 'time' command "
     "script: "
     "4ca5cf, on @user_script:1.",
     REDBUCKET_ERROR_UNSUPPORTED, true},
    {"MOVED 3999 192.0.2.1:6381", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ASK 3999 192.0.2.1:6381", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"CROSSSLOT Keys in request don't hash to the same slot", REDBUCKET_ERROR_UNSUPPORTED, true},
    /* What is stored. */
    {"WRONGTYPE Operation against a key holding the wrong kind of value", REDBUCKET_ERROR_STATE,
     true},
    {SCRIPT "@user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value",
     REDBUCKET_ERROR_STATE, true},
    /* Everything else. */
    {"NOSCRIPT No matching script. Please use EVAL.", REDBUCKET_ERROR_SERVER, true},
    {"EXECABORT Transaction discarded because of previous errors.", REDBUCKET_ERROR_SERVER, true},
    {"ERR DB index is out of range", REDBUCKET_ERROR_SERVER, true},
    {"ERR syntax error", REDBUCKET_ERROR_SERVER, true},
    {"ERR Protocol error: invalid bulk length", REDBUCKET_ERROR_PROTOCOL, false},
    {"", REDBUCKET_ERROR_SERVER, true},
    {"ERR", REDBUCKET_ERROR_SERVER, true},
    {"ERR ", REDBUCKET_ERROR_SERVER, true},
    {"-", REDBUCKET_ERROR_SERVER, true},
    {SCRIPT, REDBUCKET_ERROR_SERVER, true},
    {SCRIPT "@", REDBUCKET_ERROR_SERVER, true},
    {SCRIPT "@user_script:1: attempt to index a nil value", REDBUCKET_ERROR_SERVER, true},
};

static void errors_mean_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        bool usable = !errors[i].usable;
        enum redbucket_status status = rbk_server_error(errors[i].text, &usable);

        if (status != errors[i].status || usable != errors[i].usable)
            fail_msg("%s: %s, %s", errors[i].text, redbucket_status_name(status),
                     usable ? "usable" : "not usable");
    }
}

/* A key that is quoted in an error is nobody's word. */
static void only_the_beginning_counts(void **state)
{
    static const char *const texts[] = {"ERR the value of redbucket:a:READONLY can't be read",
                                        "ERR x: -READONLY y",
                                        "READONLYX y",
                                        "OOMPH",
                                        "ERR key NOAUTH",
                                        "BUSYKEY Target key name already exists.",
                                        "MOVEDX 1",
                                        "ASKING",
                                        SCRIPT "@user_script:1: the key x): -READONLY y",
                                        "SOMETHING (call to f_1): -READONLY y",
                                        "WRONGTYPES",
                                        "readonly You can't"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool usable = false;

        assert_int_equal(rbk_server_error(texts[i], &usable), REDBUCKET_ERROR_SERVER);
        assert_true(usable);
    }
}

static void a_forgotten_script_is_told_apart(void **state)
{
    (void)state;
    assert_true(rbk_server_forgot_script("NOSCRIPT No matching script. Please use EVAL."));
    assert_true(rbk_server_forgot_script("NOSCRIPT"));
    assert_false(rbk_server_forgot_script("NOSCRIPTS"));
    assert_false(rbk_server_forgot_script("ERR NOSCRIPT"));
    assert_false(rbk_server_forgot_script(""));
}

static void a_node_of_a_cluster_is_known_by_its_refusals(void **state)
{
    (void)state;
    assert_true(rbk_server_is_node("MOVED 3999 192.0.2.1:6381"));
    assert_true(rbk_server_is_node("ASK 3999 192.0.2.1:6381"));
    assert_true(rbk_server_is_node("CROSSSLOT Keys in request don't hash to the same slot"));
    assert_true(rbk_server_is_node(SCRIPT "@user_script: 1: -MOVED 3999 192.0.2.1:6381"));
    assert_false(rbk_server_is_node("CLUSTERDOWN The cluster is down"));
    assert_false(rbk_server_is_node("TRYAGAIN Multiple keys request during rehashing of slot"));
    assert_false(rbk_server_is_node("ASKING"));
    assert_false(rbk_server_is_node("ERR MOVE"));
    assert_false(rbk_server_is_node(""));
}

static void words_are_a_short_line_without_arguments(void **state)
{
    char words[RBK_SERVER_WORDS_SIZE];
    char text[400];

    (void)state;
    rbk_server_words("ERR unknown command `AUTH`, with args beginning with: `u`, `secret`, ",
                     words);
    assert_string_equal(words, "ERR unknown command `AUTH`");
    rbk_server_words("a\r\nb\x1b[1m\x7f", words);
    assert_string_equal(words, "a??b?[1m?");
    rbk_server_words("", words);
    assert_string_equal(words, "");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rbk_server_words(text, words);
    assert_int_equal(strlen(words), RBK_SERVER_WORDS_SIZE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(info_of_redis_is_read),
        cmocka_unit_test(info_of_valkey_is_read),
        cmocka_unit_test(a_sentinel_is_no_server),
        cmocka_unit_test(what_is_no_info_leaves_everything_unknown),
        cmocka_unit_test(the_role_tells_a_replica),
        cmocka_unit_test(errors_mean_what_they_say),
        cmocka_unit_test(only_the_beginning_counts),
        cmocka_unit_test(a_forgotten_script_is_told_apart),
        cmocka_unit_test(a_node_of_a_cluster_is_known_by_its_refusals),
        cmocka_unit_test(words_are_a_short_line_without_arguments),
    };

    return cmocka_run_group_tests_name("redis server", tests, NULL, NULL);
}
