/* SPDX-License-Identifier: MIT */
/*
 * The way of a step through the engine where a log is at its worst: a line dated far ahead must not
 * hold back the answers of a whole log, whoever asks for them; and what the library refuses is a
 * fault of its line.
 */
#include "../../cli/replay/engine.h"
#include "../test.h"

#include <stdio.h>
#include <stdlib.h>

enum { HELD = 8 };

static struct redbucket_named_limit limit;
static struct redbucket_named_limit *limits[] = {&limit};
static const char *names[] = {limit.name};
static const struct rbk_limit_sets sets = {
    .sets = {{.limits = limits, .names = names, .limits_len = 1}},
    .len = 1,
    .names = names,
    .names_len = 1,
};

struct replay {
    struct rbk_engine *engine;
    struct rbk_faults faults;
    char *printed;
    size_t printed_len;
    FILE *answers;
    uint64_t line;
};

static void replay_begin(struct replay *replay, bool answers)
{
    static char name[] = "log";
    static char *const files[] = {name};
    struct rbk_engine_setup setup = {.sets = &sets, .reorder_s = 300, .held = HELD};

    *replay = (struct replay){.faults = {.files = files}};
    assert_int_equal(redbucket_limit_parse("ip:1/d,burst=1000", &limit, NULL), REDBUCKET_OK);
    replay->answers = open_memstream(&replay->printed, &replay->printed_len);
    assert_non_null(replay->answers);
    setup.answers = answers ? replay->answers : NULL;
    assert_int_equal(rbk_engine_create(&setup, &replay->faults, &replay->engine, NULL),
                     REDBUCKET_OK);
}

static void put(struct replay *replay, double time_s, double cost)
{
    const struct rbk_step_keys keys = {.limits = {limit.name}, .keys = {{"a", 1}}, .len = 1};
    struct rbk_step *step = rbk_step_create(rbk_engine_pool(replay->engine), &keys, true);

    assert_non_null(step);
    step->time_s = time_s;
    step->cost = cost;
    step->place.line = ++replay->line;
    assert_int_equal(rbk_engine_put(replay->engine, step, false), REDBUCKET_OK);
}

static size_t printed_lines(struct replay *replay)
{
    size_t lines = 0;

    fflush(replay->answers);
    for (size_t i = 0; i < replay->printed_len; i++)
        lines += replay->printed[i] == '\n';
    return lines;
}

static void replay_end(struct replay *replay)
{
    assert_int_equal(rbk_engine_finish(replay->engine), REDBUCKET_OK);
    rbk_engine_destroy(replay->engine);
    fclose(replay->answers);
    free(replay->printed);
}

static void one_line_far_ahead_holds_back_no_more_than_the_bound(void **state)
{
    struct replay replay;

    (void)state;
    replay_begin(&replay, true);
    put(&replay, 1e9, 1);
    for (int i = 1; i < HELD; i++) {
        assert_int_equal(printed_lines(&replay), 0);
        put(&replay, 5, 1);
    }
    assert_int_equal(printed_lines(&replay), HELD);
    put(&replay, 6, 1);
    assert_int_equal(printed_lines(&replay), HELD + 1);
    replay_end(&replay);
}

/* What is decided is the same, whether answers are held or not. */
static void a_summary_decides_the_same(void **state)
{
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        struct replay replay;

        replay_begin(&replay, answers);
        put(&replay, 1000, 1);
        for (int i = 0; i < HELD; i++)
            put(&replay, 900 - i, 1);
        put(&replay, 1000.5, 1);
        put(&replay, 999, 1);
        assert_int_equal(rbk_engine_finish(replay.engine), REDBUCKET_OK);
        assert_int_equal(rbk_engine_summaries(replay.engine)[0]->accepted, HELD + 3);
        assert_int_equal(rbk_engine_traffic(replay.engine)->late,
                         2); /* one of 893, and 999: the bound was reached before */
        replay_end(&replay);
    }
}

static void what_the_library_refuses_is_a_fault_of_its_line(void **state)
{
    struct replay replay;

    (void)state;
    replay_begin(&replay, true);
    put(&replay, 1, 1);
    put(&replay, 2, 1e13);
    put(&replay, 3, 1);
    assert_int_equal(rbk_engine_finish(replay.engine), REDBUCKET_OK);
    assert_int_equal(printed_lines(&replay), 2);
    assert_int_equal(replay.faults.count, 1);
    assert_int_equal(replay.faults.first.line, 2);
    assert_non_null(strstr(replay.faults.reason, "cost"));
    replay_end(&replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_far_ahead_holds_back_no_more_than_the_bound),
        cmocka_unit_test(a_summary_decides_the_same),
        cmocka_unit_test(what_the_library_refuses_is_a_fault_of_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
