# SPDX-License-Identifier: MIT
"""What a client reads from an answer, by a parser of structured fields that isn't ours."""

import json

import pytest

http_sfv = pytest.importorskip("http_sfv")


def items(value):
    """Of a list of strings with parameters: {"user": {"r": 1, "t": 2}}."""
    parsed = http_sfv.List()
    parsed.parse(value.encode("ascii"))
    read = {}
    for item in parsed:
        assert isinstance(item.value, str)
        assert item.value not in read
        read[item.value] = dict(item.params)
    return read


class Answer:
    """A status, header fields by their names in lower case, and a body."""

    def __init__(self, status, headers, body=b""):
        self.status = status
        self.fields = {}
        for name, value in headers:
            known = self.fields.get(name.lower())
            self.fields[name.lower()] = value if known is None else f"{known}, {value}"
        self.body = body

    def get(self, name):
        return self.fields.get(name.lower())

    @property
    def left(self):
        return items(self.fields["ratelimit"])

    @property
    def policy(self):
        return items(self.fields["ratelimit-policy"])

    @property
    def problem(self):
        assert self.get("Content-Type") == "application/problem+json"
        assert int(self.get("Content-Length")) == len(self.body)
        read = json.loads(self.body)
        assert read["status"] == self.status
        return read
