# SPDX-License-Identifier: MIT
"""A plain client of a Redis server, for tests to set things up and to look at what was stored."""

import socket


class Error(Exception):
    """An error that the server answered."""


class Client:
    """Blocks, but never for longer than `timeout`. Bytes come back as bytes, errors are raised."""

    def __init__(self, address, password=None, timeout=30):
        """`address` is the path of a Unix socket or a pair of host and port."""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        try:
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")
        if password is not None:
            self.ask("AUTH", password)

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, *words):
        """One command; words are bytes, text or numbers."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(w), w) for w in words]
        self.socket.sendall(b"".join(parts))

    def read(self):
        """The next reply; an error among the members of an array is a member."""
        reply = self._read()
        if isinstance(reply, Error):
            raise reply
        return reply

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def _read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._exactly(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        raise ConnectionError(f"no reply: {line!r}")

    def _exactly(self, size):
        data = self.file.read(size + 2)
        if len(data) != size + 2:
            raise ConnectionError("the server closed the connection")
        return data[:-2]
