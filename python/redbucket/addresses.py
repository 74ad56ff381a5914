# SPDX-License-Identifier: MIT
"""Addresses of clients as keys: as many buckets as there are clients, and no more."""

from __future__ import annotations

import ipaddress

__all__ = ("network_of",)

# Of IPv4, as translators on the way to it write its addresses.
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


def network_of(address: str, prefix6: int = 64) -> str:
    """The key of a client's address: of IPv6 its network, of IPv4 the address itself.

    One client of IPv6 has a network of 2 ** 64 addresses, or more, to ask from, so each of them
    alone would be no limit. Addresses of IPv4 that are written as ones of IPv6 are those of IPv4.
    Whatever is no address is returned as it is, addresses with a scope ("fe80::1%eth0") among that.
    """
    if ":" not in address or "%" in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    if parsed in TRANSLATED:
        return str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF))
    return str(ipaddress.IPv6Network((parsed, prefix6), strict=False))
