/* SPDX-License-Identifier: MIT */
/*
 * `redbucket top`: who asks most, who is kept out, how full the store is, as it changes.
 *
 * A frame is a pass through the store, compared with the pass before. On a terminal it is drawn
 * again and again, whatever becomes of the store meanwhile; elsewhere it is printed once.
 */
#include "ask.h"
#include "commands.h"
#include "terminal.h"
#include "top_frame.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INTERVAL_DEFAULT 2.0
#define INTERVAL_MAX     3600.0
#define ROWS_DEFAULT     20
#define STATUS_SIZE      320

/* While a pass takes long, the page says so as often as this. */
#define PATIENCE 1.0

enum {
    TOP_ONCE = CLI_OPTION_OWN,
    TOP_FRAMES,
    TOP_INTERVAL,
    TOP_ROWS,
    TOP_LEVEL,
    TOP_ZONE,
    TOP_PACE,
};

struct top {
    struct cli_walk_plan plan;
    bool paced;
    double interval;
    uint64_t frames; /* 0: without end */
    uint64_t rows;
    bool by_level;
    bool live;  /* on a terminal */
    bool ended; /* by whoever watches */
    bool begun; /* the store has answered, and the terminal is ours */
    struct cli_top *passes;
    struct cli_top_count count;
    double drawn;
    char status[STATUS_SIZE];
};

static double monotonic_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- A frame -------------------------------------------------------------------------------- */

static struct cli_top_frame frame_of(const struct top *top)
{
    return (struct cli_top_frame){
        .context = top->plan.context,
        .view = rbk_top_view(top->passes),
        .table = &top->count.table,
        .zone = top->plan.zone,
        .status = top->status[0] != '\0' ? top->status : NULL,
        .seconds = top->count.seconds,
        .columns = 400,
        .rows = SIZE_MAX,
        .by_level = top->by_level,
    };
}

static void draw(struct top *top)
{
    struct cli_top_frame frame = frame_of(top);
    char *page = NULL;
    size_t size;
    FILE *out = open_memstream(&page, &size);

    if (out == NULL)
        return;
    rbk_terminal_size(&frame.columns, &frame.rows);
    rbk_top_text(&frame, out);
    if (fclose(out) == 0)
        rbk_terminal_draw(page);
    free(page);
    top->drawn = monotonic_seconds();
}

