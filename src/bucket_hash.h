/* SPDX-License-Identifier: MIT */
/*
 * What the stores in front of another know a bucket by: a hash of 64 bits of its zone and key,
 * under a secret of their own, so that nobody can choose keys that meet.
 */
#ifndef RBK_BUCKET_HASH_H
#define RBK_BUCKET_HASH_H

#include "model/key.h"

#include <stdint.h>

uint64_t rbk_bucket_hash(const uint64_t secret[2], const struct rbk_key *key);

#endif
