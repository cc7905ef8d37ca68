#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Calls of plain files that become slow in the middle of a run, of a program that knows nothing of ESDM: esdm-run
tells it and keeps a trace of that time, with the calls that gave the alarm. Nothing happens otherwise."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import threading
import time

import kernels
from esdmtest import SANITIZE, Site, client_environment, expect, main_at_once, run, skip, tool

USER = str(os.geteuid())
# reads FILE COUNT: of them all from number $SLOW_FROM on take $SLOW_US; a library stands for the slow device.
PROGRAM = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char block[4096];
    int fd = open(argv[1], O_RDONLY);
    for (int i = 0; i < atoi(argv[2]); i++)
        if (argc != 3 || pread(fd, block, sizeof block, (off_t) (i % 64) * 4096) != (ssize_t) sizeof block)
            return 1;
    return close(fd);
}
"""
DEVICE = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pread64(int fd, void *data, size_t bytes, off_t at)
{
    static int number;
    number++;
    usleep(getenv("SLOW_FROM") && number > atoi(getenv("SLOW_FROM")) ? atoi(getenv("SLOW_US")) : atoi(getenv("USUAL_US")));
    return syscall(SYS_pread64, fd, data, bytes, at);
}
ssize_t pread(int fd, void *data, size_t bytes, off_t at) __attribute__((alias("pread64")));
"""
# forks FILE FOLDER: each of two processes, one after the other, has all its calls kept; what both read differs by size.
FORKS = """
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void reads(const char *file, const char *folder, size_t bytes)
{
    char pattern[512], block[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.%d.*.watch", folder, (int) getpid());
    if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc != 1)
        exit(2);
    int own = open(found.gl_pathv[0], O_RDWR), fd = open(file, O_RDONLY);
    uint32_t *head = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    head[2484 / 4] = 1;
    for (int i = 0; i < 20; i++)
        if (pread(fd, block, bytes, 0) != (ssize_t) bytes)
            exit(3);
}
int main(int argc, char **argv)
{
    int status = argc;
    reads(argv[1], argv[2], 1000);
    if (fork() == 0)
        reads(argv[1], argv[2], 500);
    else
        return wait(&status) > 0 && status == 0 ? 0 : 1;
}
"""


@contextlib.contextmanager
def watched_site(**monitor):
    if shutil.which("cc") is None or SANITIZE:
        skip("needs a C compiler, without a sanitizer")
    with Site(monitor={"runs": "runs", **monitor}) as site:
        for name, text in (("device", DEVICE), ("reads", PROGRAM)):
            site.file(name + ".c").write_text(text)
        run(["cc", "-shared", "-fPIC", "-o", site.file("libdevice.so"), site.file("device.c")])
        run(["cc", "-o", site.file("reads"), site.file("reads.c"), f"-L{site.folder}", "-ldevice", f"-Wl,-rpath,{site.folder}"])
        site.file("data").write_bytes(bytes(64 * 4096))
        yield site


def reads(site, count, *options, env=None, usual_us=2000):
    return run([tool("esdm-run"), "-q", *options, site.file("reads"), site.file("data"), count],
               env=client_environment({"USUAL_US": str(usual_us), **(env or {})})).stderr


def usually(site, count=200):
    """A record, six times."""
    said = reads(site, count, "--unusual")
    expect(said == "", said)
    file = record(site)
    file.write_text(6 * file.read_text())


def record(site):
    """The runs of the program that the site keeps. The last line comes within two seconds, otherwise nobody waits for it."""
    wait_until(lambda: list((site.file("runs") / USER).glob("reads*.jsonl")), "no record of the run")
    file, = (site.file("runs") / USER).glob("reads*.jsonl")
    return file


def wait_until(condition, otherwise, seconds=40):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, otherwise)
        time.sleep(0.05)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def traces(site):
    return sorted((site.file("runs") / USER / "traces").glob("*"))


def last(site):
    return lines(record(site))[-1]


