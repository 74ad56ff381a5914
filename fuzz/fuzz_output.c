/* SPDX-License-Identifier: MIT */
/*
 * What is written with strangers' bytes in it, read again by somebody else's reader: JSON is strict
 * JSON and its strings and numbers are those that went in, header fields are lines of printable
 * ASCII with one meaning each, a problem's body is JSON, OpenMetrics labels are closed where they
 * should be, a text that doesn't fit leaves its room as it was, and people's texts print.
 *
 * The input is 8 doubles, a byte of options, and a name.
 */
#include "cli.h"
#include "json.h"
#include "replay/printable.h"

#include "redbucket/http.h"
#include "redbucket/metrics.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS   8
#define TEXT_SIZE 8192

/* The longest that a limit's name may be, and a little more. */
#define NAME_MAX_LEN 300u

struct input {
    double numbers[NUMBERS];
    unsigned options;
    const char *name;
    size_t len;
};

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_json(const struct input *input, struct cli_json *json)
{
    rbk_json_object(json, NULL);
    rbk_json_bytes(json, "bytes", input->name, input->len);
    rbk_json_hex(json, "hex", input->name, input->len);
    rbk_json_array(json, "numbers");
    for (size_t i = 0; i < NUMBERS; i++)
        rbk_json_real(json, NULL, input->numbers[i]);
    rbk_json_array_end(json);
    rbk_json_object_end(json);
    rbk_json_line(json);
}

static void check_string(const struct input *input, const json_t *string)
{
    size_t len = json_string_length(string);

    if (!json_is_string(string) || (len > 0 && input->len == 0))
        abort();
    if (rbk_json_exact(input->name, input->len) &&
        (len != input->len || memcmp(json_string_value(string), input->name, len) != 0))
        abort();
}

static void check_hex(const struct input *input, const char *hex)
{
    if (strlen(hex) != 2 * input->len)
        abort();
    for (size_t i = 0; i < input->len; i++) {
        char digits[3];

        (void)snprintf(digits, sizeof digits, "%02x", (unsigned char)input->name[i]);
        if (memcmp(digits, hex + 2 * i, 2) != 0)
            abort();
    }
}

static void check_numbers(const struct input *input, const json_t *numbers)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const json_t *number = json_array_get(numbers, i);

        if (isfinite(input->numbers[i]) ? json_number_value(number) != input->numbers[i]
                                        : !json_is_null(number))
            abort();
    }
}

static void check_json(const struct input *input)
{
    char *text = NULL;
    size_t len = 0;
    struct cli_json json = {.out = open_memstream(&text, &len),
                            .embedded = (input->options & 1) != 0};

    if (json.out == NULL)
        abort();
    write_json(input, &json);
    if (fclose(json.out) != 0 || len == 0 || text[len - 1] != '\n')
        abort();
    json_t *read = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);

    if (read == NULL)
        abort();
    check_string(input, json_object_get(read, "bytes"));
    check_hex(input, json_string_value(json_object_get(read, "hex")));
    check_numbers(input, json_object_get(read, "numbers"));
    for (size_t i = 0; i + 1 < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
            (json.embedded && strchr("<>&'", text[i]) != NULL))
            abort();
    }
    json_decref(read);
    free(text);
}

/* ---- Header fields -------------------------------------------------------------------------- */

struct answered {
    struct redbucket_limiter *limiter;
    struct redbucket_request request;
    struct redbucket_verdict verdict;
    struct redbucket_key key;
};

/* A line of a name and a value, both printable ASCII; returns where the next one begins. */
static const char *check_line(const char *line)
{
    const char *end = strstr(line, "\r\n");
    const char *colon = strstr(line, ": ");
    unsigned quotes = 0;

    if (end == NULL || colon == NULL || colon > end)
        abort();
    for (const char *at = line; at < end; at++) {
        if (*at < 0x20 || *at > 0x7e)
            abort();
        quotes += *at == '"';
        at += *at == '\\'; /* and what it escapes */
    }
    if (quotes % 2 != 0)
        abort();
    return end + 2;
}

static enum redbucket_status write_fields(const struct answered *answered,
                                          struct redbucket_text *text)
{
    return redbucket_http_fields(answered->limiter, &answered->request, REDBUCKET_HTTP_ALL, text);
}

