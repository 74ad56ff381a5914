# SPDX-License-Identifier: MIT
"""The libraries as a stranger gets them: what they are called, what they export, what is
installed, and that programs build against it.

The environment says what to look at: BUILD (a build directory), SOURCE (the tree), CC and CXX
(commands; CXX may be empty).
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

BUILD = os.environ["BUILD"]
SOURCE = os.environ["SOURCE"]
CC = shlex.split(os.environ["CC"])
CXX = shlex.split(os.environ.get("CXX", ""))
SHARED = os.path.join(BUILD, "libredbucket.so")
STATIC = os.path.join(BUILD, "libredbucket.a")
SONAME = "libredbucket.so.0"
HEADERS = sorted(
    name for name in os.listdir(os.path.join(SOURCE, "include", "redbucket")) if name.endswith(".h")
)
ADAPTERS = sorted(os.listdir(os.path.join(SOURCE, "include", "redbucket", "adapters")))

# What a stranger may switch on in his own build, and the header must survive.
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wundef", "-Werror"]


def output_of(*command, **options):
    """Standard output of a command that must succeed; its complaints are in the failure."""
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options
    )
    if run.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}: {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def dynamic_section(path):
    """[(tag, value)] of what the dynamic linker reads."""
    lines = output_of("readelf", "-d", "--wide", path).splitlines()
    return re.findall(r"\((\w+)\)\s+[^\n]*?\[([^\]]*)\]", "\n".join(lines))


def global_symbols(path, *options):
    lines = output_of("nm", "--defined-only", *options, path).splitlines()
    fields = [line.split() for line in lines]
    return {field[-1].split("@")[0] for field in fields if len(field) == 3 and field[1] != "A"}


class Libraries(unittest.TestCase):
    def test_soname_has_the_number_of_the_abi(self):
        self.assertIn(("SONAME", SONAME), dynamic_section(SHARED))

    def test_shared_library_needs_the_c_library_and_what_servers_take(self):
        needed = {value for tag, value in dynamic_section(SHARED) if tag == "NEEDED"}
        allowed = re.compile(r"(libc|libm|libpthread|librt|ld-linux[\w-]*|libssl|libcrypto|libhiredis)\.so\..+")
        self.assertEqual([], sorted(name for name in needed if not allowed.fullmatch(name)))

    def test_shared_library_exports_only_its_own_prefix(self):
        symbols = global_symbols(SHARED, "-D")
        self.assertTrue(symbols)
        self.assertEqual([], sorted(s for s in symbols if not s.startswith("redbucket_")))

    def test_exports_are_those_of_the_list_and_each_has_its_version(self):
        """The list says since which version a program that calls something needs the library."""
        with open(os.path.join(SOURCE, "src", "libredbucket.sym"), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        listed = set()
        for node, names in re.findall(r"(\w+) \{\s*global:(.*?)(?:local:|\})", text, re.DOTALL):
            listed |= {f"{name}@@{node}" for name in re.findall(r"(redbucket_\w+);", names)}
        lines = output_of("nm", "-D", "--with-symbol-versions", "--defined-only", SHARED).splitlines()
        exported = {line.split()[-1] for line in lines if line.split()[1] != "A"}
        self.assertEqual(listed, exported)
        self.assertIn(f"REDBUCKET_{SONAME.rsplit('.', 1)[1]} {{", text)

    def test_static_library_defines_only_its_own_prefixes(self):
        symbols = global_symbols(STATIC, "-g")
        self.assertTrue(symbols)
        self.assertEqual([], sorted(s for s in symbols if not s.startswith(("redbucket_", "rbk_"))))

    def test_header_says_the_version_of_the_project(self):
        header = os.path.join(SOURCE, "include", "redbucket", "redbucket.h")
        with open(header, encoding="utf-8") as file:
            numbers = re.findall(r"#define REDBUCKET_VERSION_\w+ (\d+)", file.read())
        project = output_of("meson", "introspect", "--projectinfo", BUILD)
        self.assertIn(f'"version": "{".".join(numbers)}"', project)


class Header(unittest.TestCase):
    def compile(self, *command):
        include = f"-I{SOURCE}/include"
        for header in HEADERS:
            text = f"#include <redbucket/{header}>\n"
            output_of(*command, *STRICT, include, "-fsyntax-only", "-", input=text)

    def test_stands_alone_in_strict_c(self):
        for standard in ("c99", "c11", "gnu17"):
            self.compile(*CC, "-x", "c", f"-std={standard}")

    def test_stands_alone_in_strict_cxx(self):
        if not CXX:
            self.skipTest("no C++ compiler")
        for standard in ("c++11", "c++17", "gnu++20"):
            self.compile(*CXX, "-x", "c++", f"-std={standard}")


class Adapters(unittest.TestCase):
    """Each with hiredis and its event loop, whose own headers may be as they like."""

    # What a loop's header is found by, and what has to be there for it.
    LOOPS = {"glib.h": ["glib-2.0"], "libevent.h": ["libevent"], "libuv.h": ["libuv"]}

    def hiredis(self):
        home = os.path.join(SOURCE, "build-deps", "hiredis")
        if os.path.isdir(os.path.join(home, "hiredis", "adapters")):
            return ["-isystem", home]
        if subprocess.run(["pkg-config", "--atleast-version=1.0", "hiredis"], check=False).returncode:
            self.skipTest("no hiredis with adapters")
        return []

    def compile(self, header, *command):
        packages = self.LOOPS.get(header, [])
        for package in packages:
            if subprocess.run(["pkg-config", "--exists", package], check=False).returncode:
                self.skipTest(f"no {package}")
        if header == "libev.h" and subprocess.run(
            [*CC, "-E", "-"], input=b"#include <ev.h>", capture_output=True, check=False
        ).returncode:
            self.skipTest("no libev")
        flags = shlex.split(output_of("pkg-config", "--cflags", *packages)) if packages else []
        flags = ["-isystem" + flag[2:] if flag.startswith("-I") else flag for flag in flags]
        output_of(*command, *STRICT, f"-I{SOURCE}/include", *self.hiredis(), *flags,
                  "-fsyntax-only", "-", input=f"#include <redbucket/adapters/{header}>\n")

    def test_stand_alone_in_c(self):
        for header in ADAPTERS:
            with self.subTest(header):
                self.compile(header, *CC, "-x", "c", "-std=gnu11")

    def test_stand_alone_in_cxx(self):
        if not CXX:
            self.skipTest("no C++ compiler")
        for header in ADAPTERS:
            with self.subTest(header):
                self.compile(header, *CXX, "-x", "c++", "-std=gnu++20")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="redbucket-install-")
        environment = dict(os.environ, DESTDIR=cls.root)
        output_of("meson", "install", "-C", BUILD, "--no-rebuild", env=environment)
        cls.files = {}
        for folder, _, names in os.walk(cls.root):
            for name in names:
                cls.files[name] = os.path.join(folder, name)
        package = cls.files.get("redbucket.pc", "/none")
        cls.library_path = os.path.dirname(os.path.dirname(package))
        # The system's, in which OpenSSL is found, behind what was installed here.
        system = output_of("pkg-config", "--variable", "pc_path", "pkg-config").strip()
        cls.environment = dict(
            os.environ,
            PKG_CONFIG_LIBDIR=f"{os.path.dirname(package)}:{system}",
            PKG_CONFIG_SYSROOT_DIR=cls.root,
            PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
            PKG_CONFIG_ALLOW_SYSTEM_LIBS="1",
        )
        cls.environment.pop("PKG_CONFIG_PATH", None)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def pkg_config(self, *arguments):
        text = output_of("pkg-config", *arguments, "redbucket", env=self.environment)
        return shlex.split(text)

    def private_libs(self):
        """What the static library needs itself. What OpenSSL would need in turn, if it were linked
        statically as well, is often not there."""
        with open(self.files["redbucket.pc"], encoding="utf-8") as file:
            libs = re.findall(r"^Libs\.private: (.*)", file.read(), re.MULTILINE)
        packages = output_of("pkg-config", "--print-requires-private", "redbucket",
                             env=self.environment)
        names = [line.split()[0] for line in packages.splitlines()]
        return shlex.split(" ".join(libs + [output_of("pkg-config", "--libs", *names)]))

    def build(self, compiler, name, link):
        program = os.path.join(self.root, name)
        consumer = os.path.join(HERE, "consumer.c")
        flags = self.pkg_config("--cflags")
        output_of(*compiler, *flags, consumer, "-x", "none", "-o", program, *link)
        return program

    def run_with_library(self, *command):
        environment = dict(os.environ, LD_LIBRARY_PATH=self.library_path)
        return output_of(*command, env=environment).split()

    def test_everything_is_there(self):
        wanted = {"redbucket", "redbucket.pc", "libredbucket.a", "libredbucket.so", *HEADERS, *ADAPTERS}
        self.assertLessEqual(wanted | {SONAME}, set(self.files))
        self.assertTrue(self.files["redbucket.h"].endswith("/include/redbucket/redbucket.h"))
        self.assertTrue(self.files["redbucket"].endswith("/bin/redbucket"))

    def test_nothing_else_is_there(self):
        known = re.compile(
            r"/(bin/redbucket|include/redbucket/(adapters/)?\w+\.h|lib\w*/.*libredbucket\.(a|so[.0-9]*)"
            r"|lib\w*/.*pkgconfig/redbucket\.pc|lib\w*/.*cmake/redbucket/redbucketConfig(Version)?\.cmake"
            r"|share/(man|doc|bash-completion|zsh|fish)/.*)$"
        )
        self.assertEqual([], sorted(path for path in self.files.values() if not known.search(path)))

    def test_shared_library_is_a_chain_of_links(self):
        library = self.files["libredbucket.so"]
        self.assertTrue(os.path.islink(library))
        self.assertTrue(os.path.islink(self.files[SONAME]))
        self.assertEqual(os.path.realpath(library), os.path.realpath(self.files[SONAME]))

    def test_installed_command_finds_the_installed_library(self):
        program = self.files["redbucket"]
        self.assertNotIn("RPATH", dict(dynamic_section(program)))
        self.assertNotIn("RUNPATH", dict(dynamic_section(program)))
        version = self.pkg_config("--modversion")[0]
        self.assertIn(version, self.run_with_library(program, "--version"))

    def test_pkg_config_has_the_version_of_the_library(self):
        version = self.pkg_config("--modversion")
        program = self.build(CC, "versioned", self.pkg_config("--libs"))
        self.assertEqual(version[0], self.run_with_library(program)[0])

    def test_program_runs_with_the_shared_library(self):
        program = self.build(CC, "shared", self.pkg_config("--libs"))
        self.assertIn(("NEEDED", SONAME), dynamic_section(program))
        self.assertEqual("accepted", self.run_with_library(program)[1])

    def test_program_runs_with_the_static_library_alone(self):
        libs = self.pkg_config("--libs")
        libs = ["-l:libredbucket.a" if lib == "-lredbucket" else lib for lib in libs]
        program = self.build(CC, "static", libs + self.private_libs())
        self.assertNotIn(("NEEDED", SONAME), dynamic_section(program))
        self.assertEqual("accepted", output_of(program).split()[1])

    def cmake(self, wanted=""):
        """What CMake makes of a stranger's project, in a folder of its own."""
        if not shutil.which("cmake"):
            self.skipTest("no CMake")
        folder = tempfile.mkdtemp(prefix="cmake-", dir=self.root)
        more = {"CXX": shlex.join(CXX)} if CXX else {}
        environment = {**os.environ, "CC": shlex.join(CC), **more}
        configured = subprocess.run(
            ["cmake", "-S", os.path.join(HERE, "cmake"), "-B", folder, f"-DWANTED={wanted}",
             f"-DCONSUMER={os.path.join(HERE, 'consumer.c')}",
             f"-DMORE_LANGUAGES={'CXX' if CXX else ''}",
             f"-Dredbucket_DIR={os.path.dirname(self.files['redbucketConfig.cmake'])}"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return folder, configured.returncode, configured.stdout

    def test_programs_of_cmake_run(self):
        folder, status, said = self.cmake("0.1")
        self.assertEqual(0, status, said)
        version = self.pkg_config("--modversion")[0]
        self.assertIn(f"-- redbucket is {version}\n", said)
        output_of("cmake", "--build", folder)
        names = ["shared", "static"] + ["shared_cxx", "static_cxx"] * bool(CXX)
        for name in names:
            program = os.path.join(folder, name)
            needs = ("NEEDED", SONAME) in dynamic_section(program)
            self.assertEqual(name.startswith("shared"), needs, name)
            self.assertEqual([version, "accepted"], self.run_with_library(program), name)

    def test_cmake_is_told_of_a_version_that_is_too_old_or_another(self):
        for wanted, good in (("", True), ("0.1.0", True), ("0.0.9", True), ("0.2", False),
                             ("1.0", False)):
            status, said = self.cmake(wanted)[1:]
            self.assertEqual(good, status == 0, f"{wanted}: {said}")

    def test_program_in_cxx_runs_with_the_shared_library(self):
        if not CXX:
            self.skipTest("no C++ compiler")
        program = self.build([*CXX, "-x", "c++"], "cxx", self.pkg_config("--libs"))
        self.assertEqual("accepted", self.run_with_library(program)[1])
