# SPDX-License-Identifier: MIT
"""From a client of redis-py or valkey-py to the URL of the same place.

Decisions don't go through the client: it is asked where and how it connects, once, and not used
afterwards. What it is asked for is where all versions from 3 on keep it: the connection pool's
class and its arguments.

A setting that would make the client's connections safer than ours is refused rather than left out.
"""

from __future__ import annotations

import os
import ssl
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._urls import Login, Server

__all__ = ("server_of",)

HOSTS_MAX = 32
CONNECTIONS = 8  # what a store opens at most by itself
TIMEOUT_MAX = 3600

# Arguments that we have no counterpart for, and what they are when they ask for nothing.
REFUSED = {
    "ssl_ca_data": "write the certificates to a file and give ssl_ca_certs",
    "ssl_ca_path": "give a file, ssl_ca_certs",
    "ssl_password": "the key of a client's certificate can't have a passphrase",
    "ssl_validate_ocsp": "OCSP isn't asked",
    "ssl_validate_ocsp_stapled": "OCSP isn't asked",
    "ssl_include_verify_flags": "flags of verification can't be given",
    "ssl_ciphers": "ciphers are the system's choice",
}

Arguments = Mapping[str, Any]


def class_names(kind: Any) -> List[str]:
    return [base.__name__ for base in getattr(kind, "__mro__", ())]


def refuse(client: Any) -> TypeError:
    return TypeError(f"expected a client of redis-py or valkey-py, or a URL, not "
                     f"{type(client).__module__}.{type(client).__qualname__}")


# ---- Parts -----------------------------------------------------------------------------------


def login_of(arguments: Arguments) -> Login:
    """A provider of credentials is asked once, now."""
    provider = arguments.get("credential_provider")
    if provider is None:
        return Login(arguments.get("username") or None, arguments.get("password") or None)
    given = tuple(provider.get_credentials())
    return Login(None, given[0]) if len(given) == 1 else Login(given[0] or None, given[1] or None)


def check_encoding(arguments: Arguments) -> None:
    """Keys in Redis are called by UTF-8 here; the client would call them otherwise."""
    encoding = str(arguments.get("encoding") or "utf-8").lower().replace("_", "-")
    if encoding not in ("utf-8", "utf8", "ascii", "us-ascii"):
        raise ValueError(f"the client encodes keys as {encoding!r}; only UTF-8 will do")


def verifies(arguments: Arguments) -> bool:
    required = arguments.get("ssl_cert_reqs", "required")
    return not (required is None or required == "none" or required == ssl.CERT_NONE)


def check_tls(arguments: Arguments) -> None:
    for name, advice in REFUSED.items():
        if arguments.get(name):
            raise ValueError(f"the client's {name} can't be taken over: {advice}")
    least = arguments.get("ssl_min_version")
    if least is not None and least > ssl.TLSVersion.TLSv1_2:
        raise ValueError("the client's ssl_min_version can't be taken over: TLS 1.2 is accepted")


def tls_of(arguments: Arguments) -> Dict[str, Any]:
    """The parameters for TLS. The name in a certificate is always checked with it."""
    check_tls(arguments)
    certificate = arguments.get("ssl_certfile")
    key = arguments.get("ssl_keyfile")
    if (certificate is None) != (key is None):
        certificate = key = certificate or key  # both in one file
    if not verifies(arguments):
        return {"verify": "none", "cert": certificate, "key": key}
    return {"ca": arguments.get("ssl_ca_certs"), "cert": certificate, "key": key}


def options_of(arguments: Arguments, pool: Any) -> Tuple[Tuple[str, Any], ...]:
    """The timeout of one reply becomes that of a whole decision; a lower bound of connections than
    ours is kept."""
    timeout = arguments.get("socket_timeout")
    limit = getattr(pool, "max_connections", None)
    options: Dict[str, Any] = {}
    if timeout is not None and timeout > 0:
        options["timeout"] = repr(float(min(timeout, TIMEOUT_MAX)))
    if isinstance(limit, int) and 0 < limit < CONNECTIONS:
        options["connections"] = limit
    return tuple(options.items())


def checked_db(arguments: Arguments) -> int:
    return int(arguments.get("db") or 0)


# ---- Kinds of clients --------------------------------------------------------------------------


