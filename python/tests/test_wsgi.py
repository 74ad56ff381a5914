# SPDX-License-Identifier: MIT
"""The middleware for WSGI, in front of applications and under servers that are not ours."""

import http.client
import logging
import threading
import time
import wsgiref.simple_server
import wsgiref.util
import wsgiref.validate

import pytest
from http_reading import Answer

import redbucket
from redbucket import InMemoryRateLimiter, RateLimit, RedisRateLimiter, Zone
from redbucket.wsgi import RateLimitMiddleware, client_address, header, remote_user

NOBODY = "redis://127.0.0.1:1?timeout=200ms"


@pytest.fixture
def slept(clock, monkeypatch):
    """What was slept, by a clock that the sleep moves."""
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    return pauses


def limiter_of(clock=None, **limits):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(**limits)
    return limiter


def limit(name, rate, **options):
    return RateLimit(Zone(name, rate, expiry=0), **options)


class App:
    """Counts its calls and says hello."""

    def __init__(self, headers=()):
        self.calls = []
        self.headers = list(headers)

    def __call__(self, environ, start_response):
        self.calls.append(environ)
        start_response("200 OK", [("Content-Type", "text/plain"), *self.headers])
        return [b"hello"]


def call(app, address="192.0.2.7", method="GET", **variables):
    """One request, through the validator of the standard library on both sides."""
    environ = {"REQUEST_METHOD": method, "QUERY_STRING": "", "SCRIPT_NAME": "", "PATH_INFO": "/",
               **variables}
    if address is not None:
        environ["REMOTE_ADDR"] = address
    wsgiref.util.setup_testing_defaults(environ)
    started = []

    def start_response(status, headers, exc_info=None):
        started.append((status, headers))
        return lambda data: None

    body = wsgiref.validate.validator(app)(environ, start_response)
    try:
        data = b"".join(body)
    finally:
        body.close()
    (status, headers), = started
    return Answer(int(status.split()[0]), headers, data)


def limited(app, limiter, keys, **options):
    """Between two validators: it has to be a good server and a good application."""
    return RateLimitMiddleware(wsgiref.validate.validator(app), limiter, keys, **options)


# ---- Accepted and rejected -------------------------------------------------------------------


def test_what_is_left_is_told_and_then_429(clock):
    app = App()
    web = limited(app, limiter_of(clock, ip=limit("ip", 0.5, burst=1)), {"ip": client_address})

    first = call(web)
    assert (first.status, first.body) == (200, b"hello")
    assert first.policy == {"ip": {"q": 2, "w": 4}}
    assert first.left == {"ip": {"r": 1, "t": 2}}
    assert first.get("Retry-After") is None
    assert call(web).left == {"ip": {"r": 0, "t": 2}}

    third = call(web)
    assert third.status == 429
    assert third.get("Retry-After") == "2"
    assert third.left == {"ip": {"r": 0, "t": 2}}
    assert third.policy == first.policy
    assert third.problem["type"].endswith("#quota-exceeded")
    assert third.problem["violated-policies"] == ["ip"]
    assert third.get("Cache-Control") == "no-store"
    assert len(app.calls) == 2

    clock.now += 2
    assert call(web).status == 200


def test_clients_have_buckets_of_their_own(clock):
    web = limited(App(), limiter_of(clock, ip=limit("ip", 1)), {"ip": client_address})
    assert [call(web, address).status for address in (
        "192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1", "2001:db8::2", "::ffff:192.0.2.3",
        "192.0.2.3")] == [200, 200, 429, 200, 429, 200, 429]


def test_several_limits_are_taken_together_or_not_at_all(clock):
    limiter = limiter_of(clock, ip=limit("ip", 1, burst=9), user=limit("user", 1))
    web = limited(App(), limiter, {"ip": client_address, "user": remote_user})
    assert call(web, REMOTE_USER="alice").left == {"ip": {"r": 9, "t": 1}, "user": {"r": 0, "t": 1}}
    rejected = call(web, REMOTE_USER="alice")
    assert rejected.status == 429
    assert rejected.left["ip"]["r"] == 9
    assert rejected.problem["violated-policies"] == ["user"]
    assert call(web, REMOTE_USER="bob").status == 200
    assert call(web).left == {"ip": {"r": 7, "t": 3}}  # nobody is logged in: the other limit alone


def test_the_application_finds_its_permit(clock):
    app = App()
    call(limited(app, limiter_of(clock, ip=limit("ip", 1)), {"ip": client_address}))
    response = app.calls[0]["redbucket.response"]
    assert response == (True, 0.0) and response.remaining == 0


def test_cost_by_a_number_and_by_the_request(clock):
    limiter = limiter_of(clock, ip=limit("ip", 1, burst=9))
    assert call(limited(App(), limiter, {"ip": client_address}, cost=4)).left["ip"]["r"] == 6

    def cost(environ):
        return 5 if environ["REQUEST_METHOD"] == "POST" else 1

    web = limited(App(), limiter, {"ip": client_address}, cost=cost)
    assert call(web, method="POST").left["ip"]["r"] == 1
    assert call(web).left["ip"]["r"] == 0


