/* SPDX-License-Identifier: MIT */
/*
 * A program with real servers in it and a bad network before each, for tests in any language: it
 * starts them, says by which URL they are reached through the network, and does what lines on its
 * standard input say, each answered by a line. What is in the stores it reads past the network.
 *
 *     world STORE SEED         redis, valkey, old-redis, tls, sentinel, cluster
 *
 *     blow                     the weather is bad from now on, by chance
 *     calm                     it is good, and nothing is under way any more
 *     move NAME...             of a cluster: the slots of these names change hands while it blows
 *     value NAME               the 16 bytes under a name, as two doubles, or none
 *     counts                   what the network has done
 *
 * The names of a cluster's nodes, and of the master behind sentinels, are those of the network, so
 * that redirections, maps and sentinels lead through it too. It ends with its standard input.
 */
#include "cluster.h"
#include "fault_proxy.h"
#include "sentinels.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROXIES_MAX 4
#define MOVED_MAX   16
#define NAME_SIZE   128
#define LINE_SIZE   2048
#define MOVE_MS     900u /* between slots that change hands, at most */
#define STEP_MS     250u /* between the steps of one, at most */

/*
 * The first proxy of a master behind sentinels is the master's, the others are the sentinels'.
 */
static struct {
    struct test_fault_proxy *proxies[PROXIES_MAX];
    size_t proxies_len;
    struct test_server *servers[PROXIES_MAX];
    size_t servers_len;
    struct test_cluster *cluster;
    struct test_chance chance;
    bool blowing;
    char moved[MOVED_MAX][NAME_SIZE];
    size_t moved_len;
    unsigned moves;
} world;

/* ---- Servers and what is before them -------------------------------------------------------- */

static bool make_proxies(size_t len, uint64_t seed)
{
    for (; world.proxies_len < len; world.proxies_len++) {
        world.proxies[world.proxies_len] =
            test_fault_proxy_start(seed + world.proxies_len * UINT64_C(1000003));
        if (world.proxies[world.proxies_len] == NULL)
            return false;
    }
    return true;
}

static int place(size_t i)
{
    return test_fault_proxy_port(world.proxies[i]);
}

static bool add_server(const struct test_server_options *options)
{
    struct test_server *server = test_server_start(options);

    if (server == NULL)
        return false;
    test_fault_proxy_aim(world.proxies[world.servers_len], server->port);
    world.servers[world.servers_len++] = server;
    return true;
}

static bool make_one(enum test_server_kind kind, uint64_t seed)
{
    const struct test_server_options options = {.kind = kind};

    if (!make_proxies(1, seed) || !add_server(&options))
        return false;
    printf("redis://127.0.0.1:%d\n", place(0));
    return true;
}

static bool make_tls(enum test_server_kind kind, uint64_t seed)
{
    const struct test_server_options options = {.kind = kind, .tls = true};

    if (!make_proxies(1, seed) || !add_server(&options))
        return false;
    test_fault_proxy_seal(world.proxies[0]);
    test_fault_proxy_aim(world.proxies[0], world.servers[0]->tls_port);
    printf("rediss://localhost:%d?ca=%s/ca.pem\n", place(0), world.servers[0]->directory);
    return true;
}

/* Nobody is to take over from the master, since that may forget what is counted here; it is
 * watched at its place in the network, which is what sentinels then call it. */
static bool make_sentinels(enum test_server_kind kind, uint64_t seed)
{
    const struct test_server_options master = {.kind = kind};
    const struct test_server_options sentinel = {
        .kind = kind, .config = (char[256]){0}, .sentinel = true};

    if (!make_proxies(1 + TEST_SENTINELS_LEN, seed) || !add_server(&master))
        return false;
    (void)snprintf((char *)(uintptr_t)sentinel.config, 256,
                   "sentinel monitor " TEST_SERVICE " 127.0.0.1 %d 2\n"
                   "sentinel down-after-milliseconds " TEST_SERVICE " 3600000\n",
                   place(0));
    for (int i = 0; i < TEST_SENTINELS_LEN; i++) {
        if (!add_server(&sentinel))
            return false;
    }
    printf("redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" TEST_SERVICE "\n", place(1),
           place(2), place(3));
    return true;
}

static bool make_cluster(enum test_server_kind kind, uint64_t seed)
{
    static int ports[TEST_CLUSTER_MASTERS];
    const struct test_server_options options = {.kind = kind};

    if (!make_proxies(TEST_CLUSTER_MASTERS, seed))
        return false;
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
        ports[i] = place(i);
    world.cluster = test_cluster_start_behind(&options, ports);
    if (world.cluster == NULL)
        return false;
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        world.servers[world.servers_len++] = world.cluster->nodes[i];
        test_fault_proxy_aim(world.proxies[i], world.cluster->nodes[i]->port);
    }
    printf("redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d\n", place(0), place(1),
           place(2));
    return true;
}

static bool make(const char *store, uint64_t seed)
{
    enum test_server_kind either =
        seed % 2 == 0 && test_server_have(TEST_VALKEY) ? TEST_VALKEY : TEST_REDIS;

    world.chance = test_chance_begin(seed ^ 0x5eed);
    for (int kind = 0; kind < TEST_SERVER_KINDS; kind++) {
        if (strcmp(store, test_server_name((enum test_server_kind)kind)) != 0)
            continue;
        if (!test_server_have((enum test_server_kind)kind)) {
            printf("missing\n");
            exit(0);
        }
        return make_one((enum test_server_kind)kind, seed);
    }
    if (strcmp(store, "tls") == 0)
        return make_tls(test_server_have_tls(either) ? either : TEST_REDIS, seed);
    if (strcmp(store, "sentinel") == 0)
        return make_sentinels(either, seed);
    return strcmp(store, "cluster") == 0 && make_cluster(either, seed);
}

