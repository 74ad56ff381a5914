/* SPDX-License-Identifier: MIT */
/*
 * `redbucket check`: shows what is in force, and whether the store is there.
 *
 * The configuration is printed before the store is asked, so that it is seen when the store is not
 * there; as JSON it is one object either way.
 */
#include "commands.h"
#include "describe.h"
#include "json.h"
#include "metrics.h"
#include "slots.h"

#include <inttypes.h>

/* Of every cluster. */
#define SLOTS 16384u

enum {
    CHECK_METRICS = CLI_OPTION_OWN,
};

/* The numbers of a store, in the order in which they are shown. */
static const struct number {
    const char *name;
    size_t offset;
} numbers[] = {
    {"accepted", offsetof(struct redbucket_statistics, accepted)},
    {"delayed", offsetof(struct redbucket_statistics, delayed)},
    {"rejected", offsetof(struct redbucket_statistics, rejected)},
    {"evicted", offsetof(struct redbucket_statistics, evicted)},
    {"full", offsetof(struct redbucket_statistics, full)},
    {"recovered", offsetof(struct redbucket_statistics, recovered)},
    {"buckets", offsetof(struct redbucket_statistics, buckets)},
    {"capacity", offsetof(struct redbucket_statistics, capacity)},
    {"bytes", offsetof(struct redbucket_statistics, bytes)},
    {"failed", offsetof(struct redbucket_statistics, failed)},
    {"degraded", offsetof(struct redbucket_statistics, degraded)},
    {"denied", offsetof(struct redbucket_statistics, denied)},
    {"leased", offsetof(struct redbucket_statistics, leased)},
};

#define NUMBERS_LEN (sizeof(numbers) / sizeof(numbers[0]))

static uint64_t number_of(const struct redbucket_statistics *statistics, size_t index)
{
    return *(const uint64_t *)(const void *)((const char *)statistics + numbers[index].offset);
}

static void print_text(const struct cli_context *context)
{
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    char words[CLI_DESCRIPTION_SIZE];
    char url[CLI_URL_SIZE];

    printf("configuration: %s\n", context->config_path != NULL ? context->config_path : "none");
    printf("store: %s (%s)\n", rbk_cli_mask_url(context->store_url, url), context->store_origin);
    for (size_t i = 0; i < context->limits_len; i++) {
        redbucket_limit_format(context->limits[i], text);
        rbk_describe(&context->limits[i]->limit, words);
        printf("limit: %s\n       %s\n", text, words);
    }
    if (context->limits_len == 0)
        puts("limit: none");
}

/* What was learnt of the store. */
struct report {
    struct cli_slots *slots; /* or NULL */
    bool available;
    struct redbucket_statistics statistics;
    struct redbucket_health health;
};

static void print_master_text(const struct redbucket_health *health)
{
    printf("master: %s of service %s, says sentinel %s", health->master, health->service,
           health->sentinel);
    if (health->replicas >= 0)
        printf("; %d replica%s", health->replicas, health->replicas == 1 ? "" : "s");
    putchar('\n');
}

static void print_cluster_text(const struct redbucket_health *health)
{
    printf("cluster: %zu master%s", health->masters, health->masters == 1 ? "" : "s");
    if (health->silent > 0)
        printf(" (%zu can't be used)", health->silent);
    printf(", %d replica%s, %u of %u slots served\n", health->replicas,
           health->replicas == 1 ? "" : "s", health->slots, SLOTS);
}

static void print_server_text(const struct redbucket_health *health)
{
    char number[REDBUCKET_NUMBER_SIZE];

    printf("server: %s, decides by %s, answers in ", health->server, health->method);
    redbucket_number_format((double)(uint64_t)(health->round_trip * 1e6) / 1e3, number);
    printf("%s ms\n", number);
    if (health->service[0] != '\0')
        print_master_text(health);
    if (health->masters > 0)
        print_cluster_text(health);
    for (size_t i = 0; i < health->warnings_len; i++)
        printf("warning: %s\n", health->warnings[i]);
}

