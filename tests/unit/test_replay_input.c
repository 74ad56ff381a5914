/* SPDX-License-Identifier: MIT */
/*
 * Bytes and lines out of files, pipes and what gzip made of them: nothing readable is lost, however
 * the bytes are cut into pieces, and damage is told only after what came before it.
 */
#include "../../cli/replay/input.h"
#include "../../cli/replay/lines.h"
#include "../test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[] = "/tmp/redbucket-input-XXXXXX";
static char path[64];

static int folder_make(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/input", folder);
    return 0;
}

static int folder_remove(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void file_write(const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* The bytes as one gzip member; the caller frees it. */
static unsigned char *gzip(const char *bytes, size_t len, size_t *gzipped_len)
{
    z_stream stream = {0};
    const size_t room = len + len / 100 + 1024;
    unsigned char *gzipped = malloc(room);

    assert_non_null(gzipped);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)len;
    stream.next_out = gzipped;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *gzipped_len = room - stream.avail_out;
    deflateEnd(&stream);
    return gzipped;
}

/* Reads all there is, in pieces of `piece` bytes at most; returns how many. */
static size_t read_all(char *bytes, size_t size, size_t piece, struct redbucket_error *error)
{
    struct rbk_input *input;
    size_t len = 0;
    size_t got;

    *error = (struct redbucket_error){0};
    if (rbk_input_open(path, &input, error) != REDBUCKET_OK)
        return 0;
    while (len < size) {
        const size_t room = size - len < piece ? size - len : piece;

        if (rbk_input_read(input, bytes + len, room, &got, error) != REDBUCKET_OK || got == 0)
            break;
        len += got;
    }
    rbk_input_close(input);
    return len;
}

enum { TEXT_LEN = 500000 };

/* Something that compresses, but not away. */
static char *text_make(void)
{
    char *text = malloc(TEXT_LEN);
    unsigned seed = 3;

    assert_non_null(text);
    for (size_t i = 0; i < TEXT_LEN; i++)
        text[i] = "abcdefgh\n\0\xff"[rand_r(&seed) % 11];
    return text;
}

static void a_file_comes_out_as_it_is(void **state)
{
    char *text = text_make();
    char *got = malloc(TEXT_LEN + 1);
    struct redbucket_error error;

    (void)state;
    assert_non_null(got);
    file_write(text, TEXT_LEN);
    for (size_t piece = 1; piece < 2 * TEXT_LEN; piece = piece * 37 + 1) {
        assert_int_equal(read_all(got, TEXT_LEN + 1, piece, &error), TEXT_LEN);
        assert_memory_equal(got, text, TEXT_LEN);
        assert_int_equal(error.status, REDBUCKET_OK);
    }
    free(text);
    free(got);
}

static void gzip_is_known_by_its_bytes_not_its_name(void **state)
{
    char *text = text_make();
    char *got = malloc(TEXT_LEN + 1);
    struct redbucket_error error;
    size_t len;
    unsigned char *gzipped = gzip(text, TEXT_LEN, &len);

    (void)state;
    assert_non_null(got);
    file_write(gzipped, len);
    for (size_t piece = 1; piece < 2 * TEXT_LEN; piece = piece * 37 + 1) {
        assert_int_equal(read_all(got, TEXT_LEN + 1, piece, &error), TEXT_LEN);
        assert_memory_equal(got, text, TEXT_LEN);
        assert_int_equal(error.status, REDBUCKET_OK);
    }
    free(gzipped);
    free(text);
    free(got);
}

static void several_gzip_members_and_zeros_behind_them_are_one_file(void **state)
{
    static const char parts[2][8] = {"first\n", "second\n"};
    unsigned char all[512] = {0};
    char got[64];
    struct redbucket_error error;
    size_t len = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t part_len;
        unsigned char *part = gzip(parts[i], strlen(parts[i]), &part_len);

        memcpy(all + len, part, part_len);
        len += part_len;
        free(part);
    }
    for (size_t zeros = 0; zeros < 200; zeros += 50) {
        file_write(all, len + zeros);
        assert_int_equal(read_all(got, sizeof(got), sizeof(got), &error), 13);
        assert_memory_equal(got, "first\nsecond\n", 13);
        assert_int_equal(error.status, REDBUCKET_OK);
    }
    all[len] = 'x';
    file_write(all, len + 1);
    assert_int_equal(read_all(got, sizeof(got), sizeof(got), &error), 13);
    assert_int_equal(error.status, REDBUCKET_ERROR_SYSTEM);
    assert_non_null(strstr(error.message, "damaged gzip file"));
}

/* Each place near the beginning and the end, and some between. */
static size_t cut_next(size_t cut, size_t len)
{
    if (cut < 40 || cut >= len - 40)
        return cut + 1;
    return cut + len / 50 < len - 40 ? cut + len / 50 : len - 40;
}