static enum redbucket_status write_problem(const struct answered *answered,
                                           struct redbucket_text *text)
{
    return redbucket_http_problem(answered->limiter, &answered->request, text);
}

/* Fits its length and a NUL, and nothing less. */
static void check_room(const struct answered *answered, size_t len,
                       enum redbucket_status (*write)(const struct answered *answered,
                                                      struct redbucket_text *text))
{
    for (size_t room = len; room <= len + 1; room++) {
        char *bytes = malloc(room + 1);
        struct redbucket_text text = {bytes, room + 1, 0};

        if (bytes == NULL)
            abort();
        text.size = room;
        enum redbucket_status status = room > 0 ? write(answered, &text) : REDBUCKET_ERROR_SPACE;

        if (room > len ? status != REDBUCKET_OK || text.len != len
                       : status != REDBUCKET_ERROR_SPACE || text.len != 0)
            abort();
        free(bytes);
    }
}

static void check_answer(const struct answered *answered)
{
    char bytes[TEXT_SIZE];
    struct redbucket_text text = {bytes, sizeof bytes, 0};
    bool rejected =
        answered->request.status != REDBUCKET_OK || !answered->request.response.accepted;

    if (write_fields(answered, &text) != REDBUCKET_OK || strlen(bytes) != text.len)
        abort();
    for (const char *line = bytes; *line != '\0';)
        line = check_line(line);
    check_room(answered, text.len, write_fields);
    text.len = 0;
    enum redbucket_status status = write_problem(answered, &text);

    if ((status == REDBUCKET_OK) != rejected)
        abort();
    if (!rejected)
        return;
    json_t *read = json_loadb(bytes, text.len, JSON_REJECT_DUPLICATES, NULL);

    if (json_integer_value(json_object_get(read, "status")) !=
        redbucket_http_status(&answered->request))
        abort();
    json_decref(read);
    check_room(answered, text.len, write_problem);
}

static double positive(double number, double most)
{
    number = fabs(number);
    return number <= most ? number : most;
}

static void answer(const struct input *input, struct answered *answered)
{
    struct redbucket_verdict *verdict = &answered->verdict;
    struct redbucket_response *response = &answered->request.response;
    bool never = (input->options & 2) != 0;

    verdict->accepted = (input->options & 4) != 0;
    verdict->delay = verdict->accepted ? positive(input->numbers[3], 1e15) : 0.0;
    verdict->retry_after = verdict->accepted ? 0.0 : positive(input->numbers[4], 1e18);
    if (never && !verdict->accepted)
        verdict->retry_after = INFINITY;
    verdict->reset_after = positive(input->numbers[5], 1e18);
    verdict->remaining = (int64_t)positive(input->numbers[6], 1e12);
    *response = (struct redbucket_response){.accepted = verdict->accepted,
                                            .degraded = (input->options & 8) != 0,
                                            .delay = verdict->delay,
                                            .retry_after = verdict->retry_after,
                                            .reset_after = verdict->reset_after,
                                            .remaining = verdict->remaining};
    response->decided = verdict->accepted ? REDBUCKET_NONE : 0;
    answered->request.status = (input->options & 16) != 0 ? REDBUCKET_ERROR_TIMEOUT : REDBUCKET_OK;
}

static void check_http(const struct input *input, struct redbucket_store *store, const char *name)
{
    struct redbucket_limit limit = {.rate = input->numbers[0],
                                    .burst = positive(input->numbers[1], 1e12),
                                    .delay = positive(input->numbers[2], 1e12)};
    struct answered answered = {.key = {.limit = name, .key = "k"}};

    answered.request = (struct redbucket_request){
        .keys = &answered.key, .keys_len = 1, .cost = 1.0, .verdicts = &answered.verdict};
    if (redbucket_limiter_create(store, &answered.limiter, NULL) != REDBUCKET_OK)
        abort();
    if (redbucket_limiter_add(answered.limiter, name, &limit, NULL) == REDBUCKET_OK) {
        answer(input, &answered);
        check_answer(&answered);
    }
    redbucket_limiter_destroy(answered.limiter);
}

/* ---- Texts for people ------------------------------------------------------------------------ */

static void check_printable(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e)
            abort();
    }
}

