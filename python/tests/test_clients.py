# SPDX-License-Identifier: MIT
"""What is taken from clients: of the versions of redis-py and valkey-py that are installed, and of
ones whose classes look like those of other versions. Nothing is connected."""

import asyncio
import ssl

import pytest
import redis
import redis.sentinel

from redbucket import RedisRateLimiter
from redbucket.clients import server_of

valkey = pytest.importorskip("valkey") if __import__("importlib").util.find_spec("valkey") else None
AWKWARD = "p@:/?#[]&=%+ é"


def url_of(client):
    return server_of(client).url()


def plain(url):
    """Without the timeout, whose default some versions have."""
    url, _, query = url.partition("?")
    rest = "&".join(part for part in query.split("&") if not part.startswith("timeout="))
    return url + ("?" + rest if rest else "")


class TestOneServer:
    def test_defaults(self):
        assert plain(url_of(redis.Redis())) == "redis://localhost:6379"

    def test_address_and_database(self):
        assert plain(url_of(redis.Redis("192.0.2.1", 7000, 3))) == "redis://192.0.2.1:7000/3"
        assert plain(url_of(redis.Redis("2001:db8::7", "7000"))) == "redis://[2001:db8::7]:7000"

    def test_login(self):
        client = redis.Redis("192.0.2.1", username="us:er", password=AWKWARD)
        url = url_of(client)
        assert plain(url).startswith("redis://us%3Aer:p%40%3A%2F%3F%23%5B%5D%26%3D%25%2B%20%C3%A9@192")
        RedisRateLimiter(client)
        assert plain(url_of(redis.Redis("192.0.2.1", password="x"))) == "redis://:x@192.0.2.1:6379"
        assert plain(url_of(redis.Redis("192.0.2.1", password=b"\xff"))) == "redis://:%FF@192.0.2.1:6379"

    def test_a_socket(self):
        client = redis.Redis(unix_socket_path="/run/a b/@é", db=2, password="x")
        assert plain(url_of(client)) == "unix://:x@/run/a%20b/%40%C3%A9?db=2"
        RedisRateLimiter(client)

    def test_a_relative_socket_is_found(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert plain(url_of(redis.Redis(unix_socket_path="s"))) == f"unix://{tmp_path}/s"

    def test_timeouts(self):
        assert "timeout=0.25" in url_of(redis.Redis(socket_timeout=.25))
        assert "timeout=3600.0" in url_of(redis.Redis(socket_timeout=10**6))
        assert "timeout" not in url_of(redis.Redis(socket_timeout=None))
        assert url_of(redis.Redis(socket_timeout=1e-5)).endswith("timeout=1e-05")

    def test_few_connections(self):
        pool = redis.BlockingConnectionPool(max_connections=2)
        assert "connections=2" in url_of(redis.Redis(connection_pool=pool))
        assert "connections" not in url_of(redis.Redis())

    @pytest.mark.parametrize("url, expected", [
        ("redis://u:p@192.0.2.1:7/3", "redis://u:p@192.0.2.1:7/3"),
        ("rediss://192.0.2.1", "rediss://192.0.2.1:6379"),
        ("unix://u:p@/x/y?db=4", "unix://u:p@/x/y?db=4"),
    ])
    def test_made_from_a_url(self, url, expected):
        assert plain(url_of(redis.Redis.from_url(url))) == expected

    def test_a_pool_alone(self):
        assert plain(url_of(redis.ConnectionPool(host="192.0.2.1", port=7))) == "redis://192.0.2.1:7"

    def test_what_is_given_beside_comes_first(self):
        client = redis.Redis("192.0.2.1", socket_timeout=3)
        with pytest.raises(ValueError, match="timeout"):
            RedisRateLimiter(client, timeout="nonsense")
        RedisRateLimiter(client, timeout=.5, connections=4)

    def test_a_client_of_asyncio(self):
        asynchronous = pytest.importorskip("redis.asyncio")

        async def ask():
            return url_of(asynchronous.Redis(host="192.0.2.1", password="x"))

        assert plain(asyncio.run(ask())) == "redis://:x@192.0.2.1:6379"

    @pytest.mark.skipif(valkey is None, reason="valkey-py is not installed")
    def test_valkey(self):
        client = valkey.Valkey("192.0.2.1", 7, 1, password="x")
        assert plain(url_of(client)) == "redis://:x@192.0.2.1:7/1"
        assert plain(url_of(valkey.Valkey(unix_socket_path="/s"))) == "unix:///s"
        assert plain(url_of(valkey.Valkey(host="192.0.2.1", ssl=True))) == "rediss://192.0.2.1:6379"


class TestTls:
    def test_files(self):
        client = redis.Redis("192.0.2.1", ssl=True, ssl_ca_certs="/c a", ssl_certfile="/cert",
                             ssl_keyfile="/key")
        assert plain(url_of(client)) == "rediss://192.0.2.1:6379?ca=%2Fc%20a&cert=%2Fcert&key=%2Fkey"

    @pytest.mark.parametrize("required", ["none", None, ssl.CERT_NONE])
    def test_not_verified(self, required):
        if required is None and int(redis.__version__.split(".")[0]) < 3:
            pytest.skip("means nothing there")
        client = redis.Redis("192.0.2.1", ssl=True, ssl_cert_reqs=required)
        assert plain(url_of(client)) == "rediss://192.0.2.1:6379?verify=none"
        RedisRateLimiter(client)

    @pytest.mark.parametrize("required", ["required", "optional", ssl.CERT_REQUIRED])
    def test_verified(self, required):
        client = redis.Redis("192.0.2.1", ssl=True, ssl_cert_reqs=required)
        assert plain(url_of(client)) == "rediss://192.0.2.1:6379"

    @pytest.mark.parametrize("name, value", [
        ("ssl_ca_path", "/certs"), ("ssl_ca_data", "-----BEGIN"), ("ssl_password", "secret"),
        ("ssl_validate_ocsp", True), ("ssl_min_version", ssl.TLSVersion.TLSv1_3),
        ("ssl_ciphers", "AES"),
    ])
    def test_what_cannot_be_taken_over(self, name, value):
        client = redis.Redis(ssl=True)
        client.connection_pool.connection_kwargs[name] = value
        with pytest.raises(ValueError, match=name) as caught:
            server_of(client)
        assert "secret" not in str(caught.value)


class TestCredentials:
    def provider(self, *given):
        class Provider:
            def get_credentials(self):
                return given

        return Provider()

    @pytest.mark.parametrize("given, login", [
        (("user", "pass"), "user:pass@"), (("pass",), ":pass@"), (("", "pass"), ":pass@"),
        ((None, "pass"), ":pass@"),
    ])
    def test_are_asked_for_once(self, given, login):
        client = redis.Redis("192.0.2.1")
        client.connection_pool.connection_kwargs["credential_provider"] = self.provider(*given)
        assert plain(url_of(client)) == f"redis://{login}192.0.2.1:6379"


class TestSentinel:
    def service(self, **options):
        sentinel = redis.sentinel.Sentinel(
            [("192.0.2.1", 26379), ("2001:db8::2", 26380)], password="mine",
            sentinel_kwargs={"password": "theirs", **options}, **options)
        return sentinel.master_for("my master", db=2)

    def test_the_master_of_a_service(self):
        client = self.service()
        assert plain(url_of(client)) == (
            "redis+sentinel://:mine@192.0.2.1:26379,[2001:db8::2]:26380/my%20master/2"
            "?sentinel_password=theirs")
        RedisRateLimiter(client)

    def test_replicas_will_not_do(self):
        sentinel = redis.sentinel.Sentinel([("192.0.2.1", 26379)])
        with pytest.raises(ValueError, match="replicas"):
            server_of(sentinel.slave_for("service"))

    @pytest.mark.skipif(int(redis.__version__.split(".")[0]) < 4, reason="came with version 4")
    def test_with_tls(self):
        assert url_of(self.service(ssl=True)).startswith("rediss+sentinel://:mine@192.0.2.1:26379")
        sentinel = redis.sentinel.Sentinel([("192.0.2.1", 26379)], ssl=True)
        with pytest.raises(ValueError, match="alike"):
            server_of(sentinel.master_for("service"))


class TestCluster:
    def manager(self, **arguments):
        class Node:
            def __init__(self, host, port):
                self.host, self.port = host, port

        class Manager:
            startup_nodes = {"a": Node("192.0.2.1", 7000), "b": Node("192.0.2.2", 7001)}
            nodes_cache = {"b": Node("192.0.2.2", 7001), "c": Node("2001:db8::3", 7002)}
            connection_kwargs = arguments

        class Cluster:
            nodes_manager = Manager()

        return Cluster()

    def test_nodes_and_login(self):
        client = self.manager(password="x", socket_timeout=2)
        assert url_of(client) == ("redis+cluster://:x@192.0.2.1:7000,192.0.2.2:7001,"
                                  "[2001:db8::3]:7002?timeout=2.0")
        RedisRateLimiter(client)

    @pytest.mark.parametrize("arguments", [{"ssl": True}, {"connection_class": redis.SSLConnection}])
    def test_with_tls(self, arguments):
        url = url_of(self.manager(ssl_ca_certs="/ca", **arguments))
        assert url.startswith("rediss+cluster://192.0.2.1:7000") and url.endswith("?ca=%2Fca")

    def test_the_cluster_package_of_version_3(self):
        class Nodes:
            startup_nodes = [{"host": "192.0.2.1", "port": "7000"}]

        class Pool:
            nodes = Nodes()
            connection_kwargs = {"password": "x"}
            connection_class = type("SSLClusterConnection", (), {})

        client = type("Client", (), {"connection_pool": Pool()})()
        assert url_of(client) == "rediss+cluster://:x@192.0.2.1:7000"


class TestNoClient:
    @pytest.mark.parametrize("nonsense", [None, 1, object(), ["redis://192.0.2.1"], b"redis://h"])
    def test_objects(self, nonsense):
        with pytest.raises(TypeError, match="redis-py"):
            RedisRateLimiter(nonsense)

    def test_a_connection_of_another_kind(self):
        class Elsewhere:
            pass

        pool = redis.ConnectionPool(host="192.0.2.1")
        pool.connection_class = Elsewhere
        with pytest.raises(TypeError):
            RedisRateLimiter(redis.Redis(connection_pool=pool))

    def test_another_encoding(self):
        with pytest.raises(ValueError, match="utf-16"):
            RedisRateLimiter(redis.Redis("192.0.2.1", encoding="utf-16"))

    def test_the_client_is_not_kept(self):
        import gc
        import weakref
        client = redis.Redis("192.0.2.1")
        gone = weakref.ref(client)
        limiter = RedisRateLimiter(client)
        del client
        gc.collect()
        assert gone() is None and limiter
