# SPDX-License-Identifier: MIT
"""Faults to be put into the code on purpose, each of which a test has to catch.

A list is a text file in mutations/. An entry begins with its name and says which promise of
docs/guarantees.md the fault breaks, which case of which test has to fail, and what to change:

    == the tick is a thousand times longer
    breaks: bound
    caught by: unit-model: the_tick_is_two_microseconds_of_the_rate
    in: src/model/bucket.h
    - #define RBK_TICK 2e-6
    + #define RBK_TICK 2e-3

"- " is what stands in the file, in whole lines, at one place only; "+ " what is put there instead. An
entry may change several places: each begins with its "in". The old text has to be exact, so that a list
can't go on when the code has moved under it.
"""

import os
import re
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
LISTS = os.path.join(HERE, "mutations")

FIELD = re.compile(r"^(breaks|caught by|in): (.+)$")
CATCHER = re.compile(r"^([\w-]+): (.+)$")


class Wrong(Exception):
    """A list that makes no sense, or no longer fits the code."""


@dataclass
class Change:
    path: str
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)


@dataclass
class Mutation:
    name: str
    where: str  # file and line of the entry
    breaks: str = ""
    catchers: list = field(default_factory=list)  # (test, case)
    changes: list = field(default_factory=list)


def add_field(mutation, word, value):
    if word == "breaks":
        mutation.breaks = value
    elif word == "in":
        mutation.changes.append(Change(value))
    else:
        catcher = CATCHER.match(value)
        if not catcher:
            raise Wrong(f"{mutation.where}: expected TEST: CASE, not {value}")
        mutation.catchers.append((catcher[1], catcher[2]))


def add_line(mutation, line):
    found = FIELD.match(line)
    if found:
        add_field(mutation, found[1], found[2])
    elif line[:2].rstrip() in ("-", "+") and mutation.changes:
        change = mutation.changes[-1]
        (change.old if line[0] == "-" else change.new).append(line[2:])
    else:
        raise Wrong(f"{mutation.where}: what is this: {line}")


def check_whole(mutation):
    if not mutation.breaks or not mutation.catchers or not mutation.changes:
        raise Wrong(f"{mutation.where}: {mutation.name}: needs breaks, caught by and in")
    for change in mutation.changes:
        if not change.old or change.old == change.new:
            raise Wrong(f"{mutation.where}: {mutation.name}: changes nothing")


def read_list(path):
    mutations = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if line.startswith("== "):
                mutations.append(Mutation(line[3:], f"{os.path.basename(path)}:{number}"))
            elif line and not line.startswith("#"):
                if not mutations:
                    raise Wrong(f"{path}:{number}: before the first entry")
                add_line(mutations[-1], line)
    for mutation in mutations:
        check_whole(mutation)
    return mutations


def read_all(folder=LISTS):
    mutations = []
    for name in sorted(os.listdir(folder)):
        mutations += read_list(os.path.join(folder, name))
    return mutations


def applied(mutation, source):
    """What files have with the fault in them, by path; the changes of one file go in one after the
    other."""
    texts = {}
    for change in mutation.changes:
        path = os.path.join(source, change.path)
        if path not in texts:
            with open(path, encoding="utf-8") as file:
                texts[path] = "\n" + file.read()
        old = "\n" + "\n".join(change.old) + "\n"
        times = texts[path].count(old)
        if times != 1:
            raise Wrong(f"{mutation.where}: {mutation.name}: its old text is {times} times in {change.path}")
        new = "\n" + "".join(line + "\n" for line in change.new)
        texts[path] = texts[path].replace(old, new)
    return {path: text[1:] for path, text in texts.items()}