static void check_people(const struct input *input, const char *name)
{
    static const char secret[] = "QZXJ";
    char text[RBK_PRINTABLE_SIZE];
    char masked[CLI_URL_SIZE];
    char url[CLI_URL_SIZE];
    size_t columns = 4 + input->options % (RBK_PRINTABLE_COLUMNS - 3);
    const struct redbucket_key key = {
        .limit = name, .key = input->len > 0 ? input->name : "", .key_len = input->len};
    const struct redbucket_request request = {
        .keys = &key, .keys_len = 1, .cost = 1.0, .status = REDBUCKET_ERROR_STATE, .failed = 0};
    struct redbucket_error error;
    size_t len =
        rbk_printable((struct rbk_span){input->name, input->len}, input->len, columns, text);

    if (len > columns || strlen(text) != len)
        abort();
    check_printable(text, len);
    redbucket_request_error(&request, &error);
    check_printable(error.message, strlen(error.message));
    (void)snprintf(url, sizeof url, "redis://u:%s%.200s@host/?x=1&sentinel_password=%s%.200s",
                   secret, name, secret, name);
    if (strstr(rbk_cli_mask_url(url, masked), secret) != NULL && strstr(name, secret) == NULL)
        abort();
}

/* ---- Metrics -------------------------------------------------------------------------------- */

/* A line of OpenMetrics: a comment, or a name, labels whose quotes are closed, and a number. */
static void check_metric(const char *line, size_t len)
{
    const char *end = line + len;
    const char *at = line + strcspn(line, "{ \n");

    if (line[0] == '#')
        return;
    if (at < end && *at == '{') {
        at = strchr(at, '"') + 1;
        while (at < end && *at != '"')
            at += *at == '\\' ? 2 : 1;
        if (at >= end || at[1] != '}')
            abort();
        at += 2;
    }
    if (at >= end || *at != ' ' || strspn(at + 1, "0123456789") != (size_t)(end - at - 1))
        abort();
}

/* The same line twice, but for its number, would be two values of one thing. */
static void check_apart(const char *text)
{
    static const char name[] = "redbucket_accepted_requests_total{";
    const char *first = strstr(text, name);
    const char *second = strchr(first, '\n') + 1;
    const char *third = strchr(second, '\n') + 1;
    size_t len = (size_t)(second - first);

    if (strncmp(second, name, sizeof name - 1) != 0 ||
        (len == (size_t)(third - second) && memcmp(first, second, len) == 0))
        abort();
}

static void check_metrics(const struct input *input, const char *name)
{
    char bytes[2 * TEXT_SIZE + 16 * 1024];
    char halves[2][256];
    size_t half_len = strlen(name) / 2;
    struct redbucket_text text = {bytes, sizeof bytes, 0};
    const struct redbucket_statistics statistics = {
        .size = sizeof statistics, .accepted = input->options, .capacity = input->options & 1};
    const struct redbucket_metered stores[] = {{.name = halves[0], .statistics = &statistics},
                                               {.name = halves[1], .statistics = &statistics}};
    const char *line = bytes;

    for (size_t i = 0; i < 2; i++)
        (void)snprintf(halves[i], sizeof halves[i], "%.*s", (int)half_len, name + i * half_len);
    enum redbucket_status status = redbucket_metrics(stores, 2, &text);

    if (status == REDBUCKET_ERROR_DUPLICATE)
        return;
    if (status != REDBUCKET_OK || text.len < 6 || strcmp(bytes + text.len - 6, "# EOF\n") != 0)
        abort();
    check_apart(bytes);
    while (*line != '\0') {
        size_t len = strcspn(line, "\n");

        check_metric(line, len);
        line += len + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct redbucket_store *store;
    struct input input = {.name = (const char *)data + sizeof input.numbers + 1};

    if (store == NULL && redbucket_store_open("memory:?size=64k", &store, NULL) != REDBUCKET_OK)
        abort();
    if (size <= sizeof input.numbers)
        return 0;
    memcpy(input.numbers, data, sizeof input.numbers);
    input.options = data[sizeof input.numbers];
    input.len = size - sizeof input.numbers - 1;
    if (input.len > NAME_MAX_LEN)
        input.len = NAME_MAX_LEN;
    char *name = malloc(input.len + 1);

    if (name == NULL)
        abort();
    memcpy(name, input.name, input.len);
    name[input.len] = '\0';
    check_json(&input);
    check_http(&input, store, name);
    check_people(&input, name);
    check_metrics(&input, name);
    free(name);
    return 0;
}
