# SPDX-License-Identifier: MIT
"""Coroutines on a cluster and by TLS, and web applications on a server: many at once."""

import asyncio

import pytest
from aio_kit import limiter, limits, run  # noqa: F401
from http_reading import items

import cluster as clusters
import server as servers
from redbucket import from_url
from redbucket.asgi import RateLimitMiddleware, header


@pytest.fixture(scope="module")
def cluster():
    with clusters.Cluster() as cluster:
        yield cluster


def test_a_cluster(cluster, run):
    async def work(limiter, number):
        return [await limiter.aio.request(a="k", b=f"{number}{turn}") for turn in range(5)]

    async def main():
        with from_url(cluster.url()) as limiter:
            limiter.configure(limits())
            await limiter.aio.reset(a="k")
            works = (work(limiter, number) for number in range(200))
            answers = sum(await asyncio.gather(*works), [])
            many = await limiter.aio.request_many([{"a": number} for number in range(300)])
            assert all(answer.accepted for answer in many)
            return sum(answer.accepted for answer in answers)

    # Over slots that decide apart, some may be turned away for one that then gives back.
    assert 90 <= run(main()) <= 100


@pytest.mark.skipif(not servers.has_tls("redis"), reason="a server without TLS")
def test_by_tls(run):
    async def main(url):
        with from_url(url) as limiter:
            limiter.configure(limits())
            answers = await asyncio.gather(*(limiter.aio.request(a="k") for _ in range(200)))
            return sum(answer.accepted for answer in answers)

    with servers.Server("redis", tls=True, password="secret") as server:
        assert run(main(server.url("rediss"))) == 100


def test_web_requests_at_once(limiter, run):
    """200 clients at once, of whom each has a limit of his own beside one that all share."""
    async def app(scope, receive, send):
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    web = RateLimitMiddleware(app, limiter, {"a": "all", "b": header("X-Client")}, max_delay=0)
    heads = []

    async def ask(number):
        async def send(message):
            if message["type"] == "http.response.start":
                heads.append(message)

        await web({"type": "http", "method": "GET", "client": ("192.0.2.7", 1),
                   "headers": [(b"x-client", b"%d" % (number % 50))]}, None, send)

    async def main():
        await asyncio.gather(*(ask(number) for number in range(200)))

    run(main())
    assert len(heads) == 200
    statuses = [head["status"] for head in heads]
    assert statuses.count(200) == 100 and statuses.count(429) == 100
    left = [items(dict(head["headers"])[b"ratelimit"].decode())["a"]["r"] for head in heads]
    assert sorted(left, reverse=True)[:100] == list(range(99, -1, -1))