def test_head_has_the_fields_and_no_body(clock):
    web = limited(App(), limiter_of(clock, ip=limit("ip", 1)), {"ip": client_address})
    call(web)
    answer = call(web, method="HEAD")
    assert answer.status == 429 and answer.body == b""
    assert int(answer.get("Content-Length")) > 0


# ---- Keys ------------------------------------------------------------------------------------


def test_requests_without_any_key_pass_untouched():
    app = App()
    web = limited(app, limiter_of(ip=limit("ip", 1)), {"ip": client_address})
    for _ in range(5):
        answer = call(web, address=None)
        assert answer.status == 200 and answer.get("RateLimit") is None
    assert call(web, address="").status == 200
    assert len(app.calls) == 6


def test_keys_that_are_odd(clock):
    limiter = limiter_of(clock, key=limit("key", 1))
    web = limited(App(), limiter, {"key": header("X-Api-Key")})
    for value in ("\xe4\xf6\xfc", "\x00", "%s%n{}", "a" * 10000, "\udcff", "user:{a}\r\nb"):
        assert call(web, HTTP_X_API_KEY=value).status in (200, 400)
        assert call(web, HTTP_X_API_KEY=value).status in (429, 400)
    assert call(web, HTTP_X_API_KEY="").get("RateLimit") is None
    assert call(web).get("RateLimit") is None
    assert header("Content-Type")({"CONTENT_TYPE": "text/plain"}) == "text/plain"
    assert header("user-agent")({"HTTP_USER_AGENT": "a"}) == "a"


def test_a_key_that_is_too_long_is_the_clients_fault(clock):
    app = App()
    web = limited(app, limiter_of(clock, key=limit("key", 1)), {"key": header("X-Api-Key")},
                  on_error="open")
    answer = call(web, HTTP_X_API_KEY="a" * 1000000)
    assert answer.status == 400
    assert answer.problem["title"] == "Bad Request"
    assert app.calls == []


def test_a_key_that_is_said_and_a_function_for_all(clock):
    limiter = limiter_of(clock, all=limit("all", 1), ip=limit("ip", 1))
    web = limited(App(), limiter, {"all": "everybody"})
    assert [call(web, a).status for a in ("192.0.2.1", "192.0.2.2")] == [200, 429]

    def keys(environ):
        if environ["PATH_INFO"] == "/health":
            return None
        return {"ip": client_address(environ), "all": None}

    web = limited(App(), limiter, keys)
    assert [call(web).status, call(web).status] == [200, 429]
    assert call(web, PATH_INFO="/health").status == 200


def test_faults_of_the_set_up_are_told_at_once():
    limiter = limiter_of(ip=limit("ip", 1))
    with pytest.raises(KeyError, match="nope"):
        RateLimitMiddleware(App(), limiter, {"nope": client_address})
    with pytest.raises(ValueError, match="on_error"):
        RateLimitMiddleware(App(), limiter, {"ip": client_address}, on_error="closed")
    with pytest.raises(ValueError, match="max_delay"):
        RateLimitMiddleware(App(), limiter, {"ip": client_address}, max_delay=-1)
    with pytest.raises(ValueError, match="X-Nope"):
        RateLimitMiddleware(App(), limiter, {"ip": client_address}, fields=["X-Nope"])


def test_names_that_are_no_strings_of_a_field(clock):
    names = ['a"b\\c', "\xe4 100%", "line\r\nX-Injected: 1"]
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure({name: limit(name, 1) for name in names})
    answer = call(limited(App(), limiter, {name: "k" for name in names}))
    assert set(answer.left) == {'a"b\\c', "%C3%A4 100%25", "line%0D%0AX-Injected: 1"}
    assert answer.get("X-Injected") is None


# ---- Fields ----------------------------------------------------------------------------------


def test_other_fields(clock):
    limiter = limiter_of(clock, ip=limit("ip", 1, burst=2))
    fields = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
    answer = call(limited(App(), limiter, {"ip": client_address}, fields=fields))
    assert [answer.get(name) for name in fields] == ["3", "2", "1"]
    assert answer.get("RateLimit") is None
    answer = call(limited(App(), limiter, {"ip": client_address}, fields=[]))
    assert set(answer.fields) == {"content-type"}


def test_fields_of_the_application_and_of_two_middlewares(clock):
    app = App([("X-RateLimit-Limit", "7"), ("RateLimit", '"own";r=1')])
    ip = limiter_of(clock, ip=limit("ip", 1, burst=2))
    user = limiter_of(clock, user=limit("user", 1, burst=4))
    inner = limited(app, ip, {"ip": client_address}, fields=["X-RateLimit-Limit", "RateLimit"])
    answer = call(limited(inner, user, {"user": "alice"}))
    assert answer.get("X-RateLimit-Limit") == "7"
    assert {name: item["r"] for name, item in answer.left.items()} == {"own": 1, "ip": 2, "user": 4}


# ---- Delays ----------------------------------------------------------------------------------


def test_delays_are_slept(clock, slept):
    app = App()
    web = limited(app, limiter_of(clock, ip=limit("ip", 2, delay=2)), {"ip": client_address})
    assert call(web).status == 200 and slept == []
    assert call(web).status == 200 and slept == [0.5]
    assert len(app.calls) == 2


