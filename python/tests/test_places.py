# SPDX-License-Identifier: MIT
"""Sentinel-managed and cluster clients, of real sentinels and clusters: the limiter goes where they
go."""

import time

import pytest
import redis
import redis.sentinel

import cluster as clusters
import server as servers
from redbucket import RateLimit, RedisRateLimiter, Zone, from_url

LIMITS = {"a": RateLimit(Zone("za", .1), burst=1), "b": RateLimit(Zone("zb", .1), burst=1)}


@pytest.fixture(scope="module")
def watched():
    """A master, and a sentinel that knows it as "main"."""
    with servers.Server("redis", password="mine") as master:
        config = [f"sentinel monitor main 127.0.0.1 {master.port} 1",
                  "sentinel auth-pass main mine", "requirepass theirs"]
        with servers.Server("redis", config=config, password="theirs", sentinel=True) as sentinel:
            yield master, sentinel


def test_by_sentinel(watched):
    master, sentinel = watched
    manager = redis.sentinel.Sentinel([("127.0.0.1", sentinel.port)], password="mine",
                                      sentinel_kwargs={"password": "theirs"})
    client = manager.master_for("main", db=3)
    limiter = RedisRateLimiter(client)
    limiter.configure(**LIMITS)
    assert limiter.request(a="k", b="k") == (True, 0)
    assert client.exists("redbucket:za:k") == 1
    health = limiter.check()
    assert health.service == "main" and health.master == f"127.0.0.1:{master.port}"


@pytest.fixture(scope="module")
def cluster():
    with clusters.Cluster() as cluster:
        yield cluster


def test_a_cluster_by_url(cluster):
    limiter = from_url(cluster.url())
    limiter.configure(**LIMITS)
    answers = [limiter.request(a="k", b="other") for _ in range(3)]
    assert [answer.accepted for answer in answers] == [True, True, False]
    assert limiter.check().masters == 3 and limiter.check().slots == 16384


@pytest.mark.skipif(not hasattr(redis, "RedisCluster"), reason="came with version 4.1")
def test_a_cluster_by_client(cluster):
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port)
    limiter = RedisRateLimiter(client, key_format="client:{zone}:{key}")
    limiter.configure(**LIMITS)
    answers = limiter.request_many([{"a": number} for number in range(50)])
    assert all(answer == (True, 0) for answer in answers)
    assert client.exists("client:za:7") == 1
    client.close()


def test_time_is_the_servers(watched):
    master, _ = watched
    with RedisRateLimiter(master.url()) as limiter:
        limiter.configure(**LIMITS)
        assert abs(limiter.request(a="t").time - time.time()) < 60
