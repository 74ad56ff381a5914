# SPDX-License-Identifier: MIT
"""The configuration file: where it is looked for, what it may say, and each mistake by its line."""

import os
import re
import unittest

from command import CommandTest, needs_servers

RATE = "expected a number or N/s, N/m, N/h, N/d"
RANGE = "out of range, expected from 1e-9 to 1e12 a second"
WORDS = "expected one of rate burst delay expiry zone lease lease_time"
ENDS = "the file ends in the middle of a setting or a section"


class Reading(CommandTest):
    def limits(self, text, *options):
        path = self.write("test.conf", text)
        checked = self.ask("-c", path, *options, "check")
        return [limit["text"] for limit in checked["limits"].values()]

    def test_the_documented_example(self):
        self.assertEqual(self.limits(
            f'store = "{self.store}"\n\nlimit user {{ rate = 5/s  burst = 10 }}\n'
            "limit ip   { rate = 20/s  delay = 10 }\n"), ["user:5,burst=10", "ip:20,delay=10"])

    @needs_servers
    def test_the_example_in_the_manual(self):
        manual = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "configuration.md")
        with open(manual, encoding="utf-8") as file:
            text = re.search(r"(?ms)^```conf\n(.*?)^```$", file.read())[1]
        self.assertEqual(self.limits(text), ["user:5,burst=10", "ip:20,delay=10,zone=addresses"])

    def test_every_setting(self):
        self.assertEqual(self.limits(
            "limit a {\n  rate = 30r/m\n  burst = 1.5\n  delay = 1e1\n  expiry = 1h\n"
            "  lease = 3\n  lease_time = 50ms\n  zone = b\n}\n"),
            ["a:0.5,burst=1.5,delay=10,expiry=3600,lease=3,lease_time=0.05,zone=b"])

    def test_spacing_quotes_and_comments_make_no_difference(self):
        for text in ("limit ip{rate=20/s burst=3}", "limit ip { rate = 20/s  burst = 3 }",
                     "limit\nip\n{\nrate\n=\n20/s\nburst\n=\n3\n}", 'limit "ip" { rate = "20/s" '
                     "burst = '3' }", "limit ip { rate = 20/s # 30/s }\n burst = 3 // x {\n }",
                     "/* limit { */ limit ip { rate /* = */ = 20/s /* \n\n */ burst = 3 }",
                     "limit ip {\r\n  rate = 20/s\r\n  burst = 3\r\n}\r\n", "limit ip {\trate=20/s"
                     "\tburst=3\t}# the end", "#\n##\n//\n/**/limit ip{rate=20/s#\nburst=3}"):
            with self.subTest(text=text):
                self.assertEqual(self.limits(text), ["ip:20,burst=3"])

    def test_C07_rates_as_nginx_and_people_write_them(self):
        for text, rate in (("10r/s", "10"), ("30r/m", "0.5"), ("0.5r/s", "0.5"), ("10", "10"),
                           ("1e3", "1000"), ("36/h", "0.01"), ("0.3333333333333333",
                                                               "0.3333333333333333")):
            self.assertEqual(self.limits(f"limit a {{ rate = {text} }}"), [f"a:{rate}"])

    def test_C09_what_check_prints_reads_back_the_same(self):
        for text in ("a:0.3333333333333333,burst=999999999999", "a:0.1,burst=123451234512,delay=0.1",
                     "a:1e-09,delay=1000000000000"):
            self.assertEqual(self.limits("", "-l", text), [text])

    def test_an_empty_file_has_no_limits(self):
        for text in ("", "\n\n", "# nothing\n", "/* nothing */"):
            self.assertEqual(self.limits(text), [])

    def test_nothing_is_taken_from_the_environment(self):
        for text in ("store = '${HOME}:x'\n", 'store = "\\${HOME}:x"\n', "# ${HOME}\nstore = x:\n"):
            path = self.write("dollar.conf", text)
            del self.env["REDBUCKET_STORE"]
            err = self.run_command("-c", path, "check")[2]
            self.env["REDBUCKET_STORE"] = self.store
            self.assertNotIn(os.environ.get("HOME", "/root"), err)
            self.assertRegex(err, r"dollar.conf:\d: (\$\{HOME\}:x|x:): ")


