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
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Reads access logs, or steps as JSON lines, and decides each request at the time\n"
    "at which it was made, in memory of its own: no store is touched, whatever\n"
    "$REDBUCKET_STORE or the configuration file say.\n"
    "\n"
    "    redbucket -l ip:2/s,burst=10 replay --key 'ip=$remote_addr' access.log\n"
    "    redbucket -l ip:2 replay --key 'ip=$remote_addr/64' log.2.gz log.1 log\n"
    "\n"
    "FILE is a log, what gzip made of one, or - for standard input. Give several in\n"
    "order of time, the oldest first.\n"
    "\n"
    "  --key LIMIT=KEY    what a log's line counts by under this limit; each limit\n"
    "                     needs one. KEY is a text with fields in it:\n"
    "                       $remote_addr      the client's address\n"
    "                       $remote_addr/64   the same, but only so many bits of an\n"
    "                                         IPv6 address, for one host has many\n"
    "                       $remote_user      the name it logged in with\n"
    "                       $request_method   GET, POST, ...\n"
    "                       $uri              the path, without ?query\n"
    "                       $status           200, 404, ...\n"
    "                       $http_user_agent  combined format only\n"
    "                       $$                a dollar\n"
    "                     Other text is kept: 'page=$request_method $uri'. A line in\n"
    "                     which a field is - or empty isn't counted under the limit.\n"
    "                     Fields are taken as the log has them, escapes and all.\n"
    "  --format FORMAT    auto (the default), combined, common or jsonl\n"
    "  --reorder SECONDS  servers log a request when it ends, so lines come out of\n"
    "                     order: they are put in order of time within this window\n"
    "                     (300 when not given) and at most a million lines. A line\n"
    "                     later than that is decided where it stands, and counted.\n"
    "  --try NAME         begins a set of limits: the -l behind it, beside or in the\n"
    "                     place of those before the first --try, which are a set\n"
    "                     as well. Several sets are compared on the same traffic:\n"
    "                       --try tight -l ip:1/s --try loose -l ip:5/s,burst=20\n"
    "  --output OUTPUT    summary (the default): totals, the keys hit hardest under\n"
    "                     each limit, and when. With --json as one object.\n"
    "                     jsonl: the answer to each line, in the order read\n"
    "\n"
    "A line that can't be read, or is longer than 64 KiB, is counted and passed over;\n"
    "the first one is shown.\n"
    "\n"
    "JSON lines (--format jsonl) are applied in the order given, each at its own\n"
    "time; \"op\" is request (when left out), peek, refund, charge or reset, \"cost\" is\n"
    "1 when left out, other members are passed over:\n"
    "\n"
    "    {\"t\":1431857103.5,\"op\":\"request\",\"keys\":{\"ip\":\"192.0.2.7\"},\"cost\":1}\n"
    "\n"
    "--output jsonl gives for each step \"accepted\", \"delay\" (when accepted),\n"
    "\"remaining\", \"retry_after\" (when rejected; null is never), and \"state\": limit ->\n"
    "[timestamp, value] or null after the step. For refund, charge and reset, only\n"
    "\"state\"; for a line that can't be read, nothing.\n"
    "\n"
    "--json gives the summary as \"lines\", \"accepted\", \"delayed\" (of the accepted),\n"
    "\"rejected\", \"others\" (peek, refund, charge, reset), \"late\", \"unreadable\",\n"
    "\"first_unreadable\" (\"file\", \"line\", \"reason\", \"text\"; absent without one),\n"
    "\"first\" and \"last\" (times), \"limits\": limit -> \"requests\", \"delayed\",\n"
    "\"rejected\", \"keys\" (delayed or rejected; at least so many when \"exact\" is\n"
    "false), \"exact\", \"hardest\": [{\"key\", \"rejected\", \"delayed\", \"missed\" (at most so\n"
    "many more)}], and \"when\": \"width\" (seconds), \"rows\": [{\"t\", \"accepted\",\n"
    "\"delayed\", \"rejected\"}].\n"
    "\n"
    "Exit status: 0 done, whatever the limits did; 2 wrong options; 3 a file can't be\n"
    "read, after what could be read was shown.\n";

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

static int show(const struct cli_context *context, const struct rbk_replay_arguments *arguments,
                const struct rbk_findings *findings)
{
    int exit_status = CLI_DONE;

    if (arguments->output == RBK_OUTPUT_ANSWERS)
        late_report(findings->traffic);
    else if (arguments->output == RBK_OUTPUT_PAGE)
        exit_status = page_write(arguments->out, findings);
    else
        exit_status = summary_write(context->json, findings);
    faults_report(findings->faults);
    return exit_status;
}

static int replay(const struct cli_context *context, const struct rbk_replay_arguments *arguments)
{
    const struct rbk_engine_setup setup = {
        .sets = &arguments->sets,
        .with_timelines = arguments->output == RBK_OUTPUT_PAGE,
        .reorder_s = arguments->reorder_s,
        .held = RBK_ENGINE_HELD,
        .answers = arguments->output == RBK_OUTPUT_ANSWERS ? stdout : NULL,
    };
    struct rbk_faults faults = {.files = arguments->files};
    struct rbk_findings findings = {
        .faults = &faults,
        .files_len = arguments->files_len,
        .len = arguments->sets.len,
        .names = arguments->sets.names,
        .names_len = arguments->sets.names_len,
        .keys = arguments->key_texts,
        .compared = arguments->compared,
    };
    struct redbucket_error error = {0};
    struct rbk_engine *engine;
    int exit_status;
    int shown;

    if (rbk_engine_create(&setup, &faults, &engine, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error("replay", &error);
    exit_status = rbk_replay_read(arguments, engine, &faults);
    if (exit_status != CLI_USAGE) {
        if (rbk_engine_finish(engine) != REDBUCKET_OK)
            exit_status = rbk_cli_fail(CLI_STORE, "replay", "out of memory");
        findings.traffic = rbk_engine_traffic(engine);
        findings.summaries = rbk_engine_summaries(engine);
        findings.asked = rbk_engine_asked(engine);
        shown = show(context, arguments, &findings);
        exit_status = exit_status == CLI_DONE ? shown : exit_status;
    }
    rbk_engine_destroy(engine);
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
    .arguments = "[--key LIMIT=KEY]... FILE...",
    .summary = "what these limits would have done to recorded traffic",
    .help = help,
    .letters = "o:",
    .options = rbk_replay_options,
    .run = run,
};
