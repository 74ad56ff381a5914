/* SPDX-License-Identifier: MIT */
/*
 * The life of a server: folder, configuration, process, and that nothing of it stays behind.
 *
 * The kernel kills it with its parent (PR_SET_PDEATHSIG), so that a test that crashes leaves no
 * process; one that ends in any other way leaves no folder either (atexit).
 */
#include "server.h"

#include "server_program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_S    30
#define END_S      5
#define TRIES      5
#define PORT_FIRST 10000 /* below where the kernel takes ports for outgoing connections */
#define PORTS      20000

/* Of nodes of a cluster: what they tell each other goes to the port 10000 above, and those above
 * are nobody else's. */
#define NODE_FIRST 20000
#define NODE_PORTS 2768
#define NODE_BUS   10000
#define WORDS_MAX  32
#define FILES_MAX  4096
#define LOG_LINES  10
#define REMOVE_FDS 16
#define PAUSE_NS   1000000
#define VERSION_7  70000

static struct test_server *servers;
static pid_t owner;

/* ---- Time, ports, words --------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Nobody has it now; who takes it before the server does makes the server fail to start. */
static bool port_is_free(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool free = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        close(fd);
    return free;
}

static int free_port(bool node)
{
    static unsigned step;
    unsigned first = node ? NODE_FIRST : PORT_FIRST;
    unsigned ports = node ? NODE_PORTS : PORTS;
    int port;

    do {
        port = (int)(first + ((unsigned)getpid() * 7919U + step++ * 104729U) % ports);
    } while (!port_is_free(port) || (node && !port_is_free(port + NODE_BUS)));
    return port;
}

static int collect(const char **argv, const char *word, va_list words)
{
    int argc = 0;

    for (; word != NULL && argc < WORDS_MAX; word = va_arg(words, const char *))
        argv[argc++] = word;
    return argc;
}

/* ---- Folder --------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_folder(const char *path)
{
    if (nftw(path, remove_entry, REMOVE_FDS, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "# %s: not removed: %s\n", path, strerror(errno));
}

static bool make_certificates(const struct test_server *server)
{
    char command[512];

    snprintf(command, sizeof command, "'%s' '%s'", TEST_CERTIFICATES, server->directory);
    return system(command) == 0;
}

static void write_tls(FILE *file, const struct test_server *server)
{
    fprintf(file,
            "tls-port %d\ntls-cert-file %s/server.pem\ntls-key-file %s/server.key\n"
            "tls-ca-cert-file %s/ca.pem\ntls-auth-clients no\n",
            server->tls_port, server->directory, server->directory, server->directory);
}

static bool write_config(const struct test_server *server, const char *config)
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof path, "%s/server.conf", server->directory);
    file = fopen(path, "we");
    if (file == NULL)
        return false;
    fprintf(file,
            "bind 127.0.0.1\nport %d\nunixsocket %s\ndir %s\nlogfile %s/server.log\n"
            "save \"\"\nappendonly no\n",
            server->port, server->socket, server->directory, server->directory);
    if (server->version >= VERSION_7)
        fputs("enable-debug-command yes\n", file);
    if (server->password[0] != '\0')
        fprintf(file, "requirepass %s\n", server->password);
    if (server->tls_port != 0)
        write_tls(file, server);
    if (config != NULL)
        fprintf(file, "%s\n", config);
    return fclose(file) == 0;
}

/* The last lines that the server wrote, as comments of TAP. */
static void show_log(const struct test_server *server)
{
    char command[256];

    fflush(stderr);
    snprintf(command, sizeof command,
             "tail -n %d '%s'/server.log '%s'/output 2>&1 | sed 's/^/# /' >&2", LOG_LINES,
             server->directory, server->directory);
    if (system(command) != 0)
        fputs("# no log\n", stderr);
}

/* ---- Process -------------------------------------------------------------------------------- */

/* Runs in the child, which may have been one of many threads: only what a signal handler may. The
 * test's own connections must not stay open in here. */
