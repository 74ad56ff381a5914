#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the page of `replay --output html` into C: the text before the findings and the text behind
them. Style and scripts stand in the page itself, which may load nothing; its policy allows these
very texts, by their SHA-256, and no others.

usage: embed.py FOLDER UPLOT OUTPUT

FOLDER has the page, its style and its scripts; UPLOT the chart library with its licence and sums: one
that isn't what its sums say ends the build.
"""

import base64
import hashlib
import os
import sys

SCRIPTS = ["words.js", "charts.js", "report.js"]
CHUNK = 96


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def library(folder):
    """Text of the library's files by name, once each is what its sum says."""
    texts = {}
    for line in read(folder, "SHA256SUMS").decode("ascii").splitlines():
        expected, name = line.split("  ")
        texts[name] = read(folder, name)
        if hashlib.sha256(texts[name]).hexdigest() != expected:
            sys.exit(f"embed.py: {os.path.join(folder, name)} isn't the file that was pinned")
    return {name: text.decode("utf-8") for name, text in texts.items()}


def source(text):
    """What a policy calls this text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def page(folder, uplot):
    files = library(uplot)
    licence = "/*! uPlot\n\n" + files["LICENSE"].strip() + "\n*/\n"
    style = licence + files["uPlot.min.css"] + "\n" + read(folder, "style.css").decode("ascii")
    script = licence + files["uPlot.iife.min.js"] + "\n" + "\n".join(
        read(folder, name).decode("ascii") for name in SCRIPTS)
    if "</" in style.lower() or "</script" in script.lower() or "<!--" in script:
        sys.exit("embed.py: a style or a script would end before its end")
    policy = (f"default-src 'none'; base-uri 'none'; form-action 'none'; script-src {source(script)}; "
              f"style-src {source(style)}")
    text = read(folder, "page.html").decode("ascii")
    for name, value in (("@POLICY@", policy), ("@STYLE@", style), ("@SCRIPT@", script)):
        if text.count(name) != 1:
            sys.exit(f"embed.py: expected {name} once")
        text = text.replace(name, value)
    return text.split("@FINDINGS@")


def quoted(data):
    """Bytes as a C string: octal for what isn't plain, also for ? so that no trigraph comes about."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7f and byte not in b'"\\?' else f"\\{byte:03o}"
                   for byte in data)


def array(name, text):
    data = text.encode("utf-8")
    rows = "\n    ".join(f'"{quoted(data[at:at + CHUNK])}"' for at in range(0, len(data), CHUNK))
    return f"const char {name}[] =\n    {rows};\nconst size_t {name}_len = {len(data)};\n"


def main():
    before, behind = page(sys.argv[1], sys.argv[2])
    with open(sys.argv[3], "w", encoding="ascii") as file:
        file.write('#include "page_text.h"\n\n')
        file.write(array("rbk_page_before", before))
        file.write(array("rbk_page_behind", behind))


if __name__ == "__main__":
    main()
