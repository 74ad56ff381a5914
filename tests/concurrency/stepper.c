/* SPDX-License-Identifier: MIT */
#include "stepper.h"

#include "processes.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* An atomic operation made of a load and a conditional store never ends when it is stepped. */
#define STEPS_PATIENCE 200000u

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
#define STEPPABLE (!TEST_SANITIZED)
#else
#define STEPPABLE 0
#endif

#ifdef __x86_64__
#define REGISTER_NEXT  offsetof(struct user, regs.rip)
#define REGISTER_COUNT offsetof(struct user, regs.rcx)
#elif defined(__i386__)
#define REGISTER_NEXT  offsetof(struct user, regs.eip)
#define REGISTER_COUNT offsetof(struct user, regs.ecx)
#endif

/* The child's list of robust locks, and the one that it is about to take or release. */
struct robust_list {
    uintptr_t head;
    long offset;
    uintptr_t pending;
};

/* The work in a child that is about to stop before it. */
static pid_t start(const struct test_work *work)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(8);
        (void)raise(SIGSTOP);
        work->body(work->data);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* True while it is stopped, false once it has ended well. */
static bool still_there(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (WIFSTOPPED(status))
        return true;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static bool step(pid_t pid)
{
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    return still_there(pid);
}

/* Waits for the child to be where it is stepped from; it dies with us. */
static void await_start(pid_t pid)
{
    assert_true(still_there(pid));
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), 0);
}

#ifdef REGISTER_NEXT
static uintptr_t word_of(pid_t pid, size_t offset)
{
    errno = 0;

    uintptr_t word = (uintptr_t)ptrace(PTRACE_PEEKUSER, pid, offset, NULL);

    assert_int_equal(errno, 0);
    return word;
}
#endif

/* Of its next instruction; 0 where we don't know how to ask. */
static uintptr_t address_of(pid_t pid)
{
#ifdef REGISTER_NEXT
    return word_of(pid, REGISTER_NEXT);
#else
    (void)pid;
    return 0;
#endif
}

/* How often an instruction that repeats itself still will, when it is the next one. */
static uintptr_t repetitions_left(pid_t pid)
{
#ifdef REGISTER_NEXT
    return word_of(pid, REGISTER_COUNT);
#else
    (void)pid;
    return 0;
#endif
}

/* Has the child stop before each execution of the instruction, by the processor's own means. False
 * where that can't be had. */
static bool set_breakpoint(pid_t pid, uintptr_t address)
{
#ifdef REGISTER_NEXT
    const long enable_first = 1;

    return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), address) == 0 &&
           ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), enable_first) == 0;
#else
    (void)pid;
    (void)address;
    return false;
#endif
}

static void nothing(void *data)
{
    (void)data;
}

static bool try_one(void)
{
    struct test_work work = {.body = nothing};
    pid_t pid = start(&work);
    int status = 0;
    bool stepped;

    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return false;
    stepped = ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
              WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    test_kill(pid);
    return stepped;
}

bool test_can_step(void)
{
    return STEPPABLE && try_one();
}

static struct robust_list locks_of(pid_t pid)
{
    struct robust_list list = {0};
    void *head = NULL;
    size_t len = 0;

    assert_int_equal(syscall(SYS_get_robust_list, pid, &head, &len), 0);

    struct iovec to = {&list, sizeof list};
    struct iovec from = {head, sizeof list};

    if (head != NULL)
        assert_int_equal(process_vm_readv(pid, &to, 1, &from, 1, 0), sizeof list);
    return list;
}

/* Where each instruction was, to count how often one came by. */
struct trail {
    uintptr_t address[STEPS_PATIENCE + 1];
    size_t len;
};

/* An instruction that repeats itself, as the copying of a C library may be one, is a step each
 * time, and a breakpoint stops before the first of them only. */
static void note(struct test_steps *steps, const struct trail *trail, pid_t pid)
{
    struct test_step *step = &steps->step[steps->len++];
    size_t last = trail->len - 1;

    assert_true(steps->len < TEST_STEPS_MAX);
    *step = (struct test_step){.instructions = last, .address = trail->address[last]};
    for (size_t i = 0; i < trail->len; i++) {
        bool again = i > 0 && trail->address[i - 1] == trail->address[i];

        step->repeated = again ? step->repeated + 1 : 0;
        step->turn += trail->address[i] == step->address && !again;
    }
    if (step->repeated > 0)
        step->left = repetitions_left(pid);
}

void test_step_through(const struct test_work *work, struct test_steps *steps)
{
    unsigned char *last = malloc(work->shared_len);
    struct trail *trail = calloc(1, sizeof *trail);
    pid_t pid = start(work);

    assert_true(last != NULL && trail != NULL);
    memcpy(last, work->shared, work->shared_len);
    await_start(pid);

    struct robust_list locks = locks_of(pid);

    trail->address[trail->len++] = address_of(pid);
    steps->len = 0;
    note(steps, trail, pid);
    while (step(pid)) {
        struct robust_list now = locks_of(pid);

        trail->address[trail->len++] = address_of(pid);
        if (memcmp(last, work->shared, work->shared_len) != 0 ||
            memcmp(&locks, &now, sizeof now) != 0) {
            note(steps, trail, pid);
            memcpy(last, work->shared, work->shared_len);
            locks = now;
        }
        if (trail->len > STEPS_PATIENCE) {
            test_kill(pid);
            fail_msg("%zu instructions without an end", trail->len);
        }
    }
    note(steps, trail, pid);
    free(trail);
    free(last);
}

/* Lets the child run to the moment, and returns true when it is there. */
static bool run_to(pid_t pid, const struct test_step *moment)
{
    if (moment->instructions == 0 || !set_breakpoint(pid, moment->address))
        return false;
    for (size_t turn = 0; turn < moment->turn; turn++) {
        assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
        assert_true(still_there(pid));
    }
    for (size_t i = 0; i < moment->repeated; i++)
        assert_true(step(pid));
    return true;
}

void test_kill_at(const struct test_work *work, const struct test_step *moment)
{
    pid_t pid = start(work);

    await_start(pid);
    if (!run_to(pid, moment)) {
        for (size_t i = 0; i < moment->instructions; i++)
            assert_true(step(pid));
    }
    assert_int_equal(address_of(pid), moment->address);
    if (moment->repeated > 0)
        assert_int_equal(repetitions_left(pid), moment->left);
    test_kill(pid);
}
