# SPDX-License-Identifier: MIT
"""Whether a case that a document names as `PROGRAM: CASE` is there, in the sources of that program of
`meson test`."""

import json
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

NAMED = re.compile(r"`([a-z]+-[\w-]+): ([^`]+)`")
WHOLE = re.compile(r"`((?:fuzz|resources|torture)-\w+)`")


def named_in(text):
    """All (program, case) that a text names; of a program that is named as a whole, the case is None."""
    return NAMED.findall(text) + [(program, None) for program in WHOLE.findall(text)]


class Programs:
    def __init__(self, build):
        self.build = build
        tests = self.introspect("--tests")
        targets = self.introspect("--targets")
        self.sources = {os.path.realpath(file): [s for part in target["target_sources"] for s in part["sources"]]
                        for target in targets for file in target["filename"]}
        self.commands = {test["name"]: test["cmd"] for test in tests}
        self.texts = {}

    def introspect(self, what):
        return json.loads(subprocess.run(["meson", "introspect", what, self.build], check=True,
                                         stdout=subprocess.PIPE).stdout)

    def files_of(self, program):
        command = self.commands[program]
        files = list(self.sources.get(os.path.realpath(command[0]), []))
        for word in command[1:]:
            if word.endswith(".py"):
                files += [os.path.join(self.build, word), os.path.join(SOURCE, "python", "tests", word)]
        files = [os.path.realpath(path) for path in files if os.path.isfile(path)]
        return [path for path in files if path.startswith(os.path.realpath(SOURCE) + os.sep)]

    def text_of(self, program):
        if program not in self.texts:
            parts = []
            for path in self.files_of(program):
                with open(path, encoding="utf-8") as file:
                    parts.append(file.read())
            self.texts[program] = "\n".join(parts)
        return self.texts[program]

    def lacks(self, program, case):
        """What is wrong with a name, or None. A function has to be more than defined, in C: registered."""
        if program not in self.commands:
            return f"there is no test {program}"
        if case is None:
            return None
        text = self.text_of(program)
        if re.fullmatch(r"test_\w+", case) and re.search(rf"def {case}\(", text):
            return None
        times = len(re.findall(rf"(?<!\w){re.escape(case)}(?!\w)", text))
        is_function = re.search(rf"(?<!\w){re.escape(case)}\(void ", text) is not None
        if times < (2 if is_function else 1):
            return f"{program} has no case {case}"
        return None