/* Wherever it is cut: what comes out is a beginning of the text, and the cut is told. */
static void a_gzip_file_cut_off_gives_what_it_has_and_is_told(void **state)
{
    char *text = text_make();
    char *got = malloc(TEXT_LEN + 1);
    struct redbucket_error error;
    size_t len;
    size_t longest = 0;
    unsigned char *gzipped = gzip(text, TEXT_LEN, &len);

    (void)state;
    assert_non_null(got);
    for (size_t cut = 3; cut < len; cut = cut_next(cut, len)) {
        size_t got_len;

        file_write(gzipped, cut);
        got_len = read_all(got, TEXT_LEN + 1, 65536, &error);
        assert_memory_equal(got, text, got_len);
        assert_true(got_len >= longest);
        longest = got_len;
        assert_int_equal(error.status, REDBUCKET_ERROR_SYSTEM);
        assert_non_null(strstr(error.message, "ends too early"));
    }
    assert_int_equal(longest, TEXT_LEN); /* only the checksum was missing */
    free(gzipped);
    free(text);
    free(got);
}

static void a_damaged_gzip_file_gives_what_it_has_and_is_told(void **state)
{
    char *text = text_make();
    char *got = malloc(2 * TEXT_LEN); /* what is damaged may come out longer */
    struct redbucket_error error;
    size_t len;
    unsigned char *gzipped = gzip(text, TEXT_LEN, &len);

    (void)state;
    assert_non_null(got);
    gzipped[len - 6] ^= 1; /* the checksum */
    file_write(gzipped, len);
    assert_int_equal(read_all(got, 2 * TEXT_LEN, 65536, &error), TEXT_LEN);
    assert_memory_equal(got, text, TEXT_LEN);
    assert_int_equal(error.status, REDBUCKET_ERROR_SYSTEM);
    gzipped[len - 6] ^= 1;
    memset(gzipped + len / 2, 0xff, 64);
    file_write(gzipped, len);
    assert_true(read_all(got, 2 * TEXT_LEN, 65536, &error) > TEXT_LEN / 3);
    assert_memory_equal(got, text, TEXT_LEN / 3);
    assert_int_equal(error.status, REDBUCKET_ERROR_SYSTEM);
    free(gzipped);
    free(text);
    free(got);
}

static void what_can_not_be_opened_is_told(void **state)
{
    struct rbk_input *input = NULL;
    struct redbucket_error error = {0};

    (void)state;
    assert_int_equal(rbk_input_open("/nowhere/at/all", &input, &error), REDBUCKET_ERROR_SYSTEM);
    assert_string_equal(error.message, "No such file or directory");
    assert_int_equal(rbk_input_open(folder, &input, &error), REDBUCKET_ERROR_SYSTEM);
    assert_string_equal(error.message, "Is a directory");
    assert_int_equal(rbk_input_open(folder, &input, NULL), REDBUCKET_ERROR_SYSTEM);
    assert_null(input);
    rbk_input_close(NULL);
}

static void an_empty_file_has_no_line(void **state)
{
    char got[4];
    struct redbucket_error error;

    (void)state;
    file_write("", 0);
    assert_int_equal(read_all(got, sizeof(got), sizeof(got), &error), 0);
    assert_int_equal(error.status, REDBUCKET_OK);
}

struct expected_line {
    enum rbk_line_kind kind;
    const char *text; /* NULL: only its kind */
};

static void assert_lines(const struct expected_line *expected, bool failed)
{
    struct rbk_lines *lines = malloc(sizeof(*lines));
    struct rbk_input *input;
    struct rbk_span line;
    size_t i;

    assert_non_null(lines);
    assert_int_equal(rbk_input_open(path, &input, NULL), REDBUCKET_OK);
    rbk_lines_init(lines, input);
    for (i = 0; expected[i].kind != RBK_LINE_END; i++) {
        assert_int_equal(rbk_lines_next(lines, &line), expected[i].kind);
        assert_int_equal(lines->number, i + 1);
        if (!expected[i].text)
            continue;
        assert_int_equal(line.len, strlen(expected[i].text));
        assert_memory_equal(line.bytes, expected[i].text, line.len);
    }
    assert_int_equal(rbk_lines_next(lines, &line), RBK_LINE_END);
    assert_int_equal(rbk_lines_next(lines, &line), RBK_LINE_END);
    assert_int_equal(lines->number, i);
    assert_int_equal(lines->failed, failed);
    rbk_input_close(input);
    free(lines);
}

static void lines_lose_their_ends_and_nothing_else(void **state)
{
    static const char text[] = "one\n\ntwo\r\n\r\n\r\rthree\r\r\nlast";
    static const struct expected_line expected[] = {
        {RBK_LINE, "one"},         {RBK_LINE, ""},     {RBK_LINE, "two"}, {RBK_LINE, ""},
        {RBK_LINE, "\r\rthree\r"}, {RBK_LINE, "last"}, {RBK_LINE_END, 0},
    };
    static const struct expected_line none[] = {{RBK_LINE_END, 0}};
    static const struct expected_line blank[] = {{RBK_LINE, ""}, {RBK_LINE_END, 0}};

    (void)state;
    file_write(text, sizeof(text) - 1);
    assert_lines(expected, false);
    file_write("", 0);
    assert_lines(none, false);
    file_write("\n", 1);
    assert_lines(blank, false);
}

