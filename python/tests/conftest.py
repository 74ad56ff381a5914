# SPDX-License-Identifier: MIT
"""What the tests share: a server, keys of their own on it, and a clock that is moved by hand.

$REDIS_URL names a server to use; without it each run starts one. Tests that break servers start
their own in any case.
"""

import itertools
import os
import sys

import pytest
import redis

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests"))

import server as servers  # noqa: E402

numbers = itertools.count()


class Clock:
    """Says what it was set to."""

    def __init__(self, now=500.0):
        self.now = now
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="session")
def server_url():
    given = os.environ.get("REDIS_URL")
    if given:
        yield given
        return
    with servers.Server("redis") as server:
        yield f"redis://127.0.0.1:{server.port}/0"


@pytest.fixture(scope="session")
def client(server_url):
    """redis-py's, of whichever version is installed."""
    with redis.Redis.from_url(server_url) as client:
        client.ping()
        yield client


@pytest.fixture
def key_format():
    """A key format for one test, so that tests don't meet on a server."""
    return f"rbt:{os.getpid()}:{os.urandom(4).hex()}:{next(numbers)}:{{zone}}:{{key}}"


@pytest.fixture
def own_server():
    """A server of this test's own, to be broken."""
    with servers.Server("redis") as server:
        yield server


@pytest.fixture
def shared_name():
    """A name for shared memory, which is gone with the test."""
    name = f"rbt-{os.getpid()}-{os.urandom(4).hex()}-{next(numbers)}"
    yield name
    for path in os.listdir("/dev/shm"):
        if path.endswith(name):
            os.unlink(os.path.join("/dev/shm", path))
