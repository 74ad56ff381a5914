# SPDX-License-Identifier: MIT
"""Servers that a test starts for itself: server.h in Python, of the same rules.

    with Server("redis", config=["appendonly yes"]) as server:
        server.ask("SET", "a", b"\\x00")
        ... server.url("unix", "codec=json") ...

Each is in a temporary folder of its own, on a Unix socket and a free port of the loopback address,
and gone with the test however that ends.
"""

import atexit
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import resp

HERE = os.path.dirname(os.path.abspath(__file__))
FETCHED = os.path.join(os.path.dirname(HERE), "build-deps")
READY_S = 30
END_S = 5
TRIES = 5
PR_SET_PDEATHSIG = 1

# kind: (variable, name on the path, what scripts/servers has brought)
PLACES = {
    "redis": ("REDIS_SERVER", "redis-server", "redis/redis-server"),
    "valkey": ("VALKEY_SERVER", "valkey-server", "valkey/bin/valkey-server"),
    "old-redis": ("OLD_REDIS_SERVER", None, "old-redis/redis-server"),
}

_libc = ctypes.CDLL(None)


def program(kind):
    """The path of a server, or None: then its tests are to be skipped, but for "redis"."""
    variable, name, fetched = PLACES[kind]
    if os.environ.get(variable):
        return os.environ[variable]
    found = name and shutil.which(name)
    if found:
        return found
    path = os.path.join(FETCHED, fetched)
    return path if os.access(path, os.X_OK) else None


def has_tls(kind):
    """TLS came with Redis 6 and can be left out of a program, which then doesn't name OpenSSL."""
    path = program(kind)
    if kind == "redis":
        return True
    if path is None:
        return False
    with open(path, "rb") as file:
        return b"SSL_CTX_new" in file.read()


def version_of(path):
    """(7, 0, 15), by what the program itself says."""
    said = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return tuple(int(number) for number in re.search(r" v=(\d+)\.(\d+)\.(\d+)", said).groups())


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def free_ports(count, node=False):
    """Below those that the kernel takes for outgoing connections, so that a server that is started
    again finds its own still free. Nodes of a cluster also have the port 10000 above each."""
    ports = []
    first, last, step = (20000, 22768, 10) if node else (10000, 32000, 70)
    for port in range(first + os.urandom(1)[0] * step, last):
        if is_free(port) and (not node or is_free(port + 10000)):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free port")


class Server:
    """Answers as soon as it is made. `config` is further lines of configuration, which override."""

    def __init__(self, kind="redis", config=(), password=None, tls=False, *, sentinel=False):
        self.kind, self.config, self.password, self.tls = kind, list(config), password, tls
        self.words = ["--sentinel"] * sentinel  # behind its configuration
        self.process = self.client = None
        self.program = program(kind)
        if self.program is None:
            raise FileNotFoundError(f"no server of kind {kind}")
        self.version = version_of(self.program)
        self.directory = tempfile.mkdtemp(prefix="redbucket-server-")
        self.socket = os.path.join(self.directory, "socket")
        self.owner = os.getpid()
        atexit.register(self.stop)
        try:
            if tls:
                subprocess.run([os.path.join(HERE, "certificates"), self.directory], check=True)
            self._launch()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _launch(self):
        for left in reversed(range(TRIES)):
            self.port, self.tls_port = free_ports(2, "cluster-enabled yes" in self.config)
            self._write_config()
            try:
                self.again()
                return
            except RuntimeError:
                if left == 0:
                    raise

    def _write_config(self):
        folder = self.directory
        lines = ["bind 127.0.0.1", f"port {self.port}", f"unixsocket {self.socket}",
                 f"dir {folder}", f"logfile {folder}/server.log", 'save ""', "appendonly no"]
        if self.version >= (7,):
            lines.append("enable-debug-command yes")
        if self.password is not None:
            lines.append(f"requirepass {self.password}")
        if self.tls:
            lines += [f"tls-port {self.tls_port}", f"tls-cert-file {folder}/server.pem",
                      f"tls-key-file {folder}/server.key", f"tls-ca-cert-file {folder}/ca.pem",
                      "tls-auth-clients no"]
        with open(os.path.join(folder, "server.conf"), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines + self.config)

    def _log(self):
        path = os.path.join(self.directory, "server.log")
        if not os.path.exists(path):
            return "no log"
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-10:])

    def _serves(self):
        try:
            with resp.Client(self.socket, self.password) as client:
                client.ask("PING")
                return True
        except resp.Error as error:
            return not str(error).startswith("LOADING")
        except OSError:
            return False

    def again(self):
        """Starts it, in the same folder, on the same socket and ports."""
        parent = os.getpid()
        if os.path.exists(self.socket):
            os.unlink(self.socket)

        def die_with_parent():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(126)

        with open(os.path.join(self.directory, "output"), "ab") as output:
            self.process = subprocess.Popen(
                [self.program, os.path.join(self.directory, "server.conf"), *self.words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                preexec_fn=die_with_parent)
        deadline = time.monotonic() + READY_S
        while self.process.poll() is None and time.monotonic() < deadline:
            if self._serves():
                return
            time.sleep(0.001)
        self.kill()
        raise RuntimeError(f"{self.program}: did not start\n{self._log()}")

    def _hang_up(self):
        if self.client is not None:
            self.client.close()
            self.client = None

    def kill(self):
        """Ends it as the machine's end would; its folder stays."""
        self._hang_up()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self):
        """Has it end by itself, so that what it keeps on disk is whole; its folder stays."""
        self._hang_up()
        if self.process is None:
            return
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(END_S)
            self.process = None
        except subprocess.TimeoutExpired:
            self.kill()

    def stop(self):
        """Ends it and removes its folder; a child after fork leaves its parent's alone."""
        if os.getpid() != self.owner:
            return
        self.end()
        shutil.rmtree(self.directory, ignore_errors=True)
        atexit.unregister(self.stop)

    def ask(self, *words):
        """One command on a connection of the test's own, which is made again when it was lost."""
        if self.client is None:
            self.client = resp.Client(self.socket, self.password)
        try:
            return self.client.ask(*words)
        except OSError:
            self._hang_up()
            raise

    def info(self, name):
        """What INFO says of a name, as text; None when it says nothing."""
        found = re.search(rf"^{re.escape(name)}:(.*?)\r?$", self.ask("INFO").decode(), re.MULTILINE)
        return found and found[1]

    def url(self, way="unix", query=""):
        """Of a store on it; `way` is "unix", "redis" or "rediss"."""
        login = "" if self.password is None else f":{self.password}@"
        places = {"unix": self.socket, "redis": f"127.0.0.1:{self.port}",
                  "rediss": f"localhost:{self.tls_port}"}
        queries = [f"ca={self.directory}/ca.pem"] * (way == "rediss") + [query] * (query != "")
        return f"{way}://{login}{places[way]}" + ("?" + "&".join(queries) if queries else "")
