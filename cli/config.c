/* SPDX-License-Identifier: MIT */
/*
 * libConfuse parses; each value is checked the moment it is read, while its line is known.
 *
 * A setting is appended to the text, under a name that no text which passed rbk_config_scan() can
 * hold. Only when it was seen has the whole text been understood: a file that ends in the middle of
 * a setting leaves it in the wrong place, where it is an error on a line that the file hasn't got.
 *
 * libConfuse hands no pointer of the caller's to its callbacks, and its scanner is global anyway,
 * so the parse that is under way is known to this file alone as `current`.
 */
#include "config.h"

#include "config_scan.h"

#include <confuse.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_NAME "\001"
#define SHOWN    60 /* bytes of a text from outside in a message */

struct parse {
    struct cli_config *config;
    struct cli_config_fault *fault;
    bool failed;
    int last_line;                       /* of the caller's text; END_NAME stands behind it */
    const cfg_t *section;                /* the section that `limit` is being filled from */
    struct redbucket_named_limit *limit; /* the last of config->limits */
    unsigned seen;                       /* a bit for each of its settings */
};

static struct parse *current;

static const char file_ends[] = "the file ends in the middle of a setting or a section";

/* ---- Faults: the first one counts ---------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int fault_at(struct parse *parse, int line,
                                                          const char *format, ...)
{
    va_list arguments;

    if (parse->failed)
        return -1;
    parse->failed = true;
    if (line > parse->last_line) { /* what stands there is END_NAME */
        line = parse->last_line;
        format = file_ends;
    }
    parse->fault->line = line;
    va_start(arguments, format);
    vsnprintf(parse->fault->message, sizeof(parse->fault->message), format, arguments);
    va_end(arguments);
    return -1;
}

/* How libConfuse words its faults, by a part of each, and what is said instead. "%s" is the word
 * that it is about. */
static const struct wording {
    const char *theirs;
    const char *before;
    const char *behind;
    const char *behind_in_limit;
} wordings[] = {
    {"no such option", "\"", "\": unknown word, expected store or limit",
     "\": unknown word, expected one of rate burst delay expiry zone lease lease_time"},
    {"no sub-section", "\"", "\": unknown word, expected store or limit", NULL},
    {"unexpected token", "\"", "\": expected a setting, a value or } (quote a value that holds it)",
     NULL},
    {"missing equal sign", "", ": expected = and a value", NULL},
    {"missing opening brace", "", ": expected { behind the limit's name", NULL},
    {"missing title", "", ": expected the limit's name", NULL},
    {"duplicate title", "limit ", " is there twice", NULL},
    {"append to non-list", "", ": expected =, not +=", NULL},
    {NULL, "", "", NULL},
};

static const struct wording *find_wording(const char *format)
{
    const struct wording *wording = wordings;

    while (wording->theirs != NULL && strstr(format, wording->theirs) == NULL)
        wording++;
    return wording;
}

/* libConfuse's error function. `format` is always one of its own texts. */
static void on_error(cfg_t *cfg, const char *format, va_list arguments)
{
    const struct wording *wording = find_wording(format);
    const char *behind = wording->behind;
    const char *word;

    if (wording->theirs == NULL || strstr(format, "'%s'") == NULL) {
        fault_at(current, cfg->line, "%s", format);
        return;
    }
    word = va_arg(arguments, const char *);
    if (wording->behind_in_limit != NULL && cfg->title != NULL)
        behind = wording->behind_in_limit;
    fault_at(current, cfg->line, "%s%.*s%s", wording->before, SHOWN, word, behind);
}

/* ---- Limits -------------------------------------------------------------------------------- */

typedef enum redbucket_status number_parser(const char *text, double *number,
                                            struct redbucket_error *error);

static const struct setting {
    const char *name;
    size_t offset;
    number_parser *parse;
} settings[] = {
    {"rate", offsetof(struct redbucket_limit, rate), redbucket_rate_parse},
    {"burst", offsetof(struct redbucket_limit, burst), redbucket_number_parse},
    {"delay", offsetof(struct redbucket_limit, delay), redbucket_number_parse},
    {"expiry", offsetof(struct redbucket_limit, expiry), redbucket_duration_parse},
    {"lease", offsetof(struct redbucket_limit, lease), redbucket_number_parse},
    {"lease_time", offsetof(struct redbucket_limit, lease_time), redbucket_duration_parse},
    {"zone", 0, NULL},
};

#define SETTINGS_LEN (sizeof(settings) / sizeof(settings[0]))
#define SEEN_RATE    1u

