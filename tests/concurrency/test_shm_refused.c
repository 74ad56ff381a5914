/* SPDX-License-Identifier: MIT */
/*
 * What opening a shm: store refuses, with which words: whatever has its name and isn't such a
 * store, or isn't the one asked for. What is refused is left as it is.
 */
#include "processes.h"
#include "shm.h"
#include "stores.h"
#include "table/layout.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

/* A file of its own for a scene, and what was seen of it. */
struct scene {
    const char *name;
    void (*make)(const struct shm_place *place);
    const char *query;
    enum redbucket_status status;
    const char *words;
};

static void make_file(const struct shm_place *place, size_t len)
{
    FILE *file = fopen(place->path, "w");
    unsigned seed = 5;

    assert_non_null(file);
    for (size_t i = 0; i < len; i++)
        assert_int_not_equal(fputc((int)test_random(&seed, 256), file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void make_noise(const struct shm_place *place)
{
    make_file(place, 65536);
}

static void make_empty(const struct shm_place *place)
{
    make_file(place, 0);
}

static void make_short(const struct shm_place *place)
{
    make_file(place, 100);
}

static void make_directory(const struct shm_place *place)
{
    assert_int_equal(mkdir(place->path, 0700), 0);
}

static void make_fifo(const struct shm_place *place)
{
    assert_int_equal(mkfifo(place->path, 0600), 0);
}

/* To a good store, which isn't followed all the same. */
static void make_link(const struct shm_place *place)
{
    struct shm_place other;

    shm_place_make(&other);
    shm_make_good(&other);
    assert_int_equal(symlink(other.path, place->path), 0);
}

static void make_dangling_link(const struct shm_place *place)
{
    assert_int_equal(symlink("redbucket-test-nowhere", place->path), 0);
}

static void make_truncated(const struct shm_place *place)
{
    shm_make_good(place);
    assert_int_equal(truncate(place->path, 65535), 0);
}

static void make_cut_off(const struct shm_place *place)
{
    shm_make_good(place);
    assert_int_equal(truncate(place->path, 511), 0);
}

static void make_longer(const struct shm_place *place)
{
    shm_make_good(place);
    assert_int_equal(truncate(place->path, 65537), 0);
}

/* Replaces a number of the header by another one made of it. */
static void change(const struct shm_place *place, size_t offset, uint64_t (*other)(uint64_t))
{
    uint64_t number;
    int fd = open(place->path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(pread(fd, &number, sizeof number, (off_t)offset), sizeof number);
    assert_int_equal(close(fd), 0);
    number = other(number);
    shm_patch(place, offset, &number, sizeof number);
}

static uint64_t swapped(uint64_t number)
{
    return __builtin_bswap64(number);
}

static uint64_t one_less(uint64_t number)
{
    return number - 1;
}

/* Versions are in the highest byte. */
static uint64_t older(uint64_t number)
{
    return number - ((uint64_t)1 << 56);
}

static uint64_t of_other_words(uint64_t number)
{
    return number ^ (8 ^ 4);
}

static void make_swapped(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, offsetof(struct rbk_shm_header, magic), swapped);
}

static void make_older(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, offsetof(struct rbk_shm_header, format), older);
}

static void make_of_other_words(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, offsetof(struct rbk_shm_header, format), of_other_words);
}

#define TABLE(field) (sizeof(struct rbk_shm_header) + offsetof(struct rbk_table_header, field))

static void make_older_table(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, TABLE(format), older);
}

static void make_foreign_table(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, TABLE(magic), swapped);
}

static void make_larger_table(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, TABLE(shards), swapped);
}

static void make_in_other_time(const struct shm_place *place)
{
    shm_make_good(place);
    change(place, offsetof(struct rbk_shm_header, time_namespace), one_less);
}

#define FOREIGN  REDBUCKET_ERROR_FOREIGN
#define MISMATCH REDBUCKET_ERROR_MISMATCH
#define SYSTEM   REDBUCKET_ERROR_SYSTEM

static const struct scene scenes[] = {
    {"noise", make_noise, "", FOREIGN, ": is not a store of this library"},
    {"an empty file", make_empty, "", FOREIGN, ": is not a store of this library"},
    {"a short file", make_short, "", FOREIGN, ": is not a store of this library"},
    {"a directory", make_directory, "", SYSTEM, ": can't be opened: Is a directory"},
    {"a FIFO", make_fifo, "", FOREIGN, ": is not a regular file"},
    {"a symbolic link", make_link, "", FOREIGN, ": is a symbolic link"},
    {"a symbolic link to nowhere", make_dangling_link, "", FOREIGN, ": is a symbolic link"},
    {"a truncated store", make_truncated, "", FOREIGN,
     ": is damaged: has 65535 bytes and was made with 65536"},
    {"a store cut off in its header", make_cut_off, "", FOREIGN,
     ": is damaged: has 511 bytes and was made with 65536"},
    {"a longer store", make_longer, "", FOREIGN,
     ": is damaged: has 65537 bytes and was made with 65536"},
    {"another byte order", make_swapped, "", FOREIGN, ": is not a store of this library"},
    {"an older version", make_older, "", FOREIGN,
     ": was made by another version or build of this library"},
    {"another word size", make_of_other_words, "", FOREIGN,
     ": was made by another version or build of this library"},
    {"an older table", make_older_table, "", FOREIGN,
     ": was made by another version of this library, or is damaged"},
    {"a foreign table", make_foreign_table, "", FOREIGN,
     ": was made by another version of this library, or is damaged"},
    {"a table larger than the file", make_larger_table, "", FOREIGN,
     ": was made by another version of this library, or is damaged"},
    {"another time namespace", make_in_other_time, "", FOREIGN,
     ": belongs to another time namespace, whose clock is not ours"},
    {"another size", shm_make_good, "?size=128k", MISMATCH,
     ": exists with a size of 65536 bytes, not the 131072 asked for"},
    {"another mode", shm_make_good, "?mode=0660", MISMATCH,
     ": exists with mode 0600, not the 0660 asked for"},
    {"another size, though the mode is right", shm_make_good, "?mode=0600&size=1m", MISMATCH,
     ": exists with a size of 65536 bytes, not the 1048576 asked for"},
};
#define SCENES (sizeof scenes / sizeof scenes[0])

