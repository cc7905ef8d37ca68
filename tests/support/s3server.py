# SPDX-License-Identifier: LGPL-3.0-or-later
"""A real S3 server for tests, and a small client that signs on its own.

    s3server.py --build SERVER…            builds the servers into the cache, so that tests need not
    s3server.py [--tls] [--site s3|both] SERVER -- COMMAND    runs a command with a server of its own

Servers: versitygw (S3 over a folder) and minio. They are built from their Go modules, in fixed
versions, once for all runs: below $ESDM_TEST_CACHE, $XDG_CACHE_HOME or ~/.cache, in `esdm-tests`.
What cannot be had is a skipped test. A server listens on a free port of the loopback, keeps its data
in a temporary folder, and ends with the program that started it.

COMMAND finds: ESDM_TEST_S3_ENDPOINT, ESDM_TEST_S3_BUCKET, ESDM_TEST_S3_FOLDER (where the objects of
that bucket are files; empty for minio), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. With --site also
ESDM_TEST_SITE, from which all test suites make their sites: data on S3 alone, or on S3 and POSIX.
"""

import ctypes
import datetime
import fcntl
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import types
import urllib.parse
import urllib.request
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from esdmtest import SIZE, SOURCE, free_port, skip  # noqa: E402

MODULES = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
}
# For machines without a Go of their own, as Debian 12 has too old a one.
GO_VERSION = "1.26.8"
GO_SHA256 = "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7"
BUILD_SECONDS = 1200

ACCESS_KEY = "esdm-test-access"
SECRET_KEY = "esdm-test-SECRET/key+0123456789"
BUCKET = "esdm-test"


# ---- building -----------------------------------------------------------------------------------


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("ESDM_TEST_CACHE", base)) / "esdm-tests"


def go_is_new_enough(go):
    done = subprocess.run([go, "version"], stdout=subprocess.PIPE, text=True, check=False)
    parts = done.stdout.replace("go version go", "").split(".")
    return done.returncode == 0 and parts[0] == "1" and int(parts[1].split(" ")[0]) >= 21


def installed_go():
    """One that is new enough before others; None when there is none."""
    found = list(filter(None, [shutil.which("go"), shutil.which("/usr/local/go/bin/go")]))
    return next(filter(go_is_new_enough, found), found[0] if found else None)


def module_mirror():
    """The first one that Go would ask, as $GOPROXY or an installed Go says; None when there is none."""
    listed = os.environ.get("GOPROXY", "")
    go = installed_go()
    if not listed and go:
        listed = subprocess.run([go, "env", "GOPROXY"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False).stdout
    mirrors = [entry.strip().rstrip("/") for entry in listed.replace("|", ",").split(",")]
    return next((entry for entry in mirrors if entry not in ("", "direct", "off")), None)


def fetch_go(folder):
    """Go's own module mirror has the compiler as a module too."""
    if platform.machine() != "x86_64":
        skip("no Go 1.21 or newer is installed, and one is fetched for x86_64 alone")
    proxy = module_mirror()
    if proxy is None:
        skip("no Go 1.21 or newer is installed, and no module mirror is known to fetch one from: "
             "install one, or set GOPROXY to a mirror's address")
    name = f"v0.0.1-go{GO_VERSION}.linux-amd64"
    archive = folder / "go.zip"
    try:
        with urllib.request.urlopen(f"{proxy}/golang.org/toolchain/@v/{name}.zip",
                                    timeout=120) as answer, open(archive, "wb") as out:
            shutil.copyfileobj(answer, out)
    except OSError as problem:
        skip(f"no Go 1.21 or newer is installed, and none can be fetched: {problem}")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != GO_SHA256:
        skip("the Go compiler that was fetched is not the one expected")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    archive.unlink()
    root = folder / f"golang.org/toolchain@{name}"
    for program in [root / "bin/go", *(root / "pkg/tool").rglob("*")]:
        program.chmod(0o755)
    return str(root / "bin/go")


def build(server, folder):
    """Under the lock. Leaves the program in the folder, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix="build.", dir=folder) as work:
        work = pathlib.Path(work)
        go = installed_go()
        if go is None or not go_is_new_enough(go):
            go = fetch_go(work)
        env = dict(os.environ, GOBIN=str(work / "bin"), CGO_ENABLED="0", GOFLAGS="-modcacherw")
        env.setdefault("HOME", str(work))
        try:
            done = subprocess.run([go, "install", "-ldflags", "-s -w", MODULES[server]], env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=BUILD_SECONDS,
                                  check=False)
        except subprocess.TimeoutExpired:
            skip(f"building {server} takes longer than {BUILD_SECONDS} s")
        if done.returncode:
            skip(f"cannot build {server}: {done.stdout.strip()[-300:]}")
        os.rename(work / "bin" / server, folder / program_name(server))


def program_name(server):
    return f"{server}-{MODULES[server].split('@')[1]}"


def need_server(server, may_build=True):
    """Path of the server's program; skips the test when it cannot be had."""
    on_path = shutil.which(server)
    if on_path:
        return on_path
    folder = cache_folder()
    program = folder / program_name(server)
    if program.exists():
        return str(program)
    if not may_build:
        skip(f"{server} was not built: {__file__} --build {server}")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "s3-lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may come at once
        if not program.exists():
            build(server, folder)
    return str(program)


# ---- a client -----------------------------------------------------------------------------------


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()


class Client:
    """Requests with AWS signature 4, written without a look at the plug-in's."""

    def __init__(self, endpoint, ca_file=None, access_key=ACCESS_KEY, secret_key=SECRET_KEY):
        self.url = urllib.parse.urlsplit(endpoint)
        self.ca_file = ca_file
        self.access_key = access_key
        self.secret_key = secret_key

    def connect(self):
        if self.url.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca_file)
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=300,
                                               context=context)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=300)

    def request(self, method, path, query=None, body=b"", headers=None):
        query = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted((query or {}).items()))
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": self.url.netloc, "x-amz-date": now,
                  "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **(headers or {})}
        names = ";".join(sorted(signed))
        path = quote(path, "/")
        canonical = "\n".join([method, path, query,
                               "".join(f"{k}:{signed[k]}\n" for k in sorted(signed)), names,
                               signed["x-amz-content-sha256"]])
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + self.secret_key).encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        signed["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
                                   f"SignedHeaders={names}, Signature={signature}")
        connection = self.connect()
        try:
            connection.request(method, path + ("?" + query if query else ""), body, signed)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def keys(self, prefix="", bucket=BUCKET):
        """Keys of all objects; up to 1000."""
        answer = self.request("GET", f"/{bucket}", {"list-type": "2", "prefix": prefix})
        return elements(answer.body, "Key")

    def uploads(self, prefix="", bucket=BUCKET):
        """Keys of unfinished uploads."""
        answer = self.request("GET", f"/{bucket}", {"uploads": "", "prefix": prefix})
        return elements(answer.body, "Key")


