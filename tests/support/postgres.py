#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A PostgreSQL server for tests: on loopback, with a data directory of its own.

    postgres.py COMMAND…     runs the command beside a fresh server; $ESDM_TEST_POSTGRES is the
                             connection string. Exit status 77, with the reason, without PostgreSQL.

The server ends with this process, however that ends.
"""

import contextlib
import ctypes
import fcntl
import glob
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from esdmtest import BUILD, free_port  # noqa: E402

SETTINGS = {
    "fsync": "off",  # the machine does not lose power during a test
    "shared_buffers": "16MB",
    "max_wal_size": "128MB",
    "listen_addresses": "127.0.0.1",
    "autovacuum": "off",
    "dynamic_shared_memory_type": "mmap",  # no file outside its folder, also when it is killed
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
}


def binaries():
    """Folder of initdb and postgres, newest version first; None when there is none."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    found.sort(key=lambda path: int(path.split("/")[4]), reverse=True)
    if found:
        return pathlib.Path(found[0]).parent
    on_path = shutil.which("postgres")
    return pathlib.Path(on_path).parent if on_path and shutil.which("initdb") else None


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


class Server:
    """Use as a context manager. A server refuses to run as root: then the user postgres runs it."""

    def __init__(self, password=None, **settings):
        self.bin = binaries()
        self.password = password
        self.settings = {**SETTINGS, **settings}
        self.process = None

    def __enter__(self):
        parent = os.environ.get("TMPDIR") or ("/dev/shm" if os.access("/dev/shm", os.W_OK)
                                              else "/tmp")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-pg.", dir=parent))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.as_user = []
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            self.user = "postgres"
            shutil.chown(self.folder, "postgres")
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
                            "--pdeathsig", "QUIT", "env", "-C", self.folder,
                            f"HOME={self.folder}"]
        try:
            self.make()
            self.start_somewhere()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        """initdb, or a copy of what it made for another test, which takes a tenth of the time. That is kept in
        the build folder; all such servers have the same system identifier."""
        version = self.bin.parts[-2]  # of /usr/lib/postgresql/15/bin
        kept = BUILD / f"postgres-{version}-{self.user}"
        if self.password is not None or not version.isdigit() or not BUILD.is_dir():
            self.initialise()
            return
        with open(f"{kept}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # others that begin wait for the one that makes it
            for left in BUILD.glob(f"{kept.name}.*"):
                if left.is_dir():  # of one that was killed
                    shutil.rmtree(left, ignore_errors=True)
            if not kept.is_dir():
                self.initialise()
                begun = pathlib.Path(tempfile.mkdtemp(prefix=f"{kept.name}.", dir=BUILD))
                self.copy(self.data, begun / "data")
                (begun / "data").rename(kept)
                begun.rmdir()
                return
        self.copy(kept, self.data)

    @staticmethod
    def copy(source, target):
        subprocess.run(["cp", "-a", source, target], check=True)

    def initialise(self):
        command = [*self.as_user, self.bin / "initdb", "-D", self.data, "-U", "esdm", "--no-sync",
                   "-E", "UTF8", "--locale=C.UTF-8"]
        if self.password is None:
            command += ["-A", "trust"]
        else:
            secret = self.folder / "password"
            secret.write_text(self.password)
            secret.chmod(0o644)
            command += ["-A", "scram-sha-256", f"--pwfile={secret}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"initdb: {done.stdout}")

    def start_somewhere(self):
        """Others may take a port between our look and the server's."""
        for attempt in range(3):
            self.port = free_port()
            try:
                self.start()
                return
            except RuntimeError:
                if attempt == 2:
                    raise

    def start(self):
        options = [item for key, value in self.settings.items() for item in ("-c", f"{key}={value}")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.as_user, self.bin / "postgres", "-D", self.data, "-p", str(self.port), "-k",
                 self.folder, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()}")
            if self.told_state() in ("ready", "standby"):
                return
            time.sleep(0.005)
        raise RuntimeError(f"the server is not ready: {self.log.read_text()}")

    def told_state(self):
        """What the server says of itself in the file of its process, if that is of this one."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        return lines[7].strip() if len(lines) > 7 and lines[0].strip() == str(self.process.pid) else None

    def stop(self, mode="fast"):
        """Modes as in pg_ctl: smart, fast, immediate."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT,
                                  "immediate": signal.SIGQUIT}[mode])
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def crash(self):
        """All its processes are killed at once, as by a machine that fails."""
        self.process.send_signal(signal.SIGSTOP)  # it starts no others
        started = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
                                 stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        for pid in [self.process.pid, *map(int, started)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        segment = (self.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
        # Nobody else removes its System V segment unless it is started again.
        subprocess.run(["ipcrm", "-m", segment], stderr=subprocess.DEVNULL, check=False)

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def sessions(self):
        """Processes of the server that work for ESDM."""
        return set(self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'esdm'"))

    def end_sessions(self):
        """Cuts all connections of ESDM, and waits until the server has forgotten them."""
        pids = self.sessions()
        for pid in pids:
            self.sql(f"SELECT pg_terminate_backend({pid})")
        self.wait_until_gone(pids)

    def wait_until_gone(self, pids):
        """Until the server has noticed that these sessions have ended."""
        deadline = time.monotonic() + 300
        while self.sessions() & pids:
            if time.monotonic() > deadline:
                raise RuntimeError("sessions do not end")
            time.sleep(0.02)

    def connection(self, database="postgres", user="esdm"):
        return f"host=127.0.0.1 port={self.port} dbname={database} user={user}"

    def psql(self, text, database="postgres", user="esdm"):
        return [self.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                "-d", self.connection(database, user), "-c", text]

    def fill(self, text, database="postgres", user="esdm", at_once=True):
        """Runs SQL that is too long for a command, or would need many; as one transaction if `at_once`. What it says."""
        done = subprocess.run([*self.psql("", database, user)[:-2], *["-1"] * at_once, "-f", "-"], input=text, text=True,
                              check=True, stdout=subprocess.PIPE, env=dict(os.environ, PGPASSWORD=self.password or ""))
        return done.stdout

    def sql_command(self, text):
        """That runs SQL, for a shell."""
        return shlex.join(map(str, self.psql(text)))

    def sql(self, text, database="postgres", user="esdm"):
        """Runs SQL; lines of output."""
        env = dict(os.environ, PGPASSWORD=self.password or "")
        done = subprocess.run(self.psql(text, database, user), env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{text}: {done.stderr}")
        return done.stdout.splitlines()


    def wait_for_sql(self, text, wanted):
        """Until the server answers so."""
        deadline = time.monotonic() + 300
        while self.sql(text) != wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{text}: not {wanted}")
            time.sleep(0.02)


class Standby(Server):
    """A hot standby of a running server, which waits for it with each commit from then on. Use as a
    context manager; ends before the primary."""

    def __init__(self, primary):
        super().__init__(primary.password, **primary.settings)
        self.primary = primary

    def make(self):
        source = f"host=127.0.0.1 port={self.primary.port} user=esdm application_name=standby"
        done = subprocess.run([*self.as_user, self.bin / "pg_basebackup", "-D", self.data, "-R",
                               "-X", "stream", "-c", "fast", "--no-sync", "-d", source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pg_basebackup: {done.stdout}")

    def __enter__(self):
        super().__enter__()
        try:
            # After the copy: the standby itself, when it is promoted, waits for nobody.
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            self.primary.sql("SELECT pg_reload_conf()")
            self.wait_until_synchronous()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_synchronous(self):
        self.primary.wait_for_sql("SELECT sync_state FROM pg_stat_replication", ["sync"])

    def promote(self):
        done = subprocess.run([*self.as_user, self.bin / "pg_ctl", "promote", "-D", self.data, "-s",
                               "-w", "-t", "300"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"promote: {done.stdout}{self.log.read_text()}")


def skip_without_postgres():
    if binaries() is None:
        print("SKIPPED: PostgreSQL is not installed (package postgresql-15)")
        sys.exit(77)
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            print("SKIPPED: a server does not run as root, and there is no user 'postgres'")
            sys.exit(77)


def main():
    skip_without_postgres()
    with Server() as server:
        env = dict(os.environ, ESDM_TEST_POSTGRES=server.connection())
        status = subprocess.run(sys.argv[1:], env=env, check=False).returncode
        if status != 0 and server.log.exists():
            sys.stderr.write(server.log.read_text(errors="replace")[-4000:])
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
