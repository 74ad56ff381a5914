#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the METADATA of the package from pyproject.toml, for distributions that install with Meson.

A wheel's is made by meson-python. A distribution's Meson and Python may be older than that wants, and
older than a module that reads TOML; but what is read here is a file of our own, whose texts and lists of
texts are written in Python as they are in TOML.

usage: metadata.py PYPROJECT VERSION OUTPUT
"""

import ast
import re
import sys


def tables(text):
    """{table: {name: text, or list of texts}}; what is neither is left out."""
    found, table = {}, None
    text = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\[\n(.*?)\n\]", lambda list_: "[" + list_[1].replace("\n", " ") + "]", text,
                       flags=re.DOTALL).splitlines():
        header = re.fullmatch(r"\[([a-z.-]+)\]", line)
        entry = re.fullmatch(r"([a-z-]+) = ([\"\[].*)", line)
        if header:
            table = found.setdefault(header[1], {})
        elif entry:
            table[entry[1]] = ast.literal_eval(entry[2])
    return found


def compact(requirement):
    return requirement.replace(" ", "")


def metadata(text, version):
    found = tables(text)
    project, extras = found["project"], found["project.optional-dependencies"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}",
             f"Summary: {project['description']}", "License: MIT",
             f"Requires-Python: {compact(project['requires-python'])}"]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    lines += [f"Requires-Dist: {compact(requirement)}" for requirement in project["dependencies"]]
    for extra, requirements in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {compact(requirement)}; extra == "{extra}"' for requirement in requirements]
    return "\n".join(lines) + "\n"


def main(pyproject, version, output):
    with open(pyproject, encoding="utf-8") as file:
        text = metadata(file.read(), version)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
