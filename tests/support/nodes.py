# SPDX-License-Identifier: LGPL-3.0-or-later
"""Nodes of a cluster on one machine: namespaces with host names, addresses, processes, System V memory and
/tmp of their own, and files that all of them see."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

from esdmtest import client_environment, environment, run, skip, tool

# The first process of a node: ends those whose parents have ended, and the node with itself.
INIT = ("import signal, socket, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        "socket.sethostname(sys.argv[1]); print('up', flush=True)\n"
        "while True: signal.pause()")


def skip_without_namespaces():
    done = subprocess.run(["unshare", "-u", "-n", "-i", "-m", "-p", "--fork", "--mount-proc", "ip", "link",
                           "add", "veth7", "type", "veth", "peer", "name", "veth8"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    if os.geteuid() != 0 or done.returncode != 0:
        skip("needs root, and namespaces with networks of their own")


class Node:
    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            ["unshare", "-u", "-n", "-i", "-m", "-p", "--fork", "--kill-child", "--mount-proc",
             "/usr/bin/python3", "-c", INIT, name], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "up\n"
        task = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.init = int(task.read_text())
        self.inside = ["nsenter", "-t", str(self.init), "-u", "-n", "-i", "-m", "-p"]
        for command in (["ip", "link", "set", "lo", "up"], ["mount", "-t", "tmpfs", "node", "/tmp"]):
            run([*self.inside, *command])

    def run(self, command, **options):
        return run([*self.inside, *command], **options)

    def tool(self, name, *arguments, **options):
        return self.run([tool(name), *arguments], **options)

    def client(self, command, **options):
        return self.run([tool("esdm-run"), *command], env=client_environment(), **options)

    def begin(self, command, clients=False):
        env = client_environment() if clients else environment()
        return subprocess.Popen([*self.inside, *map(str, command)], env=env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def processes(self):
        """Numbers as they are outside, but for the first process and the commands that enter."""
        space = os.readlink(f"/proc/{self.init}/ns/pid")
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "ns/pid") == space and int(process.name) != self.init:
                    found.append(int(process.name))
        return found

    def freeze(self, thaw=False):
        """As a virtual machine that is paused; or goes on."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT if thaw else signal.SIGSTOP)

    def kill(self):
        """As if its power were cut: all its processes end at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.init, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Cluster:
    """Nodes with the addresses 10.77.0.1 ...; use as a context manager."""

    def __init__(self, *names):
        self.names = names

    def __enter__(self):
        self.switch = Node("switch")
        self.nodes = []
        self.switch.run(["ip", "link", "add", "bridge", "type", "bridge"])
        self.switch.run(["ip", "link", "set", "bridge", "up"])
        for name in self.names:
            self.add(name)
        return self

    def add(self, name):
        node = Node(name)
        self.nodes.append(node)
        port = f"port{len(self.nodes)}"
        run(["ip", "link", "add", port, "netns", str(self.switch.init), "type", "veth", "peer", "name",
             "eth0", "netns", str(node.init)])
        self.switch.run(["ip", "link", "set", port, "master", "bridge", "up"])
        node.address = f"10.77.0.{len(self.nodes)}"
        node.run(["ip", "address", "add", f"{node.address}/24", "dev", "eth0"])
        node.run(["ip", "link", "set", "eth0", "up"])
        return node

    def __exit__(self, *_):
        for node in [*self.nodes, self.switch]:
            node.kill()


def wait_until(condition, what, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not in time: {what}")
        time.sleep(0.02)
