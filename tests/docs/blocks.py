# SPDX-License-Identifier: MIT
"""All the code that stands in documents and manual pages, and of what kind each block is.

What a kind is decides what is done with it (tests/docs/test_documents.py, test_snippets.py), so a block
of no kind is one that nothing checks.
"""

import glob
import os
import re

import transcript

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

# What isn't code, by the page and how it begins, and why nothing runs it.
NOT_RUN = {
    "pictures of how the parts lie, or follow each other": [
        ("docs/cluster.md", "limiter -> policy"), ("docs/lease.md", "limiter -> policy"),
        ("docs/redis.md", "limiter -> policy"), ("docs/sentinel.md", "limiter -> policy"),
        ("docs/speed.md", "limiter -> policy"), ("docs/replay.md", "bytes -> lines"),
        ("docs/shm.md", "+---"), ("docs/table.md", "+---"),
    ],
    "a rule that tests/docs/test_nginx.py compares with how nginx counts": [
        ("docs/from-nginx.md", "nginx    burst=B"),
    ],
    "formulas, which tests of the model and of each store compare with what is decided": [
        ("docs/model.md", "level  = max("), ("docs/choosing-limits.md", "burst + 1 + delay"),
        ("docs/lease.md", "burst + 1 + delay"), ("docs/sentinel.md", "accepted <= 2"),
        ("docs/guarantees.md", "burst + 1 + delay"), ("docs/guarantees.md", "N + burst + delay"),
    ],
}


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def documents():
    """The paths of all Markdown pages, from the top of the tree."""
    paths = [path for folder in ("", "docs", "examples", "tests", "tests/docs")
             for path in glob.glob(os.path.join(SOURCE, folder, "*.md"))]
    return sorted(os.path.relpath(path, SOURCE) for path in paths)


def manual_pages():
    return sorted(os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "man", "*.[0-9]")))


def not_run(path, block):
    return any((path, begin) == (path_there, begin) and block.text.startswith(begin)
               for pairs in NOT_RUN.values() for path_there, begin in pairs)


def kind(path, block):
    """One word, or None for a block that nothing checks."""
    if "file" in block.said:
        return "file"
    if block.is_session():
        return "session"
    if "said" in block.said:
        return "output"
    if block.language in ("c", "python", "conf", "cmake", "url"):
        return block.language
    return "not run" if not_run(path, block) else None


def of_kind(*kinds):
    """[(path, block)] of all documents."""
    return [(path, block) for path in documents() for block in transcript.blocks(read(path))
            if kind(path, block) in kinds]


def unescaped(line):
    """A line of mdoc as it is read."""
    for escape, text in (("\\(dq", '"'), ("\\e", "\\"), ("\\-", "-"), ("\\&", "")):
        line = line.replace(escape, text)
    return line


def displays(path):
    """[lines] of each display of a manual page: .Bd to .Ed, or .Dl alone."""
    text = read(path)
    found = [[unescaped(line) for line in inner.splitlines()]
             for inner in re.findall(r"^\.Bd .*?$\n(.*?)^\.Ed$", text, re.MULTILINE | re.DOTALL)]
    return found + [[unescaped(line)] for line in re.findall(r"^\.Dl (.*)$", text, re.MULTILINE)]
