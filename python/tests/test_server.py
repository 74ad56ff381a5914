# SPDX-License-Identifier: MIT
"""Limiters on a real server: what is stored, by which method and codec, and who shares it."""

import json
import struct
import time

import pytest
from pytest import approx

import redbucket
import server as servers
from redbucket import (
    RateLimit,
    RedisRateLimiter,
    RedisScriptRateLimiter,
    RedisTransactionalRateLimiter,
    StateError,
    UnsupportedError,
    Zone,
)

METHODS = {"auto": RedisRateLimiter, "script": RedisScriptRateLimiter,
           "transaction": RedisTransactionalRateLimiter}
CODECS = ("struct", "json")
REJECTED = (False, None)


@pytest.fixture(params=METHODS)
def kind(request):
    return METHODS[request.param]


@pytest.fixture(params=CODECS)
def codec(request):
    return request.param


@pytest.fixture
def make(client, kind, codec, key_format):
    def make(**limits):
        limiter = kind(client, key_format=key_format, codec=codec)
        limiter.configure(**limits)
        return limiter

    return make


def server_time(client):
    seconds, microseconds = client.time()
    return seconds + microseconds / 1e6


def stored(client, codec, name):
    raw = client.get(name)
    if codec == "struct":
        return struct.unpack("<dd", raw)
    state = json.loads(raw)
    return state["t"], state["v"]


def test_a_state_is_what_was_taken(client, make, codec, key_format):
    limiter = make(a=RateLimit(Zone("za", 1e-3, 2000)), b=RateLimit(Zone("zb", 1e-3, 2000)))
    before = server_time(client)
    assert limiter.request(a="k") == (True, 0)
    assert limiter.request(a="l", b="m") == (True, 0)
    after = server_time(client)
    for zone, limit, key in (("za", "a", "k"), ("za", "a", "l"), ("zb", "b", "m")):
        name = key_format.format(zone=zone, key=key)
        state = limiter.state(limit, key)
        assert before <= state.timestamp <= after and state.value == 1
        assert stored(client, codec, name) == tuple(state)
        assert 1999 <= client.ttl(name) <= 2000
    for keys in ({"a": "k"}, {"a": "l"}, {"b": "m"}, {"a": "new", "b": "m"}):
        assert limiter.request(keys) == REJECTED
    assert limiter.state("a", "new") is None


def test_bursts_and_delays(client, make):
    limiter = make(a=RateLimit(Zone("z", 1, 60), burst=1, delay=1))
    answers = [limiter.request(a="k") for _ in range(4)]
    assert [answer.accepted for answer in answers] == [True, True, True, False]
    assert answers[1].delay == 0 and answers[2].delay == approx(1, abs=.2)
    assert answers[3].retry_after == approx(1, abs=.2) and answers[3].delay is None
    state = limiter.state("a", "k")
    assert state.value == approx(3, abs=.2) and state.timestamp == approx(answers[2].time, abs=1e-6)


def test_rejected_changes_nothing(client, make, codec, key_format):
    limiter = make(a=RateLimit(Zone("z", .5)))
    limiter.request(a="k")
    name = key_format.format(zone="z", key="k")
    before = client.get(name)
    assert [limiter.request(a="k") for _ in range(3)] == [REJECTED] * 3
    assert client.get(name) == before


def test_all_operations(make):
    limiter = make(a=RateLimit(Zone("z", .1, 600), burst=9, delay=1))
    assert limiter.request(a="k", cost=5).remaining == 5
    assert limiter.peek(a="k", cost=5) == (True, 0)
    assert limiter.refund(a="k", cost=2).remaining == approx(7, abs=1)
    assert limiter.charge(a="k", cost=20) == (True, 0)
    assert limiter.request(a="k").retry_after > 100
    assert limiter.reset(a="k") == (True, 0)
    assert limiter.state("a", "k") is None
    permit = limiter.request(a="k", cost=3)
    limiter.give_back(permit, a="k", cost=3)
    assert limiter.state("a", "k").value == approx(0, abs=.1)
    answers = limiter.request_many([{"a": number} for number in range(300)] + [({"a": "k"}, 10)])
    assert len(answers) == 301 and all(answers[-1] for answer in answers)
    assert limiter.statistics().accepted >= 303


def test_no_keys_need_no_server():
    limiter = RedisRateLimiter("redis://192.0.2.1")
    limiter.configure(a=RateLimit(Zone("z", 1)))
    assert limiter.request() == (True, 0)


def test_methods_share_the_keys(client, codec, key_format):
    limiters = [kind(client, key_format=key_format, codec=codec) for kind in METHODS.values()]
    for limiter in limiters:
        limiter.configure(a=RateLimit(Zone("z", 4, 60), delay=5))
    delays = [limiter.request(a="k").delay for limiter in limiters * 2]
    assert delays == approx([step / 4 for step in range(6)], abs=.1)
    assert len({limiter.state("a", "k") for limiter in limiters}) == 1


