/* SPDX-License-Identifier: MIT */
/*
 * `redbucket bench`: how many decisions a second this store makes here, and how long one takes.
 *
 * It asks for permits of a limit of its own, so that nobody's bucket is touched, and only for as
 * many keys as a shared table has room for, so that nobody's is given up.
 */
#include "commands.h"
#include "json.h"
#include "load.h"
#include "metrics.h"

#include <string.h>

#define SECONDS_MAX 3600.0

enum {
    BENCH_SECONDS = CLI_OPTION_OWN,
    BENCH_THREADS,
    BENCH_KEYS,
    BENCH_METRICS,
};

struct bench {
    const struct cli_context *context;
    struct redbucket_store *store;
    struct cli_load load;
    bool metrics;
};

/* ---- What is printed ----------------------------------------------------------------------- */

/* Rounded to `digits` behind the point, for people. */
static const char *format_fixed(double number, int digits, char out[REDBUCKET_NUMBER_SIZE])
{
    double scale = 1.0;

    while (digits-- > 0)
        scale *= 10.0;
    redbucket_number_format((double)(uint64_t)(number * scale + 0.5) / scale, out);
    return out;
}

static void print_text(const struct bench *bench, const struct cli_load_result *result)
{
    static const char *const names[] = {"p50", "p99", "max"};
    static const double shares[] = {0.5, 0.99, 1.0};
    const double rate = (double)result->decisions / result->seconds;
    char number[REDBUCKET_NUMBER_SIZE];
    char url[CLI_URL_SIZE];

    printf("store: %s\n", rbk_cli_mask_url(bench->context->store_url, url));
    printf("load: threads %llu, keys %llu, ", (unsigned long long)bench->load.threads,
           (unsigned long long)bench->load.keys);
    printf("%s s\n", format_fixed(result->seconds, 3, number));
    printf("decisions: %s a second\n", format_fixed(rate, 0, number));
    printf("latency: mean %s us",
           format_fixed(1e6 * (double)bench->load.threads / rate, 3, number));
    if (result->latency.total < result->decisions)
        printf("; of %llu timed", (unsigned long long)result->latency.total);
    for (size_t i = 0; i < 3; i++)
        printf(", %s %s us", names[i],
               format_fixed(rbk_latency_quantile(&result->latency, shares[i]) * 1e6, 3, number));
    putchar('\n');
}

