/* SPDX-License-Identifier: MIT */
/*
 * One readable page and one that isn't, for as long as the program runs.
 */
#include "edge.h"

#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

static unsigned char *pages(size_t size)
{
    static unsigned char *memory;

    if (memory == NULL) {
        memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        assert_int_equal(mprotect(memory + size, size, PROT_NONE), 0);
    }
    return memory;
}

const void *test_edge(const void *bytes, size_t len)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *at = pages(size) + size - len;

    assert_true(len <= size);
    if (len > 0)
        memcpy(at, bytes, len);
    return at;
}
