# SPDX-License-Identifier: MIT
"""What tests of coroutines on servers share: limits, loops, and servers that stop answering."""

import asyncio
import signal

import pytest

from redbucket import RateLimit, RedisRateLimiter, Zone


def limit(name, rate, **options):
    return RateLimit(Zone(name, rate, expiry=0), **options)


def limits():
    return {"a": limit("a", 1e-6, burst=99), "b": limit("b", 1e-6, burst=9, delay=1)}


@pytest.fixture
def limiter(server_url, key_format):
    with RedisRateLimiter(server_url, key_format=key_format) as limiter:
        limiter.configure(limits())
        yield limiter


@pytest.fixture
def own_limiter(own_server):
    with RedisRateLimiter(own_server.url(), timeout=10) as limiter:
        limiter.configure(limits())
        yield limiter


def uvloop_run(main):
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    return asyncio.run if request.param == "asyncio" else uvloop_run


class stopped:
    """A server that doesn't answer meanwhile."""

    def __init__(self, server):
        self.process = server.process

    def __enter__(self):
        self.process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
