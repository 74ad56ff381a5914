/* SPDX-License-Identifier: MIT */
/*
 * The command line tool: options before the command, the command, and one look at standard output
 * behind it.
 *
 * setlocale is never called, so nothing that is printed or read here follows the environment's
 * locale.
 */
#include "commands.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command *const commands[] = {
    &rbk_cli_request,      &rbk_cli_peek,        &rbk_cli_refund, &rbk_cli_charge,
    &rbk_cli_reset,        &rbk_cli_run,         &rbk_cli_replay, &rbk_cli_check,
    &rbk_cli_keys_command, &rbk_cli_top_command, &rbk_cli_bench,
};

#define COMMANDS_LEN (sizeof(commands) / sizeof(commands[0]))

void rbk_cli_print_help(void)
{
    puts("usage: redbucket [-c FILE] [-s URL] [-l LIMIT]... [--json] COMMAND ...\n"
         "\n"
         "Limits how often something happens, on state that processes share.\n"
         "\n"
         "Commands (redbucket COMMAND --help says more):");
    for (size_t i = 0; i < COMMANDS_LEN; i++)
        printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    puts("\n"
         "Options, before the command or behind it:\n"
         "  -l LIMIT   NAME:RATE[,burst=N][,delay=N][,expiry=SECONDS][,zone=NAME]\n"
         "             [,lease=N][,lease_time=DURATION]; RATE is N or N/s, N/m, N/h, N/d.\n"
         "             Adds a limit, or replaces the file's of that name.\n"
         "  -c FILE    the configuration; otherwise $REDBUCKET_CONFIG, redbucket.conf\n"
         "             here, /etc/redbucket.conf\n"
         "  -s URL     where the state lives: memory:, shm:NAME, a Redis or Valkey server\n"
         "             (redis://[user:password@]host[:port][/db], rediss:// with TLS,\n"
         "             unix:///path), its sentinels (redis+sentinel://host,host/name),\n"
         "             or a cluster (redis+cluster://host,host); otherwise\n"
         "             $REDBUCKET_STORE, the file's store, shm:redbucket\n"
         "  --json     one JSON object a line instead of text\n"
         "  --version  print the version\n"
         "\n"
         "burst + 1 requests pass at once, `delay` more are accepted with a wait, the\n"
         "others are rejected; the bucket drains at the rate. A configuration file:\n"
         "\n"
         "    store = \"shm:redbucket\"\n"
         "    limit user { rate = 5/s  burst = 10 }\n"
         "    limit ip   { rate = 20/s  delay = 10 }\n"
         "\n"
         "Try: redbucket -l ip:1/s,burst=2 request ip=192.0.2.7    and again, and again\n"
         "\n"
         "Exit status: 0 accepted or done, 1 rejected, 2 usage or configuration, 3 the\n"
         "store failed; `run` has its own.");
}

void rbk_cli_print_command_help(const struct cli_command *command)
{
    printf(
        "usage: redbucket %s%s%s\n\n%s\nFor -c -s -l --json, and limits, see redbucket --help.\n",
        command->name, command->arguments[0] != '\0' ? " " : "", command->arguments, command->help);
}

/* Files that are opened later must not get the number of a standard stream that was closed, or
 * messages would be written into them. */
static bool hold_standard_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY);
        if (fd < 0)
            return false;
    } while (fd <= STDERR_FILENO);
    close(fd);
    return true;
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS_LEN; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int fail_command(const char *name)
{
    char names[200] = "";
    size_t used = 0;

    for (size_t i = 0; i < COMMANDS_LEN; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, " %s", commands[i]->name);
    if (name == NULL)
        return rbk_cli_fail(CLI_USAGE, "usage", "expected a command, one of%s; or --help", names);
    return rbk_cli_fail(CLI_USAGE, "usage", "\"%.60s\": no such command, expected one of%s", name,
                        names);
}

static int run_command(struct cli_context *context, int argc, char **argv)
{
    const int code = rbk_cli_option(context, argc, argv);
    const int at = optind;

    if (code == CLI_OPTION_STOP)
        return context->exit_status;
    if (at >= argc)
        return fail_command(NULL);
    context->command = find_command(argv[at]);
    if (context->command == NULL)
        return fail_command(argv[at]);
    optind = 0; /* getopt starts anew, behind the command's name */
    return context->command->run(context, argc - at, argv + at);
}

int main(int argc, char **argv)
{
    struct cli_context context = {.command = NULL};
    int result;

    if (!hold_standard_streams())
        return rbk_cli_fail(CLI_STORE, "standard streams", "%s", strerror(errno));
    result = rbk_cli_flush(run_command(&context, argc, argv));
    rbk_cli_context_fini(&context);
    return result;
}
