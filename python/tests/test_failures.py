# SPDX-License-Identifier: MIT
"""A server that fails is an error of its kind, never an answer, and no message tells a secret."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import redis

import redbucket
import server as servers
from redbucket import RateLimit, RedisRateLimiter, RedisScriptRateLimiter, Zone

SECRET = "pass@wo/rd?"


def limiter_of(redis, **options):
    limiter = RedisRateLimiter(redis, **options)
    limiter.configure(a=RateLimit(Zone("z", 1e-3, 5000), burst=2))
    return limiter


@pytest.fixture
def silent():
    """An address where connections are taken and nothing is said."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


def test_all_statuses_have_a_class():
    kinds = {kind.status: kind for kind in redbucket.StoreError.__subclasses__()}
    names = {name.replace("ERROR_", "", 1) for name in redbucket._core._statuses()}
    assert set(kinds) | set(redbucket.errors.PLAIN) == names
    assert not set(kinds) & set(redbucket.errors.PLAIN)
    assert {kind.__name__ for kind in kinds.values()} <= set(redbucket.__all__)


def test_down():
    limiter = limiter_of("redis://127.0.0.1:1")
    for _ in range(3):
        with pytest.raises(redbucket.UnavailableError) as caught:
            limiter.request(a="k")
        assert isinstance(caught.value, ConnectionError) and caught.value.status == "UNAVAILABLE"
        assert "127.0.0.1:1" in str(caught.value)
    assert limiter.statistics().failed == 3


def test_silent(silent):
    limiter = limiter_of(silent + "?timeout=100ms")
    begin = time.monotonic()
    with pytest.raises(redbucket.StoreTimeoutError) as caught:
        limiter.request(a="k")
    assert .1 <= time.monotonic() - begin < 1 and isinstance(caught.value, TimeoutError)
    with pytest.raises(redbucket.UnavailableError):
        limiter.request(a="k")


def test_is_not_asked_again_by_acquire(silent):
    limiter = limiter_of(silent + "?timeout=50ms")
    with pytest.raises(redbucket.StoreTimeoutError):
        limiter.acquire(a="k", timeout=30)


@pytest.mark.parametrize("policy, accepted", [("open", True), ("closed", False), ("local", True)])
def test_policies(policy, accepted):
    response = limiter_of("redis://127.0.0.1:1", on_error=policy).request(a="k")
    assert response.accepted is accepted and response.degraded


def test_a_hung_server_and_back(own_server):
    limiter = limiter_of(own_server.url(query="timeout=200ms"))
    assert limiter.request(a="k").accepted
    own_server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(redbucket.StoreError):
            limiter.request(a="k")
    finally:
        own_server.process.send_signal(signal.SIGCONT)
    deadline = time.monotonic() + 20
    while True:
        try:
            assert limiter.request(a="l").accepted
            break
        except redbucket.StoreError:
            assert time.monotonic() < deadline
            time.sleep(.01)


def test_a_restart_is_not_noticed(own_server):
    limiter = RedisScriptRateLimiter(own_server.url())
    limiter.configure(a=RateLimit(Zone("z", 1e-3, 5000), burst=2))
    assert limiter.request(a="k").accepted
    own_server.end()
    own_server.again()
    assert limiter.request(a="k").accepted
    own_server.ask("SCRIPT", "FLUSH")
    assert limiter.request(a="k").accepted


@pytest.fixture(scope="module")
def server():
    with servers.Server("redis", password=SECRET, tls=True) as server:
        yield server


class TestPassword:
    def test_of_a_client(self, server):
        for client in (redis.Redis("127.0.0.1", server.port, password=SECRET),
                       redis.Redis(unix_socket_path=server.socket, password=SECRET),
                       redis.Redis("localhost", server.tls_port, password=SECRET, ssl=True,
                                   ssl_ca_certs=f"{server.directory}/ca.pem"),
                       redis.Redis("localhost", server.tls_port, password=SECRET, ssl=True,
                                   ssl_cert_reqs="none")):
            client.ping()
            limiter = limiter_of(client)
            limiter.reset(a="k")
            assert limiter.request(a="k").accepted
            assert SECRET not in repr(limiter) and "pass" not in repr(limiter)

    @pytest.mark.parametrize("password", [None, "wrong " + SECRET])
    def test_wrong(self, server, password):
        limiter = limiter_of(redis.Redis("127.0.0.1", server.port, password=password))
        with pytest.raises(redbucket.AuthError) as caught:
            limiter.request(a="k")
        assert SECRET not in str(caught.value)

    def test_a_certificate_that_nobody_knows(self, server):
        limiter = limiter_of(redis.Redis("localhost", server.tls_port, password=SECRET, ssl=True))
        with pytest.raises(redbucket.TLSError):
            limiter.request(a="k")

    def test_a_certificate_of_another_name(self, server):
        limiter = limiter_of(redis.Redis("127.0.0.2", server.tls_port, password=SECRET, ssl=True,
                                         ssl_ca_certs=f"{server.directory}/ca.pem"))
        with pytest.raises((redbucket.TLSError, redbucket.UnavailableError)):
            limiter.request(a="k")


