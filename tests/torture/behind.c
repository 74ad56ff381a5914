/* SPDX-License-Identifier: MIT */
/*
 * Two pipes and a child. It sees the end of its input when this program ends, however that comes.
 */
#include "behind.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

struct behind {
    pid_t pid;
    FILE *to;
    FILE *from;
    char line[BEHIND_LINE];
};

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "# world: %s\n", why);
    exit(1);
}

static const char *hear(struct behind *behind)
{
    if (fgets(behind->line, sizeof behind->line, behind->from) == NULL)
        give_up("it is gone");
    behind->line[strcspn(behind->line, "\n")] = '\0';
    return behind->line;
}

static void begin(struct behind *behind, const char *program, const char *store, uint64_t seed)
{
    int to[2];
    int from[2];
    char number[24];

    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    if (pipe(to) != 0 || pipe(from) != 0)
        give_up("no pipe");
    behind->pid = fork();
    if (behind->pid == 0) {
        if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0)
            _exit(126);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        execl(program, program, store, number, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    behind->to = fdopen(to[1], "w");
    behind->from = fdopen(from[0], "r");
    if (behind->pid < 0 || behind->to == NULL || behind->from == NULL)
        give_up("not started");
}

struct behind *behind_start(const char *program, const char *store, uint64_t seed, char *url)
{
    struct behind *behind = calloc(1, sizeof *behind);

    if (behind == NULL)
        give_up("no memory");
    begin(behind, program, store, seed);
    (void)snprintf(url, BEHIND_LINE, "%s", hear(behind));
    if (strcmp(url, "missing") == 0) {
        printf("%s: SKIPPED: there is no such server here\n", store);
        exit(SKIPPED);
    }
    return behind;
}

void behind_stop(struct behind *behind)
{
    (void)fclose(behind->to);
    (void)fclose(behind->from);
    (void)waitpid(behind->pid, NULL, 0);
    free(behind);
}

const char *behind_ask(struct behind *behind, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(behind->to, format, arguments);
    va_end(arguments);
    if (fputc('\n', behind->to) == EOF || fflush(behind->to) != 0)
        give_up("it doesn't listen");
    return hear(behind);
}

bool behind_value(struct behind *behind, const char *limit, const char *key, double *value)
{
    const char *said = behind_ask(behind, "value redbucket:%s:%s", limit, key);

    return sscanf(said, "%*f %lf", value) == 1;
}
