# SPDX-License-Identifier: MIT
"""A million calls later: no more memory, no more references, also after errors."""

import gc
import os
import sys

import pytest

import redbucket
from redbucket import InMemoryRateLimiter, RateLimit, RedisRateLimiter, Zone

PAGE = os.sysconf("SC_PAGE_SIZE")
SPARE = 1 << 20  # what allocators may keep; a leak of a byte for each call would show


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


class BadText:
    def __str__(self):
        raise OSError("no text")


@pytest.fixture
def limiter(clock):
    limiter = InMemoryRateLimiter(size="4m", clock=clock)
    limiter.configure(a=RateLimit(Zone("za", 1), burst=5), b=RateLimit(Zone("zb", 1), delay=5))
    return limiter


CALLS = {
    "request": lambda limiter: limiter.request(a="key"),
    "a number": lambda limiter: limiter.request(a=12345678),
    "a cost": lambda limiter: limiter.request(a="key", cost=.001),
    "two limits": lambda limiter: limiter.request(a="key", b=b"key").limits,
    "a mapping": lambda limiter: limiter.request({"a": "key", "b": 1.5}, cost=2),
    "no limit": lambda limiter: limiter.request(),
    "attributes": lambda limiter: [getattr(limiter.peek(a="key"), name) for name in (
        "delay", "retry_after", "remaining", "reset_after", "time", "decided", "degraded")],
    "replace": lambda limiter: limiter.peek(a="k", b="k")._replace(delay=1.5, remaining=10**6),
    "by hand": lambda limiter: redbucket.Response(True, 1.5, remaining=10**6),
    "compare": lambda limiter: limiter.peek(a="k") == (True, 0) and hash(limiter.peek(a="k")),
    "many": lambda limiter: limiter.request_many([{"a": "k", "b": "k"}, ({"b": 1}, 2)]),
    "state": lambda limiter: limiter.state("a", "key"),
    "statistics": lambda limiter: limiter.statistics(),
    "check": lambda limiter: limiter.check(),
    "acquire": lambda limiter: limiter.acquire(a="key", timeout=0),
    "give back": lambda limiter: limiter.give_back(limiter.charge(b="key"), b="key"),
}

ERRORS = {
    "unknown": (KeyError, lambda limiter: limiter.request(a="k", nonsense="k")),
    "unknown by mapping": (KeyError, lambda limiter: limiter.request({"a": 1, "nonsense": 2})),
    "none": (TypeError, lambda limiter: limiter.request(a=1.5, b=None)),
    "text": (OSError, lambda limiter: limiter.request(a=1.5, b=BadText())),
    "surrogate": (UnicodeEncodeError, lambda limiter: limiter.request(a=1.5, b="\udcff")),
    "mapping": (TypeError, lambda limiter: limiter.request(["a"])),
    "names": (TypeError, lambda limiter: limiter.request({"a": 1.5, 2: 3})),
    "options": (TypeError, lambda limiter: limiter.request({"a": 1.5}, nonsense=1)),
    "cost": (ValueError, lambda limiter: limiter.request(a=1.5, b="k", cost=0)),
    "cost's type": (TypeError, lambda limiter: limiter.request(a=1.5, cost="x")),
    "many": (TypeError, lambda limiter: limiter.request_many([{"a": 1.5, "b": 2}, {"a": None}])),
    "many unknown": (KeyError, lambda limiter: limiter.request_many([{"a": 1.5, "b": 2}, {"c": 1}])),
    "permit": (TypeError, lambda limiter: limiter.give_back((True, 0), a=1)),
    "by hand": (TypeError, lambda limiter: redbucket.Response(True, 1.5, remaining="x")),
    "state": (KeyError, lambda limiter: limiter.state("nonsense", 1.5)),
    "configured": (RuntimeError, lambda limiter: limiter.configure(a=RateLimit(Zone("z", 1)))),
    "key": (redbucket.KeyTooLongError, lambda limiter: limiter.request(a=LONG)),
}
LONG = "k" * (2 << 20)


def measure(call, count):
    """Bytes and blocks that so many calls leave, once it is warm."""
    for _ in range(2000):
        call()
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resident()
    for _ in range(count):
        call()
    gc.collect()
    return resident() - memory, sys.getallocatedblocks() - blocks


@pytest.mark.parametrize("name", CALLS)
def test_calls(limiter, clock, name):
    def call():
        clock.now += 1.0
        CALLS[name](limiter)

    memory, blocks = measure(call, 20_000)
    assert memory < SPARE and blocks < 200


@pytest.mark.parametrize("name", ERRORS)
def test_errors(limiter, name):
    kind, ask = ERRORS[name]

    def call():
        try:
            ask(limiter)
        except kind:
            return
        raise AssertionError("no error")

    memory, blocks = measure(call, 2000 if name == "key" else 20_000)
    assert memory < SPARE and blocks < 200


def test_a_million_requests(limiter, clock):
    request, names = limiter.request, [f"key {number}" for number in range(1000)]

    def call():
        clock.now += .001
        for name in names:
            request(a=name)

    for _ in range(20):
        call()
    before = resident(), sys.getallocatedblocks()
    for _ in range(1000):
        call()
    assert resident() - before[0] < SPARE and sys.getallocatedblocks() - before[1] < 200


def test_references(limiter):
    key, name, mapping = "".join(["k", "ey"]), "".join(["", "a"]), {}
    mapping[name] = key
    counts = [sys.getrefcount(thing) for thing in (key, name, mapping, None, redbucket.Response)]
    for _ in range(1000):
        limiter.request(mapping)
        limiter.request_many([mapping, (mapping, 2)])
        limiter.request(**mapping)
        limiter.state(name, key)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in (key, name, mapping, None, redbucket.Response)]
    assert all(abs(now - then) < 50 for now, then in zip(after, counts))
    assert after[:3] == counts[:3]


def test_limiters(clock):
    def call():
        limiter = InMemoryRateLimiter(size="64k", clock=clock)
        limiter.configure(a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("y", 1)))
        limiter.request(a="k", b="k")

    memory, blocks = measure(call, 3000)
    assert memory < SPARE and blocks < 200


def test_limiters_that_cannot_be_made():
    def call():
        for ask in (lambda: InMemoryRateLimiter(size="x"), lambda: RedisRateLimiter("redis://"),
                    lambda: RedisRateLimiter("redis://h", codec="x")):
            try:
                ask()
            except (ValueError, KeyError):
                pass
        try:
            InMemoryRateLimiter(size="64k").configure(a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("y", 0)))
        except ValueError:
            pass

    memory, blocks = measure(call, 2000)
    assert memory < SPARE and blocks < 200


def test_a_server(server_url, key_format):
    limiter = RedisRateLimiter(server_url, key_format)
    limiter.configure(a=RateLimit(Zone("z", 1e6), burst=1e6))
    memory, blocks = measure(lambda: limiter.request(a="k"), 20_000)
    assert memory < SPARE and blocks < 200


def test_a_server_that_is_down():
    limiter = RedisRateLimiter("redis://127.0.0.1:1")
    limiter.configure(a=RateLimit(Zone("z", 1)))

    def call():
        try:
            limiter.request(a="k")
        except redbucket.UnavailableError:
            pass

    memory, blocks = measure(call, 5000)
    assert memory < SPARE and blocks < 200