def one_server(pool: Any) -> Optional[Server]:
    """A client with one address; None when it is of no class that we know."""
    arguments = pool.connection_kwargs
    names = class_names(pool.connection_class)
    login = login_of(arguments)
    options = options_of(arguments, pool)
    if "UnixDomainSocketConnection" in names:
        path = os.path.abspath(arguments.get("path") or arguments.get("unix_socket_path") or "")
        return Server("unix", login, path=path, db=checked_db(arguments), parameters=options)
    if "Connection" not in names and "SSLConnection" not in names:
        return None
    host = (str(arguments.get("host") or "localhost"), int(arguments.get("port") or 6379))
    tls = tls_of(arguments) if "SSLConnection" in names else None
    return Server("redis", login, (host,), db=checked_db(arguments), tls=tls, parameters=options)


def sentinel_hosts(sentinels: List[Any]) -> Tuple[Tuple[str, int], ...]:
    arguments = [sentinel.connection_pool.connection_kwargs for sentinel in sentinels]
    return tuple((str(one.get("host") or "localhost"), int(one.get("port") or 26379))
                 for one in arguments[:HOSTS_MAX])


def is_tls(pool: Any) -> bool:
    names = class_names(pool.connection_class)
    return any("SSL" in name for name in names) or bool(pool.connection_kwargs.get("ssl"))


def behind_sentinels(pool: Any) -> Server:
    if not pool.is_master:
        raise ValueError("the client is for the replicas of a service; only the master will do")
    arguments = pool.connection_kwargs
    sentinels = pool.sentinel_manager.sentinels
    tls = is_tls(pool)
    if any(is_tls(one.connection_pool) != tls for one in sentinels):
        raise ValueError("TLS has to be for the sentinels and the master alike, or for neither")
    who = login_of(sentinels[0].connection_pool.connection_kwargs)
    options = options_of(arguments, pool)
    if who.password is not None:
        options += (("sentinel_password", who.password),)
        options += (("sentinel_user", who.user),) if who.user else ()
    return Server("redis+sentinel", login_of(arguments), sentinel_hosts(sentinels),
                  service=str(pool.service_name), db=checked_db(arguments),
                  tls=tls_of(arguments) if tls else None, parameters=options)


def nodes_of(manager: Any) -> Tuple[Tuple[str, int], ...]:
    """Those that a cluster's client began with, and those that it has met."""
    nodes: Dict[Tuple[str, int], None] = {}
    for known in (getattr(manager, "startup_nodes", None), getattr(manager, "nodes_cache", None),
                  getattr(manager, "nodes", None)):
        for node in (known.values() if isinstance(known, dict) else known or ()):
            host = node["host"] if isinstance(node, dict) else node.host
            port = node["port"] if isinstance(node, dict) else node.port
            nodes[str(host), int(port)] = None
    return tuple(nodes)[:HOSTS_MAX]


def of_cluster(manager: Any, arguments: Arguments, connection_class: Any) -> Server:
    tls = bool(arguments.get("ssl")) or any(
        "SSL" in name for kind in (connection_class, arguments.get("connection_class"))
        for name in class_names(kind))
    return Server("redis+cluster", login_of(arguments), nodes_of(manager),
                  tls=tls_of(arguments) if tls else None, parameters=options_of(arguments, None))


def server_of(client: Any) -> Server:
    """Where a client connects to, and how. TypeError for what is no such client, ValueError for a
    setting that can't be taken over."""
    manager = getattr(client, "nodes_manager", None)
    if manager is not None and isinstance(getattr(manager, "connection_kwargs", None), dict):
        arguments = manager.connection_kwargs
        check_encoding(arguments)
        return of_cluster(manager, arguments, None)
    pool = getattr(client, "connection_pool", client)
    arguments = getattr(pool, "connection_kwargs", None)
    if not isinstance(arguments, dict):
        raise refuse(client)
    check_encoding(arguments)
    if hasattr(getattr(pool, "nodes", None), "startup_nodes"):
        return of_cluster(pool.nodes, arguments, pool.connection_class)
    if hasattr(pool, "sentinel_manager"):
        return behind_sentinels(pool)
    server = one_server(pool)
    if server is None:
        raise refuse(client)
    return server
