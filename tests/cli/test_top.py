# SPDX-License-Identifier: MIT
"""top: a frame as text and as JSON, and a page on a terminal, which is given back as it was."""

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from command import CommandTest, needs_servers, REDBUCKET
import server as servers

LIMIT = ("-l", "ip:2/s,burst=4")
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


class Traffic(threading.Thread):
    """Asks for one key again and again, until it is told to end."""

    def __init__(self, test, *arguments):
        super().__init__()
        self.test, self.arguments, self.ending = test, arguments, False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        self.join()

    def run(self):
        while not self.ending:
            self.test.run_command(*self.arguments)
            time.sleep(0.02)


class TopTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.ask(*LIMIT, "peek", "ip=busy")  # looking makes no store


class Frames(TopTest):
    def test_an_empty_store_has_a_frame(self):
        status, out, err = self.run_command("top", "--interval", "100ms")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines()[:2], [
            f"redbucket top: {self.store}",
            "decisions 0.0/s: accepted 0.0/s, of these delayed 0.0/s; rejected 0.0/s"])

    def test_a_frame_tells_who_asks_and_who_is_kept_out(self):
        # So slow that even a crowded machine asks more often, and several permits come in an interval.
        slow = ("-l", "ip:0.5/s,burst=1")
        self.ask(*slow, "request", "ip=idle")
        with Traffic(self, *slow, "request", "ip=busy"):
            frame = self.ask("top", "--interval", "5s")
        self.assertGreater(frame["table"]["decisions_per_second"], 0.5)
        self.assertGreater(frame["table"]["rejected_per_second"], 0)
        self.assertEqual(frame["table"]["buckets"], 2)
        self.assertEqual([zone["zone"] for zone in frame["zones"]], ["ip"])
        busy = frame["keys"][0]
        self.assertEqual((busy["zone"], busy["key"], busy["most"]), ("ip", "busy", 2))
        self.assertGreater(busy["taken_per_second"], 0.2)
        (zone,) = frame["table"]["zones"]
        self.assertEqual(zone["zone"], "ip")
        self.assertAlmostEqual(zone["accepted_per_second"], frame["table"]["accepted_per_second"], delta=1)
        self.assertGreater(zone["rejected_per_second"], 0)
        # Never more than what was accepted: the bound of the interval, and of its edges.
        self.assertLess(busy["taken_per_second"], 2)

    def test_the_limit_that_rejects_most_stands_first(self):
        both = ("-l", "ip:0.001/s", "-l", "user:0.001/s,burst=1000")
        for number in range(3):
            self.ask(*both, "request", f"user={number}")
        with Traffic(self, *both, "request", "ip=busy", "user=busy"):
            out = self.run_command("top", "--interval", "1s")[1]
        header, *rows = out.split("\n\n")[1].splitlines()
        self.assertEqual(header.split(), ["accepted/s", "rejected/s", "buckets", "kept", "out", "zone"])
        self.assertEqual([row.split()[-1] for row in rows], ["ip", "user"])
        self.assertGreater(float(rows[0].split()[1]), 0)
        self.assertEqual(rows[1].split()[1], "0.0")

    def test_a_zone_without_buckets_is_shown_while_it_is_asked(self):
        limit = ("-l", "gone:1000/s", "-l", "ip:0.001/s,zone=stays")
        self.ask(*limit, "request", "ip=x")
        with Traffic(self, *limit, "request", "gone=x"):
            out = self.run_command("top", "--interval", "1s")[1]
            other = self.run_command("top", "--interval", "1s", "--zone", "stays")[1]
        self.assertRegex(out, r"(?m)^ +[1-9][0-9.]* +0\.0 +[01] +[-0] +gone$")
        self.assertNotIn("gone", other)

    def test_frames_follow_each_other(self):
        status, out, err = self.run_command("--json", "top", "--frames", "3", "--interval", "100ms")
        self.assertEqual((status, err), (0, ""))
        frames = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(frames), 3)
        self.assertTrue(all(0.05 < frame["seconds"] < 30 for frame in frames))

    def test_rows_order_and_zone(self):
        for number in range(6):
            self.ask("-l", "ip:0.001/s,burst=9", "-l", "user:0.001/s,burst=9", "charge", "--cost",
                     str(number + 1), f"ip=k{number}", f"user=u{number}")
        frame = self.ask("top", "--interval", "100ms", "--rows", "3", "--level", "--zone", "ip")
        self.assertEqual([key["key"] for key in frame["keys"]], ["k5", "k4", "k3"])
        self.assertEqual([zone["zone"] for zone in frame["zones"]], ["ip"])
        self.assertEqual(frame["buckets"], 6)

    def test_keys_are_escaped(self):
        self.ask("-l", "ip:0.001/s", "request", b"ip=\x1b]0;x\x07\xff")
        out = self.run_command("top", "--interval", "100ms")[1]
        self.assertIn(r"\x1b]0;x\x07\xff", out)
        self.assertNotIn("\x1b", out)
        key = self.ask("top", "--interval", "100ms")["keys"][0]
        self.assertEqual(bytes.fromhex(key["key_hex"]), b"\x1b]0;x\x07\xff")

    def test_mistakes(self):
        self.assert_fails(2, 'top: "x": expected no argument', "top", "x")
        self.assert_fails(2, '--interval: "1ms": expected from 100ms to an hour', "top", "--interval", "1ms")
        self.assert_fails(2, '--rows: "257": expected a whole number from 1 to 256', "top", "--rows", "257")
        self.assert_fails(2, '--zone: "": expected 1 to 255 bytes', "top", "--zone=")

    @needs_servers
    def test_a_store_that_is_not_there(self):
        status, out, err = self.run_command("-s", "redis://127.0.0.1:1?timeout=1s", "top")
        self.assertEqual((status, out), (3, ""))
        self.assertRegex(err, r"^redbucket: store: .*Connection refused\n$")


