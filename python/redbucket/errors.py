# SPDX-License-Identifier: MIT
"""What a store that failed raises: an answer is never among the exceptions.

Every failure of a store is a StoreError, and each kind a class of its own; where Python has a word
for the kind, it is that as well, so that ``except TimeoutError`` and ``except ConnectionError`` do
what they say.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, Type

from . import _core

__all__ = (
    "AuthError",
    "BrokenError",
    "ConflictError",
    "ForeignError",
    "FullError",
    "KeyTooLongError",
    "MismatchError",
    "ProtocolError",
    "ReadOnlyError",
    "ServerError",
    "StateError",
    "StoreError",
    "StoreTimeoutError",
    "SystemFailure",
    "TLSError",
    "UnavailableError",
    "UnsupportedError",
)


class StoreError(Exception):
    """The store failed, so there is no answer; nothing was taken, unless a class says otherwise.

    ``status`` is the library's name of the kind. ``responses`` is None, but of an error that
    ``request_many`` raises: what became of each request, an answer or an error.
    """

    status: str = ""
    responses: Any = None


class KeyTooLongError(StoreError, ValueError):
    """A key or a zone's name is too long for this store."""

    status = "KEY"


class FullError(StoreError):
    """The table is full of buckets that keep somebody out."""

    status = "FULL"


class StateError(StoreError):
    """What is stored under a key is no state that can be read; it was left alone."""

    status = "STATE"


class StoreTimeoutError(StoreError, TimeoutError):
    """The time was over. Whether a request to a server was counted is unknown."""

    status = "TIMEOUT"


class ForeignError(StoreError):
    """The named store is not one of this library's, damaged, or of another format or clock."""

    status = "FOREIGN"


class MismatchError(StoreError):
    """The store is there, with another size or mode than asked for."""

    status = "MISMATCH"


class UnsupportedError(StoreError, RuntimeError):
    """This store, or its server, can't do that."""

    status = "UNSUPPORTED"


class SystemFailure(StoreError, OSError):
    """The operating system refused something."""

    status = "SYSTEM"


class UnavailableError(StoreError, ConnectionError):
    """The server can't be reached, or says that it can't serve now."""

    status = "UNAVAILABLE"


class BrokenError(StoreError, ConnectionError):
    """The connection broke in the middle. Whether the request was counted is unknown."""

    status = "IO"


class ProtocolError(StoreError):
    """The server sent what makes no sense. Whether the request was counted is unknown."""

    status = "PROTOCOL"


class AuthError(StoreError):
    """The server wants another user or password, or forbids the user what it takes."""

    status = "AUTH"


class ReadOnlyError(StoreError):
    """The server is a replica, which can't take anything."""

    status = "READONLY"


class TLSError(StoreError):
    """The server's certificate is not good for its name, or TLS failed otherwise."""

    status = "TLS"


class ConflictError(StoreError):
    """Others changed the same buckets until the time was over."""

    status = "CONFLICT"


class ServerError(StoreError):
    """The server refused the command; the message has its words."""

    status = "SERVER"


# What isn't a failure of the store but of whoever asks.
PLAIN: Dict[str, Type[Exception]] = {
    "OK": RuntimeError,
    "ARGUMENT": ValueError,
    "LIMIT": ValueError,
    "DUPLICATE": ValueError,
    "UNKNOWN_LIMIT": KeyError,
    "URL": ValueError,
    "MEMORY": MemoryError,
    "SPACE": RuntimeError,
    "CANCELLED": RuntimeError,
}


def by_status() -> Tuple[Type[Exception], ...]:
    """The class of each of the library's statuses, in their order."""
    classes = {**PLAIN, **{kind.status: kind for kind in StoreError.__subclasses__()}}
    names: List[str] = [name[len("ERROR_"):] if name.startswith("ERROR_") else name
                        for name in _core._statuses()]
    return tuple(classes.get(name, StoreError) for name in names)
