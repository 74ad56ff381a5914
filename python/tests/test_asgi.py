# SPDX-License-Identifier: MIT
"""The middleware for ASGI, on a harness of two queues."""

import asyncio
import logging

import pytest
from http_reading import Answer

from redbucket import InMemoryRateLimiter, RateLimit, RedisRateLimiter, Zone
from redbucket.aio import AsyncRateLimiter
from redbucket.asgi import RateLimitMiddleware, client_address, header, user

NOBODY = "redis://127.0.0.1:1?timeout=200ms"


@pytest.fixture
def slept(clock, monkeypatch):
    """What was slept, by a clock that the sleep moves."""
    pauses = []
    pause = asyncio.sleep

    async def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds
        await pause(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return pauses


def limiter_of(clock=None, **limits):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(**limits)
    return limiter


def limit(name, rate, **options):
    return RateLimit(Zone(name, rate, expiry=0), **options)


class App:
    """Counts its calls and says hello, in two pieces."""

    def __init__(self, headers=()):
        self.calls = []
        self.headers = list(headers)

    async def __call__(self, scope, receive, send):
        self.calls.append(scope)
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", b"text/plain"), *self.headers]})
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
        await send({"type": "http.response.body", "body": b"lo"})


def scope_of(**other):
    return {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": "/", "raw_path": b"/", "query_string": b"",
            "headers": [(b"host", b"www.example.org")], "client": ("192.0.2.7", 50000),
            "server": ("192.0.2.1", 80), **other}


async def ask(app, **other):
    """One request, whose messages have to come in the order that the interface has for them."""
    sent = []

    async def receive():
        raise AssertionError("nobody needs the body")

    async def send(message):
        sent.append(message)

    await app(scope_of(**other), receive, send)
    assert [message["type"] for message in sent] == (
        ["http.response.start"] + ["http.response.body"] * (len(sent) - 1))
    assert len(sent) > 1 and not sent[-1].get("more_body", False)
    for name, value in sent[0]["headers"]:
        assert type(name) is bytes and type(value) is bytes and name == name.lower()
    headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
    return Answer(sent[0]["status"], headers, b"".join(one["body"] for one in sent[1:]))


def call(app, **other):
    return asyncio.run(ask(app, **other))


def limited(app, limiter, keys=None, **options):
    return RateLimitMiddleware(app, limiter, keys or {"ip": client_address}, **options)


# ---- Accepted and rejected -------------------------------------------------------------------


def test_what_is_left_is_told_and_then_429(clock):
    app = App()
    web = limited(app, limiter_of(clock, ip=limit("ip", 0.5, burst=1)))
    first = call(web)
    assert (first.status, first.body) == (200, b"hello")
    assert first.policy == {"ip": {"q": 2, "w": 4}}
    assert first.left == {"ip": {"r": 1, "t": 2}}
    call(web)
    third = call(web)
    assert third.status == 429
    assert third.get("Retry-After") == "2"
    assert third.left == {"ip": {"r": 0, "t": 2}}
    assert third.problem["violated-policies"] == ["ip"]
    assert len(app.calls) == 2
    assert app.calls[0]["redbucket.response"].remaining == 1
    clock.now += 2
    assert call(web).status == 200


def test_either_kind_of_limiter(clock):
    limiter = limiter_of(clock, ip=limit("ip", 1))
    assert call(limited(App(), limiter.aio)).status == 200
    assert call(limited(App(), AsyncRateLimiter(limiter))).status == 429
    assert call(limited(App(), limiter)).status == 429


def test_only_http_is_limited():
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], receive, send))

    async def receive():
        return None

    async def send(message):
        pass

    web = limited(app, limiter_of(ip=limit("ip", 1)))
    for _ in range(3):
        asyncio.run(web({"type": "websocket", "client": ("192.0.2.7", 1)}, receive, send))
        asyncio.run(web({"type": "lifespan"}, receive, send))
        asyncio.run(web({"type": "something.new"}, receive, send))
    assert len(seen) == 9
    assert all(one[1:] == (receive, send) for one in seen)


def test_head_has_the_fields_and_no_body(clock):
    web = limited(App(), limiter_of(clock, ip=limit("ip", 1)))
    call(web)
    answer = call(web, method="HEAD")
    assert answer.status == 429 and answer.body == b""
    assert int(answer.get("Content-Length")) > 0


# ---- Keys ------------------------------------------------------------------------------------


class Somebody:
    def __init__(self, is_authenticated, **attributes):
        self.is_authenticated = is_authenticated
        self.__dict__.update(attributes)


@pytest.mark.parametrize("rule, other, key", [
    (client_address, {}, "192.0.2.7"),
    (client_address, {"client": ["2001:db8::7", 1]}, "2001:db8::/64"),
    (client_address, {"client": None}, None),
    (client_address, {"client": ("", 0)}, None),
    (client_address, {"client": (None, None)}, None),
    (client_address, {"client": ("unix:/tmp/socket\udcff", None)}, "unix:/tmp/socket\\udcff"),
    (header("X-Api-Key"), {}, None),
    (header("X-Api-Key"), {"headers": [(b"x-api-key", b"")]}, None),
    (header("X-Api-Key"), {"headers": [(b"X-API-KEY", b"\xfc\x00")]}, "\xfc\x00"),
    (header("X-Api-Key"), {"headers": [(b"x-api-key", b"a"), (b"x-api-key", b"b")]}, "a,b"),
    (header("x-api-key"), {"headers": [[bytearray(b"x-api-key"), memoryview(b"a")]]}, "a"),
    (user, {}, None),
    (user, {"user": None}, None),
    (user, {"user": "alice"}, "alice"),
    (user, {"user": Somebody(False, username="guest")}, None),
    (user, {"user": Somebody(True, username="alice")}, "alice"),
    (user, {"user": Somebody(True, display_name="Alice")}, "Alice"),
    (user, {"user": Somebody(True)}, None),
])
def test_rules(rule, other, key):
    assert rule(scope_of(**other)) == key


