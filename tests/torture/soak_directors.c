/* SPDX-License-Identifier: MIT */
/*
 * The directors of the soak: each is a process that has some servers, and does to them what happens
 * to servers, at moments drawn by the run's seed. What is done is stated beforehand and for as long
 * as it may be felt, so that nobody is blamed for it, and nothing else is excused.
 */
#include "soak.h"

#include "cluster.h"
#include "processes.h"
#include "sentinels.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_S      0.01
#define LOOK_S      0.4
#define GRACE_S     1.3 /* the circuit's longest pause, and some */
#define SWITCH_S    2.5 /* until nobody asks a former master any more */
#define PATIENCE_S  60.0
#define UNSETTLED_S 20.0 /* sooner nothing is worth a word */
#define VICTIMS     2
#define MOVED_SLOTS 3

/* Who isn't heard of for so long is called dead, in milliseconds. Less than a busy machine lets
 * somebody sleep would make failovers that nobody asked for: of sentinels, less is asked only while
 * the master is dead indeed. */
#define SENTINEL_MS "60000"
#define BEREFT_MS   "5000"
#define NODE_MS     "15000"
#define QUERY       "timeout=2s&connections=3"

/* ---- What all of them do -------------------------------------------------------------------- */

/* A diary of what has no number of its own, for whoever has to find out afterwards. */
__attribute__((format(printf, 2, 3))) static void say(const struct soak *soak, const char *format,
                                                      ...)
{
    char line[160];
    va_list rest;

    if (soak->pace.seconds < SOAK_LONG_S)
        return;
    va_start(rest, format);
    (void)vsnprintf(line, sizeof line, format, rest);
    va_end(rest);
    printf("# %8.1f s  %s\n", test_now() - soak->began, line);
    (void)fflush(stdout);
}

static bool is_over(const struct soak *soak)
{
    return atomic_load(&soak->ending) != 0;
}

static void tell_ready(struct soak_group *group)
{
    atomic_store(&group->ready, 1);
}

/* Nothing is done before everybody works. */
static void await_beginning(const struct soak *soak)
{
    while (atomic_load(&soak->round) == 0 && !is_over(soak))
        test_pause(TICK_S);
}

static void await_end(const struct soak *soak)
{
    while (atomic_load(&soak->ending) < 2)
        test_pause(TICK_S);
}

/* Sleeps, by half of `seconds` to one and a half; false when it is over before. */
static bool rest(const struct soak *soak, double seconds, unsigned *seed)
{
    double until = test_now() + seconds * (0.5 + test_random(seed, 1000) / 1000.0);

    while (!is_over(soak) && test_now() < until)
        test_pause(TICK_S);
    return !is_over(soak);
}

static void begin_harm(struct soak_group *group, enum soak_harm harm)
{
    atomic_store(&group->troubled, 1);
    (void)atomic_fetch_add(&group->harmed, 1);
    (void)atomic_fetch_add(&group->harms[harm], 1);
}

static void end_harm(struct soak_group *group, double grace_s)
{
    test_pause(grace_s);
    atomic_store(&group->troubled, 0);
}

/* From here on any key may lose what it has once more, also one whose generation is yet to come:
 * two masters for a moment, and it begins on each. */
static void begin_losing(struct soak_group *group)
{
    (void)atomic_fetch_add(&group->losing, 1);
}

/* In so many seconds it is over: the harm, and the losing, for keys of these generations and all
 * later ones. */
static void end_losing(struct soak *soak, struct soak_group *group, unsigned since, double grace_s)
{
    test_pause(grace_s);

    uint64_t losing = atomic_load(&group->losing);

    for (unsigned i = since; i <= soak_generation(soak); i++)
        (void)atomic_fetch_add(&group->lost[i % SOAK_GENERATIONS], losing);
    atomic_store(&group->losing, 0);
    end_harm(group, 0);
}

/* ---- Shared memory: processes that die ------------------------------------------------------ */