static void set_field(struct redbucket_limit *limit, const struct setting *setting, double value)
{
    memcpy((char *)limit + setting->offset, &value, sizeof(value));
}

/* A limit's name and a zone's follow the same rules as on the command line, so they are read by the
 * same function. */
static int read_name(struct parse *parse, int line, const char *what, const char *text,
                     char out[REDBUCKET_ZONE_MAX + 1])
{
    struct redbucket_named_limit named;
    char limit_text[REDBUCKET_ZONE_MAX + 8];
    const size_t len = strlen(text);

    if (len == 0)
        return fault_at(parse, line, "%s is empty, expected a name", what);
    if (len > REDBUCKET_ZONE_MAX)
        return fault_at(parse, line, "%s \"%.*s...\": longer than %d bytes", what, SHOWN, text,
                        REDBUCKET_ZONE_MAX);
    snprintf(limit_text, sizeof(limit_text), "%s:1", text);
    if (redbucket_limit_parse(limit_text, &named, NULL) != REDBUCKET_OK || strchr(text, ':'))
        return fault_at(parse, line, "%s \"%.*s\": expected only A-Z a-z 0-9 _ . -", what, SHOWN,
                        text);
    memcpy(out, text, len + 1);
    return 0;
}

/* Adds an empty limit for a section that was just met. */
static int begin_limit(struct parse *parse, const cfg_t *section)
{
    struct cli_config *config = parse->config;
    struct redbucket_named_limit **grown;

    if (config->limits_len == CLI_CONFIG_LIMITS_MAX)
        return fault_at(parse, section->line, "more than %d limits", CLI_CONFIG_LIMITS_MAX);
    grown = realloc(config->limits, (config->limits_len + 1) * sizeof(*grown));
    if (grown == NULL)
        return fault_at(parse, section->line, "out of memory");
    config->limits = grown;
    parse->limit = calloc(1, sizeof(*parse->limit));
    if (parse->limit == NULL)
        return fault_at(parse, section->line, "out of memory");
    config->limits[config->limits_len++] = parse->limit;
    parse->limit->limit.size = sizeof(parse->limit->limit);
    parse->section = section;
    parse->seen = 0;
    return read_name(parse, section->line, "limit", section->title, parse->limit->name);
}

/* Reads a number into the limit and checks it alone, so that the fault is on its line. */
static int read_number(struct parse *parse, int line, const struct setting *setting,
                       const char *value)
{
    struct redbucket_limit probe = {.size = sizeof(probe), .rate = 1.0, .zone = "x"};
    struct redbucket_error error;
    double number;

    if (setting->parse(value, &number, &error) != REDBUCKET_OK)
        return fault_at(parse, line, "%s: %s", setting->name, error.message);
    set_field(&probe, setting, number);
    if (redbucket_limit_check(&probe, &error) != REDBUCKET_OK)
        return fault_at(parse, line, "%s", error.message);
    set_field(&parse->limit->limit, setting, number);
    return 0;
}

/* libConfuse's parsing callback of everything inside a section. A word such as "limit=a|rate"
 * reaches into a section from outside it, and then `section` isn't that of the setting. */
static int on_setting(cfg_t *section, cfg_opt_t *option, const char *value, void *result)
{
    struct parse *parse = current;
    size_t index = 0;

    if (section->title == NULL)
        return fault_at(parse, section->line, "\"%s\": expected store or limit", option->name);
    if (section != parse->section && begin_limit(parse, section) != 0)
        return -1;
    while (index + 1 < SETTINGS_LEN && strcmp(settings[index].name, option->name) != 0)
        index++;
    if (parse->seen & (1u << index))
        return fault_at(parse, section->line, "%s is given twice", option->name);
    parse->seen |= 1u << index;
    *(const char **)result = value;
    if (settings[index].parse == NULL)
        return read_name(parse, section->line, "zone", value, parse->limit->zone);
    return read_number(parse, section->line, &settings[index], value);
}

static int check_zone(struct parse *parse, int line)
{
    const struct redbucket_named_limit *limit = parse->limit;

    for (size_t i = 0; i + 1 < parse->config->limits_len; i++) {
        const struct redbucket_named_limit *other = parse->config->limits[i];

        if (strcmp(other->zone, limit->zone) == 0)
            return fault_at(parse, line, "limit %.*s: its zone %.*s is that of limit %.*s already",
                            SHOWN, limit->name, SHOWN, limit->zone, SHOWN, other->name);
    }
    return 0;
}