class Mistakes(CommandTest):
    """Each names the file and the line, and says what was expected; nothing is run."""

    def assert_mistake(self, line, message, text):
        path = self.write("bad.conf", text)
        place = f"{path}:{line}" if line else path
        self.assert_fails(2, f"{place}: {message}", "-c", path, "-s", "memory:", "check")
        self.assert_fails(2, f"{place}: {message}", "-c", path, "-s", "memory:", "-l", "x:1",
                          "request", "x=y")

    def assert_mistakes(self, *mistakes):
        for line, message, text in mistakes:
            with self.subTest(text=text):
                self.assert_mistake(line, message, text)

    def test_numbers_that_are_none(self):
        self.assert_mistakes(
            (2, f'rate: "10q": {RATE}', "limit a {\n rate = 10q\n}\n"),
            (1, f'rate: "10r/sFOO": {RATE}', "limit a { rate = 10r/sFOO }"),
            (1, f'rate: "r/s": {RATE}', "limit a { rate = r/s }"),
            (1, f'rate: "0x10": {RATE}', "limit a { rate = 0x10 }"),
            (1, f'rate: "inf": {RATE}', "limit a { rate = inf }"),
            (1, f'rate: "nan": {RATE}', "limit a { rate = nan }"),
            (1, f'rate: " 5": {RATE}', "limit a { rate = ' 5' }"),
            (1, f'rate: "": {RATE}', 'limit a { rate = "" }'),
            (1, f'rate: "5/": {RATE}', "limit a { rate = 5/ s }"),
            (1, f'rate: "0": {RANGE}', "limit a { rate = 0 }"),
            (1, f'rate: "-1": {RANGE}', "limit a { rate = -1 }"),
            (1, f'rate: "1e400": {RANGE}', "limit a { rate = 1e400 }"),
            (3, 'burst: "5x": expected a number', "limit a {\n rate = 1\n burst = 5x\n}"),
            (1, 'delay: "": expected a number', "limit a { rate = 1 delay = '' }"),
            (1, 'expiry: "-5": expected a duration from 0', "limit a { rate = 1 expiry = -5 }"),
            (1, 'lease_time: "5q": expected seconds, or a number with one of us, ms, s, m, h, d',
             "limit a { rate = 1 lease_time = 5q }"))

    def test_numbers_out_of_range_are_told_on_their_line(self):
        for text in ("burst = -1", "burst = 1e13", "delay = -1", "lease = -1", "lease_time = 2h",
                     "expiry = 1e300"):
            path = self.write("bad.conf", f"limit a {{\n rate = 1\n\n {text}\n\n}}\n")
            status, out, err = self.run_command("-c", path, "check")
            self.assertEqual((status, out), (2, ""))
            self.assertTrue(err.startswith(f"redbucket: {path}:4: {text.split()[0]}: "), err)
        path = self.write("bad.conf", "limit a { rate = 1\n burst = 6e11\n delay = 6e11\n}\n")
        status, _, err = self.run_command("-c", path, "check")
        self.assertTrue(err.startswith(f"redbucket: {path}:4: limit a: "), err)
        self.assertEqual(status, 2)

    def test_words_that_are_unknown(self):
        unknown = "unknown word, expected store or limit"
        self.assert_mistakes(
            (2, f'"limits": {unknown}', "\nlimits a { rate = 1 }"),
            (1, f'"Limit": {unknown}', "Limit a { rate = 1 }"),
            (1, f'"include": {unknown}', 'include("/etc/redbucket.conf")'),
            (3, f'"bust": unknown word, {WORDS}', "limit a { rate = 1\n\n bust = 3 }"),
            (1, f'"nodelayFOO": unknown word, {WORDS}', "limit a { rate = 1 nodelayFOO }"),
            (1, f'"limit": unknown word, {WORDS}', "limit a { rate = 1 limit b { rate = 2 } }"),
            (2, '"burst": expected store or limit', 'limit a { rate = 1 }\n"limit=a|burst" = 5'),
            (2, '"rate": expected store or limit', "limit a { rate = 1 }\nlimit|rate = 5"))

    def test_what_is_there_twice(self):
        self.assert_mistakes(
            (2, "limit a is there twice", "limit a { rate = 1 }\nlimit a { rate = 1 }"),
            (2, "limit b: its zone a is that of limit a already",
             "limit a { rate = 1 }\nlimit b { rate = 1 zone = a }"),
            (3, "limit b: its zone z is that of limit a already",
             "limit a { rate = 1 zone = z }\nlimit b {\nrate = 1 zone = z }"),
            (2, "rate is given twice", "limit a { rate = 1\n rate = 1 }"),
            (1, "zone is given twice", "limit a { rate = 1 zone = x zone = x }"),
            (2, "store is given twice", "store = memory:\nstore = memory:"))

    def test_what_is_missing(self):
        self.assert_mistakes(
            (3, "limit a: expected a rate, for instance rate = 5/s", "limit a {\n burst = 3\n}\n"),
            (1, "limit a: expected a rate, for instance rate = 5/s", "limit a { }"),
            (1, "limit: expected the limit's name", "limit { rate = 1 }"),
            (1, "limit is empty, expected a name", 'limit "" { rate = 1 }'),
            (1, "rate: expected = and a value", "limit a { rate 5 }"),
            (1, "store: expected = and a value", "store memory:"),
            (1, 'store: expected a URL, for instance "shm:redbucket"', "store = ''"),
            (1, "limit: expected { behind the limit's name", "limit a = 5"),
            (1, '"}": expected a setting, a value or } (quote a value that holds it)',
             "limit a { rate = }"))

    def test_names_are_of_plain_letters(self):
        only = "expected only A-Z a-z 0-9 _ . -"
        self.assert_mistakes(
            (1, f'limit "a b": {only}', 'limit "a b" { rate = 1 }'),
            (1, f'limit "a:2": {only}', "limit a:2 { rate = 1 }"),
            (1, f'zone "a:2": {only}', "limit a { rate = 1 zone = 'a:2' }"),
            (1, "zone is empty, expected a name", "limit a { rate = 1 zone = '' }"),
            (1, f'limit "{"n" * 60}...": longer than 255 bytes',
             f"limit {'n' * 256} {{ rate = 1 }}"))

    def test_a_file_that_ends_inside_something(self):
        self.assert_mistakes(
            (2, "this section has no end, expected }", "\nlimit a {\n rate = 5/s\n"),
            (1, "this section has no end, expected }", "limit a { rate = 5/s"),
            (1, "this section has no end, expected }", "limit a {"),
            (1, "this section has no end, expected }", "limit a { rate = "),
            (2, 'this string has no end, expected "', '\nstore = "memory:\n\n'),
            (1, "this string has no end, expected '", "store = 'memory:"),
            (1, 'this string has no end, expected "', 'store = "memory:\\"'),
            (3, "this comment has no end, expected */", "\n\n/* limit a { rate = 1 }\n *"),
            (2, ENDS, "limit a { rate = 1 }\nstore ="),
            (2, ENDS, "limit a { rate = 1 }\nstore =\n"),
            (1, ENDS, "store"), (1, ENDS, "limit"), (1, ENDS, "limit a"), (1, ENDS, "limit a\n"),
            (2, ENDS, 'limit a { rate = 1 }\n"limit=a|burst" ='))

    def test_what_libconfuse_would_pass_over(self):
        stray = "expected a setting or a section"
        environment = ("\"${\": nothing is taken from the environment, expected the value itself "
                       "(or '${' in single quotes)")
        self.assert_mistakes(
            (2, '"}": no section is open here', "\n}"),
            (1, f'"+": {stray}', "limit a { rate = +5 }"),
            (1, f'"*": {stray}', "limit a { rate = 5 * }"),
            (1, f'"*": {stray}', "limit a { rate = 5/*2 }"),
            (2, "byte 0x00: expected text", b"limit a { rate = 1 }\n\0 limit b {"),
            (1, "byte 0x01: expected text", b"\1 = 1"),
            (1, "byte 0x0d: expected text", b"limit a {\r rate = 1 }"),
            (1, environment, 'store = "${HOME}"'),
            (2, environment, "\nlimit a { rate = ${RATE} }"),
            (1, environment, "limit a { rate = 1${RATE} }"),
            (1, '"\\0": expected no numeric escape', 'store = "memory:\\0junk"'),
            (1, '"\\x": expected no numeric escape', 'store = "memory:\\x41"'),
            (1, "rate: expected =, not +=", "limit a { rate += 1 }"),
            (1, '"{": expected a setting, a value or } (quote a value that holds it)',
             "limit a { rate = {1, 2} }"),
            (1, '"=": expected a setting, a value or } (quote a value that holds it)',
             "store = memory:?size=1m"))

    def test_lines_are_counted_through_comments_and_strings(self):
        self.assert_mistake(8, f'rate: "x": {RATE}',
                            "# one\n// two\n/* three\n four */ limit b { rate = 1 }\n"
                            "store = \"memory:\\\n\"\n limit a {\n rate = x }\n")

    def test_more_than_may_be(self):
        self.assert_mistake(0, "longer than 1048576 bytes", "#" * 1048577)
        self.assert_mistake(4097, "more than 4096 limits",
                            "".join(f"limit a{i} {{ rate = 1 }}\n" for i in range(4097)))

    def test_a_mistake_behind_good_limits_spoils_all(self):
        self.assert_mistake(2, f'rate: "x": {RATE}', "limit x { rate = 1 }\nlimit b { rate = x }")