SLOW = {"SLOW_FROM": "450", "SLOW_US": "60000"}


def test_what_becomes_slow_is_traced():
    """By itself, and no longer than the rule says; the trace is explained, and the site tells it."""
    with watched_site(rules=[{"when": "files", "for": "1s"}]) as site:
        usually(site)
        said = reads(site, 600, "--unusual")
        expect(said == "" and not traces(site) and "unusual" not in last(site), f"though all was as usual: {said}")
        said = reads(site, 500, "--unusual", env=SLOW)
        told = last(site)["unusual"]
        expect(len(told) == 1 and told[0]["of"] == "file-read" and told[0]["times"] > 3 and told[0]["by"] == "earlier runs"
               and 0.9 < told[0]["lasted_s"] < 20 and told[0]["ended"] == "its time was over", str(told))
        trace, = traces(site)
        expect(str(trace) == told[0]["trace"] and stat.S_IMODE(trace.stat().st_mode) == 0o600, str(trace))
        expect("something was unusual" in said and told[0]["because"] in said and str(trace) in said
               and f"the {told[0]['before']} requests before" in said, said)
        trace = lines(trace)
        calls = [c for c in trace if c["what"] == "call" and c["call"].startswith("pread")]
        before = [c for c in calls if "before" in c]
        since = [c for c in calls if "before" not in c]
        begin, end = [u["now_ns"] for u in trace if u["what"] == "unusual"]
        # A loaded machine may give the alarm a little early.
        expect(sum(c["ns"] > 50e6 for c in since) >= 5
               and all(begin < c["start_ns"] + c["ns"] and c["start_ns"] < end for c in since), f"not the slow ones: {since[:3]}")
        expect(100 < len(before) <= 1024 and max(c["ns"] for c in before[-4:]) > 20e6
               and sum(c["ns"] < 50e6 for c in before) > len(before) / 2
               and all(c["start_ns"] + c["ns"] <= begin for c in before),
               f"not those that gave the alarm: {len(before)} {[c['ns'] for c in before[-4:]]}")
        expect(len(since) < 45, f"{len(since)} of 50 slow ones is no part")
        text = run([tool("esdm-explain"), traces(site)[0]]).stdout
        expect("a part of the run" in text and told[0]["because"] in text and "data" in text and "reading files" in text, text)
        report = json.loads(run([tool("esdm-explain"), "--json", traces(site)[0]]).stdout)
        expect(report["files"][0]["read"]["calls"] == len(calls), str(report["files"])[:400])
        text = run([tool("esdm-explain"), "--site"]).stdout
        expect("Unusual in the last 7 days" in text and told[0]["because"] in text, text)


def test_reports_tell_it():
    """By default where runs are kept. What a usual run does for a while is not unusual."""
    with watched_site() as site:
        usually(site)
        report = reads(site, 500, "--report", env=SLOW)
        told = last(site)["unusual"]
        expect("What was unusual" in report and told[0]["because"] in report and report.count(told[0]["because"]) == 1
               and "esdm-run: something" not in report, report)
        expect(told[0]["ended"] == "the program ended" and len(traces(site)) == 1, str(told))
        file, = (site.file("runs") / USER).glob("reads*.jsonl")
        run_line = last(site)
        expect(run_line["spans"][0]["worst_times"] > 3, str(run_line))
        file.write_text(file.read_text() + 5 * (json.dumps(run_line) + "\n"))
        reads(site, 500, "--unusual", env=SLOW)
        expect("unusual" not in last(site), "though half of the runs are like that")


