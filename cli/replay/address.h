/* SPDX-License-Identifier: MIT */
/*
 * What part of a client's address to count by. One IPv6 host owns 2^64 addresses and can use a new
 * one for each request, so a limit on whole addresses doesn't bind it; and an IPv4 client seen
 * through IPv6 must be the same client still.
 */
#ifndef RBK_REPLAY_ADDRESS_H
#define RBK_REPLAY_ADDRESS_H

#include "span.h"

/* Enough for any address with its prefix length, and a NUL. */
#define RBK_ADDRESS_SIZE 64

/*
 * The address cut to its first `bits` bits (0 to 128), in the canonical spelling: 2001:db8::/32.
 * IPv4 stays whole; ::ffff:0:0/96 and 64:ff9b::/96 give the IPv4 address inside. What is no address
 * (a zone, a port, a name) is given back as it stands. The result points into `out` or `text`.
 */
struct rbk_span rbk_address_prefix(struct rbk_span text, unsigned bits, char out[RBK_ADDRESS_SIZE]);

#endif