static _Noreturn void become(const char *program, const struct test_server *server, pid_t parent)
{
    char config[96];
    char output[96];
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    snprintf(config, sizeof config, "%s/server.conf", server->directory);
    snprintf(output, sizeof output, "%s/output", server->directory);
    fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    close(STDIN_FILENO);
    if (open("/dev/null", O_RDONLY) != STDIN_FILENO)
        _exit(126);
    for (fd = STDERR_FILENO + 1; fd < FILES_MAX; fd++)
        close(fd);
    execl(program, program, config, server->sentinel ? "--sentinel" : (char *)NULL, (char *)NULL);
    _exit(127);
}

/* True when it has ended by then. */
static bool reaped(struct test_server *server, double until_s)
{
    while (waitpid(server->pid, NULL, WNOHANG) == 0) {
        if (now_s() >= until_s)
            return false;
        pause_briefly();
    }
    server->pid = 0;
    return true;
}

/* A new connection, logged in; NULL when nobody listens or it can't log in. */
static struct test_client *greet(const struct test_server *server)
{
    struct test_client *client = test_client_open(server->socket);
    redisReply *reply;

    if (client == NULL || server->password[0] == '\0')
        return client;
    reply = test_client_ask(client, "AUTH", server->password, NULL);
    freeReplyObject(reply);
    if (reply != NULL)
        return client;
    test_client_close(client);
    return NULL;
}

/* It listens some time before it serves: while it loads its data it says so. */
static bool serves(const struct test_server *server)
{
    struct test_client *client = greet(server);
    redisReply *reply = client != NULL ? test_client_ask(client, "PING", NULL) : NULL;
    bool loading =
        reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0;
    bool good = reply != NULL && !loading;

    freeReplyObject(reply);
    test_client_close(client);
    return good;
}

static bool await_ready(struct test_server *server)
{
    double until_s = now_s() + READY_S;

    while (now_s() < until_s) {
        if (serves(server))
            return true;
        if (reaped(server, 0))
            return false;
        pause_briefly();
    }
    return false;
}

bool test_server_again(struct test_server *server)
{
    char program[PATH_MAX];
    pid_t parent = getpid();

    if (server->pid != 0 || !test_server_program(server->kind, program))
        return false;
    unlink(server->socket);
    server->pid = fork();
    if (server->pid == 0)
        become(program, server, parent);
    if (server->pid > 0 && await_ready(server))
        return true;
    test_server_kill(server);
    server->pid = 0; /* also where fork had failed */
    return false;
}

static void hang_up(struct test_server *server)
{
    test_client_close(server->client);
    server->client = NULL;
}

void test_server_kill(struct test_server *server)
{
    hang_up(server);
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void test_server_end(struct test_server *server)
{
    hang_up(server);
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGTERM);
    kill(server->pid, SIGCONT);
    if (!reaped(server, now_s() + END_S))
        test_server_kill(server);
}

/* ---- From beginning to end ------------------------------------------------------------------ */

static void stop_all(void)
{
    if (getpid() != owner)
        return;
    while (servers != NULL)
        test_server_stop(servers);
}

static void enlist(struct test_server *server)
{
    if (owner != getpid()) {
        owner = getpid();
        servers = NULL;
        atexit(stop_all);
    }
    server->next = servers;
    servers = server;
}

static bool prepare(struct test_server *server, const struct test_server_options *options)
{
    char program[PATH_MAX];

    if (!test_server_program(options->kind, program))
        return false;
    server->kind = options->kind;
    server->version = test_server_version(program);
    server->sentinel = options->sentinel;
    if (options->password != NULL)
        snprintf(server->password, sizeof server->password, "%s", options->password);
    snprintf(server->directory, sizeof server->directory, "/tmp/redbucket-server-XXXXXX");
    if (mkdtemp(server->directory) == NULL) {
        server->directory[0] = '\0';
        return false;
    }
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->directory);
    return !options->tls || make_certificates(server);
}

static bool launch(struct test_server *server, const struct test_server_options *options)
{
    for (int i = 0; i < TRIES; i++) {
        server->port = free_port(options->node);
        server->tls_port = options->tls ? free_port(options->node) : 0;
        if (write_config(server, options->config) && test_server_again(server))
            return true;
    }
    return false;
}

