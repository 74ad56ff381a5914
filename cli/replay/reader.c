/* SPDX-License-Identifier: MIT */
/*
 * From files to steps.
 *
 * --format auto: the first line tells whether the input is JSON lines or an access log. In an
 * access log each file is in common format until a line of it is combined; from there on a line
 * that is only common is one that was cut off.
 */
#include "reader.h"

#include "input.h"
#include "key_template.h"
#include "lines.h"
#include "log_line.h"
#include "progress.h"
#include "step_json.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Lines between two looks at the clock and at the output. */
enum { TICK_LINES = 4096 };

/*
 *   format     what the input is taken for; AUTO also for a log of which that says enough
 *   begun      its first line was seen
 *   combined   a line of this file was in combined format
 *   file       the index of the file being read
 *   done       bytes of the files before it
 *   lines      holds the read buffer; one for all files
 *   buffers    one for each limit, for its key
 *   exit_status what became of the files so far
 */
struct reader {
    const struct rbk_replay_arguments *arguments;
    struct rbk_engine *engine;
    struct rbk_faults *faults;
    enum rbk_replay_format format;
    bool begun;
    bool combined;
    uint32_t file;
    uint64_t done;
    struct rbk_progress progress;
    struct rbk_lines *lines;
    struct rbk_key_buffer *buffers;
    struct rbk_step_keys *keys;
    int exit_status;
};

static struct rbk_place here(const struct reader *reader)
{
    return (struct rbk_place){reader->file, reader->lines->number};
}

static bool answers(const struct reader *reader)
{
    return reader->arguments->output == RBK_OUTPUT_ANSWERS;
}

static void fault(struct reader *reader, const char *reason, struct rbk_span line)
{
    rbk_faults_add(reader->faults, here(reader), reason, line);
}

/* Whether this begins as a JSON object does and no line of a log. */
static bool looks_like_json(struct rbk_span line)
{
    size_t at = 0;

    while (at < line.len && (line.bytes[at] == ' ' || line.bytes[at] == '\t'))
        at++;
    if (at == line.len || line.bytes[at++] != '{')
        return false;
    while (at < line.len && (line.bytes[at] == ' ' || line.bytes[at] == '\t'))
        at++;
    return at < line.len && (line.bytes[at] == '"' || line.bytes[at] == '}');
}

/* The line's key under each limit. False when one is too long; a limit whose field is missing is
 * left out. */
static bool keys_make(struct reader *reader, const struct rbk_log_line *parsed)
{
    const struct rbk_limit_sets *sets = &reader->arguments->sets;
    struct rbk_step_keys *keys = reader->keys;

    keys->len = 0;
    for (size_t i = 0; i < sets->names_len; i++) {
        switch (rbk_key_template_expand(reader->arguments->templates[i], parsed,
                                        &reader->buffers[i], &keys->keys[keys->len])) {
        case RBK_KEY_MADE:
            keys->limits[keys->len++] = sets->names[i];
            break;
        case RBK_KEY_SKIPPED:
            break;
        case RBK_KEY_TOO_LONG:
            return false;
        }
    }
    return true;
}

/* Whether a line without referrer and agent is what the format, or this file so far, is made of. */
static bool may_be_common(const struct reader *reader)
{
    if (reader->format == RBK_FORMAT_COMMON)
        return true;
    return reader->format == RBK_FORMAT_AUTO && !reader->combined;
}

static enum redbucket_status log_line_take(struct reader *reader, struct rbk_span line)
{
    struct redbucket_error error = {0};
    struct rbk_log_line parsed;
    struct rbk_step *step;

    if (rbk_log_parse(line, &parsed, &error) != REDBUCKET_OK) {
        fault(reader, error.message, line);
        return REDBUCKET_OK;
    }
    if (!parsed.combined && !may_be_common(reader)) {
        fault(reader, "expected a quoted referrer and a quoted user agent at the end", line);
        return REDBUCKET_OK;
    }
    reader->combined = reader->combined || parsed.combined;
    if (!keys_make(reader, &parsed)) {
        fault(reader, "its key is longer than 64 KiB", line);
        return REDBUCKET_OK;
    }
    step = rbk_step_create(rbk_engine_pool(reader->engine), reader->keys, answers(reader));
    if (!step)
        return REDBUCKET_ERROR_MEMORY;
    step->time_s = (double)parsed.time_s;
    step->place = here(reader);
    return rbk_engine_put(reader->engine, step, false);
}

static enum redbucket_status json_line_take(struct reader *reader, struct rbk_span line)
{
    const struct rbk_step_setting setting = {
        .names = reader->arguments->sets.names,
        .names_len = reader->arguments->sets.names_len,
        .with_states = answers(reader),
        .pool = rbk_engine_pool(reader->engine),
    };
    struct redbucket_error error = {0};
    struct rbk_step *step;
    const enum redbucket_status status = rbk_step_parse(line, &setting, &step, &error);

    if (status == REDBUCKET_ERROR_MEMORY)
        return status;
    if (status != REDBUCKET_OK) {
        fault(reader, error.message, line);
        return REDBUCKET_OK;
    }
    step->place = here(reader);
    return rbk_engine_put(reader->engine, step, true);
}

