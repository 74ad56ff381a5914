# SPDX-License-Identifier: MIT
"""A service as users of the original write one: a client, two limits, a key for each or for one of
them, and the answer asked for what it says."""

import time

import pytest
import redis

from redbucket import RateLimit, RedisRateLimiter, Zone


@pytest.fixture
def service(client, key_format):
    limiter = RedisRateLimiter(client, key_format)
    limiter.configure(account=RateLimit(Zone("account", rate=10), burst=3),
                      address=RateLimit(Zone("address", rate=10), delay=4))
    return limiter


class Refused(Exception):
    pass


def serve(limiter, slept, **keys):
    response = limiter.request(**keys)
    if not response.accepted:
        raise Refused
    if response.delay > 0:
        slept.append(response.delay)
        time.sleep(response.delay)


def test_with_both_keys_and_with_one(service):
    slept = []
    for _ in range(3):
        serve(service, slept, account="a", address="192.0.2.7")
    assert len(slept) == 2 and all(0 < delay < .2 for delay in slept)
    trusted = []
    with pytest.raises(Refused):
        for _ in range(10):
            serve(service, trusted, account="b")
    assert trusted == []


def test_with_patience(service):
    begin = time.monotonic()
    for _ in range(6):
        response = service.acquire(account="a")
        assert response.accepted and not response.delay
    assert time.monotonic() - begin >= 2 / 10 - .01
    assert service.acquire(account="a", address="192.0.2.7").accepted


def test_with_the_client_of_the_default_address():
    limiter = RedisRateLimiter(redis.Redis())  # nothing is connected yet
    limiter.configure(account=RateLimit(Zone("account", rate=5), burst=10))
    assert "localhost:6379" in repr(limiter)
