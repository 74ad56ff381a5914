/* SPDX-License-Identifier: MIT */
/*
 * From a key format to the names that it writes, and back: a pattern that matches all of them, and
 * the zone and key that a name was made of.
 *
 * A format has no inverse: "redbucket:ip:2001:db8::1" is a key of the zone ip as well as of the
 * zone ip:2001. What is known of zones decides; without that, the shortest zone is a guess.
 */
#ifndef RBK_WIRE_KEY_NAME_H
#define RBK_WIRE_KEY_NAME_H

#include "wire/key_format.h"

/* Enough for any pattern. */
#define RBK_KEY_PATTERN_SIZE (2u * RBK_KEY_FORMAT_MAX + 2u * RBK_KEY_FORMAT_PIECES * 255u)

/*
 * Writes a pattern for SCAN that matches every name of the zone, or of any when it is NULL, and
 * nothing that isn't of the format's shape. Returns its length.
 */
size_t rbk_key_pattern(const struct rbk_key_format *format, const struct rbk_key *zone,
                       unsigned char out[RBK_KEY_PATTERN_SIZE]);

/* True when the name is one of that zone; then *key, which points into the name, is which. */
bool rbk_key_name_of(const struct rbk_key_format *format, const unsigned char *name, size_t len,
                     const struct rbk_key *zone, struct rbk_key *key);

/* How many zones of 1 to 255 bytes the name may be of, no more than 2 being counted; *key is that
 * of the shortest. */
unsigned rbk_key_name_guess(const struct rbk_key_format *format, const unsigned char *name,
                            size_t len, struct rbk_key *key);

#endif
