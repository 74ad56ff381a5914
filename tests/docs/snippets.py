# SPDX-License-Identifier: MIT
"""Parts of programs as documents show them, made whole and run.

A part behind `<!-- frame: NAME -->` belongs into tests/docs/frames/NAME.in, which has what stands around it: the
parts of a page with that frame go where @1@, @2@ and so on stand alone in a line, indented as far as that
is. What the program prints is compared with each block behind `<!-- said: NAME -->`.
"""

import os
import re
import shlex
import subprocess

import transcript
from place import BUILD, HERE, SOURCE

STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]


def framed(page, name):
    """The frame of that name with its parts of a page's text in it."""
    with open(os.path.join(HERE, "frames", name + ".in"), encoding="utf-8") as file:
        frame = file.read()
    parts = [block for block in transcript.blocks(page) if block.said.get("frame") == name]

    def part(found):
        lines = parts[int(found[2]) - 1].lines
        return "\n".join(found[1] + line if line else "" for line in lines)

    whole, count = re.subn(r"^( *)@(\d)@$", part, frame, flags=re.MULTILINE)
    if count != len(parts):
        raise AssertionError(f"{name}: {len(parts)} parts for {count} places")
    return whole


def output_of(command, **options):
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}: {done.returncode}\n{done.stdout}")
    return done.stdout


def needed_by(text):
    """The packages that a program takes beside ours."""
    found = re.search(r"^/\* packages: (.*) \*/$", text, re.MULTILINE)
    return found[1].split() if found else []


def own_hiredis():
    """The one that the library was built with, where the system's is too old."""
    headers = os.path.join(SOURCE, "build-deps", "hiredis")
    archive = os.path.join(BUILD, "build-deps", "hiredis", "libhiredis.a")
    return (headers, archive) if os.path.exists(archive) else None


def can_compile(text):
    """Event loops are for those who have them."""
    return all(name == "hiredis" and own_hiredis() or
               subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0
               for name in needed_by(text))


def flags_of(package):
    """For the compiler, before and behind the source."""
    if package == "hiredis" and own_hiredis():
        headers, archive = own_hiredis()
        return ["-isystem", headers], [archive, "-lssl", "-lcrypto"]
    return [], shlex.split(output_of(["pkg-config", "--cflags", "--libs", package]))


def compiled(text, folder):
    """The path of a C program."""
    flags = [flags_of(package) for package in needed_by(text)]
    source, program = os.path.join(folder, "part.c"), os.path.join(folder, "part")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    output_of(["cc", *STRICT, f"-I{SOURCE}/include", *sum((before for before, _ in flags), []), source,
               f"-L{BUILD}", "-lredbucket", f"-Wl,-rpath,{BUILD}", "-Wl,--allow-shlib-undefined",
               *sum((behind for _, behind in flags), []), "-o", program])
    return program
