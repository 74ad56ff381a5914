/* SPDX-License-Identifier: MIT */
/*
 * From doubles to the whole numbers of HTTP. Waits are rounded up, and what is given is rounded
 * down, so that a client who believes them is never rejected for it.
 */
#include "http_field.h"

#include <math.h>

/* What divisions lose of a number is not worth a second, nor a request. */
#define TOLERANCE 1e-13

/* Nor is half the tick, by which the model lets a client come too early. */
#define EARLY 1e-6

static uint64_t whole(double number)
{
    if (!(number > 0.0))
        return 0;
    return number < (double)RBK_HTTP_INTEGER_MAX ? (uint64_t)number : RBK_HTTP_INTEGER_MAX;
}

static uint64_t seconds_up(double seconds)
{
    return whole(ceil(seconds - EARLY));
}

static uint64_t at_least_1(uint64_t number)
{
    return number > 1 ? number : 1;
}

uint64_t rbk_http_at_once(const struct rbk_limit *limit)
{
    return whole(floor(limit->burst) + 1.0);
}

struct rbk_http_policy rbk_http_policy(const struct rbk_limit *limit)
{
    const uint64_t at_once = rbk_http_at_once(limit);
    const double refill = (double)at_once / limit->rate;
    const uint64_t window = at_least_1(whole(ceil(refill - refill * TOLERANCE)));
    const double given = limit->rate * (double)window;
    const uint64_t quota = whole(floor(given + given * TOLERANCE));

    return (struct rbk_http_policy){quota > at_once ? quota : at_once, window};
}

uint64_t rbk_http_remaining(const struct redbucket_verdict *verdict)
{
    return whole((double)verdict->remaining);
}

uint64_t rbk_http_retry_after(const struct redbucket_request *request)
{
    if (request->status != REDBUCKET_OK)
        return 1;
    if (request->response.accepted || isinf(request->response.retry_after))
        return 0;
    return at_least_1(seconds_up(request->response.retry_after));
}

/* The level is rate * reset_after, and one request passes again once it has fallen to burst. */
static double until_one(const struct rbk_limit *limit, const struct redbucket_verdict *verdict)
{
    return verdict->reset_after - limit->burst / limit->rate;
}

static uint64_t reset_alone(const struct rbk_limit *limit, const struct redbucket_verdict *verdict)
{
    if (!verdict->accepted)
        return isinf(verdict->retry_after) ? 0 : at_least_1(seconds_up(verdict->retry_after));
    if (verdict->remaining > 0)
        return seconds_up(verdict->reset_after);
    return at_least_1(seconds_up(until_one(limit, verdict)));
}

/* The draft wants no Retry-After before any of the resets; what another limit has left can be used
 * by then as well. */
uint64_t rbk_http_reset(const struct rbk_http_answer *answer, size_t index)
{
    const struct redbucket_verdict *verdict = &answer->request->verdicts[index];
    const uint64_t alone = reset_alone(&answer->limits[index]->limit, verdict);
    const uint64_t most = rbk_http_retry_after(answer->request);

    return most != 0 && alone > most ? most : alone;
}

void rbk_http_put_name(struct rbk_room *room, const struct rbk_named *named)
{
    static const char digits[] = "0123456789ABCDEF";

    rbk_room_put(room, "\"", 1);
    for (size_t i = 0; i < named->name_len; i++) {
        const unsigned char byte = (unsigned char)named->name[i];
        const char hex[] = {'%', digits[byte >> 4], digits[byte & 15]};
        const char escaped[] = {'\\', (char)byte};

        if (byte < 0x20 || byte > 0x7e || byte == '%')
            rbk_room_put(room, hex, sizeof hex);
        else if (byte == '"' || byte == '\\')
            rbk_room_put(room, escaped, sizeof escaped);
        else
            rbk_room_put(room, &escaped[1], 1);
    }
    rbk_room_put(room, "\"", 1);
}