def test_nobody_wants_it():
    """Rules that are none, ESDM_MONITOR=off, and a program without runs before."""
    with watched_site(rules=[]) as site:
        reads(site, 500, "--unusual", env=SLOW)
        expect(not traces(site) and not list(site.file("runs").glob("*/*")), "without rules")
    with watched_site() as site:
        reads(site, 500, "--unusual", env=SLOW)
        expect(not traces(site), "nothing is known")
    with watched_site() as site:
        usually(site)
        reads(site, 480, "--unusual", env={**SLOW, "ESDM_MONITOR": "off"})
        expect(not traces(site), "though it is off")
        said = reads(site, 480, env={**SLOW, "ESDM_RUN_UNUSUAL": "on"})
        expect("something was unusual" in said and len(traces(site)) == 1, said)


def test_memory_is_bounded():
    """Of a million calls the last ones are kept alone: 1 MiB. A folder of runs that is gone fails nobody."""
    with watched_site() as site:
        usually(site)
        env = client_environment({"USUAL_US": "0", "ESDM_MONITOR": "off"})  # nobody looks
        program = subprocess.Popen([tool("esdm-run"), "-q", "--unusual", site.file("reads"), site.file("data"), "60000"],
                                   env=env, stdin=subprocess.DEVNULL)
        most = [0]

        def sample():
            while program.poll() is None:
                for folder in os.scandir("/dev/shm"):
                    if folder.name.startswith(f"esdm-run-{program.pid}-"):
                        with contextlib.suppress(OSError):
                            most[0] = max(most[0], sum(f.stat().st_size for f in os.scandir(folder)))
                time.sleep(0.02)

        thread = threading.Thread(target=sample)
        thread.start()
        thread.join()
        expect(program.returncode == 0 and 0 < most[0] <= 1 << 20, f"{most[0]} bytes, exit status {program.returncode}")
        (site.file("runs") / USER / "traces").write_text("no folder")
        said = reads(site, 480, "--unusual", env=SLOW)
        expect("something was unusual" in said and "It failed: monitor.runs" in said, said)


def sizes_read(file):
    """Bytes of all reads that a file of records has."""
    data, found = file.read_bytes(), []
    for at in range(65536, len(data), 65536):
        if struct.unpack_from("=I", data, at)[0] != 2:  # records
            continue
        for record in range(at + 64, at + 65536 - 63, 64):
            start, _, count = struct.unpack_from("=QQQ", data, record)
            found += [count] if start and count else []
    return found


def test_child_has_records_of_its_own():
    """Also where the parent had all its calls kept before it forked."""
    with watched_site() as site:
        site.file("forks.c").write_text(FORKS)
        run(["cc", "-o", site.file("forks"), site.file("forks.c")])
        folder = site.file("records")
        folder.mkdir()
        library = pathlib.Path(run([tool("esdm-run"), "-q", "--dry-run", "--report", "/bin/true"]).stdout.split(":")[-1].strip())
        run([site.file("forks"), site.file("data"), folder],
            env={"LD_PRELOAD": str(library.with_name("libesdm-watch.so")), "ESDM_WATCH": str(folder), "ESDM_WATCH_RING": "1"})
        child, parent = sorted((sizes_read(f) for f in folder.glob("*.watch")), key=sum)
        expect(parent.count(1000) == 20 and 500 not in parent, f"the child wrote to its parent's file: {parent}")
        expect(child.count(500) == 20 and 1000 not in child, str(child))


def seen(command, env=None, **options):
    """What the program printed, and whether it was watched."""
    done = subprocess.run([tool("esdm-run"), "-q", "--unusual", *command], env=client_environment(env or {}), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, **options)
    return done


ENVIRONMENT = ["/bin/sh", "-c", "echo ${ESDM_WATCH:-none}; exit 3"]