@needs_servers
class OnAServer(CommandTest):
    def test_a_server_is_scanned(self):
        with servers.Server("redis") as server:
            self.env["REDBUCKET_STORE"] = server.url("unix")
            for number in range(20):
                server.ask("SET", f"elsewhere{number}", "x")
            # It stays for longer than any machine takes for the rest.
            self.ask("-l", "ip:0.001/s", "request", "ip=idle")
            with Traffic(self, "-l", "ip:2/s,burst=1000", "request", "ip=busy"):
                frame = self.ask("-l", "ip:2/s,burst=1000", "top", "--interval", "1s")
            self.assertNotIn("table", frame)
            busy = frame["keys"][0]
            self.assertEqual((busy["key"], busy["most"], busy["kept_out"]), ("busy", 1001, False))
            self.assertGreater(busy["taken_per_second"], 1)
            self.assertEqual(server.ask("DBSIZE"), 22)
            out = self.run_command("top", "--interval", "100ms")[1]
            self.assertRegex(out, r"(?m)^taken at least [0-9.]+/s; rejections are not seen by a server, see --help$")
            self.assertRegex(out, r"(?m)^   taken/s    buckets   kept out  zone$")
            self.assertRegex(out, r"(?m)^buckets 2; 0 empty by now$")


class Terminal:
    """The command on a terminal of its own: what it writes, and what is left of the terminal."""

    def __init__(self, test, *arguments, columns=80, rows=24, term="xterm"):
        self.master, self.slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, self.slave)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.output = b""
        environment = dict(test.env, TERM=term)
        self.process = subprocess.Popen(
            [os.path.abspath(REDBUCKET), *arguments], cwd=test.folder, env=environment,
            stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=self.own)
        test.addCleanup(self.end)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            signal.signal(number, signal.SIG_DFL)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise

    def until(self, condition, seconds=20):
        """Reads until the condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"it never came: {self.output[-2000:]!r}")
            self.read(0.05)

    def pages(self):
        """What was drawn, page by page, without the sequences around it; whole pages alone."""
        return [re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", page).decode().split("\n")
                for page in self.output.split(b"\x1b[H")[1:] if page.count(b"\x1b[J")]

    def wait(self):
        """The exit status, once it has ended, and all of its output is read."""
        status = self.process.wait(timeout=20)
        while True:
            length = len(self.output)
            self.read(0.1)
            if len(self.output) == length:
                return status

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before and self.output.endswith(LEAVE)


class OnATerminal(TopTest):
    def start_top(self, *arguments, **options):
        terminal = Terminal(self, "top", "--interval", "200ms", *arguments, **options)
        terminal.until(lambda: terminal.pages())
        return terminal

    def test_it_is_drawn_again_and_ends_at_q(self):
        self.ask("-l", "ip:0.001/s", "request", "ip=192.0.2.7")
        terminal = self.start_top()
        self.assertTrue(terminal.output.startswith(ENTER))
        terminal.until(lambda: len(terminal.pages()) >= 3)
        self.assertIn("192.0.2.7", "\n".join(terminal.pages()[-1]))
        self.assertNotEqual(termios.tcgetattr(terminal.slave), terminal.before)
        os.write(terminal.master, b"q")
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.restored())

    def test_a_page_keeps_to_the_window(self):
        for number in range(40):
            self.ask("-l", "ip:0.001/s", "request", f"ip=a-key-that-is-quite-long-{number}")
        terminal = self.start_top(columns=50, rows=12)
        terminal.until(lambda: len(terminal.pages()[-1]) == 12)
        page = terminal.pages()[-1]
        self.assertLessEqual(max(map(len, page)), 50)
        terminal.resize(100, 30)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.until(lambda: len(terminal.pages()[-1]) == 30)
        self.assertGreater(max(map(len, terminal.pages()[-1])), 50)
        os.write(terminal.master, b"q")
        self.assertEqual(terminal.wait(), 0)

    def test_signals_end_it_and_the_terminal_is_given_back(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            terminal = self.start_top()
            terminal.process.send_signal(number)
            self.assertEqual(terminal.wait(), -number)
            self.assertTrue(terminal.restored(), number)

    def test_control_c_on_the_keyboard(self):
        terminal = self.start_top()
        os.write(terminal.master, b"\x03")
        self.assertEqual(terminal.wait(), -signal.SIGINT)
        self.assertTrue(terminal.restored())

    def test_it_stops_and_goes_on(self):
        terminal = self.start_top()
        terminal.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        terminal.until(lambda: terminal.output.endswith(LEAVE))
        self.assertTrue(terminal.restored())
        drawn = len(terminal.pages())
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until(lambda: len(terminal.pages()) > drawn)
        self.assertEqual(terminal.output.count(ENTER), 2)
        os.write(terminal.master, b"q")
        self.assertEqual(terminal.wait(), 0)

    def test_the_order_can_be_changed(self):
        terminal = self.start_top()
        self.ask("-l", "ip:0.001/s", "request", "ip=x")
        terminal.until(lambda: any("taken/s *" in line for line in terminal.pages()[-1]))
        os.write(terminal.master, b"l")
        terminal.until(lambda: any("level *" in line for line in terminal.pages()[-1]))
        os.write(terminal.master, b"t")
        terminal.until(lambda: any("taken/s *" in line for line in terminal.pages()[-1]))
        os.write(terminal.master, b"q")
        self.assertEqual(terminal.wait(), 0)

    def test_once_and_a_dumb_terminal_draw_nothing(self):
        for options in ({"term": "dumb"}, {}):
            arguments = ["--once"] if options == {} else []
            terminal = Terminal(self, "top", "--interval", "100ms", *arguments, **options)
            self.assertEqual(terminal.wait(), 0)
            self.assertNotIn(b"\x1b", terminal.output)
            self.assertIn(b"redbucket top: ", terminal.output)

    @needs_servers
    def test_a_server_that_goes_away_is_told_of_and_comes_back(self):
        with servers.Server("redis") as server:
            self.env["REDBUCKET_STORE"] = server.url("redis", "timeout=500ms")
            self.ask(*LIMIT, "request", "ip=192.0.2.7")
            terminal = self.start_top()
            server.kill()
            terminal.until(lambda: "refused" in "\n".join(terminal.pages()[-1]) or
                           "server unavailable" in "\n".join(terminal.pages()[-1]))
            server.again()
            terminal.until(lambda: "unavailable" not in "\n".join(terminal.pages()[-1]))
            os.write(terminal.master, b"q")
            self.assertEqual(terminal.wait(), 0)
            self.assertTrue(terminal.restored())

    @needs_servers
    def test_a_store_that_was_never_there_is_an_error(self):
        terminal = Terminal(self, "-s", "redis://127.0.0.1:1?timeout=1s", "top")
        self.assertEqual(terminal.wait(), 3)
        self.assertIn(b"Connection refused", terminal.output)
        self.assertNotIn(ENTER, terminal.output)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)


if __name__ == "__main__":
    unittest.main()