void soak_direct_shared(void *data)
{
    struct soak *soak = data;
    struct soak_group *group = &soak->groups[SOAK_SHARED];
    struct soak_job job = {soak, SOAK_W_SHM};
    unsigned seed = soak->seed + 1;
    pid_t victims[VICTIMS];
    char path[128];

    (void)snprintf(path, sizeof path, "redbucket-test-%ld-soak", (long)getpid());
    (void)snprintf(group->url, sizeof group->url, "shm:%s?size=1m", path);
    tell_ready(group);
    await_beginning(soak);
    for (size_t i = 0; i < VICTIMS; i++)
        victims[i] = test_fork(soak_work_until_killed, &job);
    while (rest(soak, soak->pace.kill, &seed)) {
        size_t chosen = test_random(&seed, VICTIMS);

        (void)atomic_fetch_add(&group->harms[SOAK_KILLED], 1);
        (void)atomic_fetch_add(&group->harmed, 1);
        test_kill(victims[chosen]);
        (void)atomic_fetch_add(&group->harmed, 1);
        victims[chosen] = test_fork(soak_work_until_killed, &job);
    }
    for (size_t i = 0; i < VICTIMS; i++)
        test_kill(victims[i]);
    await_end(soak);
    (void)snprintf(path, sizeof path, "/dev/shm/redbucket-test-%ld-soak", (long)getpid());
    (void)unlink(path);
}

/* ---- One server ----------------------------------------------------------------------------- */

static void stop_for_a_while(struct test_server *server, struct soak_group *group)
{
    begin_harm(group, SOAK_STOPPED);
    (void)kill(server->pid, SIGSTOP);
    test_pause(0.3);
    (void)kill(server->pid, SIGCONT);
}

static void restart(struct test_server *server, struct soak_group *group, unsigned *seed)
{
    bool by_force = test_random(seed, 2) == 0;

    begin_harm(group, by_force ? SOAK_KILLED : SOAK_ENDED);
    if (by_force)
        test_server_kill(server);
    else
        test_server_end(server);
    test_pause(test_random(seed, 300) * 1e-3);
    child_check(test_server_again(server));
}

static void harm_server(struct test_server *server, struct soak_group *group, bool stop,
                        unsigned *seed)
{
    if (stop)
        stop_for_a_while(server, group);
    else
        restart(server, group, seed);
    end_harm(group, GRACE_S);
}

static void cut_all(struct test_server *server, struct soak_group *group)
{
    begin_harm(group, SOAK_CUT);
    (void)test_server_do(server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    end_harm(group, 0.2);
}

/* It writes down what it takes before it answers, and so loses nothing when it is killed: the
 * system still has it. */
void soak_direct_redis(void *data)
{
    struct soak *soak = data;
    struct soak_group *group = &soak->groups[SOAK_REDIS];
    struct test_server *server = test_server_start(&(struct test_server_options){
        .kind = TEST_REDIS,
        .tls = test_server_have_tls(TEST_REDIS),
        .config = "appendonly yes\nappendfsync no\nauto-aof-rewrite-min-size 4mb"});
    unsigned seed = soak->seed + 2, times = 0;
    double next = 0.0;

    child_check(server != NULL);
    (void)snprintf(group->url, sizeof group->url, "redis://localhost:%d?" QUERY, server->port);
    test_server_url(server, server->tls_port != 0 ? TEST_BY_TLS : TEST_BY_PORT, QUERY,
                    group->safe_url, sizeof group->safe_url);
    tell_ready(group);
    await_beginning(soak);
    while (rest(soak, soak->pace.cut, &seed)) {
        cut_all(server, group);
        if (test_now() < next)
            continue;
        harm_server(server, group, times++ % 4 == 3, &seed);
        next = test_now() + soak->pace.restart;
    }
    await_end(soak);
    test_server_stop(server);
}

/* Nothing is ever done to this one: what it takes to ask it is what the machine makes of it. */
void soak_direct_control(void *data)
{
    struct soak *soak = data;
    struct soak_group *group = &soak->groups[SOAK_CONTROL];
    struct test_server *server =
        test_server_start(&(struct test_server_options){.kind = TEST_REDIS});

    child_check(server != NULL);
    (void)snprintf(group->url, sizeof group->url, "%s", server->socket);
    tell_ready(group);
    await_end(soak);
    test_server_stop(server);
}

/* ---- Sentinels ------------------------------------------------------------------------------ */

/* All of them name the server, and it has its replica. */
static bool is_settled(struct test_sentinels *all, size_t master)
{
    int port = test_sentinels_port(all, all->data[master]);

    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++) {
        if (test_sentinels_named(all, i) != port)
            return false;
    }
    return test_sentinels_role(all, master) == 1 &&
           test_server_info(all->data[master], "connected_slaves") == 1;
}

