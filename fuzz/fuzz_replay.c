/* SPDX-License-Identifier: MIT */
/*
 * All of `replay`: any options and any file, compressed or not. Whatever comes, the command ends by
 * one of its exit statuses, says nothing that doesn't print, and what it writes as JSON, or into a
 * page, is strict JSON and can't end the element that it stands in.
 *
 * The input is lines of options, each a letter and a value (see `letters`), an empty line, and the
 * file. Which files are read and written is not the input's to say.
 */
#include "cli.h"
#include "commands.h"
#include "options.h"
#include "replay/page_text.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPTIONS_MAX 16
#define PATH_SIZE   32

static const struct {
    char letter;
    const char *option;
    bool has_value;
} letters[] = {
    {'k', "--key", true},     {'l', "-l", true},        {'t', "--try", true},
    {'s', "--suggest", true}, {'r', "--reorder", true}, {'f', "--format", true},
    {'o', "--output", true},  {'j', "--json", false},   {'m', "-s", true},
};

struct call {
    char *argv[2 * OPTIONS_MAX + 8];
    int argc;
    bool compressed;
    bool twice; /* the file is named two times */
};

/* In main.c, and not asked for here. */
void rbk_cli_print_help(void)
{
    abort();
}

void rbk_cli_print_command_help(const struct cli_command *command)
{
    (void)command;
    abort();
}

/* What the command said. */
struct said {
    char *text;
    size_t len;
};

static void add(struct call *call, const char *word)
{
    call->argv[call->argc] = strdup(word);
    if (call->argv[call->argc++] == NULL)
        abort();
}

/* One option, but for stores that aren't the process' own. */
static void add_option(struct call *call, const char *line)
{
    call->compressed = call->compressed || line[0] == 'z';
    call->twice = call->twice || line[0] == 'd';
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (line[0] != letters[i].letter ||
            (line[0] == 'm' && strncmp(line + 1, "memory:", 7) != 0))
            continue;
        add(call, letters[i].option);
        if (letters[i].has_value)
            add(call, line + 1);
    }
}

/* Takes the options' lines; returns how many bytes they are. */
static size_t take_options(struct call *call, const uint8_t *data, size_t size)
{
    size_t at = 0;

    for (int options = 0; at < size && options < OPTIONS_MAX; options++) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end == NULL ? size - at : (size_t)(end - data) - at;
        char *line = malloc(len + 1);

        if (line == NULL)
            abort();
        memcpy(line, data + at, len);
        line[len] = '\0';
        at += len + (end != NULL);
        if (len > 0)
            add_option(call, line);
        free(line);
        if (len == 0)
            break;
    }
    return at;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static int file_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

/* A file of what gzip makes of the bytes. */
static int compressed_file_of(const uint8_t *data, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)size};
    size_t room = size + size / 8 + 256;
    unsigned char *out = malloc(room);

    if (out == NULL || deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();

    int fd = file_of(out, stream.total_out);

    (void)deflateEnd(&stream);
    free(out);
    return fd;
}

static void add_file(struct call *call, int fd)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    add(call, path);
    if (call->twice)
        add(call, path);
}

/* ---- What is said --------------------------------------------------------------------------- */

/* Lines for a terminal. */
static void check_text(const struct said *said)
{
    for (size_t i = 0; i < said->len; i++) {
        unsigned char byte = (unsigned char)said->text[i];

        if ((byte < 0x20 && byte != '\n') || byte == 0x7f)
            abort();
    }
    if (said->len > 0 && said->text[said->len - 1] != '\n')
        abort();
}

static void check_errors(const struct said *said)
{
    static const char begin[] = "redbucket: ";

    check_text(said);
    for (const char *line = said->text; line < said->text + said->len; line++) {
        if (strncmp(line, begin, sizeof begin - 1) != 0)
            abort();
        line = strchr(line, '\n');
    }
}

static void check_json(const char *text, size_t len)
{
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    if (!json_is_object(json))
        abort();
    json_decref(json);
}

