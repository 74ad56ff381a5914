/* SPDX-License-Identifier: MIT */
/*
 * A shm: store where the system doesn't play along: a full file system, none to write to, limits of
 * the process, a clock of its own. Each is an error with its reason, never a signal, and leaves
 * nothing behind.
 *
 * Each case is a child with a file system of its own at /dev/shm, where that is permitted.
 */
#include "processes.h"
#include "shm.h"
#include "stores.h"
#include "test.h"
#include "url.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* Gives this process a view of files of its own, with so much room at /dev/shm. */
static bool isolate(const char *options)
{
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, options) == 0;
}

static bool enter_time(void)
{
    return unshare(CLONE_NEWTIME) == 0;
}

static bool enter_files(void)
{
    return isolate("size=1m");
}

/* Whether a child may do this. */
static bool permitted(bool (*enter)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(!enter());
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Opening fails with this message's end; the store is named "full". */
static void expect(const char *query, enum redbucket_status status, const char *words)
{
    struct redbucket_error error = {.message = ""};
    struct redbucket_store *store = NULL;
    char url[64];

    (void)snprintf(url, sizeof url, "shm:full%s", query);
    if (redbucket_store_open(url, &store, &error) != status || store != NULL ||
        strcmp(error.message, words) != 0) {
        (void)fprintf(stderr, "%s \"%s\", not \"%s\"\n", redbucket_status_name(error.status),
                      error.message, words);
        child_check(false);
    }
}

static int count_files(void)
{
    DIR *directory = opendir("/dev/shm");
    int count = -2; /* . and .. */

    child_check(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count;
}

/* Takes all the room that is left. */
static void fill_up(void)
{
    static char block[4096];
    int fd = open("/dev/shm/ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    child_check(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    (void)close(fd);
}

/* Touches all of a store's pages. */
static void use(const char *url)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    char text[32];

    child_check(redbucket_store_open(url, &store, NULL) == REDBUCKET_OK);
    fill_up();
    child_check(redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(limiter, "a",
                                      &(struct redbucket_limit){.rate = 1, .burst = 5},
                                      NULL) == REDBUCKET_OK);
    for (unsigned i = 0; i < 50000; i++) {
        struct redbucket_response response;

        (void)snprintf(text, sizeof text, "%u", i);
        child_check(redbucket_request(limiter, &(struct redbucket_key){"a", text, 0, 0}, 1,
                                      &response) == REDBUCKET_OK);
    }
    child_check(redbucket_store_statistics(store, &statistics) == REDBUCKET_OK);
    child_check(statistics.buckets == statistics.capacity);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void with_no_room(void *data)
{
    (void)data;
    child_check(isolate("size=1m"));
    expect("", REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't allocate its space: No space left on device");
    expect("?size=" RBK_URL_SIZE_MOST, REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't allocate its space: No space left on device");
    child_check(count_files() == 0);
    /* What fits is a store, and stays one when there is no room for anything else. */
    use("shm:full?size=512k");
    child_check(count_files() == 2);
    child_check(unlink("/dev/shm/full") == 0);
    fill_up();
    expect("?size=32k", REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't allocate its space: No space left on device");
    child_check(count_files() == 1);
}

static void with_no_files(void *data)
{
    (void)data;
    child_check(isolate("nr_inodes=1"));
    expect("", REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't make a file in /dev/shm: No space left on device");
    child_check(mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    expect("", REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't make a file in /dev/shm: Read-only file system");
    child_check(count_files() == 0);
}

static void with_no_proc(void *data)
{
    (void)data;
    child_check(isolate("size=1m"));
    child_check(mount("tmpfs", "/proc", "tmpfs", 0, NULL) == 0);
    expect("", REDBUCKET_ERROR_SYSTEM, "shm:full: can't read this boot's id from /proc");
    child_check(count_files() == 0);
}

/* Going past this limit by writing would be a SIGXFSZ. */
static void with_small_files(void *data)
{
    const struct rlimit limit = {65536, 65536};
    struct redbucket_store *store = NULL;

    (void)data;
    child_check(isolate("size=1m"));
    child_check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    expect("", REDBUCKET_ERROR_SYSTEM, "shm:full: can't allocate its space: File too large");
    expect("?size=65537", REDBUCKET_ERROR_SYSTEM,
           "shm:full: can't allocate its space: File too large");
    child_check(count_files() == 0);
    child_check(redbucket_store_open("shm:full?size=64k", &store, NULL) == REDBUCKET_OK);
    redbucket_store_close(store);
}

static void with_no_descriptors(void *data)
{
    const struct rlimit limit = {0, 0};

    (void)data;
    child_check(isolate("size=1m"));
    child_check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    expect("", REDBUCKET_ERROR_SYSTEM, "shm:full: can't read this boot's id from /proc");
}

/* A process with a clock of its own can't share times with others. */
static void in_other_time(void *data)
{
    const struct shm_place *place = data;
    struct redbucket_error error = {.message = ""};
    struct redbucket_store *store = NULL;

    child_check(shm_open_store(place, "", &store, &error) == REDBUCKET_ERROR_FOREIGN);
    child_check(strstr(error.message,
                       ": belongs to another time namespace, whose clock is not ours") != NULL);
    child_check(unlink(place->path) == 0);
    child_check(shm_open_store(place, "?size=64k", &store, NULL) == REDBUCKET_OK);
    redbucket_store_close(store);
    child_check(shm_open_store(place, "?size=64k", &store, NULL) == REDBUCKET_OK);
    redbucket_store_close(store);
}

/* The children of a process that unshared it are in the new namespace, it itself is not. */
static void with_children_in_other_time(void *data)
{
    int status = -1;
    pid_t pid;

    child_check(enter_time());
    pid = fork();
    if (pid == 0) {
        in_other_time(data);
        _exit(0);
    }
    child_check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void run(void (*body)(void *))
{
    if (!permitted(enter_files))
        skip();
    test_join(test_fork(body, NULL));
}

static void test_no_room(void **state)
{
    (void)state;
    run(with_no_room);
}

static void test_no_files(void **state)
{
    (void)state;
    run(with_no_files);
}

static void test_no_proc(void **state)
{
    (void)state;
    run(with_no_proc);
}

static void test_small_files(void **state)
{
    (void)state;
    run(with_small_files);
}

static void test_no_descriptors(void **state)
{
    (void)state;
    run(with_no_descriptors);
}

static void test_other_time(void **state)
{
    struct shm_place place;

    (void)state;
    if (!permitted(enter_time))
        skip();
    shm_place_make(&place);
    shm_make_good(&place);
    test_join(test_fork(with_children_in_other_time, &place));
    /* What was made in there is nothing for us. */
    shm_expect(&place, "", REDBUCKET_ERROR_FOREIGN,
               ": belongs to another time namespace, whose clock is not ours");
    test_store_remove(place.url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_room),        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_no_proc),        cmocka_unit_test(test_small_files),
        cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_other_time),
    };

    return cmocka_run_group_tests_name("shm-full", tests, NULL, test_clean_up);
}