class Finding(CommandTest):
    LIMIT = "limit {} {{ rate = 1/d }}\n"

    def names(self, *options):
        return list(self.ask(*options, "check")["limits"])

    def test_the_order_in_which_files_are_looked_for(self):
        self.write("redbucket.conf", self.LIMIT.format("here"))
        named = self.write("environment.conf", self.LIMIT.format("environment"))
        option = self.write("option.conf", self.LIMIT.format("option"))
        self.env["REDBUCKET_CONFIG"] = named
        self.assertEqual(self.names("-c", option), ["option"])
        self.assertEqual(self.names("-c", "option.conf"), ["option"])
        self.assertEqual(self.names(), ["environment"])
        self.env["REDBUCKET_CONFIG"] = ""
        self.assertEqual(self.names(), ["here"])
        del self.env["REDBUCKET_CONFIG"]
        self.assertEqual(self.names(), ["here"])
        self.assertEqual(self.ask("check")["configuration"], "redbucket.conf")

    @unittest.skipIf(os.path.exists("/etc/redbucket.conf"), "there is an /etc/redbucket.conf here")
    def test_no_file_is_no_mistake(self):
        del self.env["REDBUCKET_CONFIG"]
        self.assertIsNone(self.ask("check")["configuration"])
        self.assertEqual(self.names("-l", "a:1"), ["a"])

    def test_a_file_that_was_named_must_be_there(self):
        missing = os.path.join(self.folder, "missing.conf")
        expected = f"{missing}: No such file or directory, expected a configuration file"
        self.assert_fails(2, expected, "-c", missing, "check")
        self.env["REDBUCKET_CONFIG"] = missing
        self.assert_fails(2, expected, "check")
        self.assert_fails(2, ": No such file or directory, expected a configuration file",
                          "-c", "", "check")
        self.assert_fails(2, f"{self.folder}: Is a directory, expected a configuration file",
                          "-c", self.folder, "check")

    def test_a_file_that_is_there_and_unreadable_is_not_passed_over(self):
        del self.env["REDBUCKET_CONFIG"]
        os.mkdir(os.path.join(self.folder, "redbucket.conf"))
        self.assert_fails(2, "redbucket.conf: Is a directory, expected a configuration file",
                          "-l", "a:1", "request", "a=x")

    def test_a_pipe_will_do(self):
        read, write = os.pipe()
        os.write(write, self.LIMIT.format("piped").encode())
        os.close(write)
        status, out, err = self.run_command("-c", "/dev/stdin", "check", stdin=read)
        os.close(read)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("limit: piped:", out)

    def test_the_order_in_which_stores_are_chosen(self):
        path = self.write("store.conf", 'store = "memory:?size=1m"\n')
        self.assertEqual(self.ask("-c", path, "-s", "memory:?size=2m", "check")["store"],
                         "memory:?size=2m")
        self.assertEqual(self.ask("-c", path, "check")["store"], self.store)
        self.env["REDBUCKET_STORE"] = ""
        self.assertEqual(self.ask("-c", path, "check")["store"], "memory:?size=1m")
        del self.env["REDBUCKET_STORE"]
        self.assertEqual(self.ask("-c", path, "check")["store"], "memory:?size=1m")

    def test_a_wrong_store_in_the_file_is_told_by_its_line(self):
        path = self.write("store.conf", '\n\nstore = "redis+nosuch://:sesame@192.0.2.1"\n')
        del self.env["REDBUCKET_STORE"]
        status, _, err = self.run_command("-c", path, "-l", "a:1", "request", "a=x")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertTrue(err.startswith(
            f"redbucket: {path}:3: redis+nosuch://:***@192.0.2.1: "), err)


if __name__ == "__main__":
    unittest.main()
