#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What de-duplication saves of the restart files of a real model, and what esdm-dedup had foretold.

    tests/bench/restarts.py [--files N] [--python PYTHON] [--series FILE…] [--build BUILD]

The model is Veros (an ocean general circulation model, https://veros.readthedocs.io, in Python), its set-up "acc": 30 x 42 x 15
cells, of which it writes a restart file (HDF5) every second day. PYTHON has it (/tmp/venv/bin/python after `python3 -m venv
/tmp/venv; /tmp/venv/bin/pip install veros`); without --python one is made and removed again, which needs PyPI. --series takes
restart files of any other model instead.

Each file goes through nccopy into a site, for each codec. There esdm-dedup foretells what it would save, what "dedup": "write"
and "dedup": "content" would have saved; then each of these is done, and bytes of packs are counted. Exit status 1: something is
off by more than a tenth."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CODECS = ("none", "lz4", "shuffle+zstd")
POLICIES = ("write", "content")
MODEL = """
import sys
from veros.setups.acc.acc import ACCSetup
days, every = 2 * int(sys.argv[1]), 2
sim = ACCSetup(override=dict(runlen=86400 * days, restart_frequency=86400 * every,
                             restart_output_filename="acc_{itt:0>5d}.restart.h5"))
sim.setup()
for one in sim.state.diagnostics.values():
    one.output_frequency = one.sampling_frequency = 0
sim.run()
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--python")
    parser.add_argument("--series", nargs="+")
    parser.add_argument("--build", default=str(SOURCE / "build"))
    return parser.parse_args()


def compute(options, folder):
    """Restart files of the model, the oldest first."""
    python = options.python
    if python is None:
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python = str(folder / "venv/bin/python")
        subprocess.run([python, "-m", "pip", "install", "-q", "veros"], check=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([python, "-c", MODEL, str(options.files)], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    files = sorted(folder.glob("*.restart.h5"))
    if len(files) < options.files:
        sys.exit(f"the model wrote {len(files)} restart files")
    return files


class Series:
    """Puts the files into sites of one codec."""

    def __init__(self, test, files, codec):
        self.test, self.files = test, files
        self.options = {"engine": {"codec": codec, "codec_on_request": codec}, "replaced": {"keep": 0}}

    def site(self, **more):
        return self.test.Site(**self.options, **more)

    def put(self, site):
        """@return bytes of packs."""
        for number, file in enumerate(self.files):
            self.test.client(["nccopy", str(file), f"esdm://restart/{number:03}.nc"])
        return self.stored(site)

    @staticmethod
    def stored(site):
        return sum(path.stat().st_size for path in site.pack_files())

    def tell(self, *options):
        return json.loads(self.test.run([self.test.tool("esdm-dedup"), "--dry-run", "--json", *options, "restart"]).stdout)

    def measure(self):
        """Rows: (what, bytes without it, foretold, saved)."""
        rows = []
        with self.site() as site:
            plain = self.put(site)
            told = {policy: self.tell("--as", policy)["duplicate_bytes"] for policy in POLICIES}
            later = self.tell()["freed_bytes"]
            self.test.run([self.test.tool("esdm-dedup"), "restart"])
            self.test.run([self.test.tool("esdm-gc"), "--yes", "--age=0"])
            rows.append(("esdm-dedup", plain, later, plain - self.stored(site)))
            self.test.run([self.test.tool("esdm-fsck"), "--data"])
        for policy in POLICIES:
            with self.site(dedup=policy) as site:
                rows.append((f'"{policy}"', plain, told[policy], plain - self.put(site)))
                self.test.run([self.test.tool("esdm-fsck"), "--data"])
                for number, file in enumerate(self.files):  # all values are as they were
                    self.compare(file, f"restart/{number:03}.nc")
        return rows

    def compare(self, file, name):
        said = [self.test.client(["ncdump", path]).stdout.split("\n", 1)[1] for path in (str(file), f"esdm://{name}")]
        self.test.expect(said[0] == said[1], f"{name} is not {file}")


def main():
    options = arguments()
    os.environ.setdefault("ESDM_BUILD", options.build)
    os.environ.setdefault("ESDM_SOURCE", str(SOURCE))
    os.environ.setdefault("ESDM_SANITIZE", "")
    sys.path.insert(0, str(SOURCE / "tests/support"))
    import esdmtest as test  # pylint: disable=import-outside-toplevel
    wrong = []
    with tempfile.TemporaryDirectory(prefix="esdm-restarts.") as folder:
        files = options.series or compute(options, pathlib.Path(folder))
        print(f"{len(files)} files, {sum(os.path.getsize(file) for file in files)} bytes\n")
        print("| codec | what | bytes without it | foretold | saved | off by |\n| --- | --- | --- | --- | --- | --- |")
        for codec in CODECS:
            for what, plain, foretold, saved in Series(test, files, codec).measure():
                off = abs(foretold - saved) / saved if saved else float(foretold != 0)
                print(f"| {codec} | {what} | {plain:,} | {foretold:,} | {saved:,} | {100 * off:.1f} % |", flush=True)
                if off > 0.1:
                    wrong.append((codec, what))
    if wrong:
        sys.exit(f"off by more than a tenth: {wrong}")


main()
