# SPDX-License-Identifier: MIT
"""One limiter and 32 threads: every limit is kept, nobody waits for ever."""

import threading
import time

import pytest

from redbucket import InMemoryRateLimiter, RateLimit, RedisRateLimiter, SharedMemoryRateLimiter, Zone

THREADS = 32
ROUNDS = 50


@pytest.fixture(params=["memory", "shared", "server", "transaction"])
def limiter(request, server_url, key_format, shared_name):
    if request.param == "memory":
        return InMemoryRateLimiter()
    if request.param == "shared":
        return SharedMemoryRateLimiter(shared_name, size="1m")
    url = server_url + ("?method=transaction&timeout=30" if request.param == "transaction" else
                        "?timeout=30")
    return RedisRateLimiter(url, key_format)


def run(function, count=THREADS):
    """In so many threads at once; what each returned."""
    results, errors = [], []
    ready = threading.Barrier(count)

    def call(number):
        ready.wait()
        try:
            results.append(function(number))
        except BaseException as error:  # noqa: B902, told below
            errors.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert errors == []
    return results


@pytest.mark.filterwarnings("ignore:zone")
def test_a_limit_is_kept(limiter):
    limiter.configure(a=RateLimit(Zone("z", 1e-3), burst=99))
    rounds = 8 if "transaction" in repr(limiter.check().method) else ROUNDS
    counts = run(lambda _: sum(limiter.request(a="k").accepted for _ in range(rounds)))
    assert sum(counts) == 100 and len(counts) == THREADS


@pytest.mark.filterwarnings("ignore:zone")
def test_several_limits_in_any_order(limiter):
    limiter.configure(a=RateLimit(Zone("za", 1e-3), burst=39), b=RateLimit(Zone("zb", 1e-3), burst=59))
    rounds = 4 if limiter.check().method == "transaction" else 20

    def ask(number):
        keys = {"a": "k", "b": "k"} if number % 2 else {"b": "k", "a": "k"}
        return sum(limiter.request(keys).accepted for _ in range(rounds))

    assert sum(run(ask)) == 40
    assert limiter.state("a", "k").value == limiter.state("b", "k").value == pytest.approx(40, abs=.2)


def test_batches_and_lone_requests(limiter):
    limiter.configure(a=RateLimit(Zone("z", 1e-3, 10**6), burst=499))
    if limiter.check().method == "transaction":
        pytest.skip("one at a time takes long")

    def ask(number):
        if number % 2:
            return sum(limiter.request(a="k").accepted for _ in range(20))
        return sum(answer.accepted for answer in limiter.request_many([{"a": "k"}] * 40))

    assert sum(run(ask)) == 500


def test_other_threads_go_on_during_a_long_batch():
    limiter = InMemoryRateLimiter()
    limiter.configure(a=RateLimit(Zone("z", 1e6)))
    requests = [{"a": number} for number in range(200_000)]
    steps, ended = [], threading.Event()

    def step():
        while not ended.is_set():
            steps.append(time.monotonic())
            time.sleep(.001)

    thread = threading.Thread(target=step)
    thread.start()
    limiter.request_many(requests)
    ended.set()
    thread.join()
    assert len(steps) > 3
