# SPDX-License-Identifier: MIT
"""What the shells complete a command line by: it is what the command's tables make of it today, and
bash, zsh and fish do with it what they should."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from command import REDBUCKET

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPLETION = os.path.join(SOURCE, "completion")
sys.path.insert(0, COMPLETION)
import make  # noqa: E402
import tables  # noqa: E402

CONFIG = "limit user { rate = 5/s }\n  limit ip { rate = 1/s burst = 2 }\n"


def path(name):
    return os.path.join(COMPLETION, name)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables.Tables(os.path.abspath(REDBUCKET))

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-completion-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("redbucket.conf", CONFIG), ("other.conf", "limit api { rate = 1 }\n"),
                           ("access.log", "")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def say(self, *command, text=None):
        environment = {**os.environ, "HOME": self.folder}
        environment.pop("REDBUCKET_CONFIG", None)
        run = subprocess.run(command, cwd=self.folder, env=environment, input=text, check=False,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((0, ""), (run.returncode, run.stderr), command)
        return run.stdout.split("\n")[:-1]


class Made(Completion):
    def test_files_are_what_would_be_made_now(self):
        for name, text in make.texts(os.path.abspath(REDBUCKET)).items():
            with open(path(name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text, f"completion/make.py was not run: {name}")


class Bash(Completion):
    def complete(self, *words):
        """What is offered in place of the last word, with words split as bash does."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _redbucket\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return self.say("bash", "-c", script, "bash", path("redbucket.bash"), "redbucket", *words)

    def test_commands(self):
        self.assertEqual(list(self.tables.commands), self.complete(""))
        self.assertEqual(["request", "refund", "reset", "replay", "run"],
                         sorted(self.complete("r"), key=["request", "refund", "reset", "replay",
                                                         "run"].index))
        self.assertEqual(["check"], self.complete("-c", "request", "--store", "=", "x", "--json", "che"))

    def test_options_of_every_command_with_the_common_ones(self):
        for command in self.tables.commands:
            offered = set(self.complete(command, "-"))
            self.assertLessEqual({*self.tables.options(command), *self.tables.common}, offered)
            self.assertIn("-h", offered)
        self.assertEqual(["--metrics"], self.complete("check", "--m"))
        self.assertNotIn("--cost", self.complete("-"))

    def test_values(self):
        self.assertEqual(["combined", "common"], self.complete("replay", "--format", "co"))
        self.assertEqual(["html"], self.complete("replay", "--output", "=", "h"))
        self.assertEqual(["auto", "combined", "common", "jsonl"],
                         self.complete("replay", "--format", "="))
        self.assertEqual([""], self.complete("request", "--cost", ""))
        self.assertEqual(["other.conf"], self.complete("-c", "oth"))
        self.assertIn("redis+cluster://", self.complete("-s", ""))
        self.assertEqual(["shm:"], self.complete("-s", "sh"))

    def test_names_of_limits(self):
        self.assertEqual(["user=", "ip="], self.complete("request", ""))
        self.assertEqual(["ip="], self.complete("replay", "--key", "i"))
        self.assertEqual(["mail=", "api="],
                         self.complete("-c", "other.conf", "-l", "mail:1/s", "peek", ""))

    def test_files_and_commands(self):
        self.assertEqual(["access.log"], self.complete("replay", "acc"))
        self.assertEqual(["access.log"], self.complete("run", "ip=", "--", "cat", "acc"))
        self.assertIn("sleep", self.complete("run", "ip=", "--", "slee"))

    def test_the_shell_knows_for_whom_it_is(self):
        said = self.say("bash", "-c", f"source '{path('redbucket.bash')}'; complete -p redbucket")
        self.assertEqual(["complete -F _redbucket redbucket"], said)


@unittest.skipIf(shutil.which("zsh") is None, "no zsh")
class Zsh(Completion):
    def test_it_parses_and_is_found(self):
        self.say("zsh", "-n", path("_redbucket"))
        said = self.say("zsh", "-fc", f"fpath=('{COMPLETION}' $fpath); autoload -U compinit; "
                        "compinit -D -u; print $_comps[redbucket]; autoload +X -U _redbucket")
        self.assertEqual(["_redbucket"], said)

    def completed(self, line, wanted):
        """Types a line and a tab in a zsh on a terminal of its own, until what is wanted is there."""
        script = r"""
            zmodload zsh/zpty
            zpty shell "cd '$4'; TERM=dumb PS1='> ' zsh -f -i"
            zpty -w shell "fpath=('$3' \$fpath); autoload -U compinit; compinit -D -u; print REA''DY"
            zpty -r -m shell said '*READY*' || exit 1
            zpty -w -n shell "$1"$'\t'
            zpty -r -m shell said "*$2*"
            print -r -- "$said"
            zpty -d shell
        """
        said = "".join(self.say("timeout", "60", "zsh", "-fc", script, "zsh", line, wanted,
                                COMPLETION, self.folder))
        self.assertIn(wanted, said)

    def test_commands_options_values_and_limits(self):
        self.completed("redbucket ben", "redbucket bench")
        self.completed("redbucket check --me", "check --metrics")
        self.completed("redbucket replay --format js", "--format jsonl")
        self.completed("redbucket request us", "request user=")
        self.completed("redbucket -c other.conf run a", "run api=")
        self.completed("redbucket run ip= -- cat acc", "cat access.log")


@unittest.skipIf(shutil.which("fish") is None, "no fish")
class Fish(Completion):
    def complete(self, line):
        script = f"source '{path('redbucket.fish')}'; complete -C '{line}'"
        return [line.split("\t")[0] for line in self.say("fish", "-N", "-c", script)]

    def test_commands(self):
        self.assertEqual(sorted(self.tables.commands), sorted(self.complete("redbucket ")))
        self.assertEqual(["check"], self.complete("redbucket -c request --json che"))

    def test_options_of_every_command(self):
        for command in self.tables.commands:
            offered = {word.removesuffix("=") for word in self.complete(f"redbucket {command} --")}
            self.assertLessEqual(set(self.tables.options(command)), offered, command)
            self.assertIn("--json", offered)

    def test_values(self):
        self.assertEqual(["combined", "common"], self.complete("redbucket replay --format co"))
        self.assertEqual(["ip="], self.complete("redbucket -l mail:1/s request i"))
        self.assertEqual(["api=", "mail="],
                         self.complete("redbucket -c other.conf -l mail:1/s request "))
        self.assertIn("redis+cluster://", self.complete("redbucket -s redis"))
        self.assertEqual(["access.log"], self.complete("redbucket replay acc"))

    def test_behind_run_is_the_command_line_of_another(self):
        self.assertEqual(["access.log"], self.complete("redbucket run ip= -- cat acc"))
