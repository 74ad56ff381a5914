/* SPDX-License-Identifier: MIT */
/*
 * redbucket replay: what these limits would have done to recorded traffic, in the traffic's own
 * time.
 *
 * It never touches a store of anybody's: a replay decides in memory of its own, which grows with
 * the keys that are live, so that trying limits out on real traffic is always safe.
 */
#include "../cli.h"
#include "../commands.h"

#include "arguments.h"
#include "engine.h"
#include "faults.h"
#include "out_file.h"
#include "progress.h"
#include "reader.h"
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Decides each request of an access log, JSON lines, or of what gzip made of one\n"
    "(- is standard input) at the time at which it was made; no store is touched.\n"
    "\n"
    "  --key LIMIT=KEY    what a line counts by under this limit: $remote_addr, or\n"
    "                     $remote_addr/64, $remote_user, $request_method, $uri,\n"
    "                     $status, $http_user_agent and any text; $$ is a dollar\n"
    "  --format FORMAT    auto (the default), combined, common or jsonl, of lines as\n"
    "                     "
    "{\"t\":SECONDS,\"keys\":{\"LIMIT\":\"KEY\"},\"cost\":1}\n"
    "  --reorder SECONDS  put lines in order of time within this window; 300\n"
    "  --output summary   (the default) totals, the keys hit hardest, and when\n"
    "  --output html -o FILE   one page with charts, which needs no network\n"
    "  --output jsonl     the answer to each line, in the order read\n"
    "  --try NAME         begins a set of limits, the -l behind it, to be compared\n"
    "  --suggest SHARE    the smallest limits that leave this share untouched\n"
    "\n"
    "Examples:\n"
    "  redbucket -l ip:2/s,burst=10 replay --key 'ip=$remote_addr' access.log\n"
    "  redbucket replay --suggest 99% --key 'ip=$remote_addr/64' log.1.gz log\n"
    "\n"
    "Exit status: 0 done, 2 wrong options, 3 a file can't be read or written.\n";

/* The lines that can't be read, for whoever doesn't look at the totals. */
static void faults_report(const struct rbk_faults *faults)
{
    const unsigned long long others = (unsigned long long)faults->count - 1;
    char where[4096];
    char more[64] = "";

    if (faults->count == 0)
        return;
    if (others > 0)
        snprintf(more, sizeof(more), "; and %llu more line%s can't be read", others,
                 others == 1 ? "" : "s");
    snprintf(where, sizeof(where), "%s:%llu", rbk_faults_file(faults),
             (unsigned long long)faults->first.line);
    rbk_cli_fail(CLI_DONE, where, "%s%s%s%s%s", faults->reason, faults->text[0] ? ": \"" : "",
                 faults->text, faults->text[0] ? "\"" : "", more);
}

static int fail_out(const char *path, const struct redbucket_error *error)
{
    return rbk_cli_fail(CLI_STORE, strcmp(path, "-") == 0 ? "standard output" : path, "%s",
                        error->message);
}

/* Whether the page can be written where it is wanted: told before a long replay, not behind it. */
static int page_check(const struct rbk_replay_arguments *arguments)
{
    struct redbucket_error error = {0};

    if (arguments->output == RBK_OUTPUT_PAGE &&
        rbk_out_file_check(arguments->out, &error) != REDBUCKET_OK)
        return fail_out(arguments->out, &error);
    return CLI_DONE;
}

/* The page is made in memory, where all that it shows is anyway, and then written at once. */
static int page_write(const char *path, const struct rbk_findings *findings)
{
    struct redbucket_error error = {0};
    char *bytes = NULL;
    size_t len = 0;
    FILE *page = open_memstream(&bytes, &len);
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;
    int exit_status = CLI_DONE;

    if (page)
        status = rbk_findings_print_page(findings, page);
    if (!page || fclose(page) != 0)
        status = REDBUCKET_ERROR_MEMORY;
    if (status != REDBUCKET_OK)
        exit_status = rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    else if (rbk_out_file_write(path, (struct rbk_span){bytes, len}, &error) != REDBUCKET_OK)
        exit_status = fail_out(path, &error);
    free(bytes);
    return exit_status;
}

static int summary_write(bool json, const struct rbk_findings *findings)
{
    const enum redbucket_status status = json ? rbk_findings_print_json(findings, stdout)
                                              : rbk_findings_print_text(findings, stdout);

    return status == REDBUCKET_OK ? CLI_DONE : rbk_cli_fail(CLI_STORE, "replay", "out of memory");
}

/* What a summary would have told of the answers. */
static void late_report(const struct rbk_traffic *traffic)
{
    const unsigned long long late = (unsigned long long)traffic->late;

    if (late > 0)
        rbk_cli_fail(CLI_DONE, "replay",
                     "%llu line%s came later than --reorder allows, decided where %s", late,
                     late == 1 ? "" : "s", late == 1 ? "it stood" : "they stood");
}