/* A store with a server behind it knows nothing of its table's numbers, and the other way round. */
static bool shown(const struct report *report, size_t index)
{
    bool of_table = numbers[index].offset >= offsetof(struct redbucket_statistics, evicted) &&
                    numbers[index].offset <= offsetof(struct redbucket_statistics, bytes);

    return of_table == (report->health.server[0] == '\0') ||
           numbers[index].offset < offsetof(struct redbucket_statistics, evicted);
}

static void print_report_text(const struct report *report)
{
    puts("the store is there");
    /* What this process has asked of a server so far is nothing. */
    if (report->health.server[0] != '\0') {
        print_server_text(&report->health);
        return;
    }
    for (size_t i = 0; i < NUMBERS_LEN; i++) {
        if (shown(report, i))
            printf("  %-10s %20" PRIu64 "\n", numbers[i].name, number_of(&report->statistics, i));
    }
}

static void print_limit_json(struct cli_json *json, const struct redbucket_named_limit *named)
{
    const struct redbucket_limit *limit = &named->limit;
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    char words[CLI_DESCRIPTION_SIZE];

    redbucket_limit_format(named, text);
    rbk_describe(limit, words);
    rbk_json_object(json, named->name);
    rbk_json_string(json, "text", text);
    rbk_json_string(json, "allows", words);
    rbk_json_string(json, "zone", named->zone);
    rbk_json_real(json, "rate", limit->rate);
    rbk_json_real(json, "burst", limit->burst);
    rbk_json_real(json, "delay", limit->delay);
    rbk_json_real(json, "expiry", limit->expiry);
    rbk_json_real(json, "lease", limit->lease);
    rbk_json_real(json, "lease_time", limit->lease_time);
    rbk_json_object_end(json);
}

static void print_master_json(struct cli_json *json, const struct redbucket_health *health)
{
    rbk_json_string(json, "service", health->service);
    rbk_json_string(json, "master", health->master);
    rbk_json_string(json, "sentinel", health->sentinel);
    if (health->replicas >= 0)
        rbk_json_unsigned(json, "replicas", (uint64_t)health->replicas);
    else
        rbk_json_null(json, "replicas");
}

static void print_cluster_json(struct cli_json *json, const struct redbucket_health *health)
{
    rbk_json_unsigned(json, "masters", health->masters);
    rbk_json_unsigned(json, "silent", health->silent);
    rbk_json_unsigned(json, "replicas", (uint64_t)health->replicas);
    rbk_json_unsigned(json, "slots", health->slots);
}

static void print_report_json(struct cli_json *json, const struct report *report)
{
    const struct redbucket_health *health = &report->health;

    if (health->server[0] != '\0') {
        rbk_json_object(json, "server");
        rbk_json_string(json, "is", health->server);
        rbk_json_string(json, "method", health->method);
        rbk_json_real(json, "round_trip", health->round_trip);
        if (health->service[0] != '\0')
            print_master_json(json, health);
        if (health->masters > 0)
            print_cluster_json(json, health);
        rbk_json_array(json, "warnings");
        for (size_t i = 0; i < health->warnings_len; i++)
            rbk_json_string(json, NULL, health->warnings[i]);
        rbk_json_array_end(json);
        rbk_json_object_end(json);
    }
    rbk_json_object(json, "statistics");
    for (size_t i = 0; i < NUMBERS_LEN; i++) {
        if (shown(report, i))
            rbk_json_unsigned(json, numbers[i].name, number_of(&report->statistics, i));
    }
    rbk_json_object_end(json);
}

