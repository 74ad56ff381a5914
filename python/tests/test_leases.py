# SPDX-License-Identifier: MIT
"""Limits that permits are taken ahead for: what they are made of, and that they save round trips."""

import copy
import pickle

import pytest

from redbucket import InMemoryRateLimiter, RateLimit, RedisRateLimiter, Zone

ZONE = Zone("leased", 1000)
LIMIT = RateLimit(ZONE, 100_000, lease=500, lease_time=10)


def test_leases_are_no_part_of_the_tuple():
    zone, burst, delay = LIMIT
    assert (zone, burst, delay) == LIMIT == RateLimit(ZONE, 100_000) == (ZONE, 100_000, 0)
    assert (LIMIT.lease, LIMIT.lease_time) == (500, 10)
    assert (RateLimit(ZONE).lease, RateLimit(ZONE).lease_time) == (0, 0)
    with pytest.raises(TypeError):
        RateLimit(ZONE, 1, 2, 3)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, RateLimit._replace,
                                   lambda limit: pickle.loads(pickle.dumps(limit))])
def test_leases_are_kept_by_copies(again):
    assert (again(LIMIT).lease, again(LIMIT).lease_time) == (500, 10)


def test_replace():
    assert LIMIT._replace(burst=2) == (ZONE, 2, 0) and LIMIT._replace(burst=2).lease == 500
    assert LIMIT._replace(lease=3).lease == 3


def test_repr():
    assert repr(RateLimit(ZONE, 1)) == f"RateLimit(zone={ZONE!r}, burst=1, delay=0)"
    assert repr(LIMIT) == f"RateLimit(zone={ZONE!r}, burst=100000, delay=0, lease=500, lease_time=10)"


@pytest.mark.parametrize("wrong", [{"lease": -1}, {"lease": float("nan")}, {"lease_time": 3601},
                                   {"lease_time": -1}])
def test_what_is_no_lease_is_refused(wrong):
    with pytest.raises(ValueError):
        InMemoryRateLimiter().configure(a=RateLimit(ZONE, **wrong))


@pytest.mark.parametrize("wrong", [{"lease": "3"}, {"lease_time": None}])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(TypeError):
        InMemoryRateLimiter().configure(a=RateLimit(ZONE, **wrong))


@pytest.mark.parametrize("limit, served", [(LIMIT, True), (RateLimit(ZONE, 100_000), False)])
def test_a_hot_key_is_served_from_here(client, key_format, limit, served):
    limiter = RedisRateLimiter(client, key_format=key_format)
    limiter.configure(a=limit)
    assert all(limiter.request(a="hot").accepted for _ in range(300))
    counted = limiter.statistics()
    assert counted.accepted == 300 and (counted.leased > 100) == served
