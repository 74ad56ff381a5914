# SPDX-License-Identifier: MIT
"""Reading OpenMetrics text: by a strict reader of our own, and by that of the Python package
prometheus_client, which is fetched when a test needs it, into an environment of its own.

    families = openmetrics.parse(text)              {name: Family}, or Malformed
    samples = openmetrics.official(build, text)     {(name, labels): value}, or original.Missing
"""

import json
import os
import re
import subprocess

import original

PACKAGE = "prometheus_client==0.21.1"
READER = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
print(json.dumps([[s.name, sorted(s.labels.items()), s.value, f.name, f.type, f.unit]
                  for f in read(sys.stdin.buffer.read().decode()) for s in f.samples]))
"""

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABEL = rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([0-9]+)")
DESCRIPTION = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.+)")
SUFFIXES = {"counter": "_total", "gauge": "", "info": "_info"}


class Malformed(Exception):
    """It isn't OpenMetrics."""


class Family:
    def __init__(self):
        self.type = self.unit = self.help = None
        self.samples = {}


def expect(condition, line):
    if not condition:
        raise Malformed(line)


def describe(families, last, line):
    found = DESCRIPTION.fullmatch(line)
    expect(found, line)
    what, name, value = found.groups()
    if name != last:
        expect(name not in families, f"{line}: in two pieces")
        families[name] = Family()
    family = families[name]
    expect(getattr(family, what.lower()) is None and not family.samples, line)
    setattr(family, what.lower(), value)
    return name


def sample(family, name, line):
    found = SAMPLE.fullmatch(line)
    expect(found and family is not None, line)
    expect(family.type in SUFFIXES and found[1] == name + SUFFIXES[family.type], line)
    expect(family.unit is None or name.endswith("_" + family.unit), line)
    labels = tuple(sorted((pair[0], pair[1]) for pair in re.findall(LABEL, found[2] or "")))
    expect(labels not in family.samples and len(dict(labels)) == len(labels), line)
    family.samples[labels] = int(found[found.lastindex])


def parse(text):
    expect(text.endswith("\n# EOF\n") and "\r" not in text, "the end")
    families, name = {}, None
    for line in text[: -len("# EOF\n")].splitlines():
        if line.startswith("#"):
            name = describe(families, name, line)
        else:
            sample(families.get(name), name, line)
    expect(all(family.type and family.help for family in families.values()), "a TYPE and a HELP")
    return families


def official(build, text):
    python = original.environment(os.path.join(build, "openmetrics"), [PACKAGE],
                                  "import prometheus_client")
    run = subprocess.run([python, "-c", READER], input=text.encode(), check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode != 0:
        raise Malformed(run.stderr.decode())
    return json.loads(run.stdout)
