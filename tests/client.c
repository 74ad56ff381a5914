/* SPDX-License-Identifier: MIT */
/*
 * A blocking socket and hiredis' reader. Whatever goes wrong with the connection makes the call
 * return NULL or false; what that means is for the test to say.
 */
#include "client.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 30
#define WORDS_MAX  32

struct test_client {
    int fd;
    redisReader *reader;
};

static bool be_patient(int fd, double seconds)
{
    const struct timeval patience = {.tv_sec = (time_t)seconds,
                                     .tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6)};

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
}

static struct test_client *open_at(const struct sockaddr *address, socklen_t size)
{
    struct test_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client->reader = redisReaderCreate();
    if (client->fd >= 0 && client->reader != NULL && connect(client->fd, address, size) == 0 &&
        be_patient(client->fd, PATIENCE_S))
        return client;
    test_client_close(client);
    return NULL;
}

struct test_client *test_client_open(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(socket_path) >= sizeof address.sun_path)
        return NULL;
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    return open_at((const struct sockaddr *)&address, sizeof address);
}

struct test_client *test_client_connect(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return open_at((const struct sockaddr *)&address, sizeof address);
}

void test_client_patience(struct test_client *client, double seconds)
{
    (void)be_patient(client->fd, seconds);
}

void test_client_close(struct test_client *client)
{
    if (client == NULL)
        return;
    if (client->fd >= 0)
        close(client->fd);
    if (client->reader != NULL)
        redisReaderFree(client->reader);
    free(client);
}

bool test_client_send(struct test_client *client, int argc, const char **argv,
                      const size_t *lengths)
{
    char *text = NULL;
    long long len = redisFormatCommandArgv(&text, argc, argv, lengths);
    long long sent = 0;

    while (sent < len) {
        ssize_t n = send(client->fd, text + sent, (size_t)(len - sent), MSG_NOSIGNAL);

        if (n <= 0)
            break;
        sent += n;
    }
    redisFreeCommand(text);
    return len > 0 && sent == len;
}

redisReply *test_client_receive(struct test_client *client)
{
    void *reply = NULL;
    char bytes[16384];

    while (redisReaderGetReply(client->reader, &reply) == REDIS_OK && reply == NULL) {
        ssize_t n = recv(client->fd, bytes, sizeof bytes, 0);

        if (n <= 0 || redisReaderFeed(client->reader, bytes, (size_t)n) != REDIS_OK)
            return NULL;
    }
    return reply;
}

redisReply *test_client_call(struct test_client *client, int argc, const char **argv,
                             const size_t *lengths)
{
    return test_client_send(client, argc, argv, lengths) ? test_client_receive(client) : NULL;
}

redisReply *test_client_ask(struct test_client *client, const char *word, ...)
{
    const char *argv[WORDS_MAX];
    int argc = 0;
    va_list words;

    va_start(words, word);
    for (; word != NULL && argc < WORDS_MAX; word = va_arg(words, const char *))
        argv[argc++] = word;
    va_end(words);
    return word == NULL ? test_client_call(client, argc, argv, NULL) : NULL;
}
