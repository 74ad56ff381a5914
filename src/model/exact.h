/* SPDX-License-Identifier: MIT */
/*
 * What the model asks of a compiler's doubles: that each operation rounds once, to a double, and
 * that what is no number stays none. All processes that share a bucket, on whatever machine, and a
 * server's script, have to come to the same bits. A multiply and an add in one, which no macro
 * tells of, are switched off by the build (-ffp-contract=off).
 */
#ifndef RBK_MODEL_EXACT_H
#define RBK_MODEL_EXACT_H

#include <float.h>
#include <stdint.h>

#if FLT_EVAL_METHOD != 0
#error "doubles are held in wider registers here, as x87 does: compile with -msse2 -mfpmath=sse"
#endif
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "-ffast-math and -Ofast round as they like: compile without"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "-ffinite-math-only takes infinities for numbers: compile without"
#endif

_Static_assert(DBL_MANT_DIG == 53 && DBL_MAX_EXP == 1024 && sizeof(double) == sizeof(uint64_t),
               "doubles are those of IEEE 754");

#endif
