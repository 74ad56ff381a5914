/* SPDX-License-Identifier: MIT */
/*
 * cmocka with the headers that it wants before it, and exact comparison of doubles.
 */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Equal to the last bit, so that -0.0 is not 0.0 and a NaN equals itself. */
static inline uint64_t test_bits(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

#define assert_same(a, b) assert_int_equal(test_bits(a), test_bits(b))

#endif