/* Lines around the longest one, and around the buffer's length, each followed by a good one. */
static void a_line_too_long_is_passed_over_whatever_its_length(void **state)
{
    static const struct expected_line fits[] = {
        {RBK_LINE, NULL}, {RBK_LINE, "good"}, {RBK_LINE_END, 0}};
    static const struct expected_line too_long[] = {
        {RBK_LINE_TOO_LONG, NULL}, {RBK_LINE, "good"}, {RBK_LINE_END, 0}};
    static const struct expected_line alone[] = {{RBK_LINE_TOO_LONG, NULL}, {RBK_LINE_END, 0}};
    static const size_t lens[] = {
        RBK_LINE_MAX - 1,         RBK_LINE_MAX,
        RBK_LINE_MAX + 1,         RBK_LINE_MAX + 2,
        RBK_LINES_BUFFER - 6,     RBK_LINES_BUFFER - 5,
        RBK_LINES_BUFFER - 1,     RBK_LINES_BUFFER,
        RBK_LINES_BUFFER + 1,     1000000,
        3 * RBK_LINES_BUFFER - 1, 3 * RBK_LINES_BUFFER,
    };
    char *text = malloc(4 * RBK_LINES_BUFFER);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        memset(text, 'x', lens[i]);
        memcpy(text + lens[i], "\ngood", 5);
        file_write(text, lens[i] + 5);
        assert_lines(lens[i] <= RBK_LINE_MAX ? fits : too_long, false);
        file_write(text, lens[i]);
        if (lens[i] > RBK_LINE_MAX)
            assert_lines(alone, false);
    }
    free(text);
}

static void the_last_line_of_a_file_that_breaks_off_is_known(void **state)
{
    static const char text[] = "whole\nhal";
    static const struct expected_line expected[] = {
        {RBK_LINE, "whole"}, {RBK_LINE_BROKEN, "hal"}, {RBK_LINE_END, 0}};
    size_t len;
    unsigned char *gzipped = gzip(text, sizeof(text) - 1, &len);

    (void)state;
    file_write(gzipped, len - 8);
    assert_lines(expected, true);
    free(gzipped);
}

/* What goes into a pipe: pieces, each with its own write. */
struct feed {
    const char *const *pieces;
    pthread_t writer;
};

static void *feed_write(void *data)
{
    const struct feed *feed = data;
    const int fd = open(path, O_WRONLY);

    for (size_t i = 0; fd >= 0 && feed->pieces[i]; i++)
        if (write(fd, feed->pieces[i], strlen(feed->pieces[i])) < 0)
            break;
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void assert_lines_of_pipe(const char *const *pieces, const struct expected_line *expected)
{
    struct feed feed = {.pieces = pieces};

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&feed.writer, NULL, feed_write, &feed), 0);
    assert_lines(expected, false);
    pthread_join(feed.writer, NULL);
    unlink(path);
}

static void a_pipe_may_give_its_bytes_one_by_one(void **state)
{
    static const char *const pieces[] = {"o", "n", "e", "\n", "two", "\nthr", "ee", NULL};
    static const struct expected_line expected[] = {
        {RBK_LINE, "one"}, {RBK_LINE, "two"}, {RBK_LINE, "three"}, {RBK_LINE_END, 0}};

    (void)state;
    assert_lines_of_pipe(pieces, expected);
}

/* A pipe holds 64 KiB, so its end comes with a later read than the longest line. */
static void the_longest_line_may_come_without_its_end_at_first(void **state)
{
    static char longest[RBK_LINE_MAX + 1];
    static const char *const pieces[] = {longest, "\n", "good\n", NULL};
    static const struct expected_line expected[] = {
        {RBK_LINE, longest}, {RBK_LINE, "good"}, {RBK_LINE_END, 0}};

    (void)state;
    memset(longest, 'x', RBK_LINE_MAX);
    assert_lines_of_pipe(pieces, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_out_as_it_is),
        cmocka_unit_test(gzip_is_known_by_its_bytes_not_its_name),
        cmocka_unit_test(several_gzip_members_and_zeros_behind_them_are_one_file),
        cmocka_unit_test(a_gzip_file_cut_off_gives_what_it_has_and_is_told),
        cmocka_unit_test(a_damaged_gzip_file_gives_what_it_has_and_is_told),
        cmocka_unit_test(what_can_not_be_opened_is_told),
        cmocka_unit_test(an_empty_file_has_no_line),
        cmocka_unit_test(lines_lose_their_ends_and_nothing_else),
        cmocka_unit_test(a_line_too_long_is_passed_over_whatever_its_length),
        cmocka_unit_test(the_last_line_of_a_file_that_breaks_off_is_known),
        cmocka_unit_test(a_pipe_may_give_its_bytes_one_by_one),
        cmocka_unit_test(the_longest_line_may_come_without_its_end_at_first),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
