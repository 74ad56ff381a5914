/* SPDX-License-Identifier: MIT */
/*
 * How a shm: store comes to be: with the size and mode asked for and all its space, once, however
 * many make it at the same moment, and anew after a reboot. T01d of the cases.
 */
#include "processes.h"
#include "shm.h"
#include "stores.h"
#include "test.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MAKERS  32
#define HEIRS   8
#define ROUNDS  (TEST_SANITIZED ? 4 : 20)
#define PERMITS 10

static void check_file(const struct shm_place *place, off_t size, unsigned mode)
{
    struct stat file;

    assert_int_equal(stat(place->path, &file), 0);
    assert_int_equal(file.st_size, size);
    assert_int_equal(file.st_mode & 07777, mode);
    assert_int_equal(file.st_uid, geteuid());
    /* No holes: a hole in a full file system would be a SIGBUS. */
    assert_true(file.st_blocks * 512 >= size);
}

static void test_size_and_mode(void **state)
{
    static const struct {
        const char *query;
        off_t size;
        unsigned mode;
    } wanted[] = {
        {"", 16 << 20, 0600},
        {"?size=32k", 32768, 0600},
        {"?size=100003", 100003, 0600},
        {"?size=1m&mode=0660", 1 << 20, 0660},
        {"?mode=0666&size=64K", 65536, 0666},
        {"?mode=644&size=64k", 65536, 0644},
    };
    static const mode_t masks[] = {0, 022, 0777};

    (void)state;
    for (size_t i = 0; i < 3 * sizeof wanted / sizeof wanted[0]; i++) {
        struct redbucket_statistics statistics = {.size = sizeof statistics};
        struct redbucket_store *store = NULL, *again = NULL;
        struct shm_place place;
        mode_t mask = umask(masks[i % 3]);

        shm_place_make(&place);
        assert_int_equal(shm_open_store(&place, wanted[i / 3].query, &store, NULL), REDBUCKET_OK);
        (void)umask(mask);
        check_file(&place, wanted[i / 3].size, wanted[i / 3].mode);
        /* Whoever asks for the same, or for nothing, has the same one. */
        assert_int_equal(shm_open_store(&place, wanted[i / 3].query, &again, NULL), REDBUCKET_OK);
        redbucket_store_close(again);
        assert_int_equal(shm_open_store(&place, "", &again, NULL), REDBUCKET_OK);
        assert_int_equal(redbucket_store_statistics(again, &statistics), REDBUCKET_OK);
        assert_int_equal(statistics.bytes, wanted[i / 3].size);
        redbucket_store_close(again);
        test_store_drop(place.url, store);
    }
}

/* More than the file system has: an error that says so, and nothing is left. */
static void test_absurd_size(void **state)
{
    struct statvfs system;
    struct shm_place place;

    (void)state;
    assert_int_equal(statvfs("/dev/shm", &system), 0);
    if (system.f_blocks == 0 || system.f_blocks > RBK_URL_SIZE_MAX / 4 * 3 / system.f_frsize)
        skip();
    shm_place_make(&place);
    shm_expect(&place, "?size=" RBK_URL_SIZE_MOST, REDBUCKET_ERROR_SYSTEM,
               ": can't allocate its space: No space left on device");
    assert_int_not_equal(access(place.path, F_OK), 0);
}

/* What the processes of a race share. */
struct race {
    struct shm_place place;
    atomic_int ready;
    atomic_int go;
    atomic_int accepted;
    int racers;
};

/* Opens at the moment that all do, and takes what there is to have. */
static void race(void *data)
{
    struct race *race = data;
    struct redbucket_error error = {.message = ""};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;

    if (atomic_fetch_add(&race->ready, 1) + 1 == race->racers)
        atomic_store(&race->go, 1);
    child_check(test_await((volatile int *)&race->go));
    if (shm_open_store(&race->place, "?size=1m&timeout=30s", &store, &error) != REDBUCKET_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        child_check(false);
    }
    /* The caller's error is written when there is one, and then alone. */
    child_check(error.status == REDBUCKET_OK && error.message[0] == '\0');
    child_check(redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(limiter, "a",
                                      &(struct redbucket_limit){.rate = 1, .burst = PERMITS - 1},
                                      NULL) == REDBUCKET_OK);
    for (int i = 0; i < PERMITS; i++) {
        struct redbucket_key key = {.limit = "a", .key = "k"};
        struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

        child_check(redbucket_decide_at(limiter, &request, 1, 12345.0) == REDBUCKET_OK);
        atomic_fetch_add(&race->accepted, request.response.accepted);
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void run_race(struct race *race_of, int racers)
{
    pid_t pids[MAKERS];

    race_of->racers = racers;
    for (int i = 0; i < racers; i++)
        pids[i] = test_fork(race, race_of);
    for (int i = 0; i < racers; i++)
        test_join(pids[i]);
    /* All had the same one. */
    assert_int_equal(atomic_load(&race_of->accepted), PERMITS);
    check_file(&race_of->place, 1 << 20, 0600);
}

static void test_made_once(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct race *race_of = test_share(sizeof *race_of);

        shm_place_make(&race_of->place);
        run_race(race_of, MAKERS);
        test_store_remove(race_of->place.url);
        test_unshare(race_of, sizeof *race_of);
    }
}

/* A store that another boot has left, or that goes by another clock, full until far in the future.
 */
static void make_old(const struct shm_place *place, bool other_clock)
{
    static const char boot[RBK_SHM_BOOT_LEN + 1] = "00000000-0000-4000-8000-000000000000";
    uint64_t realtime = CLOCK_REALTIME;

    shm_make_good(place);
    if (other_clock)
        shm_patch(place, offsetof(struct rbk_shm_header, clock), &realtime, sizeof realtime);
    else
        shm_patch(place, offsetof(struct rbk_shm_header, boot), boot, RBK_SHM_BOOT_LEN);
}

/* T01d: whoever comes, and be it eight at once, finds a new and empty one. */
static void test_another_boot(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct race *race_of = test_share(sizeof *race_of);

        shm_place_make(&race_of->place);
        make_old(&race_of->place, round % 2);
        run_race(race_of, HEIRS);
        test_store_remove(race_of->place.url);
        test_unshare(race_of, sizeof *race_of);
    }
}

