#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the Lua script into C: its text and its SHA-1. Comments and indentation are left out, and
constants put in their places: each would be a variable to fill in at every call.

usage: embed.py SCRIPT OUTPUT [--test-clock]

With --test-clock the time comes with the call, as a packed double in ARGV[2], in the place of the
server's own. Only test programs are built with that text; no call of the library knows it.
"""

import hashlib
import re
import sys

CLOCK = """local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
"""
TEST_CLOCK = "local now = struct.unpack('<d', ARGV[2])\n"


CONSTANT = re.compile(r"local ([A-Z_]+) = ([0-9e.-]+|'[^']*')\n")


def shortened(text):
    lines = (line.strip() for line in text.splitlines())
    text = "".join(line + "\n" for line in lines if line and not line.startswith("--"))
    constants = dict(CONSTANT.findall(text))
    text = CONSTANT.sub("", text)
    return re.sub(r"\b[A-Z_]+\b", lambda name: constants.get(name[0], name[0]), text)


def quoted(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        text = shortened(file.read())
    if "--test-clock" in sys.argv:
        if text.count(CLOCK) != 1:
            sys.exit("embed.py: the script's clock is not where it was")
        text = text.replace(CLOCK, TEST_CLOCK)
    sha = hashlib.sha1(text.encode("ascii")).hexdigest()
    body = "\n    ".join(quoted(line) for line in text.splitlines())
    with open(sys.argv[2], "w", encoding="ascii") as file:
        file.write('#include "wire/script.h"\n\n')
        file.write(f"const char rbk_script_text[] =\n    {body};\n")
        file.write(f"const size_t rbk_script_len = {len(text)};\n")
        file.write(f'const char rbk_script_sha[] = "{sha}";\n')


if __name__ == "__main__":
    main()
