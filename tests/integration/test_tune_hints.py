#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune with hints for plain files by MPI. No machine of ours has a Lustre: mpi_stripes.c stands in for the driver that an MPI library
has for one, makes files of stripes as it is told, and lets all ranks wait for its servers. The MPI, what gives the hints, and the search
are the real ones."""

import json

import mpirun
from esdmtest import BUILD, Site, by_clock, by_size, environment, expect, expect_error, main, run, skip, some, tool

PROGRAMS = BUILD / "tests/netcdf/parallel"
MPIS = [mpi for mpi in ("mpich", "openmpi") if (PROGRAMS / f"mpi_striped_{mpi}").exists()]


class Stripes:
    """A site, and a folder for what stands in for Lustre."""

    def __init__(self, site, mpi, **settings):
        self.folder = site.file(f"stripes.{mpi}")
        self.folder.mkdir(exist_ok=True)
        self.env = mpirun.environment(site.folder, **environment({"STRIPES_FOLDER": str(self.folder), **settings}))
        self.command = [mpirun.launcher(mpi), "-n", "4", tool("esdm-run"), PROGRAMS / f"mpi_striped_{mpi}", site.file("out")]

    def made(self):
        """(stripes, their bytes) of files, one after the other."""
        return [tuple(map(int, line.split())) for line in (self.folder / "log").read_text().splitlines()]

    def tune(self, *options, command=None):
        done = run([tool("esdm-tune"), "--json", "--quiet", *options, "--", *(command or self.command)], env=self.env)
        found = json.loads(done.stdout)
        print(f"    {found['ratio'] and 1 / found['ratio']:.1f} times as fast: {found['best']}, {len(found['trials'])} of {found['settings']}", flush=True)
        return found, done.stderr


@by_clock
def test_stripes():
    """16 MiB, and 5 MB/s of each of four servers: calls of 1 MiB need pieces of 256 KiB on all four; 128 only cost time to make."""
    for mpi in some(MPIS, by_size(1, 1, 2)):
        with Site() as site:
            text = site.config.read_text()
            stripes = Stripes(site, mpi, STRIPES_BYTES_PER_S="5e6")
            found, said = stripes.tune("--try=striping_factor=2,4,128", "--try=striping_unit=256K,4M", "--trials=9", "--pairs=2", "--apply")
            expect(found["better"] and found["best"] == {"striping_factor": "4", "striping_unit": "256K"}, f"{found}")
            expect(found["ratio"] < 0.75 and found["settings"] == 12 and len(found["trials"]) <= 9, f"{found}")
            made = stripes.made()
            expect(made[0] == (1, 1 << 20) and (4, 256 << 10) in made, f"as it is, and as it was tried: {made}")
            # The command that is told does it; nothing that the site has is changed.
            command = found["command"]
            expect([w for w in command if "hint" in w] == ["--mpi-hint=striping_factor=4", f"--mpi-hint=striping_unit={256 << 10}"], f"{command}")
            expect("Start the program so:" in said and site.config.read_text() == text, said)
            run([tool("esdm-run") if word == "esdm-run" else word for word in command], env=stripes.env)
            expect(stripes.made()[-1] == (4, 256 << 10), f"{stripes.made()[-1]}")
            # What the program states itself stays.
            run([*command, "3"], env=stripes.env)
            expect(stripes.made()[-1] == (3, 256 << 10), f"{stripes.made()[-1]}")


@by_clock
def test_one_server():
    """Stripes are of no use there: nothing is changed."""
    mpi = MPIS[0]
    with Site() as site:
        stripes = Stripes(site, mpi, STRIPES_SERVERS="1", STRIPES_BYTES_PER_S="40e6")
        found, _ = stripes.tune("--try=striping_factor=4,16", "--pairs=2", "--exhaustive")
        expect(not found["better"] and "command" not in found, f"{found}")
        expect({made[0] for made in stripes.made()} == {1, 4, 16}, f"all of them were tried: {stripes.made()}")


# Bytes that all ranks have read, run after run.
BYTES = """"$@" || exit 1
grep rchar "/proc/$$/io" >> "$0"
"""


@by_clock
def test_hints_that_the_library_has():
    """ROMIO itself: what lies between pieces is read, or is not. `mpi:NAME` is any other hint."""
    program = PROGRAMS / "mpi_hinted_mpich"
    if not program.exists():
        skip("built without MPICH")
    with Site() as site:
        log = site.file("bytes")
        stripes = Stripes(site, "mpich")
        command = ["sh", "-c", BYTES, log, mpirun.launcher("mpich"), "-n", "4", tool("esdm-run"), program, site.file("in"), site.file("out")]
        found, _ = stripes.tune("--try=romio_ds_read=disable", "--pairs=0", command=command)
        expect([t["setting"]["romio_ds_read"] for t in found["trials"]] == ["unset", "disable"], f"{found}")
        read = [int(line.split()[1]) for line in log.read_text().splitlines()]
        print(f"    MiB read: {[n >> 20 for n in read]}", flush=True)
        expect(len(read) == 2 and read[0] > 5 * read[1], f"bytes read: {read}")
        log.unlink()
        found, _ = stripes.tune("--try=mpi:ind_rd_buffer_size=32768", "--pairs=0", command=command)
        expect([t["setting"]["mpi:ind_rd_buffer_size"] for t in found["trials"]] == ["unset", "32768"], f"{found}")
        read = [int(line.split()[1]) for line in log.read_text().splitlines()]
        expect(len(read) == 2, f"{read}")


def test_what_is_refused():
    with Site():
        for arguments, *texts in ((["--try=striping_factor", "--kernel=vpic"], "an option of esdm-run"),
                                  (["--try=cb_nodes", "--", "mpirun", "-n", "2", "true"], "mpirun -n 4 esdm-run PROGRAM"),
                                  (["--try=cb_nodes=2", "--", "mpirun", tool("esdm-run"), "--mpi-hint=cb_nodes=1", "true"], "leave --mpi-hint out"),
                                  (["--try=cb_nodes=a b", "--", "true"], "'a b' is no value of cb_nodes"),
                                  (["--try=striping_unit=much", "--", "true"], "'much' is no value of striping_unit"),
                                  (["--try=mpi:anything", "--", "true"], "no parameter 'mpi:anything'"),
                                  (["--try=mpi:a=b", "--try=mpi:a=c", "--", "true"], "stated twice"),
                                  (["--try=striping_unit=1M", "--try=mpi:striping_unit=4M", "--", "true"], "striping_unit is stated twice"),
                                  (["--try=mpi:x=a b", "--", "true"], "'a b' is no value of mpi:x; expected mpi:NAME=VALUE of letters, digits and _-.:*/+"),
                                  (["--try=mpi:" + "k" * 36 + "=1", "--", "true"], "no parameter 'mpi:kkk"),
                                  (["--try=mpi:" + "k" * 35 + "=" + "v" * 85, "--", "true"], "is no value of mpi:kkk")):
            done = run([tool("esdm-tune"), *arguments], check=False)
            expect_error(done, *texts)
            expect("(null)" not in done.stderr, done.stderr)
        # What is as long as it may be is refused by neither.
        longest = "k" * 35 + "=" + "v" * 84
        expect_error(run([tool("esdm-tune"), f"--try=mpi:{longest}", "--", "true"], check=False), "mpirun -n 4 esdm-run PROGRAM")
        run([tool("esdm-run"), "-q", f"--mpi-hint={longest}", "true"])
        expect_error(run([tool("esdm-run"), "--mpi-hint=" + "k" * 36 + "=1", "true"], check=False), "expected a KEY of up to 35 bytes")
        expect_error(run([tool("esdm-run"), f"--mpi-hint={longest}v", "true"], check=False), "expected KEY=VALUE")
        # All hints of a run are 255 bytes at most, of the longest values that are tried: no trial fails by that.
        parts = ["k" * 30 + str(i) + "=" + "v" * 84 for i in range(2)]
        for more, fits in (("l=" + "v" * 18, True), ("l=" + "v" * 19, False)):
            done = run([tool("esdm-run"), "-q", *(f"--mpi-hint={part}" for part in [*parts, more]), "true"], check=False)
            expect((done.returncode == 0) == fits, f"{done}")
            tries = [f"--try=mpi:{part},v" for part in [*parts, more]]
            done = run([tool("esdm-tune"), *tries, "--pairs=0", "--trials=1", "--", "env", tool("esdm-run"), "-q", "true"], check=False)
            expect((done.returncode == 0) == fits, f"{done}")
            if not fits:
                expect_error(done, "a run takes 255 bytes of hints", "would be 256", "fewer of them at once")
                expect(done.returncode == 2 and "trial" not in done.stderr, done.stderr)


def test_records_are_all_that_stays():
    """A rank's mark, by which others know that it gives hints, goes with it."""
    for mpi in some(MPIS, by_size(2, 2, 2)):
        with Site() as site:
            stripes = Stripes(site, mpi)
            records = site.file("records")
            ranks, program = stripes.command[:-3], stripes.command[-3:]
            run([*ranks, program[0], f"--records={records}", "--mpi-hint=striping_factor=2", *program[1:]], env=stripes.env)
            expect(stripes.made()[-1][0] == 2, f"{stripes.made()}")
            names = sorted(path.name for path in records.iterdir())
            expect(any(name.endswith(".watch") for name in names) and not any(name.endswith(".hints") for name in names), f"{names}")


if not MPIS:
    mpirun.missing("there was no MPI when ESDM was built")
main(test_stripes, *by_size((), (test_one_server,), (test_one_server,)), test_hints_that_the_library_has, test_records_are_all_that_stays, test_what_is_refused)
