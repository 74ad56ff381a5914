/* SPDX-License-Identifier: MIT */
/*
 * Stacks, and changing over between them by ucontext, which the C library keeps right for shadow
 * stacks and whatever comes next. The two system calls for the signal mask that it makes each time
 * are nothing beside a round trip.
 *
 * A stack is mapped when its fiber is made and costs memory only as far as it is used. Below it
 * lies a page that nobody may touch: running out of stack ends the process and doesn't write
 * elsewhere.
 */
#include "fiber.h"

#ifdef HAVE_UCONTEXT

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESSES 1
#endif
#if __has_feature(thread_sanitizer)
#define THREADS 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ADDRESSES 1
#endif
#ifdef __SANITIZE_THREAD__
#define THREADS 1
#endif

#define ALWAYS_INLINE __attribute__((always_inline)) inline

#ifdef ADDRESSES
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef THREADS
#include <sanitizer/tsan_interface.h>
#endif

/* The deepest that the library goes is a handshake of TLS beside a volley of calls, in less than
 * half of this. Sanitizers make frames several times as large. */
#if defined(ADDRESSES) || defined(THREADS)
#define STACK_SIZE ((size_t)2 << 20)
#else
#define STACK_SIZE ((size_t)256 << 10)
#endif

/* What a sanitizer has to know of a change of stacks. */
struct watched {
    void *fake;
    const void *bottom;
    size_t size;
    void *thread;
};

struct rbk_fiber {
    struct rbk_wait wait;
    rbk_fiber_function *function;
    void *data;
    bool busy;
    bool hurried;
    unsigned char *stack; /* the guard is below */
    size_t guard;
    ucontext_t inside;
    ucontext_t outside;
    struct watched watched_inside;
    struct watched watched_outside;
};

static _Thread_local struct rbk_fiber *current;

/* ---- Sanitizers -------------------------------------------------------------------------------
 */

static void prepare(struct rbk_fiber *fiber)
{
#ifdef ADDRESSES
    /* Nobody cleared what the one before had marked there. */
    __asan_unpoison_memory_region(fiber->stack, STACK_SIZE);
    fiber->watched_inside.bottom = fiber->stack;
    fiber->watched_inside.size = STACK_SIZE;
#endif
#ifdef THREADS
    fiber->watched_inside.thread = __tsan_create_fiber(0);
#endif
    (void)fiber;
}

/* Whoever goes inside need not be the one who did before. */
static void be_outside(struct rbk_fiber *fiber)
{
#ifdef THREADS
    fiber->watched_outside.thread = __tsan_get_current_fiber();
#endif
    (void)fiber;
}

/* Before leaving one stack for the other; for good when `fake` is NULL. A function that began on
 * the one must not be seen to end on the other. */
ALWAYS_INLINE static void depart(void **fake, const struct watched *to)
{
#ifdef ADDRESSES
    __sanitizer_start_switch_fiber(fake, to->bottom, to->size);
#endif
#ifdef THREADS
    __tsan_switch_to_fiber(to->thread, 0);
#endif
    (void)fake;
    (void)to;
}

/* After arriving on a stack, from the other one. */
static void arrive(struct watched *here, struct watched *from)
{
#ifdef ADDRESSES
    __sanitizer_finish_switch_fiber(here->fake, &from->bottom, &from->size);
#endif
    (void)here;
    (void)from;
}

static void end(struct rbk_fiber *fiber)
{
#ifdef THREADS
    __tsan_destroy_fiber(fiber->watched_inside.thread);
#endif
    fiber->watched_inside = (struct watched){.fake = NULL};
}

/* ---- Changing over ----------------------------------------------------------------------------
 */

#ifdef ADDRESSES
/* AddressSanitizer takes over swapcontext, doubts that it can, and forgets what it knows of the
 * stack each time. */
static void change(ucontext_t *from, const ucontext_t *to)
{
    volatile bool back = false;

    (void)getcontext(from);
    if (!back) {
        back = true;
        (void)setcontext(to);
    }
}
#else
static void change(ucontext_t *from, const ucontext_t *to)
{
    (void)swapcontext(from, to);
}
#endif

