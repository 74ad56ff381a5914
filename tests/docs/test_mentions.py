# SPDX-License-Identifier: MIT
"""What documents name in passing, `like this`, is there: commands and their options, targets of make, files,
functions and what else the headers define. And no exported function goes without a test that calls it."""

import glob
import os
import re
import shlex
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "completion"))
import blocks  # noqa: E402
import tables  # noqa: E402

REDBUCKET = os.environ["REDBUCKET"]

# Options of programs that aren't ours, and of ours beside the command.
OTHERS = {
    "--static", "--libs", "--cflags", "--list",  # pkg-config, scripts/torture
    "--proxy-protocol", "--proxy-allow-from", "--proxy-headers", "--forwarded-allow-ips",  # servers in Python
}

# Of the environment.
VARIABLES = {"REDBUCKET_STORE", "REDBUCKET_CONFIG"}

# Folders of the tree whose files are named by their path from its top.
FOLDERS = "bench|cli|completion|debian|docs|examples|fuzz|include|man|python|scripts|src|tests|third_party"


def spans():
    """[(path, text)]: what stands between backticks in prose and in tables."""
    for path in blocks.documents():
        text = re.sub(r"^```.*?^```$", "", blocks.read(path), flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
        yield from ((path, span.replace("\n", " ")) for span in re.findall(r"`([^`]+)`", text))


def sources(pattern):
    for path in glob.glob(os.path.join(SOURCE, pattern), recursive=True):
        with open(path, encoding="utf-8") as file:
            yield file.read()


class Mentions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables.Tables(os.path.abspath(REDBUCKET))
        cls.spans = list(spans())

    def options_of(self, command):
        own = set(self.tables.options(command)) | ({"-o"} if command == "replay" else set())
        return own | set(self.tables.common) | {"--config", "--store", "--limit", "-h"}

    def test_commands_have_their_options(self):
        count = 0
        for path, span in self.spans:
            if not span.startswith("redbucket ") or span.startswith("redbucket -s redis://localhost -l ..."):
                continue
            words = shlex.split(span)[1:]
            words = words[:words.index("--")] if "--" in words else words
            command = next((word for word in words if word in self.tables.commands), None)
            options = [word.split("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)]
            known = self.options_of(command) if command else set(self.tables.common)
            self.assertTrue(command or options or words == ["COMMAND", "--help"], f"{path}: {span}")
            self.assertLessEqual(set(options), known, f"{path}: {span}")
            count += 1
        self.assertLess(5, count)

    def test_options_alone_are_of_some_command(self):
        ours = set().union(*(self.options_of(command) for command in self.tables.commands)) | OTHERS
        for path, span in self.spans:
            found = re.match(r"(--[a-z][a-z-]+)", span)
            if found:
                self.assertIn(found[1], ours, f"{path}: {span}")

    def test_targets_of_make(self):
        for path, span in self.spans:
            found = re.match(r"make ([a-z]+)", span)
            if found:
                done = subprocess.run(["make", "-n", "-C", SOURCE, found[1]], check=False, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual((0, ""), (done.returncode, done.stderr), f"{path}: {span}")

    def test_files(self):
        count = 0
        for path, span in self.spans:
            found = re.match(rf"((?:{FOLDERS})/[\w./*-]+)", span)
            if found:
                self.assertTrue(glob.glob(os.path.join(SOURCE, found[1])) or "build" in found[1], f"{path}: {span}")
                count += 1
            found = re.match(r"<?(redbucket/[\w/.]+\.h)>?$", span)
            if found:
                self.assertTrue(os.path.exists(os.path.join(SOURCE, "include", found[1])), f"{path}: {span}")
        self.assertLess(10, count)

    def test_names_of_the_headers(self):
        defined = set(re.findall(r"\b(?:redbucket_\w+|REDBUCKET_\w+)", "".join(sources("include/**/*.h"))))
        defined |= {f"REDBUCKET_{name}" for name in re.findall(r"X\((\w+),", "".join(sources("include/**/*.h")))}
        metrics = set(re.findall(r"redbucket_\w+", blocks.read("src/metrics.c")))
        count = 0
        for path, span in self.spans:
            for name in re.findall(r"^(?:enum |struct )?((?:redbucket|REDBUCKET)_\w+)", span):
                self.assertIn(re.sub(r"_total$", "", name), defined | metrics | VARIABLES, f"{path}: {span}")
                count += 1
        self.assertLess(20, count)


class Functions(unittest.TestCase):
    def test_each_is_called_by_a_test(self):
        listed = re.findall(r"^    (redbucket_\w+);$", blocks.read("src/libredbucket.sym"), re.MULTILINE)
        self.assertTrue(listed)
        # By its name, or by a pointer in a table of cases.
        calls = set(re.findall(r"\b(redbucket_\w+)[(,)]", "".join(sources("tests/**/*.[ch]"))))
        self.assertEqual([], sorted(set(listed) - calls))


if __name__ == "__main__":
    unittest.main()