/* libConfuse's validation callback of a section, called behind its closing brace. */
static int on_limit(cfg_t *root, cfg_opt_t *option)
{
    const cfg_t *section = cfg_opt_getnsec(option, cfg_opt_size(option) - 1);
    struct redbucket_error error;
    struct parse *parse = current;
    struct redbucket_limit *limit;

    if (section != parse->section && begin_limit(parse, section) != 0)
        return -1;
    limit = &parse->limit->limit;
    if (!(parse->seen & SEEN_RATE))
        return fault_at(parse, root->line, "limit %.*s: expected a rate, for instance rate = 5/s",
                        SHOWN, parse->limit->name);
    if (parse->limit->zone[0] == '\0')
        memcpy(parse->limit->zone, parse->limit->name, sizeof(parse->limit->zone));
    limit->zone = parse->limit->zone;
    limit->zone_len = strlen(limit->zone);
    if (redbucket_limit_check(limit, &error) != REDBUCKET_OK)
        return fault_at(parse, root->line, "limit %.*s: %s", SHOWN, parse->limit->name,
                        error.message);
    return check_zone(parse, root->line);
}

/* ---- The whole ----------------------------------------------------------------------------- */

static int on_store(cfg_t *root, cfg_opt_t *option, const char *value, void *result)
{
    struct parse *parse = current;

    (void)option;
    if (parse->config->store != NULL)
        return fault_at(parse, root->line, "store is given twice");
    if (value[0] == '\0')
        return fault_at(parse, root->line, "store: expected a URL, for instance \"shm:redbucket\"");
    parse->config->store_line = root->line;
    parse->config->store = strdup(value);
    if (parse->config->store == NULL)
        return fault_at(parse, root->line, "out of memory");
    *(const char **)result = value;
    return 0;
}

static void run_libconfuse(struct parse *parse, const char *text)
{
    cfg_opt_t section[] = {
        CFG_STR_CB("rate", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("burst", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("delay", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("expiry", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("zone", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("lease", NULL, CFGF_NODEFAULT, on_setting),
        CFG_STR_CB("lease_time", NULL, CFGF_NODEFAULT, on_setting),
        CFG_END(),
    };
    cfg_opt_t root[] = {
        CFG_STR_CB("store", NULL, CFGF_NODEFAULT, on_store),
        CFG_SEC("limit", section, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
        CFG_STR(END_NAME, NULL, CFGF_NODEFAULT),
        CFG_END(),
    };
    cfg_t *cfg = cfg_init(root, CFGF_NONE);

    if (cfg == NULL) {
        fault_at(parse, 0, "out of memory");
        return;
    }
    current = parse;
    cfg_set_error_function(cfg, on_error);
    cfg_set_validate_func(cfg, "limit", on_limit);
    if (cfg_parse_buf(cfg, text) != CFG_SUCCESS)
        fault_at(parse, cfg->line, "not understood");
    else if (cfg_getstr(cfg, END_NAME) == NULL)
        fault_at(parse, parse->last_line + 1, "%s", file_ends);
    current = NULL;
    cfg_free(cfg);
}

static int count_lines(const char *text, size_t len)
{
    int lines = 1;

    for (size_t i = 0; i + 1 < len; i++)
        lines += text[i] == '\n';
    return lines;
}

enum redbucket_status rbk_config_parse(const char *text, size_t len, struct cli_config *config,
                                       struct cli_config_fault *fault)
{
    static const char end[] = "\n" END_NAME " = 1\n";
    struct parse parse = {.config = config, .fault = fault, .last_line = count_lines(text, len)};
    char *copy;

    memset(config, 0, sizeof(*config));
    memset(fault, 0, sizeof(*fault));
    if (len > CLI_CONFIG_BYTES_MAX) {
        fault_at(&parse, 0, "longer than %u bytes", CLI_CONFIG_BYTES_MAX);
        return REDBUCKET_ERROR_ARGUMENT;
    }
    copy = malloc(len + sizeof(end));
    if (copy == NULL) {
        fault_at(&parse, 0, "out of memory");
        return REDBUCKET_ERROR_MEMORY;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (rbk_config_scan(copy, len, fault)) {
        memcpy(copy + len, end, sizeof(end));
        run_libconfuse(&parse, copy);
    } else {
        parse.failed = true;
    }
    free(copy);
    if (!parse.failed)
        return REDBUCKET_OK;
    rbk_config_fini(config);
    return REDBUCKET_ERROR_ARGUMENT;
}

void rbk_config_fini(struct cli_config *config)
{
    for (size_t i = 0; i < config->limits_len; i++)
        free(config->limits[i]);
    free(config->limits);
    free(config->store);
    memset(config, 0, sizeof(*config));
}
