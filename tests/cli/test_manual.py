# SPDX-License-Identifier: MIT
"""The manual pages: they are well made, and name every command, option, setting, parameter and
function that there is, and no other."""

import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

from command import needs_servers, REDBUCKET

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "completion"))
import tables  # noqa: E402

PAGES = ["libredbucket.3", "redbucket.1", "redbucket-stores.7", "redbucket.conf.5"]


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def section(page, kind, name):
    """The lines of a page from a heading to the next of its kind or above."""
    found = re.search(rf"^\.{kind} {re.escape(name)}$\n(.*?)(?=^\.S[hs] |\Z)", read("man", page),
                      re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no .{kind} {name}"
    return found[1]


def tagged(text, macro):
    """What the tags of a list name by a macro: `.It Cm a , b` and `.It Fl -c Ar x , Fl -d`."""
    lines = re.findall(rf"^\.It {macro} (.*)$", text, re.MULTILINE)
    names = set()
    for line in lines:
        for part in line.split(" , "):
            names.add(part.removeprefix(f"{macro} ").split()[0])
    return names


class Pages(unittest.TestCase):
    def test_they_are_all_here(self):
        there = glob.glob(os.path.join(SOURCE, "man", "*.[0-9]"))
        self.assertEqual(sorted(PAGES), sorted(os.path.basename(path) for path in there))

    @unittest.skipIf(shutil.which("mandoc") is None, "no mandoc")
    def test_mandoc_has_nothing_to_say(self):
        """But that the pages aren't installed here, nor some that they name."""
        for page in PAGES:
            run = subprocess.run(["mandoc", "-T", "lint", os.path.join(SOURCE, "man", page)],
                                 check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = [line for line in run.stdout.splitlines()
                    if "referenced manual not found" not in line and "mandoc.db" not in line]
            self.assertEqual([], said, page)

    def test_they_name_each_other_and_no_page_that_is_not_there(self):
        for page in PAGES:
            for name, number in re.findall(r"^\.Xr ([\w.-]+) (\d)", read("man", page), re.MULTILINE):
                self.assertIn(f"{name}.{number}", [*PAGES, "gzip.1"], page)

    def test_lines_are_not_too_wide(self):
        for page in PAGES:
            for line in read("man", page).splitlines():
                self.assertLessEqual(len(line), 200, f"{page}: {line}")


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables.Tables(os.path.abspath(REDBUCKET))

    def test_it_names_every_command_in_the_order_of_the_help(self):
        page = section("redbucket.1", "Sh", "COMMANDS")
        self.assertEqual("", page)  # there is nothing before the first command
        whole = read("man", "redbucket.1")
        part = whole[whole.index(".Sh COMMANDS"):whole.index(".Sh OUTPUT")]
        self.assertEqual(list(self.tables.commands), re.findall(r"^\.Ss (\w+)$", part, re.MULTILINE))

    def test_it_names_the_common_options(self):
        named = {f"-{name}" for name in tagged(section("redbucket.1", "Sh", "DESCRIPTION"), "Fl")}
        spelt = {"-c": "--config", "-s": "--store", "-l": "--limit", "--help": "-h"}
        wanted = set(self.tables.common) | {spelt[option] for option in self.tables.common
                                            if option in spelt}
        self.assertEqual(wanted, named)

    def test_it_names_every_option_of_every_command(self):
        for command in self.tables.commands:
            with self.subTest(command):
                named = {f"-{name}" for name in tagged(section("redbucket.1", "Ss", command), "Fl")}
                own = set(self.tables.options(command)) | ({"-o"} if command == "replay" else set())
                self.assertEqual(own, named)

    def test_options_with_a_value_have_one(self):
        for command in self.tables.commands:
            text = section("redbucket.1", "Ss", command)
            for option in self.tables.options(command):
                line = re.search(rf"^\.It Fl -{option[2:]}( .*)?$", text, re.MULTILINE)
                self.assertEqual(self.tables.takes_value(command, option),
                                 bool(line[1] and line[1].startswith(" Ar")), f"{command} {option}")

    def test_every_option_is_in_the_help_of_its_command(self):
        for command in self.tables.commands:
            text = self.tables.help(command)
            for option in self.tables.options(command):
                self.assertIn(option, text, command)


class Settings(unittest.TestCase):
    def test_configuration(self):
        source = read("cli", "config.c")
        there = set(re.findall(r'CFG_(?:STR_CB|SEC)\("(\w+)"', source))
        page = section("redbucket.conf.5", "Sh", "DESCRIPTION")
        self.assertTrue(there)
        self.assertEqual(there, tagged(page, "Cm"))


class Stores(unittest.TestCase):
    def test_every_parameter(self):
        texts = [re.search(r'rbk_url_known\(url, "([^"]+)"', read("src", f"store_{name}.c"))[1]
                 for name in ("memory", "shm")]
        options = read("src", "redis", "options.c")
        texts += re.findall(r'^#define PARAMETERS\w* .*?"([^"]+)"', options, re.MULTILINE)
        there = set(" ".join(texts).split())
        self.assertIn("denial_time", there)
        self.assertIn("verify", there)
        page = read("man", "redbucket-stores.7")
        self.assertEqual(there, tagged(page[page.index(".Sh PARAMETERS"):], "Cm"))

    def test_every_kind(self):
        there = set(re.findall(r'^    \{"([\w+]+)", PARAMETERS', read("src", "redis", "options.c"),
                               re.MULTILINE))
        page = section("redbucket-stores.7", "Sh", "URLS")
        named = set(re.findall(r"^\.It Li ([\w+]+):", page, re.MULTILINE))
        self.assertEqual(there | {"memory", "shm"}, named)

    @needs_servers
    def test_examples_are_urls(self):
        urls = re.findall(r"^\.It Li (\S+)$", section("redbucket-stores.7", "Sh", "EXAMPLES"),
                          re.MULTILINE)
        self.assertLess(2, len(urls))
        for url in urls:
            if url.startswith("shm:") or "ca=" in url:
                continue  # would be made; names a file
            run = subprocess.run(
                [os.path.abspath(REDBUCKET), "-c", "/dev/null", "-s", re.sub(r"192\.0\.2\.\d", "[::1]", url),
                 "-l", "a:1", "peek", "a="], check=False, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            self.assertNotIn("store URL", run.stderr, url)


class Library(unittest.TestCase):
    page = "libredbucket.3"

    @classmethod
    def setUpClass(cls):
        cls.text = read("man", cls.page)
        cls.headers = {os.path.basename(path): read(path) for path in
                       glob.glob(os.path.join(SOURCE, "include", "redbucket", "*.h"))}

    def test_every_function_and_header(self):
        listed = re.findall(r"^    (redbucket_\w+);$", read("src", "libredbucket.sym"), re.MULTILINE)
        self.assertEqual(sorted(listed),
                         sorted(set(re.findall(r"^\.It Fn (\w+)$", self.text, re.MULTILINE))))
        self.assertEqual(sorted(self.headers), sorted(re.findall(r"^\.In redbucket/(\w+\.h)$", self.text, re.MULTILINE)))

    def test_arguments_are_those_of_the_headers(self):
        """{function: (what it answers, [argument])}, below the header that has it."""
        declared, shown = {}, {}
        for name, text in self.headers.items():
            text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
            for answers, function, arguments in re.findall(
                    r"REDBUCKET_API\s+(?:REDBUCKET_MUST_CHECK\s+)?([\w\s*]+?)(redbucket_\w+)\(([^;]*)\);", text):
                declared[function] = (name, " ".join(answers.split()),
                                      [" ".join(argument.split()) for argument in arguments.split(",")])
        for part in section(self.page, "Sh", "SYNOPSIS").split(".In redbucket/")[1:]:
            for answers, function, arguments in re.findall(r'^\.Ft "(.*)"\n\.Fn (\w+) (.*)$', part, re.MULTILINE):
                shown[function] = (part.splitlines()[0], answers, re.findall(r'"([^"]*)"', arguments))
        self.assertTrue(declared)
        self.assertEqual([], sorted(declared.keys() ^ shown.keys()), "SYNOPSIS and headers differ in these")
        for function, declaration in declared.items():
            self.assertEqual(declaration, shown[function], function)

    def test_every_error(self):
        codes = re.search(r"#define REDBUCKET_STATUS_MAP\(X\)(.*?)\n\n", self.headers["redbucket.h"], re.DOTALL)[1]
        self.assertEqual([f"REDBUCKET_{name}" for name in re.findall(r"X\((\w+),", codes)],
                         re.findall(r"^\.It Dv (\w+)$", section(self.page, "Sh", "ERRORS"), re.MULTILINE))
