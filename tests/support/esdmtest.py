# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the Python tests share: temporary sites, running programs, skipping.

Runs under Debian's Python without further packages.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import random
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import prestarted

BUILD = pathlib.Path(os.environ.get("ESDM_BUILD", "build")).resolve()
SOURCE = pathlib.Path(os.environ.get("ESDM_SOURCE", pathlib.Path(__file__).parents[2])).resolve()
DATA = pathlib.Path(os.environ.get("ESDM_TEST_DATA", SOURCE / "../shared/data")).resolve()
SIZE = os.environ.get("ESDM_TEST_SIZE", "default")  # quick, default, long
SANITIZE = os.environ.get("ESDM_SANITIZE", "")
SEED = int(os.environ.get("ESDM_TEST_SEED", "1"))  # tests/run.sh has one of each commit
SKIP = 77


def skip(reason):
    """Ends the test as skipped."""
    print(f"SKIPPED: {reason}")
    sys.exit(SKIP)


def by_size(quick, default, long):
    """Picks a parameter by the size of the test run."""
    return {"quick": quick, "default": default, "long": long}[SIZE]


def some(cases, count):
    """So many of the cases in their order, drawn by $ESDM_TEST_SEED: other commits take others."""
    cases, count = list(cases), max(count, 1)
    if count >= len(cases):
        return cases
    chosen = sorted(random.Random(SEED).sample(range(len(cases)), count))
    print(f"seed {SEED}: cases {' '.join(map(str, chosen))} of {len(cases)}")
    return [cases[i] for i in chosen]


def by_build(sanitized, plain):
    """Picks a parameter by the build: what sanitizers find, few cases find, and programs are slow."""
    return sanitized if SANITIZE else plain