def test_longer_delays_than_wanted_are_rejections(clock, slept):
    limiter = limiter_of(clock, ip=limit("ip", 0.1, delay=8), all=limit("all", 1, burst=99))
    web = limited(App(), limiter, {"ip": client_address, "all": ""}, max_delay=15)
    assert [call(web).status, call(web).status] == [200, 200]
    assert slept == [10]
    clock.now -= 10  # and yet nobody gets that back
    answer = call(web)
    assert answer.status == 429
    assert slept == [10]
    assert answer.get("Retry-After") == "5"
    assert answer.problem["violated-policies"] == ["ip"]
    assert answer.left["all"]["r"] == 98  # it was given back
    clock.now += 5
    assert call(web).status == 200
    assert slept == [10, 15]


def test_a_permit_whose_delay_is_broken_off_is_given_back(clock, monkeypatch):
    limiter = limiter_of(clock, ip=limit("ip", 0.1, delay=3))

    def interrupted(seconds):
        raise KeyboardInterrupt

    web = limited(App(), limiter, {"ip": client_address})
    call(web)
    before = limiter.state("ip", "192.0.2.7")
    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(web)
    assert limiter.state("ip", "192.0.2.7") == before


# ---- Failures --------------------------------------------------------------------------------


def failing(**options):
    limiter = RedisRateLimiter(NOBODY, **options)
    limiter.configure(ip=limit("ip", 1, burst=4))
    return limiter


def test_a_store_that_fails_is_503(caplog):
    app = App()
    web = limited(app, failing(), {"ip": client_address})
    with caplog.at_level(logging.WARNING, "redbucket"):
        answers = [call(web) for _ in range(3)]
    for answer in answers:
        assert answer.status == 503
        assert answer.get("Retry-After") == "1"
        assert answer.policy == {"ip": {"q": 5, "w": 5}}
        assert answer.get("RateLimit") is None
        assert answer.problem["type"] == "about:blank"
        assert b"127.0.0.1" not in answer.body
    assert app.calls == []
    assert len(caplog.records) == 1 and "127.0.0.1" in caplog.text


def test_or_passes_when_that_is_asked_for():
    app = App()
    web = limited(app, failing(), {"ip": client_address}, on_error="open")
    assert call(web).status == 200
    assert call(web).get("RateLimit") is None
    assert "redbucket.response" not in app.calls[0]


@pytest.mark.parametrize("policy, status", [("open", 200), ("closed", 503)])
def test_a_policy_of_the_limiters_comes_first(policy, status):
    app = App()
    answer = call(limited(app, failing(on_error=policy), {"ip": client_address}))
    assert answer.status == status
    assert answer.get("RateLimit") is None and answer.policy
    if status == 503:
        assert answer.problem["type"].endswith("#temporary-reduced-capacity")
    else:
        assert app.calls[0]["redbucket.response"].degraded


def test_faults_of_rules_and_applications_go_through(clock):
    def broken(*_):
        raise ZeroDivisionError

    limiter = limiter_of(clock, ip=limit("ip", 1, burst=9))
    with pytest.raises(ZeroDivisionError):
        call(limited(App(), limiter, {"ip": broken}))
    with pytest.raises(ZeroDivisionError):
        call(limited(broken, limiter, {"ip": client_address}))


def test_the_store_is_back(caplog, clock):
    limiter = limiter_of(clock, ip=limit("ip", 1, burst=9))
    web = RateLimitMiddleware(App(), limiter, {"ip": client_address})
    asks = iter([redbucket.UnavailableError("down"), None, redbucket.UnavailableError("again")])

    class Sometimes:
        """The limiter, failing at times."""

        def __getattr__(self, name):
            return getattr(limiter, name)

        def request(self, *args, **options):
            failure = next(asks)
            if failure is not None:
                raise failure
            return limiter.request(*args, **options)

    web._limiter = Sometimes()
    with caplog.at_level(logging.WARNING, "redbucket"):
        assert [call(web).status for _ in range(3)] == [503, 200, 503]
    said = [record.getMessage() for record in caplog.records]
    assert ["down" in said[0], "answers again" in said[1], "again" in said[2]] == [True] * 3


# ---- Under a server --------------------------------------------------------------------------


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def serve():
    servers = []

    def start(app):
        server = wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Quiet)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return server.server_port

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(port, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/", headers=headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def test_under_wsgiref(serve, clock):
    limiter = limiter_of(clock, ip=limit("ip", 1, burst=1), key=limit("key", 1, burst=9))
    port = serve(limited(App(), limiter, {"ip": client_address, "key": header("X-Api-Key")}))
    first = fetch(port, {"X-Api-Key": "\xfc"})
    assert first.status == 200 and first.left == {"ip": {"r": 1, "t": 1}, "key": {"r": 9, "t": 1}}
    assert fetch(port).status == 200
    last = fetch(port)
    assert last.status == 429 and last.get("Retry-After") == "1"
    assert last.problem["detail"] == "Try again in 1 second."
    assert limiter.state("ip", "127.0.0.1").value == 2
