/* SPDX-License-Identifier: MIT */
/*
 * What names a bucket: a zone and a key, bytes of any content, each with its length.
 */
#ifndef RBK_MODEL_KEY_H
#define RBK_MODEL_KEY_H

#include <stddef.h>

struct rbk_key {
    const unsigned char *zone;
    size_t zone_len;
    const unsigned char *key;
    size_t key_len;
};

#endif