static void check_lines(const struct said *said)
{
    const char *end = said->text + said->len;

    for (const char *line = said->text; line < end; line++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        if (newline == NULL)
            abort();
        check_json(line, (size_t)(newline - line));
        line = newline;
    }
}

/* Written to a descriptor, and not to the stream. */
static void check_page(int fd)
{
    size_t around = rbk_page_before_len + rbk_page_behind_len;
    off_t len = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)len + 1);

    if (text == NULL || (size_t)len < around || pread(fd, text, (size_t)len, 0) != len ||
        memcmp(text, rbk_page_before, rbk_page_before_len) != 0)
        abort();
    check_json(text + rbk_page_before_len, (size_t)len - around);
    for (size_t i = rbk_page_before_len; i < (size_t)len - rbk_page_behind_len; i++) {
        if (text[i] == '\0' || strchr("<>&'\x7f", text[i]) != NULL)
            abort();
    }
    free(text);
}

static void check_output(const struct call *call, const struct said *said)
{
    const char *output = "summary";
    bool json = false;

    for (int i = 1; i < call->argc; i++) {
        json = json || strcmp(call->argv[i], "--json") == 0;
        if (strcmp(call->argv[i - 1], "--output") == 0)
            output = call->argv[i];
    }
    if (strcmp(output, "jsonl") == 0 || json)
        check_lines(said);
    else if (strcmp(output, "html") != 0)
        check_text(said);
}

/* ---- The call ------------------------------------------------------------------------------- */

static bool wants_page(const struct call *call)
{
    for (int i = 1; i < call->argc; i++) {
        if (strcmp(call->argv[i - 1], "--output") == 0 && strcmp(call->argv[i], "html") == 0)
            return true;
    }
    return false;
}

/* Has the command say what it says to these, and the page to a file. */
static int run_quietly(struct call *call, struct said *out, struct said *errors, int page)
{
    char *argv[sizeof call->argv / sizeof call->argv[0]];
    struct cli_context context = {.command = &rbk_cli_replay};
    FILE *real_out = stdout;
    FILE *real_errors = stderr;
    int real_fd = dup(STDOUT_FILENO);

    memcpy(argv, call->argv, sizeof argv); /* getopt puts them into another order */
    stdout = open_memstream(&out->text, &out->len);
    stderr = open_memstream(&errors->text, &errors->len);
    if (stdout == NULL || stderr == NULL || dup2(page, STDOUT_FILENO) < 0)
        abort();
    optind = 0;
    int status = rbk_cli_replay.run(&context, call->argc, argv);

    rbk_cli_context_fini(&context);
    if (fclose(stdout) != 0 || fclose(stderr) != 0 || dup2(real_fd, STDOUT_FILENO) < 0)
        abort();
    stdout = real_out;
    stderr = real_errors;
    (void)close(real_fd);
    return status;
}

static void run(struct call *call)
{
    struct said out = {NULL, 0};
    struct said errors = {NULL, 0};
    int page = file_of(NULL, 0);
    int status = run_quietly(call, &out, &errors, page);

    if (status != CLI_DONE && status != CLI_USAGE && status != CLI_STORE)
        abort();
    if (status != CLI_DONE && errors.len == 0)
        abort();
    check_errors(&errors);
    check_output(call, &out);
    if (wants_page(call) && status == CLI_DONE)
        check_page(page);
    (void)close(page);
    free(out.text);
    free(errors.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct call call = {.argc = 0};
    char path[PATH_SIZE];
    int nothing = file_of(NULL, 0);

    (void)unsetenv("REDBUCKET_STORE");
    add(&call, "replay");
    add(&call, "-c");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", nothing);
    add(&call, path);
    size_t at = take_options(&call, data, size);
    int fd =
        call.compressed ? compressed_file_of(data + at, size - at) : file_of(data + at, size - at);

    if (wants_page(&call)) {
        add(&call, "-o");
        add(&call, "-");
    }
    add_file(&call, fd);
    run(&call);
    for (int i = 0; i < call.argc; i++)
        free(call.argv[i]);
    (void)close(fd);
    (void)close(nothing);
    return 0;
}
