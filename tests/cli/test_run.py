# SPDX-License-Identifier: MIT
"""run: the command's streams, signals and ends, and what happens when there is no permit."""

import os
import shutil
import signal
import sys
import time
import unittest

from command import CommandTest, elapsed

PLENTY = ("-l", "ip:1000,burst=1000")


class Run(CommandTest):
    def run_words(self, *words, **options):
        return self.run_command(*PLENTY, "run", "ip=k", "--", *words, **options)

    def shell(self, script, **options):
        return self.run_words("sh", "-c", script, **options)

    def test_the_commands_end_is_ours(self):
        for status in (0, 1, 2, 3, 75, 126, 127, 255):
            self.assertEqual(self.shell(f"exit {status}"), (status, "", ""))

    def test_a_signal_is_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV):
            status, _, err = self.shell(f"kill -{number.value} $$")
            self.assertEqual((status, err), (128 + number, ""))

    def test_what_cannot_be_run(self):
        self.assertEqual(self.run_words("no-such-command-anywhere"), (
            127, "", "redbucket: run: no-such-command-anywhere: No such file or directory, "
                     "expected a command\n"))
        path = self.write("not-executable", "#!/bin/sh\n")
        self.assertEqual(self.run_words(path), (
            126, "", f"redbucket: run: {path}: Permission denied, expected a command\n"))
        self.assertEqual(self.run_words(self.folder)[0], 126)
        self.assertEqual(self.run_words("")[0], 127)

    def test_streams_and_arguments_pass_through(self):
        read, write = os.pipe()
        os.write(write, b"in\n")
        os.close(write)
        status, out, err = self.run_words("sh", "-c", 'cat; echo "$0" "$@"; echo err >&2', "--", "-c",
                                          "a b", "--json", stdin=read)
        os.close(read)
        self.assertEqual((status, out, err), (0, "in\n-- -c a b --json\n", "err\n"))

    def test_output_said_before_stays_before(self):
        self.assertEqual(self.run_words("echo", "x"), (0, "x\n", ""))
        self.assertEqual(self.run_command("--json", *PLENTY, "run", "ip=k", "--", "echo", "x"),
                         (0, "x\n", ""))

    def test_the_store_is_closed_for_the_command(self):
        status, out, _ = self.shell("ls -l /proc/self/fd /proc/self/map_files 2>/dev/null")
        self.assertEqual(status, 0)
        self.assertNotIn(self.store_name, out)

    def test_usage(self):
        expected = "run: expected -- and a command behind NAME=KEY"
        self.assert_fails(2, expected, *PLENTY, "run", "ip=k")
        self.assert_fails(2, expected, *PLENTY, "run", "ip=k", "--")
        self.assert_fails(2, expected, *PLENTY, "run", "ip=k", "true")
        self.assert_fails(2, "run: expected NAME=KEY for at least one limit, NAME one of ip",
                          *PLENTY, "run", "--", "true")
        self.assert_fails(2, 'run: "x": no such limit, expected one of ip', *PLENTY, "run", "x=1",
                          "--", "true")
        self.assert_fails(2, "run: --cost: expected a value", *PLENTY, "run", "ip=1", "--cost",
                          "--", "true")

    def test_options_stand_around_keys_and_end_at_the_dashes(self):
        marker = os.path.join(self.folder, "ran")
        self.assertEqual(self.run_command(*PLENTY, "run", "ip=k", "--cost", "3", "--wait=1", "--",
                                          "touch", "--", marker)[0], 0)
        self.assertTrue(os.path.exists(marker))

    def test_a_failed_store_is_status_3_and_runs_nothing(self):
        with open(f"/dev/shm/{self.store_name}", "wb") as file:
            file.write(b"something else" * 1000)
        status, out, _ = self.run_words("echo", "ran")
        self.assertEqual((status, out), (3, ""))


class Permit(CommandTest):
    def test_no_permit_is_75_and_nothing_runs(self):
        limit = ("-l", "ip:1/d")
        self.assertEqual(self.run_command(*limit, "run", "ip=k", "--", "echo", "x"), (0, "x\n", ""))
        status, out, err = self.run_command(*limit, "run", "ip=k", "--", "echo", "x")
        self.assertEqual((status, out), (75, ""))
        self.assertRegex(err, r"\Aredbucket: run: rejected by ip, retry after 86[\d.]+ s\n\Z")
        start = time.monotonic()
        self.assertEqual(self.run_command(*limit, "run", "--wait=0.2", "ip=k", "--", "echo", "x")[0],
                         75)
        self.assertTrue(0.2 <= elapsed(start) < 3)

    def test_no_permit_as_json(self):
        limit = ("-l", "ip:1/d")
        self.run_command(*limit, "run", "ip=k", "--", "true")
        answer = self.ask(*limit, "run", "ip=k", "--", "true", status=75)
        self.assertEqual((answer["accepted"], answer["decided"]), (False, "ip"))

    def test_a_delay_is_slept_out_with_and_without_wait(self):
        limit = ("-l", "ip:4/s,delay=9")
        self.run_command(*limit, "run", "ip=k", "--", "true")
        for options in ((), ("--wait",), ("--wait=5",)):
            delay = self.ask(*limit, "peek", "ip=k")["delay"]
            start = time.monotonic()
            self.assertEqual(self.run_command(*limit, "run", *options, "ip=k", "--", "true")[0], 0)
            self.assertTrue(elapsed(start) > delay - 0.15, (options, delay, elapsed(start)))

    def test_a_delay_longer_than_the_wait_is_given_back(self):
        limit = ("-l", "ip:1/h,delay=3")
        self.run_command(*limit, "run", "ip=k", "--", "true")
        for _ in range(3):
            self.assertEqual(self.run_command(*limit, "run", "--wait=1ms", "ip=k", "--", "echo",
                                              "x")[:2], (75, ""))
        self.assertLess(self.ask(*limit, "peek", "ip=k")["delay"], 3600.1)

    def test_the_permit_stays_spent_when_the_command_fails(self):
        limit = ("-l", "ip:1/d,burst=9")
        self.run_command(*limit, "run", "--cost", "4", "ip=k", "--", "false")
        self.run_command(*limit, "run", "ip=k", "--", "no-such-command-anywhere")
        self.assertEqual(self.ask(*limit, "peek", "ip=k")["remaining"], 4)


