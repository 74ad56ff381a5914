# SPDX-License-Identifier: MIT
"""What stands in a document as a session of a shell, run as one.

A block of code (indented by four blanks, or fenced) with a line "$ COMMAND" in it is a session. What
stands behind a command, to the next one, is what it prints, standard error included:

- a command goes on behind a backslash, and to the END of a here-document;
- a line "..." stands for any lines;
- times, "1.987 s", are compared as "some time";
- a command with nothing behind it may print what it likes, and has to succeed.

A fenced block behind "<!-- file: NAME -->" is written to that file first. All commands of a document
run in one shell, in a folder of their own.
"""

import os
import re
import subprocess

MARK = "\x1e"
FILE = re.compile(r"^<!-- file: ([\w.-]+) -->$")
TIME = re.compile(r"\b\d+(\.\d+)?(e-\d+)? (s|ms|µs|us)\b")


class Command:
    def __init__(self, line, number):
        self.text, self.number, self.shown = line, number, []
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


def blocks(text):
    """[(number of the first line, lines, name of a file or None)] of a document's code."""
    found, lines, fence, name, before = [], None, False, None, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            if fence:
                found.append((*lines, name))
                lines = None
            else:
                lines, name = (number + 1, []), (FILE.match(before) or [None, None])[1]
            fence = not fence
        elif fence:
            lines[1].append(line)
        elif line.startswith("    ") and (lines or not before.strip()):
            lines = lines or (number, [])
            lines[1].append(line[4:])
        elif lines and not line.strip():
            lines[1].append("")
        elif lines:
            found.append((*lines, None))
            lines = None
        before = line
    if lines:
        found.append((*lines, None))
    return found


def parse(text):
    """({name: content}, [Command]) of a document."""
    files, commands = {}, []
    for first, lines, name in blocks(text):
        if name:
            files[name] = "\n".join(lines) + "\n"
            continue
        current = None
        for number, line in enumerate(lines, first):
            if current and current.takes(line):
                continue
            if line.startswith("$ "):
                current = Command(line[2:], number)
                commands.append(current)
            elif current:
                current.shown.append(line)
    for command in commands:
        while command.shown and not command.shown[-1].strip():
            command.shown.pop()
    return files, commands


def normal(line):
    return TIME.sub(r"N \3", line).rstrip()


def matches(shown, said):
    """Whether lines are as shown, where "..." stands for any."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(normal(line)) + "\n"
                      for line in shown)
    return re.fullmatch(pattern, "".join(normal(line) + "\n" for line in said)) is not None


def run(commands, folder, environment):
    """[(status, lines)] of each command."""
    script = "".join(
        f"{{ {command.text}\n}} 2>&1; __s=$?; printf '\\036%s\\n' \"$__s\"; (exit \"$__s\")\n"
        for command in commands)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300)
    said = done.stdout.decode("utf-8", "replace")
    parts = re.findall(rf"(.*?){MARK}(\d+)\n", said, re.DOTALL)
    if len(parts) != len(commands):
        raise AssertionError(f"the shell ended early: {said}\n{done.stderr.decode()}")
    return [(int(status), text.splitlines()) for text, status in parts]


def faults(path, text, folder, environment):
    """What isn't as the document shows it, as texts; also how many commands there were."""
    files, commands = parse(text)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
    wrong = []
    for command, (status, said) in zip(commands, run(commands, folder, environment)):
        good = matches(command.shown, said) if command.shown else status == 0
        if not good:
            wrong.append("\n".join([f"{path}:{command.number}: $ {command.text}", "shown:",
                                    *command.shown, f"said (status {status}):", *said]))
    return wrong, len(commands)
