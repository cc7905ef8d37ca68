# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs in Python with netCDF4 or xarray, without starting Python and loading these each time.

That takes 0.15 to 0.5 s of a processor, most of what many tests need. So one such program is started, by esdm-run
where it is to be a client, and waits; each of them is a fork of it, from before it has opened anything, and ends as
a program does. takes() says which do not mind; all others are started anew, and with $ESDM_TEST_FRESH all are.
"""

import array
import contextlib
import json
import os
import pathlib
import re
import resource
import selectors
import signal
import socket
import subprocess
import threading
import time

# Runs as `python3 -c`: what a client ends with is not caught here, so that Python and the plug-in see it end.
SERVER = r"""
import array, json, os, select, signal, socket, sys
import netCDF4, numpy
def serve(requests):
    # In a child: the text of the program, and its name.
    running = {}
    awake, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    while True:
        ready = select.select([requests, awake] if requests else [awake], [], [])[0]
        if awake in ready:
            os.read(awake, 512)
            for pid in list(running):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    try:
                        os.write(running[pid], b"%d\n" % os.waitstatus_to_exitcode(status))
                    except OSError:
                        pass  # nobody waits for it any more: it took too long
                    os.close(running.pop(pid))
        if requests is None and not running:
            os._exit(0)
        if requests not in ready:
            continue
        head, ancillary, _, _ = requests.recvmsg(16, socket.CMSG_SPACE(16))
        if not head: # no more; those that run are waited for
            requests = None
            os.write(wakes, b".")
            continue
        fds = array.array("i", ancillary[0][2])
        request = b""
        while len(request) < int(head):
            request += requests.recv(int(head) - len(request))
        request = json.loads(request)
        if "import xarray" in request["code"]:
            try:
                import xarray
            except ImportError:
                pass  # the client says so
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            for fd in (awake, wakes, *running.values()):
                os.close(fd)
            for number in range(3):
                os.dup2(fds[number], number)
            for fd in fds:
                os.close(fd)
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            sys.argv = request["arguments"]
            if sys.argv[0] != "-c":
                sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
            numpy.random.seed()
            return request["code"], sys.argv[0]
        for fd in fds[:3]:
            os.close(fd)
        running[pid] = fds[3]
        try:
            os.write(fds[3], b"%d\n" % pid)
        except OSError:
            pass
code, __file__ = serve(socket.socket(fileno=int(sys.argv[1])))
code = compile(code, "<string>" if __file__ == "-c" else __file__, "exec")
if __file__ == "-c":
    del __file__
del array, json, os, select, signal, socket, sys, netCDF4, numpy, serve
exec(code)
"""

# What such a program may notice: other processes and threads, its end, its name.
NOTICED = re.compile(r"fork|process|thread|asyncio|concurrent|subprocess|dask|signal|resource|atexit|"
                     r"/proc|kill|ctypes|faulthandler|stdin|gc\.|tracemalloc|nc_set_log|"
                     r"os\.(system|popen|exec|posix_spawn|spawn)")
# What is looked at before a client is there.
EARLY = re.compile(r"LD_|PYTHON|HDF5_|LC_|LANG|PATH$|HOME$|MALLOC|GLIBC|OMP|OPENBLAS|[A-Z]SAN_|ESDM_PLUGIN|ESDM_DEBUG|"
                   r"TZ$")
TESTS = pathlib.Path(__file__).resolve().parents[1]
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def text_of(command):
    """Of a program in Python; "" where it has none, or is another one's. The log tells how scripts are called, which
    nobody looks for in those that lie beside the tests."""
    if command[0] != "/usr/bin/python3" or len(command) < 2:
        return ""
    if command[1] == "-c":
        return command[2] if len(command) > 2 else ""
    with contextlib.suppress(OSError):
        if not pathlib.Path(command[1]).resolve().is_relative_to(TESTS):
            return ""
        return pathlib.Path(command[1]).read_text(encoding="utf-8")
    return ""


def takes(command, options):
    """Whether a fork does for the program."""
    text = text_of(command)
    return (re.search(r"import.* netCDF4|import xarray", text) and not NOTICED.search(text) and
            set(options) <= {"timeout"} and "ESDM_TEST_FRESH" not in os.environ)


def surroundings(environment):
    """What the server has from its start, and a client would have from this process."""
    umask = os.umask(0)
    os.umask(umask)
    return (sorted((k, v) for k, v in environment.items() if EARLY.match(k)), umask, os.getresuid(), os.getresgid(),
            [resource.getrlimit(limit) for limit in LIMITS], sorted(os.sched_getaffinity(0)),
            [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "net", "user")])


class Server:
    """One that waits for clients, with its surroundings."""

    others = {}  # by how they were started
    MOST = 4

    def __init__(self, starter, environment):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([*starter, "/usr/bin/python3", "-c", SERVER, str(theirs.fileno())],
                                            env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.requests = ours
        self.lock = threading.Lock()

    def end(self):
        self.requests.close()
        self.process.wait()

    @classmethod
    def of(cls, starter, environment):
        """One that is what a client would be."""
        key = repr((starter, surroundings(environment)))
        with LOCK:
            if key not in cls.others or cls.others[key].process.poll() is not None:
                if len(cls.others) == cls.MOST:
                    cls.others.pop(next(iter(cls.others))).end()
                cls.others[key] = cls(starter, environment)
            return cls.others[key]


LOCK = threading.Lock()


def end():
    """What they have used counts as this process's then."""
    with LOCK:
        while Server.others:
            Server.others.popitem()[1].end()


def collect(outputs, until, pid):
    """All that comes on the pipes, as lists of bytes; kills the program after that time."""
    texts = {fd: [] for fd in outputs}
    with selectors.DefaultSelector() as selector:
        for fd in outputs:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(until - time.monotonic(), 0))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                texts[key.fd].append(data)
                if not data:
                    selector.unregister(key.fd)
    return ["".join(b"".join(texts[fd]).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
            for fd in outputs]


def run(starter, command, environment, timeout=600):
    """As subprocess.run() of a starter, such as esdm-run, with the command; with both outputs as text."""
    server = Server.of(starter, environment)
    arguments = ["-c", *command[3:]] if command[1] == "-c" else command[1:]
    request = json.dumps({"code": text_of(command), "arguments": arguments, "environment": environment,
                          "folder": os.getcwd()}).encode()
    pipes = [os.pipe() for _ in range(3)]
    mine, theirs = [pipe[0] for pipe in pipes], [pipe[1] for pipe in pipes]
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        fds = array.array("i", [nothing, *theirs])
        with server.lock:
            server.requests.sendmsg([f"{len(request):<16}".encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            server.requests.sendall(request)
        for fd in fds:
            os.close(fd)
        theirs = []
        with open(mine.pop(), encoding="ascii") as state:
            pid = int(state.readline())
            try:
                out, err = collect(mine, time.monotonic() + timeout, pid)
            except TimeoutError:
                raise subprocess.TimeoutExpired([*starter, *command], timeout) from None
            return subprocess.CompletedProcess([*starter, *command], int(state.readline()), out, err)
    finally:
        for fd in (*mine, *theirs):
            os.close(fd)