class Signals(CommandTest):
    SCRIPT = ("trap 'echo INT; exit 9' INT; trap 'echo TERM; exit 8' TERM; "
              "trap 'echo HUP; exit 7' HUP; trap 'echo USR1; exit 6' USR1; echo ready; "
              "while :; do sleep 0.05; done")

    @staticmethod
    def heed():
        """Whoever started the tests may have begun by ignoring some, as nohup does."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)

    def begin(self, script, **options):
        options.setdefault("preexec_fn", self.heed)
        process = self.start(*PLENTY, "run", "ip=k", "--", "sh", "-c", script, **options)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_signals_sent_to_us_reach_the_command_once(self):
        for number, status in ((signal.SIGTERM, 8), (signal.SIGHUP, 7), (signal.SIGINT, 9),
                               (signal.SIGUSR1, 6)):
            with self.subTest(signal=number):
                process = self.begin(self.SCRIPT)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), status)

    def test_a_command_that_goes_on_is_waited_for(self):
        process = self.begin("n=0; trap 'n=$((n+1)); echo $n' TERM; echo ready; "
                             "while [ $n -lt 2 ]; do sleep 0.05; done; exit 4")
        for count in (b"1\n", b"2\n"):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.stdout.readline(), count)
        self.assertEqual(process.wait(timeout=20), 4)

    def test_a_command_without_handlers_dies_of_them(self):
        process = self.begin("echo ready; exec sleep 60")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), 128 + signal.SIGTERM)

    def test_what_was_ignored_stays_ignored(self):
        """Not even a command that wants it gets the hang-up that nohup keeps away."""
        path = self.write("listener.py", "import signal, sys, time\n"
                                         "signal.signal(signal.SIGHUP, lambda *_: sys.exit(9))\n"
                                         "print('ready', flush=True)\ntime.sleep(0.5)\n"
                                         "sys.exit(4)\n")
        process = self.begin(f"exec {sys.executable} {path}",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=20), 4)

    def test_the_command_has_the_signals_that_we_began_with(self):
        ignored = self.signal_mask("SigIgn:"), self.signal_mask("SigBlk:")
        inherited = self.signal_mask("SigIgn:", signal.SIGUSR2), self.signal_mask("SigBlk:")
        self.assertEqual(ignored[0] | 1 << signal.SIGUSR2 - 1, inherited[0])
        self.assertEqual((ignored[1], inherited[1]), (0, 0))

    def signal_mask(self, name, ignored=None):
        def prepare():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            if ignored is not None:
                signal.signal(ignored, signal.SIG_IGN)
        _, out, _ = self.run_command(*PLENTY, "run", "ip=k", "--", "grep", name, "/proc/self/status",
                                     preexec_fn=prepare)
        return int(out.split()[1], 16)

    def test_an_ignored_end_of_children_is_no_obstacle(self):
        self.assertEqual(self.run_command(
            *PLENTY, "run", "ip=k", "--", "sh", "-c", "exit 5",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))[0], 5)

    def test_a_wait_can_be_interrupted(self):
        limit = ("-l", "ip:1/d")
        self.run_command(*limit, "run", "ip=k", "--", "true")
        process = self.start(*limit, "run", "--wait", "ip=k", "--", "true")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), -signal.SIGINT)

    COUNTING = ("n=0; trap 'n=$((n+1))' INT; echo ready; i=0; "
                "while [ $i -lt 20 ]; do i=$((i+1)); sleep 0.05; done; echo n=$n; exit 4")

    def interrupt_from_terminal(self, script):
        master, slave = os.openpty()

        def lead_terminal():
            os.setsid()
            os.close(os.open(os.ttyname(slave), os.O_RDWR))

        process = self.begin(script, stdin=slave, preexec_fn=lead_terminal)
        os.write(master, b"\x03")
        out, _ = process.communicate(timeout=20)
        os.close(master)
        os.close(slave)
        return process.returncode, out

    @unittest.skipUnless(os.path.exists("/dev/ptmx"), "no pseudo terminals here")
    def test_an_interrupt_from_the_terminal_arrives_once(self):
        self.assertEqual(self.interrupt_from_terminal(self.COUNTING), (4, b"n=1\n"))

    @unittest.skipUnless(os.path.exists("/dev/ptmx"), "no pseudo terminals here")
    @unittest.skipUnless(shutil.which("setsid"), "no setsid here")
    def test_an_interrupt_from_the_terminal_is_not_repeated_by_us(self):
        """A command that left the terminal sees only what we pass on: nothing."""
        path = self.write("counting.sh", self.COUNTING)
        self.assertEqual(self.interrupt_from_terminal(f"exec setsid sh {path}"), (4, b"n=0\n"))


if __name__ == "__main__":
    unittest.main()
