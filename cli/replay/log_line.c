/* SPDX-License-Identifier: MIT */
/*
 * Taking a log line apart.
 *
 * The request is found first: it begins at the first quote with a whole time right before it. A
 * client chooses its user name and the request's text, and both may hold anything that looks like
 * a time, but never a bare quote: servers write \" or \x22. So nobody can move the time of a line.
 *
 * Fields keep the server's escapes: two texts that differ in the log stay two keys.
 */
#include "log_line.h"

#include "log_time.h"

#include <stdio.h>
#include <string.h>

/* What is not read yet. */
struct rest {
    const char *at;
    const char *end;
};

static enum redbucket_status fail(struct redbucket_error *error, const char *message)
{
    if (error) {
        error->status = REDBUCKET_ERROR_ARGUMENT;
        error->position = -1;
        snprintf(error->message, sizeof(error->message), "%s", message);
    }
    return REDBUCKET_ERROR_ARGUMENT;
}

static struct rbk_span between(const char *from, const char *to)
{
    return (struct rbk_span){from, (size_t)(to - from)};
}

/* "[17/May/2015:10:05:03 +0000] " in front of the request's quote. */
enum { TIME_FIELD_LEN = RBK_LOG_TIME_LEN + 3 };

/* Whether a whole time stands right before `quote`. */
static bool time_before(const char *line, const char *quote, int64_t *time_s)
{
    const char *open = quote - TIME_FIELD_LEN;

    /* A blank in front of the bracket, and room for an address in front of that. */
    if (quote - line < TIME_FIELD_LEN + 2)
        return false;
    return open[-1] == ' ' && open[0] == '[' && quote[-2] == ']' && quote[-1] == ' ' &&
           rbk_log_time_parse(open + 1, time_s);
}

/* Where the request's opening quote is, or NULL. */
static const char *request_find(struct rbk_span line, int64_t *time_s)
{
    const char *end = line.bytes + line.len;
    const char *from = line.bytes;

    while (from < end) {
        const char *quote = memchr(from, '"', (size_t)(end - from));

        if (!quote || time_before(line.bytes, quote, time_s))
            return quote;
        from = quote + 1;
    }
    return NULL;
}

/* ADDRESS IDENT USER, the user being all that is left: a name may hold blanks. */
static bool client_parse(struct rbk_span text, struct rbk_log_line *parsed)
{
    const char *end = text.bytes + text.len;
    const char *address_end = memchr(text.bytes, ' ', text.len);
    const char *ident_end;

    if (!address_end || address_end == text.bytes)
        return false;
    ident_end = memchr(address_end + 1, ' ', (size_t)(end - address_end - 1));
    if (!ident_end)
        return false;
    parsed->fields[RBK_LOG_REMOTE_ADDR] = between(text.bytes, address_end);
    parsed->fields[RBK_LOG_REMOTE_USER] = between(ident_end + 1, end);
    return true;
}

/* Whether an odd number of backslashes stands before `quote`: then it belongs to the text. */
static bool escaped(const char *from, const char *quote)
{
    const char *run = quote;

    while (run > from && run[-1] == '\\')
        run--;
    return (quote - run) % 2 != 0;
}

/* A quoted text; `at` is behind its opening quote and ends up behind its closing one. */
static bool quoted_parse(struct rest *rest, struct rbk_span *text)
{
    const char *from = rest->at;
    const char *quote = from;

    while ((quote = memchr(quote, '"', (size_t)(rest->end - quote)))) {
        if (!escaped(from, quote)) {
            *text = between(from, quote);
            rest->at = quote + 1;
            return true;
        }
        quote++;
    }
    return false;
}

/* METHOD URI PROTOCOL. What has no blank is no HTTP, and has neither method nor URI. */
static void request_parse(struct rbk_span request, struct rbk_log_line *parsed)
{
    const char *end = request.bytes + request.len;
    const char *method_end = memchr(request.bytes, ' ', request.len);
    const char *uri_end;
    const char *query;

    if (!method_end)
        return;
    uri_end = memrchr(method_end + 1, ' ', (size_t)(end - method_end - 1));
    if (!uri_end || end - uri_end < 6 || memcmp(uri_end + 1, "HTTP/", 5) != 0)
        uri_end = end;
    query = memchr(method_end + 1, '?', (size_t)(uri_end - method_end - 1));
    parsed->fields[RBK_LOG_REQUEST_METHOD] = between(request.bytes, method_end);
    parsed->fields[RBK_LOG_URI] = between(method_end + 1, query ? query : uri_end);
}

/* A blank and a number, or a '-' in its place. */
static bool number_parse(struct rest *rest, struct rbk_span *number)
{
    const char *from = rest->at + 1;
    const char *to = from;

    if (rest->at >= rest->end || *rest->at != ' ')
        return false;
    while (to < rest->end && *to >= '0' && *to <= '9')
        to++;
    if (to == from && to < rest->end && *to == '-')
        to++;
    if (to == from || (to < rest->end && *to != ' '))
        return false;
    *number = between(from, to);
    rest->at = to;
    return true;
}

/* Three digits, or '-'. */
static bool status_parse(struct rest *rest, struct rbk_span *status)
{
    return number_parse(rest, status) && (status->len == 3 || status->bytes[0] == '-');
}

/* "REFERRER" "AGENT" where they are given. False when they begin and don't end. */
static bool agent_parse(struct rest *rest, struct rbk_log_line *parsed)
{
    struct rbk_span referrer;

    parsed->combined = rest->end - rest->at >= 2 && rest->at[0] == ' ' && rest->at[1] == '"';
    if (!parsed->combined)
        return true;
    rest->at += 2;
    if (!quoted_parse(rest, &referrer))
        return false;
    if (rest->end - rest->at < 2 || rest->at[0] != ' ' || rest->at[1] != '"')
        return false;
    rest->at += 2;
    return quoted_parse(rest, &parsed->fields[RBK_LOG_HTTP_USER_AGENT]);
}

enum redbucket_status rbk_log_parse(struct rbk_span line, struct rbk_log_line *parsed,
                                    struct redbucket_error *error)
{
    struct rbk_log_line found = {0};
    const char *quote = request_find(line, &found.time_s);
    struct rest rest = {quote, line.bytes + line.len};
    struct rbk_span request;
    struct rbk_span size;

    if (!quote)
        return fail(error, "expected [day/month/year:time zone] and a quoted request");
    if (!client_parse(between(line.bytes, quote - TIME_FIELD_LEN - 1), &found))
        return fail(error, "expected an address, an identity and a user in front of the time");
    rest.at++;
    if (!quoted_parse(&rest, &request))
        return fail(error, "the request's closing quote is missing");
    request_parse(request, &found);
    if (!status_parse(&rest, &found.fields[RBK_LOG_STATUS]) || !number_parse(&rest, &size))
        return fail(error, "expected a status and a size behind the request");
    if (!agent_parse(&rest, &found))
        return fail(error, "expected a quoted referrer and a quoted user agent at the end");
    *parsed = found;
    return REDBUCKET_OK;
}
