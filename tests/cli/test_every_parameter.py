# SPDX-License-Identifier: MIT
"""Every parameter of every kind of store: once as it is meant, on a real server where it is of one, and once with
what it can't mean, where the one line has to name it. Which there are the sources say that read them, so that a
new one that stands in no table here fails."""

import os
import re
import sys
import unittest

from command import CommandTest, needs_servers

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import cluster as clusters  # noqa: E402
import server as servers  # noqa: E402

LIMIT = ("-l", "ip:1/d,burst=9")

# {parameter: (what it may be, what it can't)}; None where any text will do.
PARAMETERS = {
    "size": ("1m", "1"), "grow": ("yes", "maybe"), "create": ("yes", "maybe"),
    "mode": ("0600", "999"), "timeout": ("20s", "x"),
    "connections": ("2", "0"), "codec": ("json", "xml"), "key_format": ("a:{zone}:{key}", "a"),
    "method": ("script", "maybe"), "denial_time": ("0", "2h"), "on_error": ("closed", "maybe"),
    "local_share": ("0.5", "2"), "db": ("3", "-1"), "ca": ("CA", "/dev/null/none"),
    "cert": ("CERT", "/dev/null/none"), "key": ("KEY", "/dev/null/none"), "verify": ("none", "maybe"),
    "sentinel_user": ("default", None), "sentinel_password": ("word", None),
}
# What a parameter is nothing without.
TOGETHER = {"local_share": "on_error=local", "cert": "key=KEY", "key": "cert=CERT",
            "sentinel_user": "sentinel_password=word"}
# What can be told only once the file is opened, which is the store's failure.
FILES = ("ca", "cert", "key")


def known():
    """{kind of store: [parameter]}, from the sources that read them."""
    found = {}
    for name in ("memory", "shm"):
        with open(os.path.join(SOURCE, "src", f"store_{name}.c"), encoding="utf-8") as file:
            found[name] = re.search(r'rbk_url_known\(url, "([^"]+)"', file.read())[1].split()
    with open(os.path.join(SOURCE, "src", "redis", "options.c"), encoding="utf-8") as file:
        text = file.read()
    macros = {}
    for name, inner in re.findall(r"^#define (PARAMETERS\w*) +(.*)$", text, re.MULTILINE):
        macros[name] = "".join(macros.get(word, word.strip('"')) for word in re.findall(r'PARAMETERS\w*|"[^"]*"', inner))
    for kind, inner in re.findall(r'^    \{"([\w+]+)", ([A-Z_ ]+),', text, re.MULTILINE):
        found[kind] = "".join(macros[name] for name in inner.split()).split()
    return found


@needs_servers
class Parameters(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.plain = servers.Server("redis", password="word")
        cls.tls = servers.Server("redis", tls=True)
        cls.sentinel = servers.Server(
            "redis", [f"sentinel monitor main 127.0.0.1 {cls.plain.port} 1", "sentinel auth-pass main word"],
            password="word", sentinel=True)
        cls.cluster = clusters.Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        for server in (cls.sentinel, cls.tls, cls.plain):
            server.stop()

    def places(self):
        """{kind: (address, what else its URL needs)}; the last ones have nobody there."""
        sentinel = f"//:word@127.0.0.1:{self.sentinel.port}/main"
        nodes = self.cluster.url().split(":", 1)[1]
        nobody = "//127.0.0.1:1"
        return {
            "memory": ("", []), "shm": (self.store_name, []),
            "redis": (f"//:word@127.0.0.1:{self.plain.port}", []), "unix": (f"//:word@{self.plain.socket}", []),
            "rediss": (f"//localhost:{self.tls.tls_port}", ["ca=CA"]),
            "redis+sentinel": (sentinel, ["sentinel_password=word"]), "redis+cluster": (nodes, []),
            "rediss+sentinel": (nobody + "/main", ["timeout=50ms"]), "rediss+cluster": (nobody, ["timeout=50ms"]),
        }

    def url(self, kind, *parameters):
        address, beside = self.places()[kind]
        names = [parameter.split("=")[0] for parameter in parameters]
        names += ["ca"] * ("verify" in names)
        texts = [*parameters, *(text for text in beside if text.split("=")[0] not in names)]
        folder = self.tls.directory
        for word, path in (("CA", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key")):
            texts = [re.sub(rf"=\b{word}$", f"={folder}/{path}", text) for text in texts]
        return f"{kind}:{address}" + ("?" + "&".join(texts) if texts else "")

    def test_the_table_here_is_complete(self):
        there = known()
        self.assertEqual(9, len(there))
        self.assertEqual(set(PARAMETERS), {name for names in there.values() for name in names})
        self.assertEqual(set(there), set(self.places()))

    def each(self):
        for kind, names in known().items():
            for name in names:
                self.remove_store()
                yield kind, name

    def test_each_as_it_is_meant(self):
        for kind, name in self.each():
            with self.subTest(kind, parameter=name):
                beside = [TOGETHER[name]] if name in TOGETHER else []
                url = self.url(kind, f"{name}={PARAMETERS[name][0]}", *beside)
                status, out, err = self.run_command("-s", url, *LIMIT, "request", f"ip={kind} {name}")
                if ":1?" in url or ":1/main?" in url:
                    wanted = 1 if name == "on_error" else 0 if name == "local_share" else 3
                    self.assertEqual(wanted, status, err)
                else:
                    self.assertEqual((0, "accepted\n", ""), (status, out, err))

    def test_each_as_it_cannot_be(self):
        for kind, name in self.each():
            bad = PARAMETERS[name][1]
            if bad is not None:
                with self.subTest(kind, parameter=name):
                    beside = [TOGETHER[name]] if name in ("cert", "key") else []
                    self.refused(name, self.url(kind, f"{name}={bad}", *beside), 3 if name in FILES else 2)

    def refused(self, name, url, wanted=2):
        status, out, err = self.run_command("-s", url, *LIMIT, "request", "ip=a")
        self.assertEqual((wanted, "", 1), (status, out, err.count("\n")), err)
        self.assertIn(name, err)

    def test_each_twice_and_unknown_ones(self):
        for kind, names in known().items():
            self.refused("nosuch", self.url(kind, "nosuch=1"))
            self.refused(names[0], self.url(kind, *[f"{names[0]}={PARAMETERS[names[0]][0]}"] * 2))

    def test_one_half_of_a_pair(self):
        for name in ("cert", "key"):
            self.refused(name, self.url("rediss", f"{name}={name.upper()}"))


if __name__ == "__main__":
    unittest.main()
