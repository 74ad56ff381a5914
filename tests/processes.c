/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE (60.0 * TEST_PATIENCE)

void test_child_failed(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "%s:%d: in a child: %s\n", file, line, condition);
    _exit(9);
}

double test_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void test_pause(double seconds)
{
    struct timespec rest = {.tv_sec = (time_t)seconds};

    rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

void *test_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

void test_unshare(void *memory, size_t size)
{
    (void)munmap(memory, size);
}

void *test_share_fd(size_t size, int *fd)
{
    *fd = memfd_create("redbucket-test", 0);
    assert_true(*fd >= 0);
    assert_int_equal(ftruncate(*fd, (off_t)size), 0);
    return test_share_again(size, *fd);
}

void *test_share_again(size_t size, int fd)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

/* Whatever happens to the test, no child outlives it; and what the library of tests does about a
 * crash, go on with the next test, is not for a child. */
static void die_with(pid_t parent)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(9);
    for (size_t i = 0; !TEST_SANITIZED && i < sizeof faults / sizeof faults[0]; i++)
        (void)signal(faults[i], SIG_DFL);
}

pid_t test_fork(void (*body)(void *data), void *data)
{
    pid_t parent = getpid();

    (void)fflush(NULL);

    pid_t pid = fork();

    if (pid == 0) {
        die_with(parent);
        body(data);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

pid_t test_spawn(char *const argv[])
{
    pid_t parent = getpid();

    (void)fflush(NULL);

    pid_t pid = fork();

    if (pid == 0) {
        die_with(parent);
        (void)execv("/proc/self/exe", argv);
        _exit(9);
    }
    assert_true(pid > 0);
    return pid;
}

/* Waits for a change of the child's, and fails the test when there is none for a minute. */
static int await_change(pid_t pid, int options)
{
    double until = test_now() + PATIENCE;
    int status = 0;
    pid_t changed;

    while ((changed = waitpid(pid, &status, options | WNOHANG)) == 0) {
        if (test_now() > until) {
            test_kill(pid);
            fail_msg("process %d hangs", (int)pid);
        }
        test_pause(0.0005);
    }
    assert_int_equal(changed, pid);
    return status;
}

void test_join(pid_t pid)
{
    int status = await_change(pid, 0);

    if (WIFSIGNALED(status))
        fail_msg("process %d was killed by signal %d", (int)pid, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        fail_msg("process %d ended with status %d", (int)pid, WEXITSTATUS(status));
}

void test_join_stop(pid_t pid)
{
    int status = await_change(pid, WUNTRACED);

    if (!WIFSTOPPED(status))
        fail_msg("process %d ended, with %#x, instead of stopping", (int)pid, (unsigned)status);
}

void test_kill(pid_t pid)
{
    int status;

    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
}

bool test_await(const volatile int *flag)
{
    double until = test_now() + PATIENCE;

    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {
        if (test_now() > until)
            return false;
        (void)sched_yield();
    }
    return true;
}

int test_clean_up(void **state)
{
    char prefix[64];
    DIR *directory = opendir("/dev/shm");
    const struct dirent *entry;

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "redbucket-test-%ld-", (long)getpid());
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        if (unlinkat(dirfd(directory), entry->d_name, 0) != 0)
            (void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return 0;
}

unsigned test_random(unsigned *seed, unsigned bound)
{
    *seed = *seed * 1103515245u + 12345u;
    return (unsigned)((uint64_t)(*seed >> 8 & 0xffffff) * bound >> 24);
}