def test_a_replica_is_refused(own_server):
    with servers.Server("redis", config=[f"replicaof 127.0.0.1 {own_server.port}"]) as replica:
        with pytest.raises(redbucket.ReadOnlyError):
            limiter_of(replica.url()).request(a="k")


def test_a_full_server(own_server):
    limiter = limiter_of(own_server.url())
    own_server.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(redbucket.UnavailableError, match="OOM|memory"):
        limiter.request(a="k")


def interrupted(limiter, ask=None):
    """How long a request goes on after the signal that ends it."""
    sent = []
    ask = ask or (lambda: limiter.request(a="k"))

    def interrupt():
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(.2, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ask()
    took = time.monotonic() - sent[0]
    timer.join()
    return took


def test_other_threads_run_while_one_waits(silent):
    """And Ctrl-C is answered at once, long before the time is over."""
    steps, ended = [], threading.Event()

    def step():
        while not ended.is_set():
            steps.append(time.monotonic())
            time.sleep(.005)

    thread = threading.Thread(target=step)
    thread.start()
    try:
        # The machine may be busy; three times in a row it isn't for as long.
        took = min(interrupted(limiter_of(silent + "?timeout=1500ms")) for _ in range(3))
    finally:
        ended.set()
        thread.join()
    assert took < .2
    assert len(steps) > 20


def test_a_wait_for_a_connection_is_interrupted(silent):
    """There is one, and another thread has it."""

    def once():
        limiter = limiter_of(silent + "?timeout=1500ms&connections=1")
        other = threading.Thread(target=pytest.raises,
                                 args=(redbucket.StoreError, limiter.request), kwargs={"a": "k"})
        other.start()
        try:
            return interrupted(limiter, lambda: limiter.state("a", "k"))
        finally:
            other.join()

    assert min(once() for _ in range(3)) < .2


# Any name is looked up for as long as one likes.
HANGING = """
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    (void)host, (void)service, (void)found;
    if (hints != NULL && hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    sleep(20);
    return EAI_AGAIN;
}
"""

WAITS_FOR_A_NAME = """
import os, signal, threading, time
import redbucket
limiter = redbucket.RedisRateLimiter("redis://name.example?timeout=3s")
limiter.configure(a=redbucket.RateLimit(redbucket.Zone("z", 1)))
for _ in range(3):
    timer = threading.Timer(.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        limiter.request(a="k")
    except KeyboardInterrupt:
        print(time.monotonic() - begun - .2, flush=True)
    timer.join()
os._exit(0)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_a_wait_for_a_name_is_interrupted(tmp_path):
    source, library = tmp_path / "hanging.c", tmp_path / "hanging.so"
    source.write_text(HANGING)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    done = subprocess.run([sys.executable, "-c", WAITS_FOR_A_NAME], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=30,
                          env={**os.environ, "LD_PRELOAD": str(library)})
    took = [float(line) for line in done.stdout.split()]
    assert len(took) == 3 and min(took) < .2


def test_a_handler_that_raises_nothing_ends_nothing(own_server):
    limiter = limiter_of(own_server.url(query="timeout=5s"))
    limiter.request(a="warm")
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(True))
    own_server.process.send_signal(signal.SIGSTOP)
    threading.Timer(.3, own_server.process.send_signal, (signal.SIGCONT,)).start()
    signal.setitimer(signal.ITIMER_REAL, .02, .02)
    try:
        assert limiter.request(a="k") == (True, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(handled) >= 5


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError])
def test_a_handler_that_raises_something_else(silent, error):
    limiter = limiter_of(silent + "?timeout=3s")

    def handle(*_):
        raise error("from the handler")

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, .05)
    begin = time.monotonic()
    try:
        for ask in (lambda: limiter.request(a="k", cost=1),):
            with pytest.raises(error, match="from the handler"):
                ask()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 1