def test_who_is_watched():
    """Where the site has a rule, and there is room; otherwise the program runs as it is. Ranks are those of the step; each
    esdm-run has a folder of its own."""
    batch = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291",
             "SLURM_STEP_NUM_TASKS": "4"}
    step = {**batch, "SLURM_STEP_ID": "0"}
    with watched_site() as site:
        begin = time.monotonic()
        folders = [seen(ENVIRONMENT, env).stdout.strip() for env in ({}, batch, batch, step, step)]
        expect(time.monotonic() - begin < 30, f"waited {time.monotonic() - begin} s for ranks")
        expect(len(set(folders)) == 5 and all(f.startswith("/") for f in folders), str(folders))
        expect(seen(ENVIRONMENT, {**step, "SLURM_PROCID": "1"}).stdout == "none\n", "rank 1 is watched")
        expect(seen(ENVIRONMENT, {"ESDM_WATCH": "/tmp/report"}).stdout == "/tmp/report\n", "taken away from a report")
        begin = time.monotonic()
        report = run([tool("esdm-run"), "-q", "--report", "/bin/cat", site.file("data")], env=client_environment(batch))
        expect(time.monotonic() - begin < 30 and "lacks" not in report.stderr, "a serial command of a script waits for ranks")
        done = seen(ENVIRONMENT)
        expect(done.returncode == 3 and done.stderr == "", str(done))
        wait_until(lambda: not any(os.path.exists(f) for f in folders), "folders stay")
        site.config.write_text(site.config.read_text().replace('"runs"', '"walks"', 1))
        expect(seen(ENVIRONMENT).stdout == "none\n", "without a site")


def tools_of(site):
    """A folder with esdm-run and the plug-in alone, and where the plug-in is otherwise."""
    tools = site.file("tools")
    tools.mkdir()
    shutil.copy(tool("esdm-run"), tools)
    library = pathlib.Path(run([tool("esdm-run"), "-q", "--dry-run", "/bin/true"]).stdout.strip())
    shutil.copy(library, tools)
    return tools, library.parent


def test_nobody_waits_for_the_looker():
    """It goes on when the program has ended, keeps no lock of the program, and is no zombie when it ends early."""
    with watched_site() as site:
        tools, libraries = tools_of(site)
        shutil.copy(libraries / "libesdm-watch.so", tools)
        looker = tools / "esdm-explain"
        looker.write_text('#!/bin/sh\n[ "$1 $2" = "--look --quiet" ] && exit 0\n[ "$1" = --look ] || exit 0\n'
                          'cat\nsleep ${LATE_S:-0}\n: > "$LOOKED"\n')
        looker.chmod(0o755)
        command = [tools / "esdm-run", "-q", "--unusual", "/bin/sh", "-c"]
        looked = site.file("looked")
        begin = time.monotonic()
        done = subprocess.run(
            [*map(str, command), "echo $ESDM_WATCH; sleep 1.5"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=client_environment({"LATE_S": "9", "LOOKED": str(looked)}), check=False)
        took = time.monotonic() - begin
        expect(done.returncode == 0 and 3.4 < took < 8 and not looked.exists(), f"{took} s, {done}")
        wait_until(looked.exists, "it was ended")
        wait_until(lambda: not os.path.exists(done.stdout.strip()), "the folder stays")
        looker.write_text('#!/bin/sh\nexit 0\n')
        with subprocess.Popen([*map(str, command), "sleep 4; :"], stdin=subprocess.DEVNULL, env=client_environment()) as program:
            time.sleep(2.5)
            states = [pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] for child in children_of(program.pid)]
            expect(len(states) == 2 and "Z" not in states, f"children beside the program, and who waits for signals: {states}")


def test_it_never_fails_the_program():
    """Not without the library, nor without room for records; that is told with --verbose alone."""
    with watched_site() as site:
        tools, _ = tools_of(site)
        (tools / "esdm-explain").symlink_to(tool("esdm-explain"))
        command = [tools / "esdm-run", "-q", "--unusual"]
        done = run([*command, *ENVIRONMENT], check=False, env=client_environment())
        expect(done.returncode == 3 and done.stdout == "none\n" and done.stderr == "", str(done))
        done = run([*command, "-v", *ENVIRONMENT], check=False, env=client_environment())
        expect(done.returncode == 3 and "is not watched: there is no libesdm-watch.so" in done.stderr, str(done))
        hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', "sh"]
        if shutil.which("unshare") is None or subprocess.run([*hidden, "true"], check=False, capture_output=True).returncode != 0:
            print("nothing can be hidden here: unshare does not work")
            return
        env = client_environment({"TMPDIR": "/etc/passwd"})
        done = run([*hidden, tool("esdm-run"), "-q", "--unusual", *ENVIRONMENT], check=False, env=env)
        expect(done.returncode == 3 and done.stdout == "none\n" and done.stderr == "", str(done))
        done = run([*hidden, tool("esdm-run"), "-q", "--unusual", "-v", *ENVIRONMENT], check=False, env=env)
        expect(done.returncode == 3 and "is not watched: folder" in done.stderr, str(done))