def made_data():
    """The folder of data that are made where there are no real ones: once, in the build folder."""
    script = SOURCE / "tests/support/make_data.py"
    folder = BUILD / f"test-data-{hashlib.sha256(script.read_bytes()).hexdigest()[:12]}"
    with open(f"{folder}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests may be at it
        if not folder.exists():
            begun = pathlib.Path(tempfile.mkdtemp(prefix="test-data.", dir=BUILD))
            done = subprocess.run(["/usr/bin/python3", script, begun], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            if done.returncode != 0:
                shutil.rmtree(begun)
                skip(f"no data in {DATA}, and none can be made: {done.stdout[-400:]}")
            begun.rename(folder)
    return folder


def in_memory():
    """A folder for sites that are made and removed again and again: ext4 looks at each inode that was freed within the
    last five seconds whenever it gives one out. None: $TMPDIR or /tmp."""
    memory = pathlib.Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 1 << 30:
        return None
    return str(memory)


def folder_of_sites():
    """Where a test makes its sites: in memory if it is one of in_memory.txt; but of five of these one, with each commit
    others, and all in the long form on a disk. To make one there and remove it takes 0.1 s of a processor, in memory a fifth
    of that."""
    script = pathlib.Path(sys.argv[0]).resolve()
    known = (SOURCE / "tests/support/in_memory.txt").read_text(encoding="ascii").split("\n")
    digest = hashlib.sha256(f"{SEED} {script.name}".encode()).digest()
    if SIZE == "long" or digest[0] % 5 == 0 or f"{script.parent.name}/{script.name}" not in known:
        return None
    return in_memory()


def need_data(*parts):
    """Path of real data ($ESDM_TEST_DATA), else of data like them that are made."""
    path = DATA.joinpath(*parts)
    if path.exists():
        return path
    path = made_data().joinpath(*parts)
    if not path.exists():
        skip(f"data not found: {path}")
    print(f"no data in {DATA}: those of make_data.py are taken")
    return path


def need_program(*names):
    for name in names:
        if shutil.which(name) is None:
            skip(f"program not installed: {name}")


def tool(name):
    """Path of a tool that was built."""
    return str(BUILD / "tools" / name)


def sanitizer_preload():
    """The runtime library that must come first in a process that loads sanitized code."""
    name = "libtsan.so" if "thread" in SANITIZE else "libasan.so"
    out = subprocess.run(["gcc", f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True,
                         check=True)
    return out.stdout.strip()


def free_port():
    """A port of the loopback that nobody uses. None of those that the system gives to connections: so
    it stays free while a server that listens there is restarted."""
    file = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, last = map(int, file.read_text().split())
    ports = [p for p in range(10000, 65000) if not first <= p <= last] or range(10000, 65000)
    while True:
        port = secrets.choice(ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def environment(extra=None):
    """Of programs. What they keep of their runs is the site's, and goes with it; what tests keep stays."""
    env = dict(os.environ)
    if Site.cache is not None:
        env.setdefault("ESDM_TEST_CACHE", env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
        env["XDG_CACHE_HOME"] = str(Site.cache)
    env.update(extra or {})
    return env


def client_environment(extra=None, inherit=True):
    """For stock programs that are to run with the plug-in preloaded."""
    env = environment(extra) if inherit else dict(extra)
    if SANITIZE:
        env["LD_PRELOAD"] = sanitizer_preload()
        options = env.get("ASAN_OPTIONS", "")
        # Stock programs leak, and the plug-in is preloaded before the runtime.
        env["ASAN_OPTIONS"] = options + ":detect_leaks=0:verify_asan_link_order=0"
    return env


class Failed(Exception):
    pass


def run(command, check=True, env=None, **options):
    """Runs a program, captures its output as text; a death by signal is always a failure."""
    command = [str(c) for c in command]
    options.setdefault("timeout", 600)
    if not SANITIZE and prestarted.takes(command, options):
        return checked(prestarted.run((), command, env or environment(), **options), check)
    return checked(subprocess.run(command, env=env or environment(), stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  **options), check)


def checked(done, check):
    """What a program came to, if it came to an end, and to a good one if that is wanted."""
    command = done.args
    if done.returncode < 0 or done.returncode >= 128 or (check and done.returncode != 0):
        raise Failed(f"{' '.join(command)}\nexit status {done.returncode}\n"
                     f"{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done


def client(command, check=True, env=None, prefix=(), **options):
    """Runs an unmodified program under esdm-run, which runs under `prefix`. Programs in Python are forks of one
    that waits, where they cannot notice (prestarted.py)."""
    command = [str(c) for c in command]
    if not SANITIZE and not prefix and prestarted.takes(command, options):
        return checked(prestarted.run((tool("esdm-run"),), command, client_environment(env), **options), check)
    return run([*prefix, tool("esdm-run"), *command], check=check, env=client_environment(env),
               **options)


def site_text(folder):
    """The site configuration that tests start from; $ESDM_TEST_SITE names another one. @id@ becomes
    the folder's name, @hex@ the same in digits."""
    file = pathlib.Path(os.environ.get("ESDM_TEST_SITE", SOURCE / "tests/support/site.json"))
    return file.read_text().replace("@id@", folder.name).replace(
        "@hex@", folder.name.encode().hex())


class Site:
    """A site in a folder of its own; use as a context manager. Sets $ESDM_CONFIG."""

    cache = None  # cache folder of programs while there is a site

    def __init__(self, parent=None, make=True, **changes):
        self.parent = parent or folder_of_sites()
        self.make = make
        self.changes = changes

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-test.", dir=self.parent))
        self.config = self.folder / "site.json"
        config = json.loads(site_text(self.folder))
        config.update(self.changes)
        self.config.write_text(json.dumps(config, indent=4))
        self.saved = {k: os.environ.get(k) for k in ("ESDM_CONFIG", "XDG_DATA_HOME", "ESDM_SITE")}
        os.environ["ESDM_CONFIG"] = str(self.config)
        os.environ["XDG_DATA_HOME"] = str(self.folder / "xdg-data")
        self.saved_cache, Site.cache = Site.cache, self.folder / "cache"
        if self.make:
            run([tool("esdm-mkfs")])
        return self

    def __exit__(self, *_):
        Site.cache = self.saved_cache
        for key, value in self.saved.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        with contextlib.suppress(OSError):
            run(["chmod", "-R", "u+rwX", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, name):
        return self.folder / name

    @property
    def packs(self):
        return self.folder / "packs"

    def pack_files(self):
        """All packs of containers, by name; the mark of the target is none."""
        return sorted(p for p in self.packs.rglob("*") if is_pack(p))


def is_pack(path):
    """Whether a file is a pack of a container; journals and backups belong to the site."""
    return path.is_file() and path.name.count("-") >= 2 and not path.name.startswith("0" * 24)


def expect(condition, text):
    if not condition:
        raise Failed(text)


def expect_error(done, *words):
    """An orderly failure: positive exit status and a message with each of `words`."""
    text = done.stdout + done.stderr
    shown = f"{done.args}\nstatus {done.returncode}\n{text[-3000:]}"
    expect(done.returncode != 0, f"succeeded, but should not:\n{shown}")
    expect(text.strip(), f"no message:\n{shown}")
    for word in words:
        expect(word.lower() in text.lower(), f"message does not say '{word}':\n{shown}")


def by_clock(test):
    """A test of how fast something is: done again, up to five times, as a machine that stalls for a moment or is busy
    makes it fail by chance. What is wrong fails each time."""
    @functools.wraps(test)
    def tries(*arguments):
        for left in range(4, -1, -1):
            try:
                return test(*arguments)
            except (Failed, subprocess.TimeoutExpired) as problem:
                if left == 0:
                    raise
                print(f"again   {test.__name__}: {problem}", flush=True)
        return None
    return tries


def processor_seconds():
    """What this process and its programs that ended have used."""
    return sum(used.ru_utime + used.ru_stime for used in
               map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main_at_once(*tests, processes=6):
    """main() of tests that wait more than they compute: each in a process, so many at a time."""
    if len(sys.argv) > 1:
        main(*tests)
    waiting, running, codes = list(tests), [], []
    while waiting or running:
        while waiting and len(running) < processes:
            running.append(subprocess.Popen([sys.executable, sys.argv[0], waiting.pop(0).__name__], text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        one = running.pop(0)
        print(one.communicate()[0], end="", flush=True)
        codes.append(one.returncode)
    sys.exit(SKIP if set(codes) == {SKIP} else 1 if set(codes) - {0, SKIP} else 0)


def main(*tests):
    """Runs functions `test_*`, or those named on the command line; reports each with its time and the
    processors' time; exit status 1 when one failed, 77 when all skipped."""
    failed = skipped = 0
    tests = [t for t in tests if t.__name__ in sys.argv[1:]] if len(sys.argv) > 1 else tests
    for test in tests:
        begun, used = time.monotonic(), processor_seconds()
        try:
            test()
            print(f"ok      {test.__name__} ({time.monotonic() - begun:.1f} s, processors "
                  f"{processor_seconds() - used:.1f} s)", flush=True)
        except SystemExit as stop:
            if stop.code != SKIP:
                raise
            skipped += 1
        except (Failed, subprocess.TimeoutExpired) as problem:
            failed += 1
            print(f"FAILED  {test.__name__} (ESDM_TEST_SEED={SEED}): {problem}", flush=True)
    prestarted.end()
    if failed:
        sys.exit(1)
    sys.exit(SKIP if skipped == len(tests) else 0)