static void print(const struct top *top)
{
    const struct cli_top_frame frame = frame_of(top);

    if (top->plan.context->json)
        rbk_top_json(&frame);
    else
        rbk_top_text(&frame, stdout);
    fflush(stdout);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

static void take_key(struct top *top, char key)
{
    if (key == 'q' || key == 'Q')
        top->ended = true;
    else if (key == 'l' || key == 't')
        top->by_level = key == 'l';
    rbk_top_order(top->passes, top->by_level);
}

/* Sleeps, and minds the terminal meanwhile. */
static void rest_until(struct top *top, double end)
{
    char key = '\0';

    if (!top->live || !top->begun) {
        rbk_sleep(end - monotonic_seconds());
        return;
    }
    do {
        switch (rbk_terminal_wait(end - monotonic_seconds(), &key)) {
        case CLI_TERMINAL_KEY:
            take_key(top, key);
            draw(top);
            break;
        case CLI_TERMINAL_REDRAW:
            draw(top);
            break;
        case CLI_TERMINAL_END:
            top->ended = true;
            break;
        case CLI_TERMINAL_TIME:
            break;
        }
    } while (!top->ended && monotonic_seconds() < end);
}

/* ---- A pass --------------------------------------------------------------------------------- */

/* On a page the trouble stays until it is over; elsewhere it is an error like any other. */
static int take_trouble(struct top *top, enum redbucket_status status)
{
    struct redbucket_error failure;

    rbk_top_gap(top->passes);
    if (!top->live || !top->begun)
        return rbk_cli_fail_store("store", top->plan.store, status, redbucket_status_text(status));
    redbucket_store_failure(top->plan.store, &failure);
    snprintf(top->status, sizeof(top->status), "%s%s%s", redbucket_status_text(status),
             failure.status == status ? ": " : "", failure.status == status ? failure.message : "");
    for (char *at = top->status; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e)
            *at = '?';
    return CLI_DONE;
}

static void tell_progress(struct top *top)
{
    if (!top->live || !top->begun || monotonic_seconds() - top->drawn < PATIENCE)
        return;
    snprintf(top->status, sizeof(top->status), "on the way: %llu buckets so far",
             (unsigned long long)rbk_top_met(top->passes));
    draw(top);
    top->status[0] = '\0';
}

/* What goes wrong before stays on the screen. */
static void begin(struct top *top)
{
    if (top->begun)
        return;
    top->begun = true;
    top->drawn = monotonic_seconds();
    if (top->live)
        rbk_terminal_open();
}

/* Steps until the walk or the watching is over. *shown: it has met what is worth a look. */
static int walk_through(struct top *top, struct redbucket_walk *walk, bool *shown)
{
    const double pause = top->plan.pace > 0 ? 1.0 / (double)top->plan.pace : 0.0;
    int result = CLI_DONE;
    bool done = false;

    *shown = false;
    while (!done && !top->ended) {
        const enum redbucket_status status =
            redbucket_walk_step(walk, rbk_top_visit, top->passes, &done);

        if (status != REDBUCKET_OK) {
            const int trouble = take_trouble(top, status);

            result = trouble != CLI_DONE ? trouble : result;
        } else {
            *shown = true;
            begin(top);
        }
        tell_progress(top);
        if (!done && (pause > 0.0 || top->live))
            rest_until(top, monotonic_seconds() + pause);
    }
    *shown = *shown && done;
    return result;
}

static int pass(struct top *top)
{
    const struct redbucket_walk_options options = {
        .size = sizeof(options), .limiter = top->plan.limiter, .zone = top->plan.zone};
    struct redbucket_walk *walk;
    enum redbucket_status status = redbucket_walk_create(top->plan.store, &options, &walk);
    bool shown;
    int result;

    if (status != REDBUCKET_OK)
        return rbk_cli_fail(rbk_cli_exit_of(status), "top", "%s", redbucket_status_text(status));
    top->status[0] = '\0';
    rbk_top_begin(top->passes);
    result = walk_through(top, walk, &shown);
    redbucket_walk_destroy(walk);
    if (shown)
        rbk_top_end(top->passes);
    return result;
}

/* ---- The command ---------------------------------------------------------------------------- */

/* Printed frames begin with the second pass: the first one has nothing to be compared with. */
static int watch(struct top *top)
{
    int result = CLI_DONE;

    for (uint64_t passes = 0, frames = 0; result == CLI_DONE || top->begun; passes++) {
        const int went = pass(top);
        const double now = monotonic_seconds();

        result = went != CLI_DONE ? went : result;
        if (top->ended || !top->begun)
            break;
        rbk_top_count(&top->count, top->plan.store, now);
        if (top->live)
            draw(top);
        else if (passes > 0)
            print(top);
        frames += top->live || passes > 0;
        if (top->frames > 0 && frames >= top->frames)
            break;
        rest_until(top, now + top->interval);
        if (top->ended)
            break;
    }
    return result;
}

static int show(struct top *top)
{
    int result;

    top->passes = rbk_top_create(top->plan.context, (size_t)top->rows);
    if (top->passes == NULL)
        return rbk_cli_fail(CLI_STORE, "top", "out of memory");
    rbk_top_order(top->passes, top->by_level);
    result = watch(top);
    if (top->live && top->begun)
        rbk_terminal_close();
    rbk_top_destroy(top->passes);
    return result;
}

static int read_interval(struct top *top)
{
    const int status = rbk_cli_duration_option("--interval", optarg, &top->interval);

    if (status == CLI_DONE && !(top->interval >= 0.1 && top->interval <= INTERVAL_MAX))
        return rbk_cli_fail(CLI_USAGE, "--interval", "\"%s\": expected from 100ms to an hour",
                            optarg);
    return status;
}

static int read_option(int code, struct top *top)
{
    static const uint64_t frames_range[] = {1, 1000000};
    static const uint64_t rows_range[] = {1, CLI_TOP_KEYS};
    static const uint64_t pace_range[] = {0, 1000000};

    switch (code) {
    case TOP_ONCE:
        top->frames = 1;
        top->live = false;
        return CLI_DONE;
    case TOP_FRAMES:
        return rbk_cli_count_option("--frames", optarg, frames_range, &top->frames);
    case TOP_INTERVAL:
        return read_interval(top);
    case TOP_ROWS:
        return rbk_cli_count_option("--rows", optarg, rows_range, &top->rows);
    case TOP_LEVEL:
        top->by_level = true;
        return CLI_DONE;
    case TOP_ZONE:
        top->plan.zone = optarg;
        return CLI_DONE;
    default:
        top->paced = true;
        return rbk_cli_count_option("--pace", optarg, pace_range, &top->plan.pace);
    }
}

static int configure(struct cli_context *context, int argc, char **argv, struct top *top)
{
    int result = CLI_DONE;
    int code;

    while (result == CLI_DONE && (code = rbk_cli_option(context, argc, argv)) >= CLI_OPTION_OWN)
        result = read_option(code, top);
    if (result != CLI_DONE)
        return result;
    if (code == CLI_OPTION_STOP)
        return CLI_OPTION_STOP;
    if (optind < argc)
        return rbk_cli_fail(CLI_USAGE, "top", "\"%.60s\": expected no argument", argv[optind]);
    context->only_look = true;
    result = rbk_walk_check_zone(top->plan.zone);
    return result == CLI_DONE ? rbk_cli_configure(context) : result;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    struct top top = {
        .plan = {.context = context},
        .interval = INTERVAL_DEFAULT,
        .live = rbk_terminal_here(),
    };
    int result = configure(context, argc, argv, &top);

    if (result == CLI_OPTION_STOP)
        return context->exit_status;
    if (result == CLI_DONE)
        result = rbk_cli_open(context, &top.plan.store, &top.plan.limiter);
    if (result != CLI_DONE)
        return result;
    top.live = top.live && !context->json;
    if (top.rows == 0)
        top.rows = top.live ? CLI_TOP_KEYS : ROWS_DEFAULT;
    if (top.frames == 0 && !top.live)
        top.frames = 1;
    if (!top.paced)
        top.plan.pace = rbk_walk_pace(context);
    result = show(&top);
    rbk_cli_close(top.plan.store, top.plan.limiter);
    rbk_terminal_die();
    return result;
}

static const struct option options[] = {
    {"once", no_argument, NULL, TOP_ONCE},
    {"frames", required_argument, NULL, TOP_FRAMES},
    {"interval", required_argument, NULL, TOP_INTERVAL},
    {"rows", required_argument, NULL, TOP_ROWS},
    {"level", no_argument, NULL, TOP_LEVEL},
    {"zone", required_argument, NULL, TOP_ZONE},
    {"pace", required_argument, NULL, TOP_PACE},
    {NULL, 0, NULL, 0},
};

const struct cli_command rbk_cli_top_command = {
    .name = "top",
    .arguments = "[OPTIONS]",
    .summary = "watch the hottest keys of a store, and how full it is",
    .help = "Goes through the store again and again and shows what has changed: decisions a\n"
            "second, zones, and the keys that take most. On a terminal q ends it, l sorts by\n"
            "level, t by what is taken. Elsewhere, and as JSON, one frame is printed.\n"
            "\n"
            "  --once        print one frame, on a terminal, too\n"
            "  --frames N    end after so many frames\n"
            "  --interval T  between two passes; 2 s when not given\n"
            "  --rows N      so many keys, at most 256; 20 where frames are printed\n"
            "  --level       the fullest keys first\n"
            "  --zone ZONE   only buckets of this zone\n"
            "  --pace N      at most so many steps a second, of some 100 keys each; 0: any\n"
            "\n"
            "taken/s is at least what a key was granted; \"!\" marks keys that are kept out.\n"
            "A table counts what its limits accept and reject, by zone. A server counts\n"
            "nothing and knows no rates: who is kept out is told by the limits here.\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -s redis://localhost -l ip:5/s,burst=10 top\n",
    .options = options,
    .run = run,
};
