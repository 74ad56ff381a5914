/* SPDX-License-Identifier: MIT */
/*
 * A child with the signals that it would have had without us.
 *
 * While the child lives, the signals that ask a program to do something are blocked here and taken
 * by sigwaitinfo, so there is no handler, no race with the child's end, and nothing that only a
 * handler may do. One from another process is passed on. One from the terminal has reached the
 * child already, which is in the same process group, and isn't repeated. One that was ignored when
 * we began (by nohup, say) stays ignored in both.
 */
#include "child.h"

#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct signals {
    sigset_t before;
    sigset_t waited;
    struct sigaction child_before;
};

static void block_signals(struct signals *signals)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};

    sigemptyset(&signals->waited);
    sigaddset(&signals->waited, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        struct sigaction action;

        sigaction(passed_on[i], NULL, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&signals->waited, passed_on[i]);
    }
    /* Were it ignored, the child's status would be lost. */
    sigaction(SIGCHLD, &plain, &signals->child_before);
    sigprocmask(SIG_BLOCK, &signals->waited, &signals->before);
}

static void restore_signals(const struct signals *signals)
{
    sigaction(SIGCHLD, &signals->child_before, NULL);
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

_Noreturn static void become(char **argv, const struct signals *signals)
{
    int number;

    restore_signals(signals);
    execvp(argv[0], argv);
    number = errno;
    _exit(rbk_cli_fail(number == ENOENT ? CLI_NOT_FOUND : CLI_NOT_RUNNABLE, "run",
                       "%.200s: %s, expected a command", argv[0], strerror(number)));
}

/* Passes on what was asked of us. Nothing from the kernel: that is the terminal. */
static void pass_on(pid_t child, const siginfo_t *info)
{
    if (info->si_code <= 0)
        kill(child, info->si_signo);
}

static int exit_status_of(int status)
{
    return WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int wait_for(pid_t child, const struct signals *signals)
{
    siginfo_t info;
    int status;

    for (;;) {
        const pid_t ended = waitpid(child, &status, WNOHANG);

        if (ended == child)
            return exit_status_of(status);
        if (ended < 0)
            return rbk_cli_fail(CLI_NOT_RUNNABLE, "run", "lost the command: %s", strerror(errno));
        if (sigwaitinfo(&signals->waited, &info) > 0 && info.si_signo != SIGCHLD)
            pass_on(child, &info);
    }
}

int rbk_child_run(char **argv)
{
    struct signals signals;
    pid_t child;
    int result;

    fflush(NULL); /* or the child could write it once more */
    block_signals(&signals);
    child = fork();
    if (child == 0)
        become(argv, &signals);
    if (child < 0)
        result = rbk_cli_fail(CLI_NOT_RUNNABLE, "run", "fork: %s", strerror(errno));
    else
        result = wait_for(child, &signals);
    restore_signals(&signals);
    return result;
}
