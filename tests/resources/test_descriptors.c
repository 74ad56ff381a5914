/* SPDX-License-Identifier: MIT */
/*
 * One call of a whole program's use of the library finds no descriptor left, or one or two and no
 * more: each call in turn, on every kind of store, and connections to servers have just been
 * closed. It is an error at once, and neither a wait for the deadline nor a busy one; with
 * descriptors again, the same call goes well. The server isn't taken for dead.
 */
#include "host.h"
#include "processes.h"
#include "shortage.h"
#include "stores.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* However many descriptors a call may want, having so many it wants no more. */
#define ROOM_MOST 3u

/* Seconds of the clock and of the processor that a call may take that finds nothing. */
#define WALL_S (3.0 * TEST_PATIENCE)
#define WORK_S (0.5 * TEST_PATIENCE)

static struct {
    struct rlimit before;
    unsigned long made; /* calls */
    unsigned long nth;  /* of them has no descriptors but `room`; 0 for none */
    unsigned room;
    double began;
    double worked;
} plan;

static double work(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The least limit under which so many descriptors more can be had; none whatever is closed before,
 * when there is no room at all. Fewer than are standard can't even be waited for. */
static rlim_t limit_for(unsigned room)
{
    int fd = 0;

    if (room == 0)
        return 3;

    for (unsigned unused = 0;; fd++) {
        unused += fcntl(fd, F_GETFD) < 0;
        if (unused > room)
            return (rlim_t)fd;
    }
}

/* What is under way would be cut off as well, which is another matter. */
static void withhold(const char *call)
{
    struct rlimit few = plan.before;

    if (++plan.made != plan.nth)
        return;
    if (strstr(call, "dispatch") == NULL)
        shortage_cut();
    few.rlim_cur = limit_for(plan.room);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    plan.began = test_now();
    plan.worked = work();
}

static bool give_back(void)
{
    bool withheld = plan.made == plan.nth;

    if (!withheld)
        return false;
    plan.nth = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &plan.before), 0);
    assert_true(test_now() - plan.began < WALL_S);
    assert_true(work() - plan.worked < WORK_S);
    return true;
}

static bool is_shortage(enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_SYSTEM;
}

/* Returns how many calls failed. */
static unsigned do_everything(const struct shortage_store *store, const char *url,
                              unsigned long nth, unsigned room)
{
    static unsigned serial;
    char key[32], place[64];
    struct everything all = {.url = url,
                             .place = place,
                             .key = key,
                             .before = withhold,
                             .after = give_back,
                             .excused = is_shortage,
                             .lenient = store->lenient};

    (void)snprintf(key, sizeof key, "key-%u", serial++);
    (void)snprintf(place, sizeof place, "call %lu with room for %u", nth, room);
    plan.made = 0;
    plan.nth = nth;
    plan.room = room;
    everything_do(&all);
    test_store_remove(url);
    shortage_clean();
    return all.excuses;
}

static void each_call_finds_none(void **state)
{
    const struct shortage_store *store = *state;
    unsigned excuses = 0, runs = 0;
    char url[512];

    if (store->slow && !shortage_every())
        skip();
    if (!store->url(store->query, url, sizeof url))
        skip();
    assert_int_equal(do_everything(store, url, 0, 0), 0);
    unsigned long calls = plan.made;
    int descriptors = test_open_descriptors();

    for (unsigned room = 0; room < ROOM_MOST; room++) {
        for (unsigned long nth = 1; nth <= calls; nth = shortage_next(nth, calls)) {
            excuses += do_everything(store, url, nth, room);
            runs++;
            if (test_open_descriptors() != descriptors)
                fail_msg("%s: call %lu, room for %u: left a descriptor", store->name, nth, room);
        }
    }
    print_message("# %s: %lu calls, %u runs, %u errors\n", store->name, calls, runs, excuses);
    assert_true(excuses > 0);
}

static int give_all_back(void **state)
{
    (void)state;
    plan.nth = 0;
    return setrlimit(RLIMIT_NOFILE, &plan.before);
}

int main(void)
{
    struct CMUnitTest tests[32];

    (void)getrlimit(RLIMIT_NOFILE, &plan.before);
    for (size_t i = 0; i < shortage_stores_len; i++)
        tests[i] = (struct CMUnitTest){shortage_stores[i].name, each_call_finds_none, NULL,
                                       give_all_back, (void *)(uintptr_t)&shortage_stores[i]};
    return _cmocka_run_group_tests("descriptors", tests, shortage_stores_len, NULL,
                                   shortage_tear_down);
}