/* False when they give it up, as they may. */
static bool await_master(struct test_sentinels *all, size_t master)
{
    double until = test_now() + PATIENCE_S;

    while (test_sentinels_named(all, 0) != test_sentinels_port(all, all->data[master]) ||
           test_sentinels_role(all, master) != 1) {
        if (test_now() > until)
            return false;
        test_pause(TICK_S);
    }
    return true;
}

static void set_patience(struct test_sentinels *all, const char *ms)
{
    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++)
        child_check(test_server_do(all->sentinels[i], "SENTINEL", "SET", TEST_SERVICE,
                                   "down-after-milliseconds", ms, NULL));
}

/* False when they give it up, as they may. */
static bool kill_master(struct soak_group *group, struct test_sentinels *all, size_t master)
{
    bool switched;

    begin_harm(group, SOAK_KILLED);
    begin_losing(group);
    set_patience(all, BEREFT_MS);
    test_server_kill(all->data[master]);
    switched = await_master(all, 1 - master);
    set_patience(all, SENTINEL_MS);
    /* It comes back empty, and calls itself a master until the sentinels tell it otherwise, which
     * some of them may believe for a moment: that is a second loss. */
    begin_losing(group);
    child_check(test_server_again(all->data[master]));
    return switched;
}

static bool depose_master(struct soak_group *group, struct test_sentinels *all, size_t master)
{
    begin_harm(group, SOAK_FAILOVER);
    begin_losing(group);
    if (test_server_do(all->sentinels[0], "SENTINEL", "FAILOVER", TEST_SERVICE, NULL))
        return await_master(all, 1 - master);
    /* They refuse, and nothing happens. */
    (void)atomic_fetch_sub(&group->harms[SOAK_FAILOVER], 1);
    (void)atomic_fetch_sub(&group->losing, 1);
    return false;
}

/* Returns who is master then. */
static size_t fail_over(struct soak *soak, struct test_sentinels *all, size_t master, bool by_force)
{
    struct soak_group *group = &soak->groups[SOAK_SENTINEL];
    unsigned since = soak_generation(soak);
    double began = test_now();
    bool switched = by_force ? kill_master(group, all, master) : depose_master(group, all, master);

    say(soak, "sentinel: master %zu %s, %zu is master after %.1f s", master,
        by_force ? "killed" : "deposed", switched ? 1 - master : master, test_now() - began);
    end_losing(soak, group, since, SWITCH_S);
    return switched ? 1 - master : master;
}

/* The machine may have been busy for so long that they changed the master by themselves; that is
 * stated as soon as it is seen. Returns who is master. */
static size_t look_after(struct soak *soak, struct test_sentinels *all, size_t master)
{
    struct soak_group *group = &soak->groups[SOAK_SENTINEL];
    unsigned since = soak_generation(soak);
    double until = test_now() + PATIENCE_S;

    if (test_sentinels_named(all, 0) != test_sentinels_port(all, all->data[1 - master]))
        return master;
    say(soak, "sentinel: %zu is master, which nobody asked for", 1 - master);
    begin_harm(group, SOAK_STOPPED);
    begin_losing(group);
    while (!is_settled(all, 1 - master) && test_now() < until && !is_over(soak))
        test_pause(0.2);
    end_losing(soak, group, since, SWITCH_S);
    return 1 - master;
}

/* Who is named by each of them, and what the two servers think that they are. */
static void say_unsettled(const struct soak *soak, struct test_sentinels *all)
{
    int ports[2] = {test_sentinels_port(all, all->data[0]), test_sentinels_port(all, all->data[1])};

    say(soak, "sentinel: unsettled: named are %d, %d, %d; %d is %s, %d is %s",
        test_sentinels_named(all, 0), test_sentinels_named(all, 1), test_sentinels_named(all, 2),
        ports[0], test_sentinels_role(all, 0) == 1 ? "master" : "none", ports[1],
        test_sentinels_role(all, 1) == 1 ? "master" : "none");
}