def test_requests_without_any_key_pass_untouched():
    app = App()
    web = limited(app, limiter_of(ip=limit("ip", 1)))
    for _ in range(3):
        assert call(web, client=None).get("RateLimit") is None
    assert len(app.calls) == 3 and "redbucket.response" not in app.calls[0]


def test_a_scope_without_anything():
    web = limited(App(), limiter_of(ip=limit("ip", 1), key=limit("key", 1)),
                  {"ip": client_address, "key": header("X-Api-Key")})
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(web({"type": "http"}, None, send))
    assert sent[0]["status"] == 200


def test_a_key_that_is_too_long_is_the_clients_fault():
    web = limited(App(), limiter_of(key=limit("key", 1)), {"key": header("X-Api-Key")})
    answer = call(web, headers=[(b"x-api-key", b"a" * 1000000)])
    assert answer.status == 400 and answer.problem["title"] == "Bad Request"


# ---- Fields ----------------------------------------------------------------------------------


def test_fields_of_the_application_and_of_two_middlewares(clock):
    app = App([(b"X-RateLimit-Limit".lower(), b"7"), (b"ratelimit", b'"own";r=1')])
    ip = limiter_of(clock, ip=limit("ip", 1, burst=2))
    all_ = limiter_of(clock, all=limit("all", 1, burst=4))
    inner = limited(app, ip, fields=["X-RateLimit-Limit", "RateLimit"])
    answer = call(limited(inner, all_, {"all": ""}))
    assert answer.get("X-RateLimit-Limit") == "7"
    assert {name: item["r"] for name, item in answer.left.items()} == {"own": 1, "ip": 2, "all": 4}


def test_an_application_that_sends_no_headers(clock):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b""})

    assert call(limited(app, limiter_of(clock, ip=limit("ip", 1)))).left["ip"]["r"] == 0


# ---- Delays ----------------------------------------------------------------------------------


def test_delays_are_awaited(clock, slept):
    web = limited(App(), limiter_of(clock, ip=limit("ip", 2, delay=2)))
    assert call(web).status == 200 and slept == []
    assert call(web).status == 200 and slept == [0.5]


def test_longer_delays_than_wanted_are_rejections(clock, slept):
    limiter = limiter_of(clock, ip=limit("ip", 0.1, delay=8), all=limit("all", 1, burst=99))
    web = limited(App(), limiter, {"ip": client_address, "all": ""}, max_delay=8)
    assert call(web).status == 200
    answer = call(web)
    assert answer.status == 429 and slept == []
    assert answer.get("Retry-After") == "2"
    assert answer.problem["violated-policies"] == ["ip"]
    assert answer.left["all"]["r"] == 99  # it was given back
    clock.now += 2
    assert call(web).status == 200 and slept == [8]


def test_others_are_served_while_one_is_delayed():
    limiter = limiter_of(ip=limit("ip", 0.01, delay=1))
    web = limited(App(), limiter, max_delay=None)

    async def main():
        assert (await ask(web)).status == 200
        delayed = asyncio.ensure_future(ask(web))
        await asyncio.sleep(0)
        assert (await ask(web, client=("192.0.2.8", 1))).status == 200
        assert not delayed.done()
        before = limiter.state("ip", "192.0.2.7").value
        delayed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delayed
        assert limiter.state("ip", "192.0.2.7").value < before - 0.9  # it was given back

    asyncio.run(main())


# ---- Failures --------------------------------------------------------------------------------


def failing(**options):
    limiter = RedisRateLimiter(NOBODY, **options)
    limiter.configure(ip=limit("ip", 1, burst=4))
    return limiter


def test_a_store_that_fails_is_503(caplog):
    app = App()
    web = limited(app, failing())
    with caplog.at_level(logging.WARNING, "redbucket"):
        answers = [call(web) for _ in range(3)]
    for answer in answers:
        assert answer.status == 503
        assert answer.get("Retry-After") == "1"
        assert answer.policy == {"ip": {"q": 5, "w": 5}}
        assert answer.get("RateLimit") is None
        assert answer.problem["type"] == "about:blank"
    assert app.calls == [] and len(caplog.records) == 1


def test_or_passes_when_that_is_asked_for():
    app = App()
    assert call(limited(app, failing(), on_error="open")).status == 200
    assert "redbucket.response" not in app.calls[0]


@pytest.mark.parametrize("policy, status", [("open", 200), ("closed", 503)])
def test_a_policy_of_the_limiters_comes_first(policy, status):
    answer = call(limited(App(), failing(on_error=policy)))
    assert answer.status == status
    assert answer.get("RateLimit") is None and answer.policy


def test_faults_of_rules_and_applications_go_through(clock):
    def broken(scope):
        raise ZeroDivisionError

    async def crashes(scope, receive, send):
        raise ZeroDivisionError

    limiter = limiter_of(clock, ip=limit("ip", 1, burst=9))
    with pytest.raises(ZeroDivisionError):
        call(limited(App(), limiter, {"ip": broken}))
    with pytest.raises(ZeroDivisionError):
        call(limited(crashes, limiter))