/* For --format auto, the first line tells what all the input is. */
static int input_begin(struct reader *reader, struct rbk_span line)
{
    reader->begun = true;
    if (reader->format != RBK_FORMAT_AUTO)
        return CLI_DONE;
    if (!looks_like_json(line))
        return rbk_replay_check_format(reader->arguments, RBK_FORMAT_COMBINED);
    reader->format = RBK_FORMAT_JSONL;
    return rbk_replay_check_format(reader->arguments, RBK_FORMAT_JSONL);
}

static int line_take(struct reader *reader, enum rbk_line_kind kind, struct rbk_span line)
{
    enum redbucket_status status = REDBUCKET_OK;
    int exit_status = CLI_DONE;

    rbk_engine_traffic(reader->engine)->lines++;
    if (!reader->begun)
        exit_status = input_begin(reader, line);
    if (exit_status != CLI_DONE)
        return exit_status;
    if (kind == RBK_LINE_TOO_LONG)
        fault(reader, "longer than 64 KiB", line);
    else if (kind == RBK_LINE_BROKEN)
        fault(reader, "cut off, for the rest of the file can't be read", line);
    else if (line.len == 0)
        fault(reader, "an empty line", line);
    else if (reader->format == RBK_FORMAT_JSONL)
        status = json_line_take(reader, line);
    else
        status = log_line_take(reader, line);
    if (status == REDBUCKET_OK)
        return CLI_DONE;
    rbk_progress_clear(&reader->progress);
    return rbk_engine_fail(reader->engine, status);
}

/* Says that a file can't be read, or not to its end; the replay goes on with the next one. */
static void file_fail(struct reader *reader, const char *path, const struct redbucket_error *error)
{
    rbk_progress_clear(&reader->progress);
    reader->exit_status = rbk_cli_fail(CLI_STORE, rbk_file_shown(path), "%s", error->message);
}

/* False when it is no use to go on: nobody takes what is written. */
static bool tick(struct reader *reader, const struct rbk_input *input)
{
    if (reader->lines->number % TICK_LINES != 0)
        return true;
    rbk_progress_show(&reader->progress, rbk_engine_traffic(reader->engine)->lines,
                      reader->done + rbk_input_consumed(input));
    return !ferror(stdout);
}

/* Returns what stops the replay, else CLI_DONE. */
static int file_read(struct reader *reader, const char *path)
{
    struct redbucket_error error = {0};
    struct rbk_input *input;
    enum rbk_line_kind kind;
    struct rbk_span line;
    int exit_status = CLI_DONE;

    if (rbk_input_open(path, &input, &error) != REDBUCKET_OK) {
        file_fail(reader, path, &error);
        return CLI_DONE;
    }
    reader->combined = false;
    rbk_lines_init(reader->lines, input);
    while (exit_status == CLI_DONE && tick(reader, input) &&
           (kind = rbk_lines_next(reader->lines, &line)) != RBK_LINE_END)
        exit_status = line_take(reader, kind, line);
    if (exit_status == CLI_DONE && reader->lines->failed)
        file_fail(reader, path, &reader->lines->error);
    reader->done += rbk_input_consumed(input);
    rbk_input_close(input);
    return exit_status;
}

/* The size of all files together, or 0 when one of them has none. */
static uint64_t bytes_of(const struct rbk_replay_arguments *arguments)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < arguments->files_len; i++) {
        struct stat about;

        if (stat(arguments->files[i], &about) != 0 || !S_ISREG(about.st_mode))
            return 0;
        bytes += (uint64_t)about.st_size;
    }
    return bytes;
}

static void reader_fini(struct reader *reader)
{
    free(reader->lines);
    free(reader->buffers);
    free(reader->keys);
}

static bool reader_init(struct reader *reader)
{
    reader->lines = malloc(sizeof(*reader->lines));
    reader->buffers = calloc(reader->arguments->sets.names_len, sizeof(*reader->buffers));
    reader->keys = malloc(sizeof(*reader->keys));
    if (!reader->lines || !reader->buffers || !reader->keys)
        return false;
    rbk_progress_begin(&reader->progress, bytes_of(reader->arguments), answers(reader));
    return true;
}

int rbk_replay_read(const struct rbk_replay_arguments *arguments, struct rbk_engine *engine,
                    struct rbk_faults *faults)
{
    struct reader reader = {
        .arguments = arguments,
        .engine = engine,
        .faults = faults,
        .format = arguments->format,
    };
    int exit_status = CLI_DONE;

    if (!reader_init(&reader)) {
        reader_fini(&reader);
        return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    }
    for (size_t i = 0; exit_status == CLI_DONE && i < arguments->files_len; i++) {
        reader.file = (uint32_t)i;
        exit_status = file_read(&reader, arguments->files[i]);
    }
    rbk_progress_clear(&reader.progress);
    reader_fini(&reader);
    return exit_status == CLI_DONE ? reader.exit_status : exit_status;
}