def quote(text, safe=""):
    return urllib.parse.quote(text, safe="-_.~" + safe)


def elements(xml, name):
    """Texts of all elements of a name."""
    import xml.etree.ElementTree as tree  # pylint: disable=import-outside-toplevel

    return [e.text for e in tree.fromstring(xml).iter() if e.tag.split("}")[-1] == name]


# ---- the server ---------------------------------------------------------------------------------


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def make_certificate(folder):
    """A self-signed certificate for 127.0.0.1, which is its own authority."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                           "/CN=esdm-test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                           "-keyout", str(key), "-out", str(certificate)],
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        skip(f"openssl makes no certificate: {done.stderr[-200:]}")
    return certificate, key


class Server:
    """A running server with one bucket; use as a context manager."""

    def __init__(self, kind="versitygw", tls=False, parent=None, options=(), may_build=True):
        self.kind = kind
        self.program = need_server(kind, may_build)
        self.tls = tls
        self.parent = parent or os.environ.get("TMPDIR", "/tmp")
        self.options = list(options)
        self.process = None
        self.port = None

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-s3.", dir=self.parent))
        self.ca_file = None
        if self.tls:
            self.certificate, self.key = make_certificate(self.folder)
            self.ca_file = str(self.certificate)
        (self.folder / "data").mkdir()
        try:
            self.start()
            answer = self.client().request("PUT", f"/{BUCKET}")
            if answer.status != 200:
                raise RuntimeError(f"cannot make a bucket: {answer.status} {answer.body[:300]}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def endpoint(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def objects(self):
        """Folder of the bucket's objects; None where they are no files."""
        return self.folder / "data" / BUCKET if self.kind == "versitygw" else None

    def client(self, **options):
        return Client(self.endpoint, self.ca_file, **options)

    def command(self):
        address = f"127.0.0.1:{self.port}"
        if self.kind == "minio":
            command = [self.program, "server", "--quiet", "--address", address]
            if self.tls:
                certs = self.folder / "certs"
                certs.mkdir(exist_ok=True)
                shutil.copy(self.certificate, certs / "public.crt")
                shutil.copy(self.key, certs / "private.key")
                command += ["--certs-dir", str(certs)]
            return [*command, *self.options, str(self.folder / "data")]
        command = [self.program, "--port", address, "--quiet", "--keep-alive"]
        if self.tls:
            command += ["--cert", str(self.certificate), "--key", str(self.key)]
        return [*command, *self.options, "posix", str(self.folder / "data")]

    def environment(self):
        """For the server; nothing of the tester's own credentials."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LD_", "MINIO_"))}
        env.update(ROOT_ACCESS_KEY=ACCESS_KEY, ROOT_SECRET_KEY=SECRET_KEY,
                   MINIO_ROOT_USER=ACCESS_KEY, MINIO_ROOT_PASSWORD=SECRET_KEY,
                   MINIO_BROWSER="off", MINIO_UPDATE="off", HOME=str(self.folder))
        return env

    def start(self):
        """Starts it, on the port that it had before if it had one; waits until it answers."""
        again = self.port is not None
        for _ in range(3):
            self.port = self.port if again else free_port()
            self.log = open(self.folder / "log", "ab")
            self.process = subprocess.Popen(self.command(), env=self.environment(),
                                            stdin=subprocess.DEVNULL, stdout=self.log,
                                            stderr=self.log, preexec_fn=die_with_parent)
            if self.answers(120):
                return
            self.kill()  # somebody took the port between our look and the server's
        raise RuntimeError("the server does not start: "
                           + (self.folder / "log").read_text(errors="replace")[-500:])

    def answers(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.client().request("GET", "/").status == 200:
                    return True
            except OSError:
                pass
            time.sleep(0.05)
        return False

    def kill(self):
        """kill -9, as a crash would; the data stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.log.close()
            self.process = None

    def pause(self):
        """It keeps its connections and does not answer any more."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def target(self, name="cloud", **keys):
        """Object for the site configuration."""
        target = {"name": name, "plugin": "s3", "bucket": BUCKET, "endpoint": self.endpoint}
        if self.ca_file:
            target["ca_file"] = self.ca_file
        target.update(keys)
        return target

    def write_site(self, kind, metadata=None):
        """A site configuration as tests/support/site.json; each test has its own @id@."""
        site = json.loads((SOURCE / "tests/support/site.json").read_text())
        targets = [self.target("cloud", prefix="site/@id@", part="5 MiB")]
        site["targets"] = targets if kind == "s3" else [*targets, *site["targets"]]
        if kind == "all":
            site["targets"].append({"name": "tiny", "plugin": "kv", "directory": "kv"})
        if metadata is not None:
            site["metadata"] = metadata
        file = self.folder / "site.json"
        file.write_text(json.dumps(site, indent=4))
        return file

    def client_environment(self):
        """What programs need to use it."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "ESDM_TEST_S3_ENDPOINT": self.endpoint, "ESDM_TEST_S3_BUCKET": BUCKET,
                "ESDM_TEST_S3_FOLDER": str(self.objects or ""),
                "ESDM_TEST_S3_CA_FILE": self.ca_file or "",
                "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                # Children of forked tests have threads of their own for their requests.
                "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":die_after_fork=0"}