static void end(void)
{
    for (size_t i = 0; i < world.proxies_len; i++)
        test_fault_proxy_stop(world.proxies[i]);
    test_cluster_stop(world.cluster);
    for (size_t i = 0; i < world.servers_len && world.cluster == NULL; i++)
        test_server_stop(world.servers[i]);
}

/* ---- Slots that change hands ---------------------------------------------------------------- */

static void pause_some(unsigned most_ms)
{
    unsigned ms = test_chance_below(&world.chance, most_ms);

    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

/* Slowly, so that there are askings, and keys at both places, for a while. */
static void move_one(void)
{
    const char *name = world.moved[test_chance_below(&world.chance, (unsigned)world.moved_len)];
    int slot = test_cluster_slot(world.cluster, name, strlen(name));
    size_t from = slot < 0 ? TEST_CLUSTER_NODES : test_cluster_owner(world.cluster, (unsigned)slot);
    size_t to = (from + 1 + test_chance_below(&world.chance, 2)) % TEST_CLUSTER_MASTERS;
    bool good = from < TEST_CLUSTER_MASTERS &&
                test_cluster_slot_open(world.cluster, (unsigned)slot, from, to);

    if (good) {
        pause_some(STEP_MS);
        good = test_cluster_slot_move(world.cluster, (unsigned)slot, from, to, 1) >= 0;
        pause_some(STEP_MS);
        good = good && test_cluster_slot_move(world.cluster, (unsigned)slot, from, to, -1) >= 0 &&
               test_cluster_slot_close(world.cluster, (unsigned)slot, from, to);
    }
    if (!good) {
        fprintf(stderr, "# slot %d could not be moved\n", slot);
        exit(1);
    }
    world.moves++;
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static void say_value(const char *name)
{
    const char *argv[] = {"GET", name};
    double state[2];
    bool found = false;

    for (size_t i = 0; i < world.servers_len && !found; i++) {
        redisReply *reply = test_server_call(world.servers[i], 2, argv, NULL);

        found = reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == sizeof state;
        if (found)
            memcpy(state, reply->str, sizeof state);
        freeReplyObject(reply);
    }
    if (found)
        printf("%.17g %.17g\n", state[0], state[1]);
    else
        printf("none\n");
}

static void say_counts(void)
{
    struct test_fault_counts all = {0};

    for (size_t i = 0; i < world.proxies_len; i++) {
        struct test_fault_counts one;

        test_fault_proxy_counts(world.proxies[i], &one);
        all.connections += one.connections;
        all.pieces += one.pieces;
        all.held += one.held;
        all.cut += one.cut;
        all.deaf += one.deaf;
        all.garbage += one.garbage;
        all.refused += one.refused;
        all.silent += one.silent;
        all.late += one.late;
    }
    printf("%" PRIu64 " connections, %" PRIu64 " pieces, %" PRIu64 " held, %" PRIu64
           " cut, %" PRIu64 " half open, %" PRIu64 " garbage, %" PRIu64 " refused, %" PRIu64
           " silent, %" PRIu64 " too late, %u slots moved\n",
           all.connections, all.pieces, all.held, all.cut, all.deaf, all.garbage, all.refused,
           all.silent, all.late, world.moves);
}

static void note_moved(char *rest)
{
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (world.moved_len < MOVED_MAX)
            (void)snprintf(world.moved[world.moved_len++], NAME_SIZE, "%s", word);
    }
}

static void obey(char *line)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " \n", &rest);

    if (word == NULL)
        return;
    if (strcmp(word, "value") == 0) {
        say_value(strtok_r(NULL, " \n", &rest));
        return;
    }
    if (strcmp(word, "counts") == 0) {
        say_counts();
        return;
    }
    rest[strcspn(rest, "\n")] = '\0';
    if (strcmp(word, "move") == 0)
        note_moved(rest);
    world.blowing = strcmp(word, "blow") == 0 || (world.blowing && strcmp(word, "calm") != 0);
    for (size_t i = 0; i < world.proxies_len; i++) {
        if (strcmp(word, "blow") == 0)
            test_fault_proxy_blow(world.proxies[i]);
        else if (strcmp(word, "calm") == 0)
            test_fault_proxy_calm(world.proxies[i]);
    }
    printf("ok\n");
}

/* Whether a line has come; slots change hands meanwhile. */
static bool await_line(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool moves = world.cluster != NULL && world.blowing && world.moved_len > 0;
    int ready = poll(&input, 1, moves ? (int)test_chance_below(&world.chance, MOVE_MS) : -1);

    if (ready == 0)
        move_one();
    return ready != 0;
}

int main(int argc, char **argv)
{
    char line[LINE_SIZE];

    if (argc != 3 || !make(argv[1], strtoull(argv[2], NULL, 10))) {
        fprintf(stderr, "# no such world\n");
        return 1;
    }
    (void)fflush(stdout);
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* so that poll sees all there is */
    do {
        while (!await_line())
            continue;
        if (fgets(line, sizeof line, stdin) == NULL)
            break;
        obey(line);
    } while (fflush(stdout) == 0);
    end();
    return 0;
}