static void print_json(const struct bench *bench, const struct cli_load_result *result)
{
    const double rate = (double)result->decisions / result->seconds;
    struct cli_json json = {stdout, false};
    char url[CLI_URL_SIZE];

    rbk_json_object(&json, NULL);
    rbk_json_string(&json, "store", rbk_cli_mask_url(bench->context->store_url, url));
    rbk_json_unsigned(&json, "threads", bench->load.threads);
    rbk_json_unsigned(&json, "keys", bench->load.keys);
    rbk_json_real(&json, "seconds", result->seconds);
    rbk_json_unsigned(&json, "decisions", result->decisions);
    rbk_json_real(&json, "decisions_per_second", rate);
    rbk_json_object(&json, "latency");
    rbk_json_real(&json, "mean", (double)bench->load.threads / rate);
    rbk_json_real(&json, "p50", rbk_latency_quantile(&result->latency, 0.5));
    rbk_json_real(&json, "p99", rbk_latency_quantile(&result->latency, 0.99));
    rbk_json_real(&json, "max", rbk_latency_quantile(&result->latency, 1.0));
    rbk_json_unsigned(&json, "timed", result->latency.total);
    rbk_json_object_end(&json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}

/* ---- The command --------------------------------------------------------------------------- */

/* Half of what is free: a key has few places to go to, and at twice the room one of them is. */
static int check_room(const struct bench *bench)
{
    struct redbucket_statistics statistics = {.size = sizeof(statistics)};
    const enum redbucket_status status = redbucket_store_statistics(bench->store, &statistics);
    uint64_t room;

    if (status != REDBUCKET_OK)
        return rbk_cli_fail(rbk_cli_exit_of(status), "bench", "%s", redbucket_status_text(status));
    if (strncmp(bench->context->store_url, "memory:", strlen("memory:")) == 0)
        return CLI_DONE; /* nobody else's */
    if (statistics.capacity == 0)
        return CLI_DONE; /* on a server, which has its own bounds */
    room = statistics.capacity > statistics.buckets ? statistics.capacity - statistics.buckets : 0;
    if (bench->load.keys > room / 2)
        return rbk_cli_fail(CLI_USAGE, "--keys",
                            "\"%llu\": this store has room for %llu without pushing others out",
                            (unsigned long long)bench->load.keys, (unsigned long long)(room / 2));
    return CLI_DONE;
}

static int add_limit(struct bench *bench)
{
    const struct redbucket_limit limit = {.size = sizeof(limit), .rate = 1e9, .burst = 1e9};
    struct redbucket_error error;

    if (redbucket_limiter_add(bench->load.limiter, CLI_LOAD_LIMIT, &limit, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error("bench", &error);
    return CLI_DONE;
}

static int bench_store(struct bench *bench)
{
    struct cli_load_result result = {.decisions = 0};
    int status = add_limit(bench);

    if (status == CLI_DONE)
        status = check_room(bench);
    if (status == CLI_DONE) {
        status = rbk_load_run(&bench->load, &result);
        rbk_load_forget(&bench->load);
    }
    if (status == CLI_DONE && bench->metrics)
        return rbk_metrics_print(bench->context, bench->store);
    if (status == CLI_DONE && bench->context->json)
        print_json(bench, &result);
    else if (status == CLI_DONE)
        print_text(bench, &result);
    return status;
}

static int read_options(struct cli_context *context, int argc, char **argv, struct bench *bench)
{
    static const uint64_t threads_range[] = {1, 256};
    static const uint64_t keys_range[] = {1, 100000000};
    int status = CLI_DONE;

    while (status == CLI_DONE) {
        switch (rbk_cli_option(context, argc, argv)) {
        case BENCH_SECONDS:
            status = rbk_cli_duration_option("--seconds", optarg, &bench->load.seconds);
            if (status == CLI_DONE &&
                !(bench->load.seconds > 0.0 && bench->load.seconds <= SECONDS_MAX))
                status = rbk_cli_fail(CLI_USAGE, "--seconds",
                                      "\"%s\": expected more than 0 and at most an hour", optarg);
            break;
        case BENCH_THREADS:
            status = rbk_cli_count_option("--threads", optarg, threads_range, &bench->load.threads);
            break;
        case BENCH_KEYS:
            status = rbk_cli_count_option("--keys", optarg, keys_range, &bench->load.keys);
            break;
        case BENCH_METRICS:
            bench->metrics = true;
            break;
        case CLI_OPTION_STOP:
            return CLI_OPTION_STOP;
        default:
            return CLI_DONE;
        }
    }
    return status;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    struct bench bench = {
        .context = context,
        .load = {.seconds = 1.0, .threads = 1, .keys = 1},
    };
    struct cli_context plain;
    int status = read_options(context, argc, argv, &bench);

    if (status == CLI_OPTION_STOP)
        return context->exit_status;
    if (status == CLI_DONE && optind < argc)
        status = rbk_cli_fail(CLI_USAGE, "bench", "\"%.60s\": expected no argument", argv[optind]);
    if (status == CLI_DONE)
        status = rbk_cli_configure(context);
    if (status != CLI_DONE)
        return status;
    plain = *context;
    plain.limits_len = 0; /* the limiter gets a limit of our own instead */
    status = rbk_cli_open(&plain, &bench.store, &bench.load.limiter);
    if (status == CLI_DONE)
        status = bench_store(&bench);
    rbk_cli_close(bench.store, bench.load.limiter);
    return status;
}

static const struct option options[] = {
    {"seconds", required_argument, NULL, BENCH_SECONDS},
    {"threads", required_argument, NULL, BENCH_THREADS},
    {"keys", required_argument, NULL, BENCH_KEYS},
    {"metrics", no_argument, NULL, BENCH_METRICS},
    {NULL, 0, NULL, 0},
};

const struct cli_command rbk_cli_bench = {
    .name = "bench",
    .arguments = "[--seconds N] [--threads N] [--keys N] [--metrics]",
    .summary = "measure decisions a second and latency of this store, here",
    .help = "Asks for permits as fast as it can, and says how many decisions a second the\n"
            "store made and how long one took: mean, p50, p99, max. All are timed, but of\n"
            "those that take less than 5 us every 32nd: max isn't that of all then.\n"
            "\n"
            "  --seconds N  for how long; 1 when not given\n"
            "  --threads N  from how many threads; 1 when not given\n"
            "  --keys N     over how many keys, taken at random; 1 when not given\n"
            "  --metrics    print what the store has counted meanwhile as OpenMetrics text\n"
            "\n"
            "It uses a limit of its own, whose zone is redbucket-bench, and forgets its keys\n"
            "at the end; the limits that are configured play no part. In a shared store the\n"
            "requests are counted by `check`, and others get slower meanwhile.\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -s memory: bench\n"
            "  redbucket -s shm:trial bench --threads 2 --keys 10000 --seconds 3\n",
    .options = options,
    .run = run,
};