static void go_inside(struct rbk_fiber *fiber)
{
    be_outside(fiber);
    current = fiber;
    depart(&fiber->watched_outside.fake, &fiber->watched_inside);
    change(&fiber->outside, &fiber->inside);
    arrive(&fiber->watched_outside, &fiber->watched_inside);
    current = NULL;
    if (!fiber->busy)
        end(fiber);
}

static void run(void)
{
    struct rbk_fiber *fiber = current;

    arrive(&fiber->watched_inside, &fiber->watched_outside);
    fiber->function(fiber->data);
    fiber->busy = false;
    depart(NULL, &fiber->watched_outside);
    (void)setcontext(&fiber->outside);
}

void rbk_fiber_leave(struct rbk_fiber *fiber, const struct rbk_wait *wait)
{
    fiber->wait = *wait;
    depart(&fiber->watched_inside.fake, &fiber->watched_outside);
    change(&fiber->inside, &fiber->outside);
    arrive(&fiber->watched_inside, &fiber->watched_outside);
}

void rbk_fiber_begin(struct rbk_fiber *fiber, rbk_fiber_function *function, void *data)
{
    fiber->function = function;
    fiber->data = data;
    fiber->busy = true;
    fiber->hurried = false;
    (void)getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp = fiber->stack;
    fiber->inside.uc_stack.ss_size = STACK_SIZE;
    fiber->inside.uc_link = NULL;
    makecontext(&fiber->inside, run, 0);
    prepare(fiber);
    go_inside(fiber);
}

void rbk_fiber_resume(struct rbk_fiber *fiber)
{
    go_inside(fiber);
}

/* ---- Made, and asked --------------------------------------------------------------------------
 */

bool rbk_fiber_supported(void)
{
    return true;
}

struct rbk_fiber *rbk_fiber_create(void)
{
    struct rbk_fiber *fiber = calloc(1, sizeof *fiber);
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);

    if (fiber == NULL)
        return NULL;
    unsigned char *mapped = mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (mapped == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    fiber->guard = guard;
    fiber->stack = mapped + guard;
    if (mprotect(mapped, guard, PROT_NONE) != 0) {
        rbk_fiber_destroy(fiber);
        return NULL;
    }
    return fiber;
}

void rbk_fiber_destroy(struct rbk_fiber *fiber)
{
    if (fiber == NULL)
        return;
    (void)munmap(fiber->stack - fiber->guard, fiber->guard + STACK_SIZE);
    free(fiber);
}

bool rbk_fiber_busy(const struct rbk_fiber *fiber)
{
    return fiber->busy;
}

const struct rbk_wait *rbk_fiber_wait(const struct rbk_fiber *fiber)
{
    return &fiber->wait;
}

void rbk_fiber_hurry(struct rbk_fiber *fiber)
{
    fiber->hurried = true;
}

bool rbk_fiber_hurried(const struct rbk_fiber *fiber)
{
    return fiber->hurried;
}

/* A function that waits and has this inlined would remember where one thread's is. */
__attribute__((noinline)) struct rbk_fiber *rbk_fiber_current(void)
{
    return current;
}

#else

/* Without ucontext nobody is ever on a fiber, and none is made. */

bool rbk_fiber_supported(void)
{
    return false;
}

struct rbk_fiber *rbk_fiber_create(void)
{
    return NULL;
}

void rbk_fiber_destroy(struct rbk_fiber *fiber)
{
    (void)fiber;
}

void rbk_fiber_begin(struct rbk_fiber *fiber, rbk_fiber_function *function, void *data)
{
    (void)fiber;
    (void)function;
    (void)data;
}

void rbk_fiber_resume(struct rbk_fiber *fiber)
{
    (void)fiber;
}

bool rbk_fiber_busy(const struct rbk_fiber *fiber)
{
    (void)fiber;
    return false;
}

const struct rbk_wait *rbk_fiber_wait(const struct rbk_fiber *fiber)
{
    (void)fiber;
    return NULL;
}

void rbk_fiber_hurry(struct rbk_fiber *fiber)
{
    (void)fiber;
}

bool rbk_fiber_hurried(const struct rbk_fiber *fiber)
{
    (void)fiber;
    return false;
}

struct rbk_fiber *rbk_fiber_current(void)
{
    return NULL;
}

void rbk_fiber_leave(struct rbk_fiber *fiber, const struct rbk_wait *wait)
{
    (void)fiber;
    (void)wait;
}

#endif
