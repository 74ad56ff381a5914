# SPDX-License-Identifier: MIT
"""URLs of stores: putting them together, and showing them without what is secret.

Everything that comes from outside is percent-encoded, so that no character of a password, a path or
a key format can be taken for a part of the URL.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote

__all__ = ("Login", "Server", "masked", "quoted", "with_parameters")

SCHEME = re.compile(r"[A-Za-z0-9+.-]+\Z")

Text = Union[str, bytes]


def quoted(text: Text) -> str:
    """Percent-encoded, all but letters, digits and ``_.-~``. Names of files that are no UTF-8 have
    their bytes."""
    if isinstance(text, bytes):
        return quote(text, safe="")
    return quote(text, safe="", errors="surrogateescape")


def with_parameters(url: str, **parameters: Any) -> str:
    """The URL with parameters behind it, but those that are None."""
    given = [f"{name}={quoted(str(value))}" for name, value in parameters.items()
             if value is not None]
    if not given:
        return url
    return url + ("&" if "?" in url else "?") + "&".join(given)


class Login(NamedTuple):
    """Who asks. A password may be alone."""

    user: Optional[Text] = None
    password: Optional[Text] = None

    def prefix(self) -> str:
        """What stands before the hosts."""
        if self.password is None:
            return ""
        return f"{quoted(self.user or '')}:{quoted(self.password)}@"

    def __repr__(self) -> str:
        return "Login(***)"


class Server(NamedTuple):
    """Where a server is, or several: ``kind`` is "redis", "unix", "redis+sentinel" or
    "redis+cluster", ``tls`` is None or the parameters for it."""

    kind: str
    login: Login
    hosts: Tuple[Tuple[str, int], ...] = ()
    path: Text = ""
    service: str = ""
    db: int = 0
    tls: Optional[Dict[str, Any]] = None
    parameters: Tuple[Tuple[str, Any], ...] = ()

    def url(self) -> str:
        """The whole of it, with the password."""
        scheme = self.kind if self.tls is None else self.kind.replace("redis", "rediss", 1)
        parameters: Dict[str, Any] = dict(self.parameters)
        if self.kind == "unix":
            # A relative path has no form of its own.
            tail = "/".join(quoted(part) for part in parts_of(self.path))
            parameters["db"] = self.db or None
        else:
            tail = ",".join(host_and_port(host, port) for host, port in self.hosts)
            behind: List[str] = [quoted(self.service)] if self.kind == "redis+sentinel" else []
            behind += [str(self.db)] if self.db else []
            tail += "".join("/" + part for part in behind)
        parameters.update(self.tls or {})
        return with_parameters(f"{scheme}://{self.login.prefix()}{tail}", **parameters)


def parts_of(path: Text) -> List[Text]:
    if isinstance(path, bytes):
        return list(path.split(b"/"))
    return list(path.split("/"))


def host_and_port(host: str, port: int) -> str:
    """An IPv6 address is in brackets, a scope behind it kept."""
    return f"[{quoted(host)}]:{port}".replace("%3A", ":") if ":" in host \
        else f"{quoted(host)}:{port}"


def masked(url: str) -> str:
    """What may be shown: the scheme and where it is, no login and no parameters.

    A password that isn't encoded as it should be may contain any separator; so whatever could
    belong to one is left out.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or not SCHEME.match(scheme):
        return "***"
    place, _, query = rest.partition("?")
    if "@" in query:
        return f"{scheme}:***"
    login, at, hosts = place.rpartition("@")
    return f"{scheme}://***@{hosts}" if at else f"{scheme}:{place}"