@pytest.mark.parametrize("key_format", ["{zone}{key}", "{key}{zone}", "{zone}-{key}-{zone}",
                                        "{{{zone}{key}}}", "{{{key}}}é%{zone}&?#="])
def test_key_formats(client, kind, key_format):
    zone = f"rbt{time.monotonic_ns()}"
    limiter = kind(client, key_format=key_format)
    limiter.configure(a=RateLimit(Zone(zone, 1)))
    limiter.request(a="key é")
    name = key_format.format(zone=zone, key="key é")
    assert client.exists(name)
    client.delete(name)


class TestStates:
    """What others have stored."""

    @pytest.mark.parametrize("codec, raw", [
        ("struct", b""), ("struct", b"x" * 15), ("struct", b"x" * 17), ("struct", b"\xff" * 16),
        ("json", b""), ("json", b"null"), ("json", b'{"t":1}'), ("json", b'{"t":NaN,"v":1}'),
        ("json", struct.pack("<dd", 1, 1)), ("struct", b'{"t":1,"v":1.5}'),
    ])
    def test_unreadable(self, client, kind, key_format, codec, raw):
        limiter = kind(client, key_format=key_format, codec=codec)
        limiter.configure(a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("y", 1)))
        name = key_format.format(zone="z", key="k e y")
        client.set(name, raw)
        for ask in (lambda: limiter.request(a="k e y", b="k"), lambda: limiter.peek(a="k e y"),
                    lambda: limiter.state("a", "k e y")):
            with pytest.raises(StateError) as caught:
                ask()
            assert "limit a" in str(caught.value) and "k e y" in str(caught.value)
        assert client.get(name) == raw and limiter.state("b", "k") is None
        limiter.reset(a="k e y")
        assert limiter.request(a="k e y") == (True, 0)

    def test_another_type_is_left_alone(self, client, kind, key_format):
        limiter = kind(client, key_format=key_format)
        limiter.configure(a=RateLimit(Zone("z", 1)))
        name = key_format.format(zone="z", key="k")
        client.rpush(name, "x", "y")
        with pytest.raises(StateError):
            limiter.request(a="k")
        answers = limiter.request_many([{"a": "l"}, {"a": "k"}, {"a": "m"}], return_exceptions=True)
        assert answers[0] == answers[2] == (True, 0) and isinstance(answers[1], StateError)
        assert client.lrange(name, 0, -1) == [b"x", b"y"]
        client.delete(name)

    def test_written_elsewhere(self, client, kind, codec, key_format):
        limiter = kind(client, key_format=key_format, codec=codec)
        limiter.configure(a=RateLimit(Zone("z", 1e-3, 3000), burst=2))
        now = server_time(client)
        raw = struct.pack("<dd", now, 2.0) if codec == "struct" else json.dumps(
            {"v": 2, "more": [1], "t": now}).encode()
        client.set(key_format.format(zone="z", key="k"), raw)
        assert limiter.state("a", "k") == (now, 2)
        assert limiter.request(a="k") == (True, 0)
        assert limiter.request(a="k") == REJECTED


@pytest.fixture(scope="module")
def old():
    if servers.program("old-redis") is None:
        pytest.skip("no Redis of before 3.2 here")
    with servers.Server("old-redis") as server:
        yield server


class TestVersions:
    def test_scripts_want_a_newer_one(self, old):
        with pytest.raises(RuntimeError) as caught:
            RedisScriptRateLimiter(old.url())
        assert isinstance(caught.value, UnsupportedError)
        assert "3.2" in str(caught.value) and "3.0" in str(caught.value)

    @pytest.mark.parametrize("kind", [RedisRateLimiter, RedisTransactionalRateLimiter])
    def test_transactions_do_without(self, old, kind):
        limiter = kind(old.url())
        limiter.configure(a=RateLimit(Zone(kind.__name__, 1)))
        assert limiter.request(a="k") == (True, 0)
        assert limiter.request(a="k") == REJECTED
        assert limiter.check().method == "transaction"

    def test_a_server_that_is_down_keeps_nobody_from_starting(self):
        limiter = RedisScriptRateLimiter("redis://127.0.0.1:1")
        limiter.configure(a=RateLimit(Zone("z", 1)))
        with pytest.raises(redbucket.UnavailableError):
            limiter.request(a="k")


def test_health(client, kind):
    health = kind(client).check()
    assert health.server.startswith(("Redis", "Valkey")) and health.round_trip > 0
    assert health.method == ("transaction" if kind is RedisTransactionalRateLimiter else "script")