def test_signals_reach_the_program():
    """Those that batch systems send; what is ignored stays so; the program ends when esdm-run is killed."""
    script = "trap 'echo got; exit 4' %s; echo ready; while :; do /bin/sleep 0.1; done"
    with watched_site():
        for name in ("XCPU", "USR1", "ALRM", "QUIT", "INT", "TERM"):
            program = subprocess.Popen([tool("esdm-run"), "-q", "--unusual", "/bin/sh", "-c", script % name], text=True,
                                       env=client_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            expect(program.stdout.readline() == "ready\n", name)
            program.send_signal(getattr(signal, "SIG" + name))
            out, err = program.communicate(timeout=30)
            expect((out, program.returncode) == ("got\n", 4), f"{name}: {out} {err} {program.returncode}")
        done = seen(["/bin/sh", "-c", "kill -SEGV $$"])
        expect(done.returncode == -signal.SIGSEGV and done.stderr == "", str(done))
        done = seen(["/bin/sh", "-c", "kill -HUP $$; echo on"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        expect(done.stdout == "on\n", str(done))
        program = subprocess.Popen([tool("esdm-run"), "-q", "--unusual", "/bin/sh", "-c", "echo $$; exec /bin/sleep 60"],
                                   text=True, env=client_environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        expect(int(program.stdout.readline()) > 0, "not begun")
        program.kill()
        program.communicate(timeout=30)  # the program has the pipe until it ends


COUNTS = """
import os, signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
signal.signal(signal.SIGTERM, lambda *_: got.append(1))
if "alone" in sys.argv:
    os.setpgid(0, 0)
print("ready", flush=True)
end = time.monotonic() + 20
while not got and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.5)
print(len(got))
"""


# Root may know all of every process.
NO_ROOT = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}


def runs_esdm_run(process):
    """Whether a user who is not root is told so."""
    found = subprocess.run(["readlink", f"/proc/{process}/exe"], check=False, capture_output=True, text=True, **NO_ROOT)
    return found.stdout.endswith("/esdm-run\n")


def test_signals_come_once():
    """To the whole group (the terminal, kill), or to each process (Slurm); also to a program with a group of its own."""
    def group(program, number):
        os.killpg(program.pid, number)

    def each(program, number):
        for process in [program.pid, *map(int, children_of(program.pid))]:
            os.kill(process, number)

    def one(program, number):
        os.kill(program.pid, number)

    def named(program, number):
        """As `pkill esdm-run` and `pkill -f esdm-run` of this group."""
        for process in [program.pid, *map(int, children_of(program.pid))]:
            about = pathlib.Path(f"/proc/{process}")
            if (about / "comm").read_text() == "esdm-run\n" or b"esdm-run" in (about / "cmdline").read_bytes():
                os.kill(process, number)

    def executable(program, number):
        """As `kill $(pidof /usr/bin/esdm-run)`, which also compares what processes run, by a user who is not root."""
        expect(runs_esdm_run(program.pid), "its owner may know what it runs")
        for process in [program.pid, *map(int, children_of(program.pid))]:
            if runs_esdm_run(process):
                os.kill(process, number)

    with watched_site() as site:
        os.chmod(site.folder, 0o755)  # for who is not root
        for send, number, *how in ((group, signal.SIGINT), (group, signal.SIGUSR1), (each, signal.SIGUSR1), (one, signal.SIGINT),
                                   (named, signal.SIGTERM), (executable, signal.SIGTERM), (group, signal.SIGINT, "alone")):
            program = subprocess.Popen([tool("esdm-run"), "-q", "--unusual", "/usr/bin/python3", "-c", COUNTS, *how], text=True,
                                       env=client_environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                       start_new_session=True, **(NO_ROOT if send is executable else {}))
            expect(program.stdout.readline() == "ready\n", "not begun")
            time.sleep(0.2)
            send(program, number)
            out, _ = program.communicate(timeout=60)
            expect(out == "1\n", f"{send.__name__} {number} {how}: came {out.strip()} times")


def test_processes_beside_the_program_hold_no_files():
    """Nor on a kernel without close_range() (before 5.9): a lock, or a pipe, is the program's alone."""
    with watched_site() as site, open(site.file("lock"), "wb") as lock:
        for before in ([], kernels.without(kernels.CLOSE_RANGE)):
            program = subprocess.Popen([*before, tool("esdm-run"), "-q", "--unusual", "/bin/sh", "-c", "echo $$; exec /bin/sleep 3"],
                                       env=client_environment(), stdout=subprocess.PIPE, text=True, pass_fds=[lock.fileno()])
            inside = program.stdout.readline().strip()
            if not inside and program.wait() == kernels.CANNOT:
                print("no system call can be taken away here")
                return
            time.sleep(0.2)
            beside = [child for child in children_of(program.pid) if child != inside]
            if os.getuid() != 0:
                skip("only root may know what the witness holds")
            held = [os.readlink(one) for child in beside for one in pathlib.Path(f"/proc/{child}/fd").iterdir()]
            expect(len(beside) == 1 and held == [], f"{before[:1]} {beside}: {held}")
            program.communicate(timeout=60)


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_program_has_no_child_of_ours():
    """Where the site does not answer in time, who was asking is killed, and waited for. Who explains is not watched."""
    with watched_site() as site:
        tools, libraries = tools_of(site)
        shutil.copy(libraries / "libesdm-watch.so", tools)
        looker = tools / "esdm-explain"
        looker.write_text('#!/bin/sh\nexec sleep 60\n')
        looker.chmod(0o755)
        script = "import os, time\ntime.sleep(0.5)\ntry: print(os.waitpid(-1, os.WNOHANG))\nexcept ChildProcessError: print('none')"
        begin = time.monotonic()
        done = run([tools / "esdm-run", "-q", "--unusual", "/usr/bin/python3", "-c", script], env=client_environment())
        expect(done.stdout == "none\n", f"a child of the program that is not its own: {done.stdout}")
        expect(1.4 < time.monotonic() - begin < 8, f"{time.monotonic() - begin} s")
        looker.write_text('#!/bin/sh\n[ "$1" = --look ] || echo "<$LD_PRELOAD>" > "$EXPLAINED"\n')
        run([tools / "esdm-run", "-q", "--report", "/bin/true"], env=client_environment({"EXPLAINED": str(site.file("explained"))}))
        expect(site.file("explained").read_text() == "<>\n", site.file("explained").read_text())


def test_other_namespaces_are_there():
    """Processes of a container have other numbers, and their node another name: they have not ended for that."""
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--uts", "sh", "-c", 'hostname inside; exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False, capture_output=True).returncode != 0:
        skip("there are no namespaces")
    with watched_site() as site:
        usually(site)
        said = run([tool("esdm-run"), "-q", "--unusual", *inside, site.file("reads"), site.file("data"), 500],
                   env=client_environment({"USUAL_US": "2000", **SLOW})).stderr
        expect("something was unusual" in said, said)
        span, = (s for s in last(site)["spans"] if s["kind"] == "file-read")
        expect(500 <= span["count"] < 540, str(span))


def test_ranks_of_the_first_node():
    """What is slow for another rank on the node of the first one is told, too. On other nodes nobody is watched."""
    def rank(number, **more):
        return {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(number), **more}

    with watched_site() as site:
        usually(site)
        command = [tool("esdm-run"), "-q", "--unusual", "/bin/sh", "-c", "echo $ESDM_WATCH; read line; :"]
        with subprocess.Popen(command, text=True, env=client_environment(rank(0)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as first:
            folder = first.stdout.readline().strip()
            second = seen(ENVIRONMENT, rank(1))
            expect(folder.startswith("/") and second.stdout.strip() == folder and second.returncode == 3, f"{folder} {second}")
            other = seen(ENVIRONMENT, rank(1, SLURM_STEP_ID="4"))
            expect(other.stdout == "none\n", f"of another step: {other}")
            said = reads(site, 500, "--unusual", env={**SLOW, **rank(1)})
            expect(said == "", said)
            _, said = first.communicate("", timeout=60)
        expect("something was unusual" in said and len(traces(site)) == 1, said)
        wait_until(lambda: not os.path.exists(folder), "the folder stays")
        trace = lines(traces(site)[0])
        expect(1 in [line["rank"] for line in trace if line["what"] == "process"], str(trace[:3]))


def test_commands_of_a_script_leave_no_memory():
    """What ended processes did is kept as sums; nothing of it is lost to the record."""
    with watched_site() as site:
        script = f"i=0; while [ $i -lt 400 ]; do i=$((i + 1)); {site.file('reads')} {site.file('data')} 1 || exit 9; done; :"
        program = subprocess.Popen([tool("esdm-run"), "-q", "--unusual", "/bin/sh", "-c", script],
                                   env=client_environment({"USUAL_US": "8000"}), stdin=subprocess.DEVNULL)
        most = [0]
        while program.poll() is None:
            for folder in pathlib.Path("/dev/shm").glob(f"esdm-run-{program.pid}-*"):
                with contextlib.suppress(OSError):
                    most[0] = max(most[0], len(list(folder.glob("*.watch"))))
            time.sleep(0.05)
        expect(program.returncode == 0 and 0 < most[0] < 300, f"{most[0]} files of 400 commands, exit status {program.returncode}")
        span, = (s for s in last(site)["spans"] if s["kind"] == "file-read")
        expect(400 <= span["count"] < 440 and 400 * 4096 <= span["bytes"] < 420 * 4096 and span["seconds"] > 3.1, str(span))
        expect(last(site)["seconds"] > 3.1, str(last(site)))


def test_folder_has_a_bound():
    """64 MiB: who begins when there are so many is not watched, and runs."""
    with watched_site() as site:
        folder = site.file("records")
        folder.mkdir()
        with open(folder / "others.watch", "wb") as file:
            file.truncate((64 << 20) - 1)
        library = pathlib.Path(run([tool("esdm-run"), "-q", "--dry-run", "--report", "/bin/true"]).stdout.split(":")[-1].strip())
        env = {"LD_PRELOAD": str(library.with_name("libesdm-watch.so")), "ESDM_WATCH": str(folder), "ESDM_WATCH_RING": "1"}
        for there in (2, 2):
            run(["/bin/true"], env=env)
            expect(len(list(folder.iterdir())) == there, f"{list(folder.iterdir())}, not {there}")


main_at_once(test_signals_come_once, test_processes_beside_the_program_hold_no_files, test_program_has_no_child_of_ours, test_other_namespaces_are_there, test_ranks_of_the_first_node,
             test_nobody_waits_for_the_looker, test_commands_of_a_script_leave_no_memory, test_folder_has_a_bound, test_who_is_watched, test_it_never_fails_the_program,
             test_signals_reach_the_program, test_child_has_records_of_its_own, test_what_becomes_slow_is_traced, test_reports_tell_it,
             test_nobody_wants_it, test_memory_is_bounded)
