# SPDX-License-Identifier: MIT
"""Every option of every command: once as it is meant, where it has to do, and once with what it can't mean,
where the one line has to name it. Which there are the command says itself, so that a new one that stands in
no table here fails."""

import os
import sys
import unittest

from command import REDBUCKET, CommandTest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "completion"))
import tables  # noqa: E402

LIMIT = ("-l", "ip:1/d,burst=9")
LOG = os.path.join(SOURCE, "examples", "access.log")

# What stands behind a command, so that it does its work and ends.
WORDS = {
    "request": ["ip=a"], "peek": ["ip=a"], "refund": ["ip=a"], "charge": ["ip=a"], "reset": ["ip=a"],
    "run": ["ip=a", "--", "true"], "replay": [LOG], "check": [], "keys": [], "top": [], "bench": [],
}

# What else a command needs.
BESIDE = {"replay": ["--key", "ip=$remote_addr"], "top": ["--once", "--interval", "100ms"],
          "bench": ["--seconds", "10ms"]}

# {command: {option: (how it is given, how it can't be)}}
COST = {"--cost": (["--cost", "2"], ["--cost", "0"])}
WAIT = {"--wait": (["--wait=1"], ["--wait=x"])}
PACE = {"--pace": (["--pace", "1000"], ["--pace", "x"]), "--zone": (["--zone", "ip"], ["--zone", ""])}
OPTIONS = {
    "request": COST | WAIT, "peek": COST, "refund": COST, "charge": COST, "reset": COST, "run": COST | WAIT,
    "replay": {
        "--format": (["--format", "combined"], ["--format", "xml"]),
        "--key": (["--key", "ip=$remote_addr"], ["--key", "ip"]),
        "--output": (["--output", "jsonl"], ["--output", "xml"]),
        "-o": (["--output", "html", "-o", "page.html"], ["-o", "page.html"]),
        "--reorder": (["--reorder", "10"], ["--reorder", "x"]),
        "--suggest": (["--suggest", "99%"], ["--suggest", "x"]),
        "--try": (["--try", "a", "-l", "ip:1"], ["--try", ""]),
    },
    "check": {"--metrics": (["--metrics"], ["--metrics=x"])},
    "keys": PACE | {
        "--all": (["--all"], ["--all=x"]),
        "--prefix": (["--prefix", "a"], None),
        "--max": (["--max", "3"], ["--max", "x"]),
    },
    "top": PACE | {
        "--once": (["--once"], ["--once=x"]),
        "--frames": (["--frames", "1"], ["--frames", "0"]),
        "--interval": (["--interval", "100ms"], ["--interval", "x"]),
        "--rows": (["--rows", "3"], ["--rows", "0"]),
        "--level": (["--level"], ["--level=x"]),
    },
    "bench": {
        "--seconds": (["--seconds", "20ms"], ["--seconds", "0"]),
        "--threads": (["--threads", "2"], ["--threads", "0"]),
        "--keys": (["--keys", "10"], ["--keys", "0"]),
        "--metrics": (["--metrics"], ["--metrics=x"]),
    },
}
COMMON = {
    "-c": (["-c", "/dev/null"], ["-c", "/dev/null/none"]),
    "--config": (["--config", "/dev/null"], ["--config", "/dev/null/none"]),
    "-s": (["-s", "memory:"], ["-s", "nowhere:"]),
    "--store": (["--store=memory:"], ["--store=nowhere:"]),
    "-l": (["-l", "ip:2,burst=99"], ["-l", "ip"]),
    "--limit": (["--limit", "ip:2,burst=99"], ["--limit", "ip"]),
    "--json": (["--json"], ["--json=x"]),
    "--help": (["--help"], ["--help=x"]),
    "--version": (["--version"], ["--version=x"]),
}

class Options(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables.Tables(os.path.abspath(REDBUCKET))

    def test_the_tables_here_are_complete(self):
        self.assertEqual(list(OPTIONS), list(self.tables.commands))
        for command, options in OPTIONS.items():
            self.assertEqual(sorted(set(options) - {"-o"}), sorted(self.tables.options(command)), command)
        self.assertEqual(set(self.tables.common) | {"--config", "--store", "--limit"}, set(COMMON))

    def ask(self, command, words):
        """(status, lines said, complaints) of a command that has all that it needs beside these words."""
        limit = [] if {"-l", "--limit", "--suggest"} & set(words) else LIMIT
        beside = [] if "--key" in words else BESIDE.get(command, [])
        return self.run_command(*limit, command, *beside, *words, *WORDS[command])

    def good_and_bad(self, option, command, good, bad):
        with self.subTest(command, option=option):
            status, out, err = self.ask(command, good)
            self.assertEqual((0, ""), (status, err))
            self.assertTrue(out or command == "run" or option == "-o", "it said nothing")
            status, out, err = self.ask(command, bad)
            self.assertEqual((2, 1), (status, err.count("\n")), err)
            # Of two spellings it names the short one; of a file, the file.
            self.assertTrue(option in err or f"-{option.lstrip('-')[0]}" in err or bad[-1] in err, err)
            if command != "check":  # which tells what it has read before it asks the store
                self.assertEqual("", out)

    def test_each_of_its_command(self):
        for command, options in OPTIONS.items():
            for option, (good, bad) in options.items():
                if bad is not None:
                    self.good_and_bad(option, command, good, bad)

    def test_one_that_takes_any_text(self):
        for prefix, shown in (("", 1), ("a", 1), ("b", 0)):
            self.run_command(*LIMIT, "request", "ip=a")
            out = self.run_command(*LIMIT, "keys", "--prefix", prefix)[1]
            self.assertIn(f"{shown} bucket", out)
        self.assert_fails(2, "keys: --prefix: expected a value", "keys", "--prefix")

    def test_each_of_all_commands(self):
        for command in WORDS:
            self.assertEqual(self.run_command(command, "--help"), self.run_command(command, "-h"))
            for option, (good, bad) in COMMON.items():
                self.good_and_bad(option, command, good, bad)


if __name__ == "__main__":
    unittest.main()
