# SPDX-License-Identifier: MIT
"""Keys of addresses: one client has one bucket, in whichever way its address is written."""

import pytest

from redbucket.addresses import network_of


@pytest.mark.parametrize("address, key", [
    ("192.0.2.1", "192.0.2.1"),
    ("::ffff:192.0.2.1", "192.0.2.1"),
    ("::FFFF:c000:201", "192.0.2.1"),
    ("64:ff9b::c000:201", "192.0.2.1"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:DB8:1:2::1", "2001:db8:1:2::/64"),
    ("2001:0db8:0001:0002:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
    ("::1", "::/64"),
    ("not-an-ip", "not-an-ip"),
    ("fe80::1%eth0", "fe80::1%eth0"),
    ("192.0.2.1:8080", "192.0.2.1:8080"),
    ("", ""),
    (":", ":"),
    ("\udcff:", "\udcff:"),
])
def test_network_of(address, key):
    assert network_of(address) == key


def test_other_prefixes():
    assert network_of("2001:db8:1:2:3:4:5:6", 48) == "2001:db8:1::/48"
    assert network_of("2001:db8::1", 128) == "2001:db8::1/128"
    assert network_of("192.0.2.1", 48) == "192.0.2.1"
