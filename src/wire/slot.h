/* SPDX-License-Identifier: MIT */
/*
 * Which of a cluster's slots a bucket's name belongs to, by the rules of Redis Cluster: CRC16 of
 * the name, or of its hash tag when it has one.
 *
 * A hash tag is what stands between the first { and the first } behind it, unless that is nothing.
 */
#ifndef RBK_WIRE_SLOT_H
#define RBK_WIRE_SLOT_H

#include <stddef.h>

#define RBK_SLOTS 16384u

/* Below RBK_SLOTS. The name's bytes may be any. */
unsigned rbk_slot_of(const unsigned char *name, size_t len);

#endif
