/* SPDX-License-Identifier: MIT */
/*
 * The same calls, seen from another process, by lines in the order in which things happened there:
 *
 *     b CALL WORKER OPERATION COST LIMIT=KEY...             it is about to be asked for
 *     e CALL STATUS ACCEPTED DEGRADED REMAINING
 *             BEGIN'S KEPT, BEGIN, END, END'S KEPT          it is answered, in one line
 *     s BEGIN END LATE                                      somebody who only sleeps there
 *     fault WORDS...                                        something that can't be
 *     back SECONDS LEASED DENIED
 *
 * All of it is judged here. Its time is ours: both are CLOCK_MONOTONIC.
 */
#include "forms.h"
#include "sleepers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 512 /* under way at a time */
#define LINE_SIZE 512

struct python {
    pid_t pid;
    FILE *to;
    FILE *from;
    struct worker *workers;
    double back_s;
    struct call calls[CALLS_MAX];
};

static _Noreturn void become(const int to[2], const int from[2], const char *url,
                             const char *const *numbers)
{
    const char *python = getenv("FAULTS_PYTHON");
    const char *script = getenv("FAULTS_SCRIPT");

    if (python == NULL || script == NULL || dup2(to[0], STDIN_FILENO) < 0 ||
        dup2(from[1], STDOUT_FILENO) < 0)
        _exit(126);
    close(to[0]);
    close(to[1]);
    close(from[0]);
    close(from[1]);
    execl(python, python, script, url, numbers[0], numbers[1], numbers[2], (char *)NULL);
    _exit(127);
}

struct python *python_start(struct worker *workers, const char *url, double seconds, uint64_t seed)
{
    struct python *python = calloc(1, sizeof *python);
    char texts[2][32];
    const char *const numbers[] = {texts[0], texts[1],
                                   workers[1].client->degrades ? "open" : "fail"};
    int to[2];
    int from[2];

    (void)snprintf(texts[0], sizeof texts[0], "%g", seconds);
    (void)snprintf(texts[1], sizeof texts[1], "%llu", (unsigned long long)seed);
    if (python == NULL || pipe(to) != 0 || pipe(from) != 0)
        abort();
    python->workers = workers;
    python->pid = fork();
    if (python->pid == 0)
        become(to, from, url, numbers);
    sleepers_watch(python->pid);
    close(to[0]);
    close(from[1]);
    python->to = fdopen(to[1], "w");
    python->from = fdopen(from[0], "r");
    if (python->pid < 0 || python->to == NULL || python->from == NULL)
        abort();
    return python;
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static void hear_begin(struct python *python, char *rest)
{
    unsigned number;
    unsigned worker;
    unsigned operation;
    double cost;
    const struct moment moment = moment_now();
    int len;
    struct call *call;

    if (sscanf(rest, "%u %u %u %lf%n", &number, &worker, &operation, &cost, &len) != 4)
        abort();
    call = &python->calls[number % CALLS_MAX];
    call_start(call, &python->workers[worker]);
    call->request.operation = (enum redbucket_operation)operation;
    call->request.cost = cost;
    rest += len;
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *key = strchr(word, '=');

        *key = '\0';
        call_name(call, word, key + 1);
    }
    call_begin(call, &moment);
}

static enum redbucket_status status_of(const char *name)
{
    for (int i = 0; i < (int)CALL_STATUSES; i++) {
        const char *ours = redbucket_status_name((enum redbucket_status)i);

        if (strcmp(ours + strlen("REDBUCKET_"), name) == 0)
            return (enum redbucket_status)i;
    }
    fault("Python: %s is no status", name);
    return REDBUCKET_ERROR_ARGUMENT;
}

static void hear_end(struct python *python, const char *rest)
{
    struct redbucket_request decided = {.status = REDBUCKET_OK};
    unsigned number;
    char status[48];
    unsigned accepted;
    unsigned degraded;
    long long remaining;
    struct moment begin = {0};
    struct moment end = {0};
    struct call *call;

    if (sscanf(rest, "%u %47s %u %u %lld %lf %lf %lf %lf", &number, status, &accepted, &degraded,
               &remaining, &begin.kept_s, &begin.now_s, &end.now_s, &end.kept_s) != 9)
        abort();
    call = &python->calls[number % CALLS_MAX];
    call->begin_s = begin.now_s;
    call->kept_s = begin.kept_s;
    call->used_s = 0.0;
    decided.status = status_of(status);
    decided.response.accepted = accepted != 0;
    decided.response.degraded = degraded != 0;
    decided.response.remaining = remaining;
    call_end(call, &decided, &end);
}

static void hear_sleeper(const char *rest)
{
    double begin_s;
    double end_s;
    double late_s;

    if (sscanf(rest, "%lf %lf %lf", &begin_s, &end_s, &late_s) == 3)
        sleepers_note(begin_s, end_s, late_s);
}

/* Until a word that is none of these. */
static void hear(struct python *python, char *line)
{
    for (;;) {
        if (fgets(line, LINE_SIZE, python->from) == NULL) {
            fault("Python ended before its time");
            line[0] = '\0';
            return;
        }
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "b ", 2) == 0)
            hear_begin(python, line + 2);
        else if (strncmp(line, "e ", 2) == 0)
            hear_end(python, line + 2);
        else if (strncmp(line, "s ", 2) == 0)
            hear_sleeper(line + 2);
        else if (strncmp(line, "fault ", 6) == 0)
            fault("Python: %s", line + 6);
        else
            return;
    }
}

void python_ask(struct python *python)
{
    char line[LINE_SIZE];

    (void)fputs("ask\n", python->to);
    (void)fflush(python->to);
    hear(python, line);
}

double python_back(struct python *python, uint64_t *leased, uint64_t *denied)
{
    char line[LINE_SIZE];
    double back_s = 0.0;
    int status = 0;

    (void)fputs("back\n", python->to);
    (void)fclose(python->to);
    hear(python, line);
    if (sscanf(line, "back %lf %" SCNu64 " %" SCNu64, &back_s, leased, denied) != 3)
        fault("Python said '%s'", line);
    (void)fclose(python->from);
    (void)waitpid(python->pid, &status, 0);
    if (status != 0)
        fault("Python ended with status %d", status);
    free(python);
    return back_s;
}
