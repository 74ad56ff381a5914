# SPDX-License-Identifier: MIT
"""The Debian packages, installed, used and removed; and an install below another prefix.

The system they are installed in is this one with a layer over it, in a mount namespace of the test's:
nothing of what happens there is seen outside. Whoever may not make one has the tests skipped. PACKAGES
is the folder with the packages, BUILD a build directory. Not part of `make check`, since making them
takes minutes: `make packages` runs this.
"""

import glob
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PACKAGES = os.path.abspath(os.environ["PACKAGES"])
NAMES = ["libredbucket0", "libredbucket-dev", "redbucket", "python3-redbucket"]

# $1 is a folder to mount things in, what follows is run in the new system, /packages being ours.
LAYER = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mkdir -p "$1/root/packages" "$1/root/try" "$1/root/dev/shm"
mount --bind "$2" "$1/root/packages"
mount -t proc proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
cp "$3" "$1/root/try/consumer.c"
cp -R "$4" "$1/root/try/cmake"
exec chroot "$1/root" /bin/sh -e -c "$5"
"""

CLEAN = "cd /try; export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive\n"

# A library of the same name below /usr/local, from a `make install`, would come first.
ALONE = "rm -rf /usr/local/lib/*/libredbucket* /usr/local/lib/libredbucket* /usr/local/bin/redbucket; ldconfig\n"

INSTALL = "dpkg -i --force-depends {} >/try/log 2>&1 || {{ cat /try/log; exit 1; }}\n"


def can_layer():
    probe = "mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t overlay overlay " \
            "-o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"
    return subprocess.run(["unshare", "--mount", "sh", "-c", probe], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def packages(*names):
    found = [glob.glob(os.path.join(PACKAGES, f"{name}_*.deb")) for name in names or NAMES]
    return " ".join(f"/packages/{os.path.basename(paths[0])}" for paths in found)


class Made(unittest.TestCase):
    def test_there_is_one_of_each(self):
        for name in NAMES:
            self.assertEqual(1, len(glob.glob(os.path.join(PACKAGES, f"{name}_*.deb"))), name)

    def test_symbols_need_the_version_that_brought_them(self):
        package = glob.glob(os.path.join(PACKAGES, "libredbucket0_*.deb"))[0]
        said = subprocess.run(["dpkg", "-I", package, "symbols"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        with open(os.path.join(SOURCE, "src", "libredbucket.sym"), encoding="utf-8") as file:
            names = [line.strip(" ;\n") for line in file if line.startswith("    redbucket_")]
        for name in names:
            self.assertRegex(said, rf"\n {name}@REDBUCKET_\w+ 0\.1\.0\n")


    @unittest.skipIf(shutil.which("lintian") is None, "no lintian")
    def test_lintian_finds_no_fault(self):
        changes = glob.glob(os.path.join(PACKAGES, "redbucket_*.changes"))[0]
        said = subprocess.run(["lintian", "--fail-on", "error,warning", changes], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, said.returncode, said.stdout)

    def test_the_python_package_takes_the_client_that_it_says(self):
        package = glob.glob(os.path.join(PACKAGES, "python3-redbucket_*.deb"))[0]
        said = subprocess.run(["dpkg", "-f", package, "Depends"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        self.assertIn("python3-redis", said)


@unittest.skipUnless(can_layer(), "may not lay a file system over this one")
class Installed(unittest.TestCase):
    def inside(self, script):
        with tempfile.TemporaryDirectory(prefix="redbucket-layer-") as folder:
            done = subprocess.run(
                ["unshare", "--mount", "--net", "sh", "-c", LAYER, "sh", folder, PACKAGES,
                 os.path.join(SOURCE, "tests", "abi", "consumer.c"),
                 os.path.join(SOURCE, "tests", "abi", "cmake"), CLEAN + ALONE + script],
                check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout.splitlines()

    def test_command(self):
        said = self.inside(INSTALL.format(packages("libredbucket0", "redbucket")) + """
            redbucket -c /dev/null -s memory: -l ip:1/s request ip=192.0.2.7
            ls /usr/share/man/man1/redbucket.1* /usr/share/man/man5/redbucket.conf.5* \\
                /usr/share/bash-completion/completions/redbucket >/dev/null
            ldd /usr/bin/redbucket | grep -o '=> /[a-z].*libredbucket.so.0' | sed 's,/x86[^/]*,,'
            """)
        self.assertEqual("accepted", said[0])
        self.assertIn("/lib", said[1])

    def test_library(self):
        said = self.inside(INSTALL.format(packages("libredbucket0", "libredbucket-dev")) + """
            cc $(pkg-config --cflags redbucket) consumer.c $(pkg-config --libs redbucket) -o shared
            ./shared
            c++ -x c++ $(pkg-config --cflags redbucket) consumer.c -x none \\
                $(pkg-config --libs redbucket) -o cxx
            ./cxx
            cmake -S cmake -B tree -DWANTED=0.1 -DCONSUMER=/try/consumer.c >/dev/null
            cmake --build tree >/dev/null
            tree/shared
            tree/static
            """)
        self.assertEqual(["0.1.0 accepted"] * 4, said)

    def test_python(self):
        said = self.inside(INSTALL.format(packages("python3-redbucket")) + """
            python3 -c '
            import redbucket
            limiter = redbucket.InMemoryRateLimiter()
            limiter.configure(ip=redbucket.RateLimit(redbucket.Zone("ip", rate=1)))
            import importlib.metadata
            metadata = importlib.metadata.metadata("redbucket")
            print(metadata["Version"], metadata["Requires-Python"], metadata.get_all("Requires-Dist"))
            print(redbucket.__file__)
            print([limiter.request(ip="192.0.2.7").accepted for _ in range(2)])'
            """.replace("\n            ", "\n"))
        self.assertEqual(["0.1.0 >=3.9 ['redis>=3', 'valkey; extra == \"valkey\"']",
                          "/usr/lib/python3/dist-packages/redbucket/__init__.py", "[True, False]"], said)

    def test_nothing_is_left_when_they_are_removed(self):
        """Folders that others share may stay; what Python wrote beside its sources may not."""
        said = self.inside(f"""
            find /usr /etc -xdev -name '*redbucket*' | sort >before
            {INSTALL.format(packages())}
            python3 -c 'import redbucket'
            test -e /usr/bin/redbucket
            dpkg --purge {' '.join(NAMES)} >log 2>&1 || {{ cat log; exit 1; }}
            find /usr /etc -xdev -name '*redbucket*' | sort >after
            diff before after && echo nothing
            """)
        self.assertEqual(["nothing"], said)


class Prefix(unittest.TestCase):
    """`make install PREFIX= DESTDIR=` from a build that was configured for another prefix."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redbucket-prefix-")
        build = os.path.join(cls.folder, "build")
        cls.root = os.path.join(cls.folder, "stage", "opt", "redbucket")
        said = subprocess.PIPE
        subprocess.run(["meson", "setup", build, SOURCE, "-Dtests=false"], check=True, stdout=said)
        subprocess.run(["make", "-C", SOURCE, "install", f"BUILD={build}", "PREFIX=/opt/redbucket",
                        f"DESTDIR={cls.folder}/stage"], check=True, stdout=said)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_everything_is_below_it(self):
        top = os.path.join(self.folder, "stage")
        files = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
        self.assertLess(20, len(files))
        self.assertEqual([], [path for path in files if not path.startswith(self.root + "/")])

    def test_pkg_config_has_the_prefix(self):
        path = glob.glob(os.path.join(self.root, "lib*", "**", "redbucket.pc"), recursive=True)[0]
        with open(path, encoding="utf-8") as file:
            self.assertEqual("prefix=/opt/redbucket\n", file.readline())

    def test_command_runs_from_there(self):
        library = glob.glob(os.path.join(self.root, "lib*", "**", "libredbucket.so"),
                            recursive=True)[0]
        said = subprocess.run([os.path.join(self.root, "bin", "redbucket"), "--version"], check=True,
                              env={"LD_LIBRARY_PATH": os.path.dirname(library)}, text=True,
                              stdout=subprocess.PIPE).stdout
        self.assertTrue(said.startswith("redbucket "))

    @unittest.skipIf(shutil.which("cmake") is None, "no CMake")
    def test_cmake_finds_it_by_the_prefix(self):
        tree = os.path.join(self.folder, "tree")
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "tests", "abi", "cmake"), "-B", tree,
                        f"-DCMAKE_PREFIX_PATH={self.root}",
                        f"-DCONSUMER={SOURCE}/tests/abi/consumer.c"], check=True,
                       stdout=subprocess.PIPE)
        subprocess.run(["cmake", "--build", tree], check=True, stdout=subprocess.PIPE)
        said = subprocess.run([os.path.join(tree, "shared")], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        self.assertIn("accepted", said)


if __name__ == "__main__":
    unittest.main()