struct test_server *test_server_start(const struct test_server_options *options)
{
    struct test_server *server = calloc(1, sizeof *server);

    if (server == NULL)
        return NULL;
    enlist(server);
    if (prepare(server, options) && launch(server, options))
        return server;
    fprintf(stderr, "# %s: no server\n", test_server_name(options->kind));
    if (server->directory[0] != '\0')
        show_log(server);
    test_server_stop(server);
    return NULL;
}

void test_server_stop(struct test_server *server)
{
    struct test_server **link = &servers;

    if (server == NULL)
        return;
    while (*link != NULL && *link != server)
        link = &(*link)->next;
    if (*link == server)
        *link = server->next;
    test_server_end(server);
    if (server->directory[0] != '\0')
        remove_folder(server->directory);
    free(server);
}

/* ---- What tests ask it ---------------------------------------------------------------------- */

void test_server_url(const struct test_server *server, enum test_server_way way, const char *query,
                     char *url, size_t size)
{
    const char *mark = server->password[0] != '\0' ? "@" : "";
    const char *colon = server->password[0] != '\0' ? ":" : "";
    const char *more = query[0] != '\0' ? (way == TEST_BY_TLS ? "&" : "?") : "";

    if (way == TEST_BY_SOCKET)
        snprintf(url, size, "unix://%s%s%s%s%s%s", colon, server->password, mark, server->socket,
                 more, query);
    else if (way == TEST_BY_PORT)
        snprintf(url, size, "redis://%s%s%s127.0.0.1:%d%s%s", colon, server->password, mark,
                 server->port, more, query);
    else
        snprintf(url, size, "rediss://%s%s%slocalhost:%d?ca=%s/ca.pem%s%s", colon, server->password,
                 mark, server->tls_port, server->directory, more, query);
}

/* The connection is made again when it was lost, to a server that was started again, say. */
redisReply *test_server_call(struct test_server *server, int argc, const char **argv,
                             const size_t *lengths)
{
    redisReply *reply;

    if (server->client == NULL)
        server->client = greet(server);
    if (server->client == NULL)
        return NULL;
    reply = test_client_call(server->client, argc, argv, lengths);
    if (reply == NULL)
        hang_up(server);
    return reply;
}

redisReply *test_server_ask(struct test_server *server, const char *word, ...)
{
    const char *argv[WORDS_MAX];
    int argc;
    va_list words;

    va_start(words, word);
    argc = collect(argv, word, words);
    va_end(words);
    return test_server_call(server, argc, argv, NULL);
}

bool test_server_do(struct test_server *server, const char *word, ...)
{
    const char *argv[WORDS_MAX];
    redisReply *reply;
    int argc;
    bool good;
    va_list words;

    va_start(words, word);
    argc = collect(argv, word, words);
    va_end(words);
    reply = test_server_call(server, argc, argv, NULL);
    good = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    if (reply != NULL && !good)
        fprintf(stderr, "# %s: %s\n", word, reply->str);
    freeReplyObject(reply);
    return good;
}

long long test_server_info(struct test_server *server, const char *name)
{
    redisReply *reply = test_server_ask(server, "INFO", NULL);
    const char *line = reply != NULL && reply->str != NULL ? reply->str : "";
    size_t name_len = strlen(name);
    long long number = -1;

    for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, name, name_len) == 0 && line[name_len] == ':')
            number = strtoll(line + name_len + 1, NULL, 10);
    }
    freeReplyObject(reply);
    return number;
}

long long test_server_calls(struct test_server *server, const char *command)
{
    redisReply *reply = test_server_ask(server, "INFO", "commandstats", NULL);
    char name[64];

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *found = reply != NULL && reply->str != NULL ? strstr(reply->str, name) : NULL;
    long long calls = found != NULL ? strtoll(found + strlen(name), NULL, 10) : 0;

    freeReplyObject(reply);
    return calls;
}
