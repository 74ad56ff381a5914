/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libFuzzer where that isn't linked: gives a fuzzer each file that it is named, and
 * each file in a directory that it is named, so that an ordinary test run goes over the corpus.
 *
 * Each input lies in an allocation of exactly its size, or a reader that goes a byte too far would
 * not be seen by AddressSanitizer. The result is one TAP case; an input that makes the fuzzer
 * crash ends the program, and its name is the last line printed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Longer than anything libFuzzer would make here. */
#define INPUT_MAX ((off_t)16 << 20)

struct replay {
    size_t inputs;
    size_t failures;
};

static void fail(struct replay *replay, const char *path, const char *what)
{
    printf("# %s: %s\n", path, what);
    replay->failures++;
}

static uint8_t *read_exactly(const char *path, size_t size)
{
    uint8_t *data = malloc(size > 0 ? size : 1);
    FILE *file = data != NULL ? fopen(path, "rb") : NULL;
    if (file == NULL || fread(data, 1, size, file) != size) {
        free(data);
        data = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return data;
}

static void replay_file(struct replay *replay, const char *path, off_t size)
{
    if (size > INPUT_MAX) {
        fail(replay, path, "larger than an input can be");
        return;
    }
    uint8_t *data = read_exactly(path, (size_t)size);
    if (data == NULL) {
        fail(replay, path, "can't be read");
        return;
    }
    printf("# %s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    replay->inputs++;
}

static void replay_path(struct replay *replay, const char *path);

static void replay_directory(struct replay *replay, const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        fail(replay, path, strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        char name[4096];
        int length = snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length > 0 && (size_t)length < sizeof(name)) {
            replay_path(replay, name);
        }
        free(entries[i]);
    }
    free(entries);
}

static void replay_path(struct replay *replay, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        fail(replay, path, strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        replay_directory(replay, path);
    } else if (S_ISREG(status.st_mode)) {
        replay_file(replay, path, status.st_size);
    }
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    printf("1..1\n");
    for (int i = 1; i < argc; i++) {
        replay_path(&replay, argv[i]);
    }
    if (replay.inputs == 0) {
        fail(&replay, argv[0], "no input at all");
    }
    bool good = replay.failures == 0;
    printf("%s 1 - %zu inputs replayed\n", good ? "ok" : "not ok", replay.inputs);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
