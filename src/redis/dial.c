/* SPDX-License-Identifier: MIT */
/*
 * Sockets that never block, are closed on exec, send at once and notice after a while that nobody
 * is at the other end any more.
 */
#include "redis/dial.h"

#include "wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define KEEPALIVE_IDLE_S     60
#define KEEPALIVE_INTERVAL_S 15
#define KEEPALIVE_PROBES     4

/* Between tries while a Unix socket's queue is full, which nothing else tells the end of. */
#define QUEUE_PAUSE_MS 5

bool rbk_address_of_path(const char *path, struct rbk_address *address)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof place.sun_path)
        return false;
    memcpy(place.sun_path, path, len + 1);
    memcpy(&address->bytes, &place, sizeof place);
    address->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    return true;
}

static void set(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

static void tune(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

/* Where nobody listens on a port of this machine's own choosing, a socket can meet itself. */
static bool met_itself(int fd)
{
    struct sockaddr_storage ours = {0};
    struct sockaddr_storage theirs = {0};
    socklen_t ours_len = sizeof ours;
    socklen_t theirs_len = sizeof theirs;

    return getsockname(fd, (struct sockaddr *)&ours, &ours_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &theirs_len) == 0 &&
           ours_len == theirs_len && memcmp(&ours, &theirs, ours_len) == 0;
}

/* Waits for the outcome of a connect under way. Returns 0 or an error's number. */
static int finish(struct rbk_stream *stream, const struct rbk_deadline *deadline)
{
    int number = rbk_stream_wait(stream, POLLOUT, deadline);
    int outcome = 0;
    socklen_t len = sizeof outcome;

    if (number != 0)
        return number;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &outcome, &len) != 0)
        return rbk_wait_errno();
    return outcome;
}

static int connect_now(struct rbk_stream *stream, const struct rbk_address *address,
                       const struct rbk_deadline *deadline)
{
    while (connect(stream->fd, (const struct sockaddr *)&address->bytes, address->len) != 0) {
        int number = rbk_wait_errno();

        if (number == EINPROGRESS || number == EINTR)
            return finish(stream, deadline);
        if (number != EAGAIN)
            return number;
        int left_ms = rbk_deadline_left_ms(deadline);

        if (left_ms == 0)
            return ETIMEDOUT;
        rbk_wait_pause((left_ms < QUEUE_PAUSE_MS ? left_ms : QUEUE_PAUSE_MS) * 1e-3);
    }
    return 0;
}

/* Returns 0 or an error's number; then there is no descriptor. */
static int try_one(struct rbk_stream *stream, const struct rbk_address *address,
                   const struct rbk_deadline *deadline)
{
    bool is_unix = address->bytes.ss_family == AF_UNIX;
    int number;

    stream->fd = socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stream->fd < 0)
        return rbk_wait_errno();
    if (!is_unix)
        tune(stream->fd);
    number = connect_now(stream, address, deadline);
    if (number == 0 && !is_unix && met_itself(stream->fd))
        number = ECONNREFUSED;
    if (number != 0)
        rbk_stream_close(stream);
    return number;
}

static bool is_shortage(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

static enum redbucket_status tell(struct rbk_stream *stream, int number,
                                  const struct rbk_deadline *deadline)
{
    if (number == ETIMEDOUT && rbk_deadline_left(deadline) <= 0.0) {
        (void)snprintf(stream->failure, sizeof stream->failure, "no connection in time");
        return REDBUCKET_ERROR_TIMEOUT;
    }
    rbk_stream_blame(stream, number);
    if (!is_shortage(number))
        return REDBUCKET_ERROR_UNAVAILABLE;
    return number == ENOMEM ? REDBUCKET_ERROR_MEMORY : REDBUCKET_ERROR_SYSTEM;
}

enum redbucket_status rbk_dial(const struct rbk_addresses *addresses,
                               const struct rbk_deadline *deadline, struct rbk_stream *stream)
{
    int number = EADDRNOTAVAIL;

    for (size_t i = 0; i < addresses->len; i++) {
        struct rbk_deadline share = *deadline;
        size_t untried = addresses->len - i;

        if (untried > 1)
            rbk_deadline_start(&share, rbk_deadline_left(deadline) / (double)untried);
        stream->late = false;
        number = try_one(stream, &addresses->at[i], &share);
        if (number == 0 || is_shortage(number) || rbk_deadline_left(deadline) <= 0.0)
            break;
    }
    return number == 0 ? REDBUCKET_OK : tell(stream, number, deadline);
}
