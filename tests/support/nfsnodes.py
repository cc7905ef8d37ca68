# SPDX-License-Identifier: LGPL-3.0-or-later
"""Nodes of a cluster (nodes.py) whose shared folder lies on an NFS server. In a guest whose kernel has NFS (guest.py)."""

import contextlib
import json
import os
import pathlib
import signal
import time

from esdmtest import expect, run, site_text
from nodes import Cluster

MODULES = ["nfsd", "nfsv4", "veth", "bridge"]
SERVER = "10.77.0.100"
LEASE = 10         # seconds in which a client that is cut off keeps its locks, at least
SHARED = "/mnt"    # of all nodes; the guest itself sees the server's folder there
EXPORTED = "/srv"


class NfsCluster(Cluster):
    """Nodes that share /mnt, with a site in /mnt/site; use as a context manager."""

    def __init__(self, *names, options="vers=4.2,hard", **changes):
        super().__init__(*names)
        self.options = options
        self.changes = changes

    def __enter__(self):
        super().__enter__()
        run(["mount", "--bind", EXPORTED, SHARED])
        self.switch.run(["ip", "address", "add", f"{SERVER}/24", "dev", "bridge"])
        self.serve()
        self.folder = pathlib.Path(SHARED) / "site"
        self.folder.mkdir()
        config = json.loads(site_text(self.folder)) | self.changes
        self.config = self.folder / "site.json"
        self.config.write_text(json.dumps(config, indent=4))
        os.environ["ESDM_CONFIG"] = str(self.config)
        os.environ["XDG_CACHE_HOME"] = "/tmp/cache"
        os.environ["XDG_DATA_HOME"] = "/tmp/data"
        for node in self.nodes:
            self.mount(node)
        return self

    def serve(self):
        """Starts the server, in the namespace of the switch: its power stays when a node's goes."""
        here = self.switch
        here.run(["mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"])
        here.run(["mount", "-t", "rpc_pipefs", "rpc", "/var/lib/nfs/rpc_pipefs"])
        here.run(["nfsdcld", "-p", "/var/lib/nfs/rpc_pipefs"])  # knows the clients after the server was restarted
        here.run(["exportfs", "-o", "rw,sync,fsid=0,no_root_squash,no_subtree_check,insecure", f"10.77.0.0/24:{EXPORTED}"])
        here.run(["rpc.mountd", "-N", "3", "-V", "4"])
        self.serving()

    def serving(self):
        self.switch.run(["rpc.nfsd", "-N", "3", "-V", "4", "-V", "4.2", "--lease-time", LEASE, "--grace-time", LEASE, "4"])

    def restart_server(self, seconds):
        """It forgets all that it knows of open files and locks; clients reclaim them."""
        self.switch.run(["rpc.nfsd", "0"])
        time.sleep(seconds)
        self.serving()
        said = run(["dmesg"]).stdout
        expect("Unable to initialize client recovery" not in said, said)

    def mount(self, node):
        node.run(["mount", "-t", "nfs4", "-o", self.options, f"{SERVER}:/", SHARED])

    def cut(self, node):
        """Its cable is pulled: processes go on, and the server hears nothing of it any more."""
        self.switch.run(["ip", "link", "set", f"port{self.nodes.index(node) + 1}", "down"])

    def lose(self, node):
        """Its power is cut: neither its locks nor its mount are given back."""
        self.cut(node)
        for pid in [*node.processes(), node.init]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.lost = True

    def __exit__(self, *what):
        # What is left ends with the guest: a namespace whose server has gone would wait for it.
        for node in self.nodes:
            if not hasattr(node, "lost"):
                node.run(["umount", "-l", SHARED], check=False)
