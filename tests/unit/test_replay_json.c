/* SPDX-License-Identifier: MIT */
/*
 * Steps read from JSON: what is a step, and that each way of not being one is told by name.
 */
#include "../../cli/replay/step_json.h"
#include "../test.h"

static const char *const names[] = {"ip", "user", "all"};
static struct rbk_step_pool pool;
static const struct rbk_step_setting setting = {names, 3, true, &pool};

static struct rbk_step *parsed_bytes(const char *bytes, size_t len)
{
    struct rbk_step *step;
    struct redbucket_error error = {0};

    if (rbk_step_parse((struct rbk_span){bytes, len}, &setting, &step, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", bytes, error.message);
    return step;
}

static struct rbk_step *parsed(const char *text)
{
    return parsed_bytes(text, strlen(text));
}

static void refused_bytes(const char *bytes, size_t len, const char *why)
{
    struct rbk_step *step = NULL;
    struct redbucket_error error = {0};

    if (rbk_step_parse((struct rbk_span){bytes, len}, &setting, &step, &error) !=
        REDBUCKET_ERROR_ARGUMENT)
        fail_msg("accepted: %s", bytes);
    assert_null(step);
    if (!strstr(error.message, why))
        fail_msg("%s: \"%s\" says nothing of \"%s\"", bytes, error.message, why);
    assert_int_equal(rbk_step_parse((struct rbk_span){bytes, len}, &setting, &step, NULL),
                     REDBUCKET_ERROR_ARGUMENT);
}

static void refused(const char *text, const char *why)
{
    refused_bytes(text, strlen(text), why);
}

static void a_step_needs_a_time_and_keys_alone(void **state)
{
    struct rbk_step *step =
        parsed("{\"t\":12.5,\"keys\":{\"user\":\"alice\",\"ip\":\"192.0.2.7\"}}");

    (void)state;
    assert_same(step->time_s, 12.5);
    assert_same(step->cost, 1.0);
    assert_int_equal(step->operation, REDBUCKET_REQUEST);
    assert_int_equal(step->keys_len, 2);
    assert_ptr_equal(step->keys[0].limit, names[1]);
    assert_int_equal(step->keys[0].key_len, 5);
    assert_memory_equal(step->keys[0].key, "alice", 5);
    assert_ptr_equal(step->keys[1].limit, names[0]);
    assert_memory_equal(step->keys[1].key, "192.0.2.7", 9);
    assert_non_null(step->states);
    rbk_step_destroy(step);
}

static void every_member_is_read_and_others_are_passed_over(void **state)
{
    static const char *const ops[] = {"request", "peek", "refund", "charge", "reset"};
    struct rbk_step *step;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char text[128];

        snprintf(text, sizeof(text),
                 " {\"x\":[{}],\"cost\":2.5,\"op\":\"%s\",\"keys\":{},\"t\":-3}\t", ops[i]);
        step = parsed(text);
        assert_int_equal(step->operation, i);
        assert_same(step->cost, 2.5);
        assert_same(step->time_s, -3.0);
        assert_int_equal(step->keys_len, 0);
        rbk_step_destroy(step);
    }
    step = parsed("{\"t\":12345678901234567890,\"keys\":{}}");
    assert_same(step->time_s, 12345678901234567890.0);
    rbk_step_destroy(step);
}

static void keys_are_any_text(void **state)
{
    struct rbk_step *step = parsed("{\"t\":0,\"keys\":{\"ip\":\"\",\"user\":\"a\\u0000b\",\"all\":"
                                   "\"\\u00fc\\ud83d\\ude00\"}}");

    (void)state;
    assert_int_equal(step->keys[0].key_len, 0);
    assert_string_equal(step->keys[0].key, "");
    assert_int_equal(step->keys[1].key_len, 3);
    assert_memory_equal(step->keys[1].key, "a\0b", 3);
    assert_int_equal(step->keys[2].key_len, 6);
    assert_memory_equal(step->keys[2].key, "\xc3\xbc\xf0\x9f\x98\x80", 6);
    rbk_step_destroy(step);
}

static void what_is_no_step_is_refused_and_told_why(void **state)
{
    (void)state;
    refused("", "not JSON");
    refused("x", "not JSON");
    refused("{\"t\":0,\"keys\":{}", "not JSON");
    refused("{\"t\":0,\"keys\":{}} {}", "not JSON");
    refused("{\"t\":0,\"t\":1,\"keys\":{}}", "not JSON");
    refused("{\"t\":0,\"keys\":{\"ip\":\"a\",\"ip\":\"b\"}}", "not JSON");
    refused("{\"t\":1e999,\"keys\":{}}", "not JSON");
    refused("{\"t\":NaN,\"keys\":{}}", "not JSON");
    refused("{\"t\":0,\"keys\":{\"ip\":\"\xff\"}}", "not JSON");
    refused_bytes("{\"t\":0,\"keys\":{}}\0", 18, "not JSON");
    refused("[]", "a JSON object");
    refused("5", "not JSON");
    refused("{\"keys\":{}}", "\"t\"");
    refused("{\"t\":\"0\",\"keys\":{}}", "\"t\"");
    refused("{\"t\":null,\"keys\":{}}", "\"t\"");
    refused("{\"t\":0}", "\"keys\"");
    refused("{\"t\":0,\"keys\":[]}", "\"keys\"");
    refused("{\"t\":0,\"keys\":{\"ip\":5}}", "\"ip\"");
    refused("{\"t\":0,\"keys\":{\"ip\":null}}", "\"ip\"");
    refused("{\"t\":0,\"keys\":{\"nobody\":\"a\"}}", "no limit \"nobody\"");
    refused("{\"t\":0,\"keys\":{},\"op\":\"take\"}", "\"op\"");
    refused("{\"t\":0,\"keys\":{},\"op\":\"peek\\u0000\"}", "\"op\"");
    refused("{\"t\":0,\"keys\":{},\"op\":null}", "\"op\"");
    refused("{\"t\":0,\"keys\":{},\"cost\":\"1\"}", "\"cost\"");
    refused("{\"t\":0,\"keys\":{},\"cost\":null}", "\"cost\"");
}

static void more_keys_than_a_request_takes_are_refused(void **state)
{
    char text[4096] = "{\"t\":0,\"keys\":{";

    (void)state;
    for (int i = 0; i <= REDBUCKET_KEYS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"k%d\":\"\"", i ? "," : "",
                 i);
    strcat(text, "}}");
    refused(text, "at most 64 keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_needs_a_time_and_keys_alone),
        cmocka_unit_test(every_member_is_read_and_others_are_passed_over),
        cmocka_unit_test(keys_are_any_text),
        cmocka_unit_test(what_is_no_step_is_refused_and_told_why),
        cmocka_unit_test(more_keys_than_a_request_takes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