/* All that there is under the name, to see whether anything was changed. */
struct seen {
    struct stat stat;
    size_t len;
    unsigned char bytes[70000];
};

static void see(const struct shm_place *place, struct seen *seen)
{
    int fd;

    memset(seen, 0, sizeof *seen);
    assert_int_equal(lstat(place->path, &seen->stat), 0);
    memset(&seen->stat.st_atim, 0, sizeof seen->stat.st_atim);
    if (!S_ISREG(seen->stat.st_mode))
        return;
    fd = open(place->path, O_RDONLY | O_CLOEXEC);
    seen->len = (size_t)read(fd, seen->bytes, sizeof seen->bytes);
    (void)close(fd);
}

/* Descriptors that a refused store left open would run out. */
static int lowest_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)close(fd);
    return fd;
}

static void test_refused(void **state)
{
    static struct seen before, after;
    const struct scene *scene = *state;
    int descriptor = lowest_descriptor();
    struct redbucket_store *store = NULL;
    struct shm_place place;

    shm_place_make(&place);
    scene->make(&place);
    see(&place, &before);
    shm_expect(&place, scene->query, scene->status, scene->words);
    see(&place, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(lowest_descriptor(), descriptor);
    /* Once it is out of the way, there is nothing against the name. */
    assert_int_equal(remove(place.path), 0);
    assert_int_equal(shm_open_store(&place, scene->query, &store, NULL), REDBUCKET_OK);
    test_store_drop(place.url, store);
}

/* Someone else's store may be a trap: only ours and root's are opened. */
static void open_as_nobody(void *data)
{
    const struct shm_place *place = data;
    struct redbucket_error error = {.message = ""};
    struct redbucket_store *store = NULL;
    struct stat file;

    child_check(stat(place->path, &file) == 0);
    child_check(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    if (file.st_uid != 0) {
        child_check(shm_open_store(place, "", &store, &error) == REDBUCKET_ERROR_FOREIGN);
        child_check(strstr(error.message, ": belongs to user 12345, neither to us nor to root"));
    } else if ((file.st_mode & 0006) != 0006) {
        child_check(shm_open_store(place, "", &store, &error) == REDBUCKET_ERROR_SYSTEM);
        child_check(strstr(error.message, ": can't be opened: Permission denied"));
    } else {
        child_check(shm_open_store(place, "", &store, &error) == REDBUCKET_OK);
        redbucket_store_close(store);
    }
}

static void test_owners(void **state)
{
    struct redbucket_store *store = NULL;
    struct shm_place place;

    (void)state;
    if (geteuid() != 0)
        skip();
    shm_place_make(&place);
    shm_make_good(&place);
    test_join(test_fork(open_as_nobody, &place));
    assert_int_equal(chmod(place.path, 0666), 0);
    test_join(test_fork(open_as_nobody, &place));
    assert_int_equal(chown(place.path, 12345, 12345), 0);
    test_join(test_fork(open_as_nobody, &place));
    shm_expect(&place, "", REDBUCKET_ERROR_FOREIGN,
               ": belongs to user 12345, neither to us nor to root");
    assert_int_equal(chown(place.path, 0, 0), 0);
    assert_int_equal(shm_open_store(&place, "", &store, NULL), REDBUCKET_OK);
    test_store_drop(place.url, store);
}

/* A name is one file in one directory. */
static void test_names(void **state)
{
    static const char *const names[] = {
        "shm:", "shm:.", "shm:..", "shm:a/b", "shm:/etc/passwd", "shm:a%2fb", "shm:%2e%2e"};
    char long_name[300] = "shm:";

    (void)state;
    memset(long_name + 4, 'n', 201);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct redbucket_store *store = NULL;

        assert_int_equal(redbucket_store_open(names[i], &store, NULL), REDBUCKET_ERROR_URL);
        assert_null(store);
    }
    struct redbucket_store *store = NULL;

    assert_int_equal(redbucket_store_open(long_name, &store, NULL), REDBUCKET_ERROR_URL);
    long_name[4 + 200] = '\0';
    assert_int_equal(redbucket_store_open(long_name, &store, NULL), REDBUCKET_OK);
    test_store_drop(long_name, store);
}

int main(void)
{
    struct CMUnitTest tests[SCENES + 2];

    for (size_t i = 0; i < SCENES; i++)
        tests[i] = (struct CMUnitTest){scenes[i].name, test_refused, NULL, NULL,
                                       (void *)(uintptr_t)&scenes[i]};
    tests[SCENES] = (struct CMUnitTest)cmocka_unit_test(test_owners);
    tests[SCENES + 1] = (struct CMUnitTest)cmocka_unit_test(test_names);
    return _cmocka_run_group_tests("shm-refused", tests, SCENES + 2, NULL, test_clean_up);
}
