# SPDX-License-Identifier: MIT
"""What surrounds the command and must change nothing, or be noticed: locales, full disks, closed
streams."""

import os
import shutil
import subprocess
import tempfile
import unittest

from command import CommandTest


class Locale(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.locales = tempfile.mkdtemp(prefix="redbucket-locale-")
        cls.addClassCleanup(shutil.rmtree, cls.locales)
        if shutil.which("localedef") is not None:
            subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8",
                            f"{cls.locales}/de_DE.UTF-8"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def setUp(self):
        super().setUp()
        if not os.path.isdir(f"{self.locales}/de_DE.UTF-8"):
            self.skipTest("no localedef or no sources of the locale de_DE on this system")
        self.plain = dict(self.env)
        self.env.update({"LOCPATH": self.locales, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})

    def test_O01_the_locale_is_one_that_would_hurt(self):
        out = subprocess.run(["printf", "%.1f", "0,5"], env=self.env, stdout=subprocess.PIPE,
                             check=False).stdout
        self.assertEqual(out, b"0,5")

    def test_O01_a_german_locale_changes_nothing(self):
        path = self.write("test.conf", "limit a { rate = 0.5r/s burst = 0.5 delay = 1.5 }\n")
        for words in (("-c", path, "check"), ("-c", path, "--json", "check"),
                      ("-c", path, "request", "--cost", "2.5", "a=x"),
                      ("-c", path, "--json", "request", "--cost", "2.5", "a=y"),
                      ("-c", path, "request", "--cost", "0,5", "a=x"), ("-l", "a:0,5", "check"),
                      ("-c", "/nonexistent", "check"), ("--help",), ("--nosuch",)):
            with self.subTest(words=words):
                german = self.run_command(*words, "-s", "memory:")
                self.assertEqual(german, self.run_command(*words, "-s", "memory:", env=self.plain))
                self.assertNotIn("0,5,", german[1])
        self.assertEqual(self.ask("-c", path, "request", "--cost", "2.5", "a=z")["delay"], 2)


class Streams(CommandTest):
    LIMIT = ("-l", "ip:1000,burst=1000")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_is_noticed(self):
        for words in (("--help",), ("check", "--help"), ("--version",),
                      (*self.LIMIT, "request", "ip=k"), (*self.LIMIT, "--json", "request", "ip=k"),
                      (*self.LIMIT, "check"), (*self.LIMIT, "peek", "ip=k")):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                self.assertEqual(self.run_command(*words, stdout=full),
                                 (3, "", "redbucket: standard output: can't be written: "
                                         "No space left on device\n"))

    def test_a_closed_stream_is_noticed_and_no_store_is_written_into(self):
        """The store's file must not become descriptor 1 and take the text."""
        for closed, status in ((0, 0), (1, 3), (2, 0)):
            with self.subTest(closed=closed):
                process = subprocess.run(
                    [os.path.abspath(os.environ["REDBUCKET"]), *self.LIMIT, "request", "ip=k"],
                    cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    preexec_fn=lambda fd=closed: os.close(fd), close_fds=False, check=False)
                self.assertEqual(process.returncode, status)
        self.assert_prints(0, "accepted\n", *self.LIMIT, "request", "ip=k")

    def test_a_reader_that_is_gone_ends_it(self):
        read, write = os.pipe()
        os.close(read)
        process = self.start("--help", stdout=write)
        os.close(write)
        self.assertIn(process.wait(timeout=20), (-13, 3))

    def test_what_is_printed_ends_with_a_newline_and_has_no_colour(self):
        for words in ((*self.LIMIT, "request", "ip=k"), (*self.LIMIT, "check"), ("--help",)):
            out = self.run_command(*words)[1]
            self.assertTrue(out.endswith("\n"))
            self.assertNotIn("\x1b", out)


if __name__ == "__main__":
    unittest.main()
