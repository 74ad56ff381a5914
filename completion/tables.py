# SPDX-License-Identifier: MIT
"""The command's own tables, as it tells of them: which commands there are and which options each has.

Its answer to an unknown option lists every option that it knows, so that what documents and
completions say can be compared with what the command does.
"""

import re
import subprocess


class Tables:
    """commands: {name: summary}; common: the options that all have, as they are listed."""

    def __init__(self, program):
        self.program = program
        self.commands = dict(re.findall(r"^  (\w+) +(.+)$",
                                        self.help().split("\n\n")[2].partition("\n")[2],
                                        re.MULTILINE))
        self.common = self._listed("--no-such-option")

    def _say(self, *arguments):
        return subprocess.run([self.program, *arguments], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def help(self, command=None):
        return self._say(*[command] * (command is not None), "--help").stdout

    def _listed(self, *arguments):
        return self._say(*arguments).stderr.partition("expected one of ")[2].split()

    def options(self, command):
        """Those of the command alone, but for single letters of its own, which aren't listed."""
        listed = self._listed(command, "--no-such-option", "--", "true")
        return [option for option in listed if option not in self.common]

    def takes_value(self, command, option):
        """Whether the word behind an option is its value. The configuration, which isn't there, ends
        the command before it does anything."""
        words = [command, option] if command is not None else [option]
        behind = ["--", "true"] if command == "run" else []  # whose own arguments end before that
        said = self._say("-c", "/dev/null/none", *words, *behind).stderr
        return "expected a value" in said

    def choices(self, command, option):
        """The words that an option may have for its value, where it has a list of them."""
        said = self._say("-c", "/dev/null/none", command, option, "no-such-word", "file").stderr
        found = re.search(rf"{option} no-such-word: expected (.*)$", said, re.MULTILINE)
        words = re.split(r", | or ", found[1]) if found else []
        return words if all(re.fullmatch(r"[a-z]+", word) for word in words) else []

    def stores(self):
        """How the URLs of stores begin."""
        said = self._say("-c", "/dev/null", "-s", "no-such-store:", "check").stderr
        kinds = said.rpartition("expected ")[2].strip()
        return [kind.removesuffix("NAME") for kind in re.split(r", | or ", kinds)]

    def described(self, command):
        """{option: (what stands behind it in the help, its description)}, of the command alone."""
        found, last = {}, None
        for line in self.help(command).splitlines():
            begins = re.match(r"  (--[a-z-]+)(\[=\w+\]| \S+)?(?: -o FILE)?  +(\S.*)$", line)
            goes_on = re.match(r"    +(\S.*)$", line)
            if begins and begins[1] not in found:
                last = begins[1]
                found[last] = (begins[2] or "", begins[3])
            elif goes_on and last:
                found[last] = (found[last][0], f"{found[last][1]} {goes_on[1]}")
            else:
                last = None
        return found