/* Who only looks makes none, and leaves another boot's for who will. */
static void test_nothing_is_made_by_looking(void **state)
{
    struct redbucket_store *store = NULL;
    struct stat before, after;
    struct shm_place place;

    (void)state;
    shm_place_make(&place);
    shm_expect(&place, "?create=no", REDBUCKET_ERROR_UNAVAILABLE, ": there is no such store");
    assert_int_equal(access(place.path, F_OK), -1);
    make_old(&place, false);
    assert_int_equal(stat(place.path, &before), 0);
    shm_expect(&place, "?create=no", REDBUCKET_ERROR_UNAVAILABLE, ": there is no such store");
    assert_int_equal(stat(place.path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(shm_open_store(&place, "?create=yes", &store, NULL), REDBUCKET_OK);
    redbucket_store_close(store);
    assert_int_equal(shm_open_store(&place, "?create=no&timeout=2s", &store, NULL), REDBUCKET_OK);
    test_store_drop(place.url, store);
}

/* Who still has the old one mapped goes on with it, and disturbs nobody. */
static void test_removed_while_open(void **state)
{
    struct redbucket_store *old = NULL, *new = NULL;
    struct redbucket_limiter *limiters[2];
    struct shm_place place;

    (void)state;
    shm_place_make(&place);
    assert_int_equal(shm_open_store(&place, "?size=64k", &old, NULL), REDBUCKET_OK);
    limiters[0] = test_limiter(old, &(struct redbucket_limit){.rate = 1});
    assert_int_equal(unlink(place.path), 0);
    assert_int_equal(shm_open_store(&place, "?size=128k", &new, NULL), REDBUCKET_OK);
    limiters[1] = test_limiter(new, &(struct redbucket_limit){.rate = 1});
    for (int i = 0; i < 2; i++) {
        assert_true(test_ask(limiters[i], "k", 1.0, 0.0).accepted);
        assert_false(test_ask(limiters[i], "k", 1.0, 0.0).accepted);
    }
    redbucket_limiter_destroy(limiters[0]);
    redbucket_limiter_destroy(limiters[1]);
    redbucket_store_close(old);
    test_store_drop(place.url, new);
}

/*
 * The linker has the library's calls of flock end up here (--wrap). While one thread has the lock
 * on an old file, another one may fork: the child has the descriptor as well, and with it the lock,
 * for as long as it lives.
 */
static pid_t lingering;
static bool linger;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static void sleep_long(void *data)
{
    (void)data;
    test_pause(600.0);
}

int __wrap_flock(int fd, int operation)
{
    int result = __real_flock(fd, operation);

    if (linger && result == 0 && operation == (LOCK_EX | LOCK_NB)) {
        linger = false;
        lingering = test_fork(sleep_long, NULL);
    }
    return result;
}

static void test_a_child_keeps_no_lock(void **state)
{
    struct redbucket_store *store = NULL;
    struct shm_place place;
    int old;

    (void)state;
    shm_place_make(&place);
    make_old(&place, false);
    old = open(place.path, O_RDWR | O_CLOEXEC);
    assert_true(old >= 0);
    linger = true;
    assert_int_equal(shm_open_store(&place, "", &store, NULL), REDBUCKET_OK);
    assert_false(linger);
    /* Somebody who had found the old one before waits for its lock. */
    assert_int_equal(__real_flock(old, LOCK_EX | LOCK_NB), 0);
    test_kill(lingering);
    (void)close(old);
    test_store_drop(place.url, store);
}

/* Somebody who holds on to the lock of an old file is waited for until the deadline. */
static void test_an_old_file_is_held(void **state)
{
    struct redbucket_store *store = NULL;
    struct shm_place place;
    double begun;
    int fd;

    (void)state;
    shm_place_make(&place);
    make_old(&place, true);
    fd = open(place.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(__real_flock(fd, LOCK_EX | LOCK_NB), 0);
    begun = test_now();
    shm_expect(&place, "?timeout=100ms", REDBUCKET_ERROR_TIMEOUT,
               ": another process holds the lock to replace it");
    assert_true(test_now() - begun >= 0.1);
    assert_true(test_now() - begun < 0.1 + 10.0 * TEST_PATIENCE);
    (void)close(fd);
    assert_int_equal(shm_open_store(&place, "", &store, NULL), REDBUCKET_OK);
    test_store_drop(place.url, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_and_mode),
        cmocka_unit_test(test_absurd_size),
        cmocka_unit_test(test_made_once),
        cmocka_unit_test(test_another_boot),
        cmocka_unit_test(test_removed_while_open),
        cmocka_unit_test(test_a_child_keeps_no_lock),
        cmocka_unit_test(test_an_old_file_is_held),
        cmocka_unit_test(test_nothing_is_made_by_looking),
    };

    return cmocka_run_group_tests_name("shm-made", tests, NULL, test_clean_up);
}
