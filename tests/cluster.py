# SPDX-License-Identifier: MIT
"""Clusters that a test starts for itself: cluster.h in Python, as far as the command's tests go.

    with Cluster(replicas=True) as cluster:
        ... cluster.url(query="timeout=2s"), cluster.nodes[0].kill() ...

Three masters, then perhaps a replica of each in the same order; gone with the test.
"""

import time

from server import Server

MASTERS = 3
SLOTS = 16384
SETTLE_S = 30
CONFIG = ["cluster-enabled yes", "cluster-node-timeout 1500", "cluster-migration-barrier 99",
          "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"]


class Cluster:
    """Serves all slots as soon as it is made. `options` are those of each server."""

    def __init__(self, replicas=False, config=("cluster-require-full-coverage no",), **options):
        self.nodes = []
        try:
            self._start(2 * MASTERS if replicas else MASTERS, [*CONFIG, *config], options)
            self.wait(self._agrees)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for node in self.nodes:
            node.stop()

    def _start(self, count, config, options):
        if options.get("password") is not None:
            config.append(f"masterauth {options['password']}")
        if options.get("tls"):
            config += ["tls-cluster yes", "tls-replication yes"]
        for index in range(count):
            if options.get("tls") and index > 0:  # or they would not trust each other
                folder = self.nodes[0].directory
                options["config"] = config + [
                    f"tls-cert-file {folder}/server.pem", f"tls-key-file {folder}/server.key",
                    f"tls-ca-cert-file {folder}/ca.pem"]
            self.nodes.append(Server(**{"config": config, **options}))
        for index, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.tls_port if node.tls else node.port)
            if index < MASTERS:
                first, last = SLOTS * index // MASTERS, SLOTS * (index + 1) // MASTERS
                node.ask("CLUSTER", "ADDSLOTS", *range(first, last))
        self.wait(lambda: all(node.ask("CLUSTER", "NODES").count(b"\n") == count
                              for node in self.nodes))
        for node, master in zip(self.nodes[MASTERS:], self.nodes):
            node.ask("CLUSTER", "REPLICATE", master.ask("CLUSTER", "MYID"))

    def _agrees(self):
        ranges = sorted((SLOTS * i // MASTERS, SLOTS * (i + 1) // MASTERS - 1, len(self.nodes) // MASTERS)
                        for i in range(MASTERS))
        return all(sorted((row[0], row[1], len(row) - 2) for row in node.ask("CLUSTER", "SLOTS")) == ranges
                   and b"cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in self.nodes)

    @staticmethod
    def wait(condition):
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("the nodes of a cluster don't agree")
            time.sleep(0.01)

    def url(self, way="redis", query="", password=None):
        """Of a store on it, which names the masters."""
        first = self.nodes[0]
        password = first.password if password is None else password
        login = "" if password is None else f":{password}@"
        hosts = [f"localhost:{node.tls_port}" if way == "rediss" else f"127.0.0.1:{node.port}"
                 for node in self.nodes[:MASTERS]]
        queries = [f"ca={first.directory}/ca.pem"] * (way == "rediss") + [query] * (query != "")
        return f"{way}+cluster://{login}{','.join(hosts)}" + ("?" + "&".join(queries) if queries else "")
