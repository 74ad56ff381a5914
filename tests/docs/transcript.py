# SPDX-License-Identifier: MIT
"""What stands in a document as a session of a shell, run as one.

A block of code (indented by four blanks, or fenced) with a line "$ COMMAND" in it is a session. What
stands behind a command, to the next one, is what it prints, standard error included:

- a command goes on behind a backslash, and to the END of a here-document;
- a line "..." stands for any lines;
- times, "1.987 s", are compared as "some time", and behind "<!-- numbers: vary -->" all numbers as "some
  number", with any blanks before it; behind "<!-- order: vary -->" lines may come in any order;
- a command with nothing behind it may print what it likes, and has to succeed.

A block behind a comment "<!-- file: NAME -->" is written to that file when it is its turn, and what
stands in "<!-- before: COMMANDS -->" is run without being shown. All commands of a document run in one
shell, in a folder of their own.
"""

import os
import re
import subprocess

MARK = "\x1e"
COMMENT = re.compile(r"^<!-- (\w+): (.+) -->$", re.DOTALL)
NUMBER = re.compile(r" *[<+]?\d[\d.,]*(e-\d+)?")
TIME = re.compile(r"\b\d+(\.\d+)?(e-\d+)? (s|ms|µs|us)\b")


class Command:
    def __init__(self, line, number, said=()):
        self.text, self.number, self.shown = line, number, []
        self.numbers_vary, self.order_varies = "numbers" in said, "order" in said
        self.goes_on = self._ends_open(line)
        found = re.search(r"<<'(\w+)'", line)
        self.until = found and found[1]

    @staticmethod
    def _ends_open(line):
        return line.endswith("\\")

    def takes(self, line):
        """Takes the line in when it is still part of the command."""
        if self.until:
            self.text += f"\n{line}"
            if line == self.until:
                self.until = None
            return True
        if self.goes_on:
            self.text += f"\n{line}"
            self.goes_on = self._ends_open(line)
            return True
        return False


class Block:
    """Code of a document: its first line's number, its language or "", its lines, and what a comment
    before it says of it, as a mapping."""

    def __init__(self, number, language, said):
        self.number, self.language, self.said, self.lines = number, language, said, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    def is_session(self):
        return any(line.startswith("$ ") for line in self.lines)


class _Reader:
    """Goes through the lines of a document."""

    def __init__(self):
        self.found, self.block, self.said, self.comment, self.before = [], None, {}, None, ""

    def end(self):
        while self.block.lines and not self.block.lines[-1]:
            self.block.lines.pop()
        self.found.append(self.block)
        self.block = None

    def begin(self, number, language):
        self.block, self.said = Block(number, language, self.said), {}

    def text(self, line):
        """A line outside of code. Comments go with the block that follows at once."""
        if self.comment is None and line.startswith("<!-- "):
            self.comment = ""
        if self.comment is not None:
            self.comment += line + "\n"
            if line.endswith("-->"):
                found = COMMENT.match(self.comment.strip())
                self.said.update([found.groups()] if found else [])
                self.comment = None
        elif line.strip():
            self.said = {}

    def take(self, number, line):
        block, fenced = self.block, self.block is not None and self.block.language is not None
        if line.startswith("```"):
            if fenced:
                self.end()
            else:
                self.begin(number + 1, line[3:])
        elif fenced:
            block.lines.append(line)
        elif line.startswith("    ") and (block or self.may_begin()):
            if not block:
                self.begin(number, None)
            self.block.lines.append(line[4:])
        elif block and not line.strip():
            block.lines.append("")
        else:
            if block:
                self.end()
            self.text(line)
        self.before = line

    def may_begin(self):
        """Not within a paragraph or an item of a list, where it is text that goes on."""
        return self.comment is None and (not self.before.strip() or self.before.endswith("-->"))


def blocks(text):
    """The blocks of a document. One that is indented has the language None."""
    reader = _Reader()
    for number, line in enumerate([*text.splitlines(), "."], 1):
        reader.take(number, line)
    return reader.found


def hidden(block):
    """The commands that a comment before a block names, and one that writes the file that it is."""
    if "before" in block.said:
        yield Command(block.said["before"], block.number)
    if "file" in block.said:
        yield Command(f"cat >'{block.said['file']}' <<'__END__'\n{block.text}__END__", block.number)


def parse(text):
    """The commands of a document."""
    commands = []
    for block in blocks(text):
        commands += hidden(block)
        if block.is_session() and "file" not in block.said:
            commands += session(block)
    for command in commands:
        while command.shown and not command.shown[-1].strip():
            command.shown.pop()
    return commands


def session(block):
    commands = []
    for number, line in enumerate(block.lines, block.number):
        if commands and commands[-1].takes(line):
            continue
        if line.startswith("$ "):
            commands.append(Command(line[2:], number, block.said))
        elif commands:
            commands[-1].shown.append(line)
    return commands


def normal(command, lines):
    """What has to be equal."""
    if command.numbers_vary:
        lines = [NUMBER.sub(" N", line) for line in lines]
    lines = [TIME.sub(r"N \3", line).rstrip() for line in lines]
    return sorted(lines) if command.order_varies else lines


def matches(command, said):
    """Whether lines are as shown, where "..." stands for any."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + "\n"
                      for line in normal(command, command.shown))
    return re.fullmatch(pattern, "".join(line + "\n" for line in normal(command, said))) is not None


def run(commands, folder, environment, shell=("bash",), timeout=300):
    """[(status, lines, seconds since the first began)] of each command."""
    script = "".join(
        f"{{ {command.text}\n}} 2>&1; __s=$?; printf '\\036%s %s\\n' \"$__s\" \"$SECONDS\"; (exit \"$__s\")\n"
        for command in commands)
    done = subprocess.run([*shell, "-c", script], cwd=folder, env=environment, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout)
    said = done.stdout.decode("utf-8", "replace")
    parts = re.findall(rf"(.*?){MARK}(\d+) (\d+)\n", said, re.DOTALL)
    if len(parts) != len(commands):
        raise AssertionError(f"the shell ended early: {said}\n{done.stderr.decode()}")
    return [(int(status), text.splitlines(), int(seconds)) for text, status, seconds in parts]


def fault(path, command, status, said):
    """What isn't as the document shows it, as a text, or None."""
    if matches(command, said) if command.shown else status == 0:
        return None
    return "\n".join([f"{path}:{command.number}: $ {command.text}", "shown:", *command.shown,
                      f"said (status {status}):", *said])


def faults(path, text, folder, environment):
    """What isn't as the document shows it, as texts; also how many commands there were."""
    commands = parse(text)
    answers = run(commands, folder, environment)
    found = [fault(path, command, status, said)
             for command, (status, said, _) in zip(commands, answers)]
    return [text for text in found if text], len(commands)
