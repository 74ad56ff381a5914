/* SPDX-License-Identifier: MIT */
/*
 * The allocator's functions in front of the real ones. Part of a program, these are what every
 * library in it calls; as a shared object that is preloaded, what a command does that knows nothing
 * of it. Under a sanitizer the real ones are the sanitizer's.
 *
 * As a shared object it is planned by the environment: SCARCE_NTH fails, with SCARCE_AND_ON all
 * after it; what a library asks for whose name begins with SCARCE_SPARE is neither counted nor
 * fails; and SCARCE_COUNT names a file for how many there were. Of descriptors there are no more
 * than SCARCE_DESCRIPTORS.
 */
#undef _FILE_OFFSET_BITS /* both names of mmap are wanted */
#undef _TIME_BITS        /* goes with it */

#include "scarce.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names of the implementation's.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
#ifdef SANITIZED
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *REAL(memalign)(size_t alignment, size_t size);
void REAL(free)(void *old);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

#define VISIBLE __attribute__((visibility("default")))
#define CALLER  __builtin_return_address(0)

static struct {
    atomic_bool on;
    atomic_bool and_on;
    atomic_bool struck;
    atomic_bool struck_now; /* since it was switched on */
    atomic_ulong nth;
    atomic_ulong made;
    atomic_long blocks;
    const char *spare;
} scarce;

void scarce_plan(unsigned long nth, bool and_on)
{
    scarce.on = false;
    scarce.and_on = and_on;
    scarce.nth = nth;
    scarce.made = 0;
    scarce.struck = false;
    scarce.struck_now = false;
}

void scarce_on(void)
{
    scarce.struck_now = false;
    scarce.on = true;
}

bool scarce_off(void)
{
    scarce.on = false;
    return scarce.struck_now;
}

unsigned long scarce_made(void)
{
    return scarce.made;
}

bool scarce_struck(void)
{
    return scarce.struck;
}

long scarce_blocks(void)
{
    return scarce.blocks;
}

/* Whether that library asks. */
static bool is_spared(const void *caller)
{
    Dl_info where;
    const char *name;

    if (scarce.spare == NULL || dladdr(caller, &where) == 0)
        return false;
    name = strrchr(where.dli_fname, '/');
    name = name != NULL ? name + 1 : where.dli_fname;
    return strncmp(name, scarce.spare, strlen(scarce.spare)) == 0;
}

/* Whether this call is one that gets nothing. Only the call that was planned begins a shortage, and
 * what comes after it belongs to that as long as it isn't switched off. */
static bool strikes(const void *caller)
{
    unsigned long number = scarce.on && !is_spared(caller) ? ++scarce.made : 0;

    if (number == 0 || scarce.nth == 0)
        return false;
    if (number != scarce.nth && !(scarce.and_on && scarce.struck_now && number > scarce.nth))
        return false;
    scarce.struck = true;
    scarce.struck_now = true;
    errno = ENOMEM;
    return true;
}

static void *counted(void *made)
{
    scarce.blocks += made != NULL;
    return made;
}

VISIBLE void *malloc(size_t size)
{
    return strikes(CALLER) ? NULL : counted(REAL(malloc)(size));
}

VISIBLE void *calloc(size_t count, size_t size)
{
    return strikes(CALLER) ? NULL : counted(REAL(calloc)(count, size));
}

VISIBLE void *realloc(void *old, size_t size)
{
    if (strikes(CALLER))
        return NULL;
    if (old == NULL)
        return counted(REAL(malloc)(size));
    scarce.blocks -= size == 0;
    return REAL(realloc)(old, size);
}

/* The C library's would call the functions above, and nobody would know for whom. */
VISIBLE char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = strikes(CALLER) ? NULL : counted(REAL(malloc)(size));

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

VISIBLE char *strndup(const char *text, size_t most)
{
    size_t len = strnlen(text, most);
    char *copy = strikes(CALLER) ? NULL : counted(REAL(malloc)(len + 1));

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

VISIBLE void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

VISIBLE void *memalign(size_t alignment, size_t size)
{
    return strikes(CALLER) ? NULL : counted(REAL(memalign)(alignment, size));
}

VISIBLE void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

VISIBLE int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *made = memalign(alignment, size);

    if (made == NULL)
        return ENOMEM;
    *out = made;
    return 0;
}

VISIBLE void free(void *old)
{
    scarce.blocks -= old != NULL;
    REAL(free)(old);
}

#ifdef __LP64__ /* elsewhere the two take other arguments */
VISIBLE void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (strikes(CALLER))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

VISIBLE void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}
#endif

VISIBLE int madvise(void *at, size_t size, int advice)
{
    return strikes(CALLER) ? -1 : (int)syscall(SYS_madvise, at, size, advice);
}

#ifdef SCARCE_PRELOADED

/* Once the command's libraries are there; what the linker needs for them is not the command's. */
__attribute__((constructor)) static void begin(void)
{
    const char *nth = getenv("SCARCE_NTH");

    const char *descriptors = getenv("SCARCE_DESCRIPTORS");

    scarce.spare = getenv("SCARCE_SPARE");
    if (descriptors != NULL) {
        rlim_t most = strtoul(descriptors, NULL, 10);

        (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most});
    }

    scarce_plan(nth != NULL ? strtoul(nth, NULL, 10) : 0, getenv("SCARCE_AND_ON") != NULL);
    scarce_on();
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("SCARCE_COUNT");
    char text[32];
    int fd;

    (void)scarce_off();
    if (path == NULL || (fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
        return;
    (void)snprintf(text, sizeof text, "%lu\n", scarce_made());
    (void)!write(fd, text, strlen(text));
    (void)close(fd);
}

#endif
