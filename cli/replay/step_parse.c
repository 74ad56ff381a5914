/* SPDX-License-Identifier: MIT */
/*
 * Reading a step from a line of JSON. The parser refuses a member given twice, and keeps the order
 * of the keys, which decides between limits that would wait equally long. Numbers are all read as
 * doubles, so that a time may be written with or without a fraction.
 */
#include "step_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static enum redbucket_status
fail(struct redbucket_error *error, const char *format, ...)
{
    if (error) {
        va_list arguments;

        error->status = REDBUCKET_ERROR_ARGUMENT;
        error->position = -1;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
    }
    return REDBUCKET_ERROR_ARGUMENT;
}

static enum redbucket_status number_get(const json_t *object, const char *member, double *number,
                                        struct redbucket_error *error)
{
    const json_t *value = json_object_get(object, member);

    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        return fail(error, "expected \"%s\" to be a number", member);
    *number = json_number_value(value);
    return REDBUCKET_OK;
}

static enum redbucket_status operation_get(const json_t *object,
                                           enum redbucket_operation *operation,
                                           struct redbucket_error *error)
{
    static const char *const names[] = {
        [REDBUCKET_REQUEST] = "request", [REDBUCKET_PEEK] = "peek",   [REDBUCKET_REFUND] = "refund",
        [REDBUCKET_CHARGE] = "charge",   [REDBUCKET_RESET] = "reset",
    };
    const json_t *value = json_object_get(object, "op");
    const char *name = json_string_value(value);

    *operation = REDBUCKET_REQUEST;
    if (!value)
        return REDBUCKET_OK;
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_string_length(value) == strlen(names[i]) && strcmp(name, names[i]) == 0) {
            *operation = (enum redbucket_operation)i;
            return REDBUCKET_OK;
        }
    }
    return fail(error, "expected \"op\" to be request, peek, refund, charge or reset");
}

static const char *limit_find(const struct rbk_step_setting *setting, const char *name)
{
    for (size_t i = 0; i < setting->names_len; i++)
        if (strcmp(setting->names[i], name) == 0)
            return setting->names[i];
    return NULL;
}

static enum redbucket_status keys_get(const json_t *object, const struct rbk_step_setting *setting,
                                      struct rbk_step_keys *keys, struct redbucket_error *error)
{
    json_t *members = json_object_get(object, "keys");
    const char *name;
    json_t *value;

    if (!json_is_object(members))
        return fail(error, "expected \"keys\" to be an object of limits and their keys");
    if (json_object_size(members) > REDBUCKET_KEYS_MAX)
        return fail(error, "expected at most %d keys", REDBUCKET_KEYS_MAX);
    keys->len = 0;
    json_object_foreach(members, name, value)
    {
        const char *limit = limit_find(setting, name);

        if (!limit)
            return fail(error, "there is no limit \"%s\"", name);
        if (!json_is_string(value))
            return fail(error, "expected the key of \"%s\" to be a string", name);
        keys->limits[keys->len] = limit;
        keys->keys[keys->len++] =
            (struct rbk_span){json_string_value(value), json_string_length(value)};
    }
    return REDBUCKET_OK;
}

/* The step that a parsed line describes. */
static enum redbucket_status step_get(const json_t *object, const struct rbk_step_setting *setting,
                                      struct rbk_step **step, struct redbucket_error *error)
{
    enum redbucket_operation operation;
    struct rbk_step_keys keys;
    enum redbucket_status status;
    double time_s = 0;
    double cost = 1;

    if (!json_is_object(object))
        return fail(error, "expected a JSON object");
    status = number_get(object, "t", &time_s, error);
    if (status == REDBUCKET_OK)
        status = operation_get(object, &operation, error);
    if (status == REDBUCKET_OK && json_object_get(object, "cost"))
        status = number_get(object, "cost", &cost, error);
    if (status == REDBUCKET_OK)
        status = keys_get(object, setting, &keys, error);
    if (status != REDBUCKET_OK)
        return status;
    *step = rbk_step_create(setting->pool, &keys, setting->with_states);
    if (!*step)
        return REDBUCKET_ERROR_MEMORY;
    (*step)->time_s = time_s;
    (*step)->operation = operation;
    (*step)->cost = cost;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_step_parse(struct rbk_span line, const struct rbk_step_setting *setting,
                                     struct rbk_step **step, struct redbucket_error *error)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    enum redbucket_status status;
    json_error_t fault;

    errno = 0;
    json_t *object = json_loadb(line.bytes, line.len, flags, &fault);

    /* Having no memory, it finds fault with the text as often as not. */
    if (!object && errno == ENOMEM)
        return REDBUCKET_ERROR_MEMORY;
    if (!object)
        return fail(error, "not JSON: %s", fault.text);
    status = step_get(object, setting, step, error);
    json_decref(object);
    return status;
}
