/* SPDX-License-Identifier: MIT */
/*
 * Mapping memory that a child finds cleared.
 */
#include "fork_page.h"

#include "error.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* All static locks of this C library that we rely on being zeros. */
static bool zeros_are_unlocked(void)
{
    static const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_mutex_t zero_mutex;

    /* The bytes are what this is about.
     * NOLINTBEGIN(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    return memcmp(&mutex, &zero_mutex, sizeof mutex) == 0;
    /* NOLINTEND(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
}

enum redbucket_status rbk_fork_page_map(size_t size, void **bytes, struct redbucket_error *error)
{
    void *mapped;

    if (!zeros_are_unlocked())
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "locks: an unlocked mutex is not all zeros on this system");
    mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return rbk_fail_system(error, errno, "locks");
    if (madvise(mapped, size, MADV_WIPEONFORK) != 0) {
        int number = errno;

        (void)munmap(mapped, size);
        if (number != EINVAL)
            return rbk_fail_system(error, number, "locks");
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "locks: this system can't clear them in a child, as Linux does since 4.14");
    }
    *bytes = mapped;
    return REDBUCKET_OK;
}

void rbk_fork_page_unmap(void *bytes, size_t size)
{
    if (bytes != NULL)
        (void)munmap(bytes, size);
}