static void print_json(const struct cli_context *context, const struct report *report)
{
    struct cli_json json = {stdout, false};
    char url[CLI_URL_SIZE];

    rbk_json_object(&json, NULL);
    if (context->config_path != NULL)
        rbk_json_string(&json, "configuration", context->config_path);
    else
        rbk_json_null(&json, "configuration");
    rbk_json_string(&json, "store", rbk_cli_mask_url(context->store_url, url));
    rbk_json_object(&json, "limits");
    for (size_t i = 0; i < context->limits_len; i++)
        print_limit_json(&json, context->limits[i]);
    rbk_json_object_end(&json);
    rbk_slots_json(report->slots, &json);
    rbk_json_bool(&json, "available", report->available);
    if (report->available)
        print_report_json(&json, report);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}

static int ask_store(struct redbucket_store *store, struct report *report)
{
    enum redbucket_status status;

    report->statistics.size = sizeof(report->statistics);
    report->health.size = sizeof(report->health);
    status = redbucket_store_check(store, &report->health);
    if (status == REDBUCKET_OK)
        status = redbucket_store_statistics(store, &report->statistics);
    if (status != REDBUCKET_OK)
        return rbk_cli_fail_store("store", store, status, redbucket_status_text(status));
    report->available = true;
    return CLI_DONE;
}

/* Opens the store, makes a limiter with all limits, and asks how the store is. What is known
 * without asking is printed before. */
static int look_at_store(const struct cli_context *context, struct report *report)
{
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    int result = rbk_cli_open(context, &store, &limiter);

    if (result != CLI_DONE)
        return result;
    result = rbk_slots_read(context, store, &report->slots);
    if (!context->json)
        rbk_slots_text(report->slots);
    if (result == CLI_DONE)
        result = ask_store(store, report);
    rbk_cli_close(store, limiter);
    return result;
}

static int check(const struct cli_context *context)
{
    struct report report = {.slots = NULL};
    int result;

    if (!context->json)
        print_text(context);
    result = look_at_store(context, &report);
    if (context->json)
        print_json(context, &report);
    else if (report.available)
        print_report_text(&report);
    rbk_slots_destroy(report.slots);
    return result;
}

/* The store's numbers and nothing else, for whoever collects them. */
static int print_metrics(const struct cli_context *context)
{
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    int result = rbk_cli_open(context, &store, &limiter);

    if (result != CLI_DONE)
        return result;
    result = rbk_metrics_print(context, store);
    rbk_cli_close(store, limiter);
    return result;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    bool metrics = false;
    int code;
    int result;

    while ((code = rbk_cli_option(context, argc, argv)) == CHECK_METRICS)
        metrics = true;
    if (code == CLI_OPTION_STOP)
        return context->exit_status;
    if (optind < argc)
        return rbk_cli_fail(CLI_USAGE, "check", "\"%.60s\": expected no argument", argv[optind]);
    result = rbk_cli_configure(context);
    if (result != CLI_DONE)
        return result;
    return metrics ? print_metrics(context) : check(context);
}

static const struct option options[] = {
    {"metrics", no_argument, NULL, CHECK_METRICS},
    {NULL, 0, NULL, 0},
};

const struct cli_command rbk_cli_check = {
    .name = "check",
    .arguments = "[--metrics]",
    .summary = "show the configuration, and whether the store is there",
    .help = "Reads the configuration, prints the store and every limit in full, with what it\n"
            "allows in words, then opens the store and prints what it has counted since it\n"
            "was made. A shm: store that isn't there yet is made. Passwords are shown as ***.\n"
            "Of a server it tells what it is, how it decides and how long it takes to answer,\n"
            "and warns of settings by which it can lose what was counted; of sentinels, which\n"
            "master they name; of a cluster its masters, replicas, slots, and which limits\n"
            "are decided in one step.\n"
            "\n"
            "  --metrics  print what the store has counted as OpenMetrics text, and no more\n"
            "\n"
            "  evicted    buckets given up before they were empty, because the table was full\n"
            "  full       requests that failed because the table was full of keys kept out\n"
            "  recovered  changes undone because a process died in the middle\n"
            "\n"
            "Exit status: 0 all is well, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -c redbucket.conf check\n"
            "  redbucket -l ip:5/s,burst=10 check\n",
    .options = options,
    .run = run,
};
