/* SPDX-License-Identifier: MIT */
/*
 * Handlers only leave a note. Signals are let in while the program waits, and nowhere else, so that
 * none is missed between a look at the notes and the wait.
 */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[?25l" /* another screen, no cursor */
#define LEAVE "\x1b[?25h\x1b[?1049l"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

#define ENDING_LEN (sizeof(ending) / sizeof(ending[0]))

static volatile sig_atomic_t ended_by;
static volatile sig_atomic_t stopped;
static volatile sig_atomic_t resized;

static struct {
    bool open;
    bool keys; /* standard input is a terminal as well */
    struct termios before;
    sigset_t outside; /* the mask to wait with */
} terminal;

static void note(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopped = 1;
    else
        ended_by = number;
}

bool rbk_terminal_here(void)
{
    const char *kind = getenv("TERM");

    return isatty(STDOUT_FILENO) == 1 && kind != NULL && kind[0] != '\0' &&
           strcmp(kind, "dumb") != 0;
}

static void write_all(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

static void enter(void)
{
    struct termios raw = terminal.before;

    if (terminal.keys) {
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    write_all(ENTER);
}

static void leave(void)
{
    write_all(LEAVE);
    if (terminal.keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
}

/* Signals that whoever started us ignores go on being ignored: `nohup` and the like. */
static void listen_to(int number, sigset_t *set)
{
    struct sigaction action = {.sa_handler = note};
    struct sigaction before;

    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
    (void)sigaddset(set, number);
}

void rbk_terminal_open(void)
{
    sigset_t ours;

    (void)sigemptyset(&ours);
    for (size_t i = 0; i < ENDING_LEN; i++)
        listen_to(ending[i], &ours);
    listen_to(SIGTSTP, &ours);
    listen_to(SIGWINCH, &ours);
    (void)sigprocmask(SIG_BLOCK, &ours, &terminal.outside);
    terminal.keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    terminal.open = true;
    enter();
}

void rbk_terminal_close(void)
{
    if (terminal.open)
        leave();
    terminal.open = false;
    (void)sigprocmask(SIG_SETMASK, &terminal.outside, NULL);
}

void rbk_terminal_die(void)
{
    if (ended_by == 0)
        return;
    fflush(stdout);
    (void)signal(ended_by, SIG_DFL);
    (void)raise(ended_by);
}

void rbk_terminal_size(size_t *columns, size_t *rows)
{
    struct winsize size = {0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *columns = size.ws_col > 0 ? size.ws_col : 80;
    *rows = size.ws_row > 0 ? size.ws_row : 24;
}

/* Stops as the shell expects it, with the terminal as it was, and goes on. */
static void stop(void)
{
    stopped = 0;
    leave();
    (void)raise(SIGSTOP);
    enter();
}

static enum cli_terminal_event take_notes(void)
{
    if (ended_by != 0)
        return CLI_TERMINAL_END;
    if (stopped != 0) {
        stop();
        return CLI_TERMINAL_REDRAW;
    }
    if (resized != 0) {
        resized = 0;
        return CLI_TERMINAL_REDRAW;
    }
    return CLI_TERMINAL_TIME;
}

enum cli_terminal_event rbk_terminal_wait(double seconds, char *key)
{
    const double whole = seconds > 0.0 ? seconds : 0.0;
    const struct timespec time = {.tv_sec = (time_t)whole,
                                  .tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9)};
    struct pollfd input = {.fd = terminal.keys ? STDIN_FILENO : -1, .events = POLLIN};
    const int ready = ppoll(&input, 1, &time, &terminal.outside);

    if (ready > 0 && (input.revents & POLLIN) != 0)
        return read(STDIN_FILENO, key, 1) == 1 ? CLI_TERMINAL_KEY : CLI_TERMINAL_END;
    if (ready > 0)
        return CLI_TERMINAL_END;
    return take_notes();
}

void rbk_terminal_draw(const char *page)
{
    write_all("\x1b[H");
    while (*page != '\0') {
        const char *end = strchr(page, '\n');
        const size_t len = end != NULL ? (size_t)(end - page) : strlen(page);

        fwrite(page, 1, len, stdout);
        fputs("\x1b[K", stdout);
        page += len;
        if (*page == '\n' && page[1] != '\0')
            fputs("\r\n", stdout);
        page += *page == '\n';
    }
    write_all("\x1b[J");
}