/* Looks for limits, and tells which it found. */
static int suggest(const struct cli_context *context, const struct rbk_replay_arguments *arguments,
                   const struct rbk_findings *findings, struct rbk_spool *spool)
{
    struct rbk_suggestions suggestions;
    struct rbk_progress progress;
    enum redbucket_status status;
    int exit_status = CLI_DONE;

    rbk_progress_begin(&progress, 0, false);
    status = rbk_suggest(spool, findings->summaries[0], arguments->share, &progress, &suggestions);
    rbk_progress_clear(&progress);

    if (status != REDBUCKET_OK)
        exit_status = rbk_cli_fail(CLI_STORE, "--suggest", "%s", redbucket_status_text(status));
    else if (context->json)
        rbk_suggestions_print_json(&suggestions, findings, arguments->given, stdout);
    else
        rbk_suggestions_print_text(&suggestions, findings, arguments->given, stdout);
    rbk_suggestions_fini(&suggestions);
    return exit_status;
}

static int show(const struct cli_context *context, const struct rbk_replay_arguments *arguments,
                const struct rbk_findings *findings, struct rbk_spool *spool)
{
    int exit_status = CLI_DONE;

    if (spool)
        exit_status = suggest(context, arguments, findings, spool);
    else if (arguments->output == RBK_OUTPUT_ANSWERS)
        late_report(findings->traffic);
    else if (arguments->output == RBK_OUTPUT_PAGE)
        exit_status = page_write(arguments->out, findings);
    else
        exit_status = summary_write(context->json, findings);
    faults_report(findings->faults);
    return exit_status;
}

/* Reads everything and shows what came of it. */
static int replay_through(const struct cli_context *context,
                          const struct rbk_replay_arguments *arguments, struct rbk_engine *engine,
                          struct rbk_faults *faults, struct rbk_spool *spool)
{
    struct rbk_findings findings = {
        .traffic = rbk_engine_traffic(engine),
        .faults = faults,
        .files_len = arguments->files_len,
        .summaries = rbk_engine_summaries(engine),
        .len = arguments->sets.len,
        .names = arguments->sets.names,
        .names_len = arguments->sets.names_len,
        .keys = arguments->key_texts,
        .asked = rbk_engine_asked(engine),
        .compared = arguments->compared,
    };
    int exit_status = rbk_replay_read(arguments, engine, faults);
    enum redbucket_status status;
    int shown;

    if (exit_status == CLI_USAGE)
        return exit_status;
    status = rbk_engine_finish(engine);
    if (status != REDBUCKET_OK)
        exit_status = rbk_engine_fail(engine, status);
    shown = show(context, arguments, &findings, spool);
    return exit_status == CLI_DONE ? shown : exit_status;
}

static int replay(const struct cli_context *context, const struct rbk_replay_arguments *arguments)
{
    struct rbk_engine_setup setup = {
        .sets = &arguments->sets,
        .with_timelines = arguments->output == RBK_OUTPUT_PAGE,
        .reorder_s = arguments->reorder_s,
        .held = RBK_ENGINE_HELD,
        .answers = arguments->output == RBK_OUTPUT_ANSWERS ? stdout : NULL,
    };
    struct rbk_faults faults = {.files = arguments->files};
    struct redbucket_error error = {0};
    struct rbk_engine *engine;
    int exit_status;

    if (arguments->share > 0) {
        setup.spool = rbk_spool_create(arguments->sets.names_len, RBK_SPOOL_BYTES);
        if (!setup.spool)
            return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    }
    if (rbk_engine_create(&setup, &faults, &engine, &error) != REDBUCKET_OK) {
        rbk_spool_destroy(setup.spool);
        return rbk_cli_fail_error("replay", &error);
    }
    exit_status = replay_through(context, arguments, engine, &faults, setup.spool);
    rbk_engine_destroy(engine);
    rbk_spool_destroy(setup.spool);
    return exit_status;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    struct rbk_replay_arguments arguments;
    bool stop;
    int exit_status = rbk_replay_arguments_parse(context, argc, argv, &arguments, &stop);

    if (!stop)
        exit_status = page_check(&arguments);
    if (!stop && exit_status == CLI_DONE)
        exit_status = replay(context, &arguments);
    rbk_replay_arguments_fini(&arguments);
    return exit_status;
}

const struct cli_command rbk_cli_replay = {
    .name = "replay",
    .arguments = "[--key LIMIT=KEY]... [OPTION]... FILE...",
    .summary = "what these limits would have done to recorded traffic",
    .help = help,
    .letters = "o:",
    .options = rbk_replay_options,
    .run = run,
};
