# SPDX-License-Identifier: MIT
"""Options and help: what is read where, and the one line for each mistake."""

import os
import re
import shlex
import shutil
import unittest

from command import CommandTest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

COMMANDS = ("request", "peek", "refund", "charge", "reset", "run", "replay", "check", "keys", "top", "bench")
COMMON = "-c -s -l --json --help --version"


class Help(CommandTest):
    def test_help_lists_every_command_and_fits_a_screen(self):
        status, out, err = self.run_command("--help")
        self.assertEqual((status, err), (0, ""))
        for command in COMMANDS:
            self.assertRegex(out, rf"(?m)^  {command} +\S")
        self.assert_fits(out, 43)
        self.assertEqual(self.run_command("-h"), (status, out, err))

    def test_each_command_has_help_of_its_own(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                status, out, err = self.run_command(command, "--help")
                self.assertEqual((status, err), (0, ""))
                self.assertTrue(out.startswith(f"usage: redbucket {command}"), out)
                self.assert_fits(out, 24)
                self.assertIn("Exit status:", out)
                self.assertIn("Examples:", out)

    def test_help_wins_over_what_is_missing(self):
        self.env["REDBUCKET_CONFIG"] = "/nonexistent"
        for words in (("request", "-h"), ("request", "x", "--help"), ("run", "--help"),
                      ("run", "--help", "--", "true"), ("bench", "--keys=3", "--help")):
            self.assertEqual(self.run_command(*words)[0], 0, words)

    def test_the_examples_in_the_help_are_accepted(self):
        self.env["PATH"] = self.folder  # nothing of that name is run
        shutil.copy(os.path.join(SOURCE, "examples", "access.log"), self.write("access.log", ""))
        self.write("log", "")
        self.write("log.1.gz", "")
        self.write("redbucket.conf", "limit ip { rate = 5/s }\n")
        for command in COMMANDS:
            out = self.run_command(command, "--help")[1]
            examples = re.findall(r"(?m)^  redbucket (.*?)(?:    .*|   \{.*)?$", out)
            self.assertTrue(examples, out)
            for example in examples:
                words = shlex.split(example.replace("redis://localhost", "memory:").replace("shm:trial", "memory:"))
                words += ["--once"] * (words[-1] == "top")
                self.assertIn(self.run_command(*words)[0], (0, 127) if command == "run" else (0,), example)

    def test_version(self):
        self.assert_prints(0, "redbucket 0.1.0\n", "--version")
        self.assert_prints(0, "redbucket 0.1.0\n", "check", "--version")

    def assert_fits(self, text, height):
        """A command's help fits the smallest of screens."""
        lines = text.splitlines()
        self.assertLessEqual(len(lines), height)
        self.assertLessEqual(max(map(len, lines)), 80, max(lines, key=len))


class Mistakes(CommandTest):
    def test_no_command_and_an_unknown_one(self):
        commands = " ".join(COMMANDS)
        self.assert_fails(2, f"usage: expected a command, one of {commands}; or --help")
        self.assert_fails(2, f"usage: expected a command, one of {commands}; or --help", "--json")
        self.assert_fails(2, f'usage: "reqest": no such command, expected one of {commands}',
                          "reqest", "ip=x")

    def test_unknown_options(self):
        self.assert_fails(2, f"usage: --nosuch: unknown option, expected one of {COMMON}",
                          "--nosuch", "check")
        self.assert_fails(2, f"usage: -x: unknown option, expected one of {COMMON}", "-x")
        self.assert_fails(2, f"request: --nosuch=1: unknown option, expected one of {COMMON} "
                             "--cost --wait", "request", "ip=x", "--nosuch=1")
        self.assert_fails(2, f"peek: --wait: unknown option, expected one of {COMMON} --cost",
                          "-l", "ip:1", "peek", "ip=x", "--wait")
        self.assert_fails(2, f"check: -q: unknown option, expected one of {COMMON} --metrics", "check",
                          "-q")

    def test_values_missing_and_unwanted(self):
        self.assert_fails(2, "usage: -l: expected a value", "-l")
        self.assert_fails(2, "usage: -c: expected a value", "-c")
        self.assert_fails(2, "usage: -s: expected a value", "-s")
        self.assert_fails(2, "request: --cost: expected a value", "request", "--cost")
        self.assert_fails(2, "request: --json: expected no value", "request", "--json=yes")

    def test_costs_that_are_none(self):
        for cost in ("0", "-1", "0.0001", "1e13", "-0"):
            for command in ("request", "peek", "refund", "charge", "reset"):
                self.assert_fails(2, f'--cost: "{cost}": expected a number from 0.001 to 1e12',
                                  "-l", "ip:1", command, "--cost", cost, "ip=x")
        for cost in ("", "x", "1x", "0x10", "nan", "inf", "1,5", " 1"):
            self.assert_fails(2, f'--cost: "{cost}": expected a number',
                              "-l", "ip:1", "request", "--cost", cost, "ip=x")
        self.assert_fails(2, '--cost: "1e400": too large for a number',
                          "-l", "ip:1", "request", "--cost", "1e400", "ip=x")

    def test_waits_that_are_none(self):
        for wait in ("x", "", "1w", "nan"):
            self.assert_fails(2, f'--wait: "{wait}": expected seconds, or a number with one of '
                                 "us, ms, s, m, h, d",
                              "-l", "ip:1", "request", f"--wait={wait}", "ip=x")
        self.assert_fails(2, '--wait: "-1": expected a duration from 0',
                          "-l", "ip:1", "request", "--wait=-1", "ip=x")

    def test_limits_that_are_none(self):
        expected = "expected a number or N/s, N/m, N/h, N/d"
        self.assert_fails(2, f'-l ip:10q: rate: "10q": {expected}', "-l", "ip:10q", "request", "ip=x")
        self.assert_fails(2, f'-l ip:5r/sFOO: rate: "5r/sFOO": {expected}', "-l", "ip:5r/sFOO",
                          "request", "ip=x")
        self.assert_fails(2, '-l ip:1,burst=5x: burst: "5x": expected a number',
                          "-l", "ip:1,burst=5x", "request", "ip=x")
        self.assert_fails(2, '-l ip: "ip": expected NAME:RATE, for instance ip:5/s,burst=10',
                          "-l", "ip", "request", "ip=x")
        self.assert_fails(2, '-l a b:1: name "a b": expected only A-Z a-z 0-9 _ . -',
                          "-l", "a b:1", "request", "ip=x")
        for text in ("ip:0", "ip:-1", "ip:1,burst=-1", "ip:1,burst=1e13", "ip:1,delay=-1",
                     "ip:1,burst=6e11,delay=6e11", "ip:1,expiry=-5"):
            status, out, err = self.run_command("-l", text, "request", "ip=x")
            self.assertEqual((status, out, err.count("\n")), (2, "", 1))
            self.assertTrue(err.startswith(f"redbucket: -l {text}: "), err)

    def test_limits_that_collide(self):
        self.assert_fails(2, "-l ip:2: limit ip is there twice", "-l", "ip:1", "-l", "ip:2",
                          "request", "ip=x")
        self.assert_fails(2, "-l: limits a and b: both on zone a", "-l", "a:1", "-l",
                          "b:2,zone=a", "request", "a=x")

    def test_arguments_that_nobody_wants(self):
        self.assert_fails(2, 'check: "x": expected no argument', "check", "x")
        self.assert_fails(2, 'bench: "x": expected no argument', "bench", "x")
        for option, value, text in (
                ("--threads", "0", "a whole number from 1 to 256"),
                ("--threads", "257", "a whole number from 1 to 256"),
                ("--threads", "1.5", "a whole number from 1 to 256"),
                ("--keys", "x", "a whole number from 1 to 100000000"),
                ("--keys", "99999999999999999999999", "a whole number from 1 to 100000000"),
                ("--seconds", "0", "more than 0 and at most an hour"),
                ("--seconds", "2h", "more than 0 and at most an hour")):
            self.assert_fails(2, f'{option}: "{value}": expected {text}', "bench", option, value)

    def test_an_error_stays_one_line_whatever_it_quotes(self):
        for words in (("-l", "a\nb:1", "request", "x=y"), ("-s", "no\nsuch:\x1b[2J", "check"),
                      ("-l", "ip:1", "request", "x\ny\x1b=1"), ("bad\ncommand",)):
            status, _, err = self.run_command(*words)
            self.assertEqual((status, err.count("\n")), (2, 1), err)
            self.assertNotIn("\x1b", err)


class Places(CommandTest):
    def test_options_may_stand_before_and_behind_the_command(self):
        limit = "ip:1/d,burst=9"
        self.assert_prints(0, "accepted, 9 remaining\n", "-l", limit, "peek", "ip=x")
        self.assert_prints(0, "accepted, 9 remaining\n", "peek", "ip=x", "-l", limit)
        self.assert_prints(0, "accepted, 9 remaining\n", "peek", "-l", limit, "ip=x")
        self.assert_prints(0, "accepted, 7 remaining\n", "peek", "ip=x", "--cost", "3", "-l", limit)
        self.assert_prints(0, "accepted, 7 remaining\n", "peek", "ip=x", "--limit=" + limit,
                           "--cost=3", "--store", "memory:")

    def test_two_dashes_end_the_options(self):
        self.assert_prints(0, "accepted, 0 remaining\n", "-l", "-n:1/d", "peek", "--", "-n=x")

    def test_a_limit_option_replaces_the_files_limit(self):
        path = self.write("limits.conf", "limit ip { rate = 1/d burst = 9 }\n"
                                         "limit user { rate = 1/d burst = 4 }\n")
        self.assert_prints(0, "accepted, 4 remaining\n", "-c", path, "peek", "ip=x", "user=y")
        self.assert_prints(0, "accepted, 2 remaining\n", "-c", path, "-l", "ip:1/d,burst=2",
                           "peek", "ip=x", "user=y")
        self.assert_prints(0, "accepted, 1 remaining\n", "-c", path, "-l", "extra:1/d,burst=1",
                           "peek", "ip=x", "user=y", "extra=z")
        self.assert_fails(2, "-l: limits user and extra: both on zone user", "-c", path,
                          "-l", "extra:1,zone=user", "peek", "ip=x")


if __name__ == "__main__":
    unittest.main()