void soak_direct_sentinel(void *data)
{
    struct soak *soak = data;
    struct soak_group *group = &soak->groups[SOAK_SENTINEL];
    struct test_sentinels all;
    unsigned seed = soak->seed + 3, times = 0;
    double next = 0.0, settled = test_now();
    size_t master = 0;

    child_check(test_sentinels_start(&all, &(struct test_sentinels_options){.kind = TEST_REDIS}));
    test_sentinels_url(&all, QUERY, group->url, sizeof group->url);
    set_patience(&all, SENTINEL_MS);
    tell_ready(group);
    await_beginning(soak);
    while (rest(soak, LOOK_S, &seed)) {
        master = look_after(soak, &all, master);
        if (!is_settled(&all, master)) {
            if (test_now() - settled > UNSETTLED_S) {
                say_unsettled(soak, &all);
                settled = test_now();
            }
            continue;
        }
        settled = test_now();
        if (settled < next)
            continue;
        master = fail_over(soak, &all, master, times++ % 3 == 2);
        next = test_now() + soak->pace.failover * (0.5 + test_random(&seed, 1000) / 1000.0);
    }
    await_end(soak);
    test_sentinels_stop(&all);
}

/* ---- A cluster ------------------------------------------------------------------------------ */

/* The slots of keys that are asked for just now. */
static void move_slots(struct soak *soak, struct test_cluster *cluster, unsigned *seed)
{
    struct soak_group *group = &soak->groups[SOAK_CLUSTER];

    begin_harm(group, SOAK_MOVED);
    for (unsigned i = 0; i < MOVED_SLOTS; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, "redbucket:cluster-%c:g%u-k%u", i == 0 ? 'b' : 'a',
                           soak_generation(soak), i);
        int slot = test_cluster_slot(cluster, name, (size_t)len);
        size_t to = test_cluster_owner(cluster, test_random(seed, TEST_CLUSTER_SLOTS));

        if (slot >= 0 && to < TEST_CLUSTER_NODES)
            (void)test_cluster_migrate(cluster, (unsigned)slot, (unsigned)slot, to);
    }
    (void)test_cluster_settle(cluster);
    end_harm(group, GRACE_S);
}

static void promote(struct soak *soak, struct test_cluster *cluster, unsigned *seed)
{
    struct soak_group *group = &soak->groups[SOAK_CLUSTER];
    size_t owner = test_cluster_owner(cluster, test_random(seed, TEST_CLUSTER_SLOTS));
    size_t replica = test_cluster_replica(cluster, owner);
    unsigned since = soak_generation(soak);

    if (replica == TEST_CLUSTER_NODES)
        return;
    begin_harm(group, SOAK_FAILOVER);
    begin_losing(group);
    (void)test_cluster_promote(cluster, replica);
    (void)test_cluster_settle(cluster);
    end_losing(soak, group, since, GRACE_S);
}

void soak_direct_cluster(void *data)
{
    struct soak *soak = data;
    struct soak_group *group = &soak->groups[SOAK_CLUSTER];
    struct test_cluster *cluster =
        test_cluster_start(&(struct test_server_options){.kind = TEST_REDIS});
    unsigned seed = soak->seed + 4, times = 0;

    child_check(cluster != NULL);
    for (size_t i = 0; i < cluster->nodes_len; i++)
        child_check(test_server_do(cluster->nodes[i], "CONFIG", "SET", "cluster-node-timeout",
                                   NODE_MS, NULL));
    /* Each of the six nodes' connections comes to what memory it ever needs in its own time: with
     * one for each, soon. */
    test_cluster_url(cluster, TEST_BY_PORT, "timeout=2s&connections=1", group->url,
                     sizeof group->url);
    tell_ready(group);
    await_beginning(soak);
    while (rest(soak, soak->pace.move, &seed)) {
        if (times++ % 2 == 0)
            promote(soak, cluster, &seed);
        else
            move_slots(soak, cluster, &seed);
    }
    await_end(soak);
    test_cluster_stop(cluster);
}