class NodeServer(Server):
    """On a node of a cluster (nodes.py), at its address, for the other nodes; its objects are in memory that all have."""

    def __init__(self, node):
        super().__init__(parent="/dev/shm")
        self.node = node

    @property
    def endpoint(self):
        return f"http://{self.node.address}:{self.port}"

    def command(self):
        return [*self.node.inside, self.program, "--port", f"{self.node.address}:{self.port}", "--quiet", "--keep-alive",
                "posix", str(self.folder / "data")]

    def client(self, **options):
        return NodeClient(self)

    def client_environment(self):
        return {**super().client_environment(), "NO_PROXY": self.node.address, "no_proxy": self.node.address}


class NodeClient:
    """Requests without a body, by a program on the server's node."""

    CODE = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom s3server import Client\n"
            "answer = Client(sys.argv[2]).request(*sys.argv[3:])\n"
            "sys.stdout.buffer.write(b'%d\\n' % answer.status + answer.body)")

    def __init__(self, server):
        self.server = server

    def request(self, method, path):
        done = subprocess.run([*self.server.node.inside, "/usr/bin/python3", "-c", self.CODE,
                               str(pathlib.Path(__file__).parent), self.server.endpoint, method, path],
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.decode(errors="replace")[-500:])
        status, body = done.stdout.split(b"\n", 1)
        return types.SimpleNamespace(status=int(status), body=body)


def want(server):
    """MinIO is a second opinion, for the long form of the tests."""
    if server == "minio" and SIZE != "long":
        skip("minio is part of the long form of the tests")


def main(arguments):
    if arguments[:1] == ["--build"]:
        for server in arguments[1:]:
            want(server)
            print(need_server(server))
        return 0
    tls = arguments[:1] == ["--tls"]
    arguments = arguments[tls:]
    site = arguments[1] if arguments[:1] == ["--site"] and len(arguments) > 1 else None
    arguments = arguments[2 * (site is not None):]
    if site not in (None, "s3", "both") or len(arguments) < 3 or arguments[0] not in MODULES or arguments[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    want(arguments[0])
    with Server(arguments[0], tls) as server:
        env = {**os.environ, **server.client_environment()}
        if site:
            env["ESDM_TEST_SITE"] = str(server.write_site(site))
        return subprocess.run(arguments[2:], env=env, preexec_fn=die_with_parent,
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
