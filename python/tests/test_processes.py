# SPDX-License-Identifier: MIT
"""Children, by fork and by spawn, at any moment: limits are kept, nobody hangs, parents go on."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from redbucket import (
    InMemoryRateLimiter,
    RateLimit,
    RedisRateLimiter,
    SharedMemoryRateLimiter,
    Zone,
    from_url,
)

pytestmark = [pytest.mark.filterwarnings("ignore:zone"),
              pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")]
BURST = 99
CHILDREN = 8
EACH = 50


def configured(limiter):
    limiter.configure(a=RateLimit(Zone("z", 1e-3), burst=BURST))
    return limiter


def fork(function):
    """The number that a function returns in a child of this process, read by the returned call."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            os.write(writing, str(function()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)

    def result():
        with os.fdopen(reading) as file:
            said = file.read()
        assert os.waitpid(child, 0)[1] == 0, said
        return int(said)

    return result


@pytest.fixture(params=["shared", "script", "transaction"])
def limiter(request, server_url, key_format, shared_name):
    if request.param == "shared":
        return configured(SharedMemoryRateLimiter(shared_name, size="1m"))
    return configured(RedisRateLimiter(f"{server_url}?timeout=30&method={request.param}", key_format))


def ask(limiter, count=EACH):
    return sum(limiter.request(a="k").accepted for _ in range(count))


class TestFork:
    def test_a_limiter_that_was_used_is_shared(self, limiter):
        before = ask(limiter, 1)
        children = [fork(lambda: ask(limiter)) for _ in range(CHILDREN)]
        mine = ask(limiter)
        assert before + mine + sum(result() for result in children) == BURST + 1
        assert limiter.request(a="other") == (True, 0)

    def test_a_memory_of_ones_own(self):
        limiter = configured(InMemoryRateLimiter())
        assert ask(limiter) == EACH
        child = fork(lambda: ask(limiter, 200))
        assert child() == BURST + 1 - EACH
        assert ask(limiter, 200) == BURST + 1 - EACH

    @pytest.mark.parametrize("store", ["memory", "shared", "server"])
    def test_in_the_middle_of_other_threads_calls(self, store, server_url, key_format, shared_name):
        limiter = {"memory": InMemoryRateLimiter,
                   "shared": lambda: SharedMemoryRateLimiter(shared_name, size="1m"),
                   "server": lambda: RedisRateLimiter(server_url, key_format)}[store]()
        limiter.configure(a=RateLimit(Zone("z", 1e6), burst=1e6))
        ended = threading.Event()

        def press():
            while not ended.is_set():
                limiter.request_many([{"a": "k"}] * 20)

        threads = [threading.Thread(target=press) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                begin = time.monotonic()
                assert fork(lambda: ask(limiter, 1))() == 1
                assert time.monotonic() - begin < 10
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def test_a_child_that_ends_as_python_does(self, limiter):
        ask(limiter, 1)
        child = os.fork()
        if child == 0:
            try:
                os.execv("/bin/true", ["true"]) if not ask(limiter, 1) else None
                limiter.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert ask(limiter, 1) == 1


def work(url, key_format, count):
    """Runs in a process of multiprocessing."""
    limiter = configured(RedisRateLimiter(url, key_format) if key_format else from_url(url))
    return sum(limiter.request(a="k").accepted for _ in range(count))


class TestMultiprocessing:
    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    @pytest.mark.parametrize("store", ["server", "shared"])
    def test_both_start_methods(self, method, store, server_url, key_format, shared_name):
        url = server_url if store == "server" else f"shm:{shared_name}?size=1m"
        arguments = (url, key_format if store == "server" else None, EACH)
        # One of this process that is in use, so that a forked child has what it must not touch.
        mine = configured(RedisRateLimiter(url, key_format) if store == "server" else from_url(url))
        before = ask(mine, 1)
        with multiprocessing.get_context(method).Pool(4) as pool:
            counts = pool.starmap(work, [arguments] * 4)
        assert before + sum(counts) + ask(mine, 200) == BURST + 1
