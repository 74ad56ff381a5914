/* SPDX-License-Identifier: MIT */
/*
 * The N-th allocation of a whole program's use of the library fails, for every N, and on every kind
 * of store; whoever asks for it: the library, hiredis, OpenSSL, the C library that looks up a name.
 * For that one alone, and for that one and everything after it until the call has come back.
 *
 * Nothing is left behind: no memory, no descriptor, no file.
 */
#include "host.h"
#include "processes.h"
#include "scarce.h"
#include "shortage.h"
#include "stores.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Blocks that OpenSSL and the C library keep for the process when they first need them, wherever in
 * their work that is. Without them, every block is accounted for. */
#define KEPT 64

static char place[256];

/* So that a crash tells where it was. */
static void tell_place(int number)
{
    (void)!write(2, place, strlen(place));
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static bool is_out_of_memory(enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_MEMORY;
}

static void begin_to_run_out(const char *call)
{
    (void)call;
    scarce_on();
}

static void do_everything(const struct shortage_store *store, const char *url, unsigned long nth,
                          bool and_on)
{
    static unsigned serial;
    char key[32];
    struct everything all = {.url = url,
                             .place = place,
                             .key = key,
                             .before = begin_to_run_out,
                             .after = scarce_off,
                             .excused = is_out_of_memory,
                             .mistaken = store->mistaken,
                             .lenient = store->lenient};

    (void)snprintf(key, sizeof key, "key-%u", serial++);
    (void)snprintf(place, sizeof place, "%s: allocation %lu fails%s", store->name, nth,
                   and_on ? ", and all after it" : "");
    scarce_plan(nth, and_on);
    everything_do(&all);
    shortage_clean();
    test_store_remove(url);
}

static void run_out(const struct shortage_store *store, bool and_on)
{
    char url[512];

    if (store->slow && !shortage_every())
        skip();
    /* A sanitizer's own part of a thread doesn't live through it, and names take a thread. */
    if (TEST_SANITIZED && store->mistaken == REDBUCKET_ERROR_UNAVAILABLE)
        skip();
    if (!store->url(store->query, url, sizeof url))
        skip();
    for (int i = 0; i < 2; i++) /* what libraries keep for the process */
        do_everything(store, url, 0, false);
    unsigned long places = scarce_made(), nth = 1, runs = 0;
    long blocks = scarce_blocks();
    long kept = store->mistaken != REDBUCKET_OK ? KEPT : 0;
    int descriptors = test_open_descriptors();

    do {
        do_everything(store, url, nth, and_on);
        nth = shortage_next(nth, places);
        runs++;
        if (test_open_descriptors() != descriptors || scarce_blocks() > blocks + kept)
            fail_msg("%s: %d descriptors, were %d; %ld blocks, were %ld", place,
                     test_open_descriptors(), descriptors, scarce_blocks(), blocks);
    } while (scarce_struck());
    print_message("# %s: %lu allocations, %lu of them failed\n", store->name, places, runs - 1);
    assert_true(runs > 1);
}

static void one_fails(void **state)
{
    run_out(*state, false);
}

static void all_fail_from_there(void **state)
{
    run_out(*state, true);
}

/* A test that failed did so in the middle. */
static int switch_off(void **state)
{
    (void)state;
    scarce_plan(0, false);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[64];
    char names[64][96];
    size_t len = 0;

    (void)signal(SIGSEGV, tell_place);
    (void)signal(SIGABRT, tell_place);
    for (size_t i = 0; i < shortage_stores_len; i++) {
        for (int and_on = 0; and_on < 2; and_on++) {
            (void)snprintf(names[len], sizeof names[len], "%s_%s",
                           and_on ? "all_fail_from_there" : "one_fails", shortage_stores[i].name);
            tests[len] =
                (struct CMUnitTest){names[len], and_on ? all_fail_from_there : one_fails, NULL,
                                    switch_off, (void *)(uintptr_t)&shortage_stores[i]};
            len++;
        }
    }
    return _cmocka_run_group_tests("memory", tests, len, NULL, shortage_tear_down);
}
