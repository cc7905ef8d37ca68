# SPDX-License-Identifier: LGPL-3.0-or-later
"""What this process did with ESDM so far, why it took so long, and what would help: as esdm-explain tells."""

import ctypes
import dataclasses
import functools
import html
import json
import os
import pathlib
import subprocess
import tempfile
import typing

from . import _catalogue
from ._library import Error, EsdmError, check, folders, on_path

LONGEST_S = 120


@dataclasses.dataclass(frozen=True)
class Advice:
    """One thing that would help."""
    text: str
    gain_s: float  # that it could save at most


@dataclasses.dataclass(frozen=True)
class Moved:
    """What a variable, or a target, took and gave."""
    container: "str | None"  # None: of a target
    variable: "str | None"
    target: "str | None"
    read_bytes: int
    read_calls: int
    read_s: float
    written_bytes: int
    write_calls: int
    write_s: float
    other_s: float  # opening, closing, commits

    @property
    def seconds(self) -> float:
        return self.read_s + self.write_s + self.other_s

    def row(self):
        size = _catalogue._bytes  # pylint: disable=protected-access
        return {"what": self.target or f"{self.container}: {self.variable or '(container)'}",
                "read": size(self.read_bytes) if self.read_calls else "-",
                "written": size(self.written_bytes) if self.write_calls else "-",
                "calls": self.read_calls + self.write_calls, "time": f"{self.seconds:.3g} s"}


def _moved(told):
    name = told["file"]
    target = name[len("target "):] if name.startswith("target ") else None
    read, write = told["read"], told["write"]
    variable = told["variable"] and told["variable"].lstrip("/")  # "ocean/tos", as everywhere in this package
    return Moved(None if target else name.removeprefix("esdm:"), variable, target, read["bytes"], read["calls"],
                 read["seconds"], write["bytes"], write["calls"], write["seconds"], told["other"]["seconds"])


class Report:
    """What esdm.report() tells: `print(report)` and notebooks show it. Numbers are attributes; what esdm-explain
    --json tells of all this is in `report.data`. It stays as it is while the process goes on."""

    def __init__(self, records: bytes):
        self._records = records  # a trace, as of ESDM_MONITOR=trace:FILE.jsonl
        self.data: "dict[str, typing.Any]" = json.loads(_explained(records, "--json"))
        moved, time = self.data["moved"], self.data["time"]
        self.seconds: float = self.data["seconds"]  # since the first session was opened
        self.read_bytes: int = moved["read_bytes"]  # from targets, as they are stored
        self.read_calls: int = moved["read_calls"]
        self.written_bytes: int = moved["write_bytes"]
        self.write_calls: int = moved["write_calls"]
        # Where time went; threads count each.
        self.time: "dict[str, float]" = {
            "reading": time["reading"], "writing": time["writing"], "commits": time["sync"],
            "opening and closing": time["metadata"], "codecs, conversion, copies": time["netcdf_library"]}
        # The most useful first; repr() shows three.
        self.advice: "tuple[Advice, ...]" = tuple(Advice(a["text"], a["gain_s"]) for a in self.data["advice"])
        self.variables = _catalogue.Table(map(_moved, self.data["variables"]))  # those that took most time first
        self.targets = _catalogue.Table(m for m in map(_moved, self.data["files"]) if m.target)

    @functools.cached_property
    def text(self) -> str:
        """The whole report, as `esdm-run --report` prints it."""
        return _explained(self._records)

    def save(self, path) -> None:
        """Writes the records, for `esdm-explain FILE.jsonl` and `esdm-explain --page PAGE.html FILE.jsonl`."""
        if not str(path).endswith(".jsonl"):
            raise ValueError(f"'{path}': esdm-explain takes names that end in .jsonl")
        pathlib.Path(path).write_bytes(self._records)

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        size = _catalogue._bytes  # pylint: disable=protected-access
        advice = "".join(f"<li>{html.escape(a.text)} Could save up to {a.gain_s:.3g} s.</li>" for a in self.advice[:3])
        times = "".join(f"<tr><td>{html.escape(what)}</td><td>{seconds:.3g} s</td></tr>"
                        for what, seconds in self.time.items() if seconds >= 0.0005)
        return (f"<p>In {self.seconds:.3g} s this process read {size(self.read_bytes)} from targets in {self.read_calls}"
                f" calls, and wrote {size(self.written_bytes)} in {self.write_calls}.</p>"
                f"<p><b>What would help most</b></p>{f'<ol>{advice}</ol>' if advice else '<p>Nothing that is worth it.</p>'}"
                f"<table>{times}</table>{self.variables._repr_html_()}"  # pylint: disable=protected-access
                f"<details><summary>All of it</summary><pre>{html.escape(self.text)}</pre></details>")


def _tool():
    """Where esdm-explain is: in the package (a wheel), beside the libraries, else on the PATH."""
    places = [pathlib.Path(__file__).parent / "bin"]
    for folder in map(pathlib.Path, folders()):
        places += [folder.parent / "bin", folder / "tools", folder.parent.parent / "bin"]
    for place in places:
        if os.access(place / "esdm-explain", os.X_OK):
            return str(place / "esdm-explain")
    found = on_path("esdm-explain")
    if found is None:
        raise EsdmError(2, "esdm-explain was not found, which explains what was recorded: install ESDM's tools, or have "
                           "them in the PATH")
    return found


def _explained(records, *options):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(records)
        file.flush()
        environment = {k: v for k, v in os.environ.items() if k not in ("ESDM_MONITOR", "LD_PRELOAD")}
        done = subprocess.run([_tool(), *options, file.name], env=environment, text=True, encoding="utf-8",
                              errors="replace", capture_output=True, timeout=LONGEST_S, check=False)
    if done.returncode != 0:
        raise EsdmError(1, done.stderr.strip() or f"esdm-explain ended with {done.returncode}")
    return done.stdout


def report() -> Report:
    """What this process did with ESDM so far: how much was read and written, of which variables, where and how, which
    time was lost, and the three things that would help most, as `esdm-run --report` tells when a program has ended. At any
    time, also in the middle of a session. Calls of netCDF4, xarray and this package on esdm:// names are told, those of
    plain files are not (esdm-run sees these, too). Counters are of all calls; why calls took as long as they did is told
    of the last 8192.
    @return a Report. EsdmError (NotFound): nothing was done with ESDM yet."""
    library, error = _catalogue._api(), Error()  # pylint: disable=protected-access
    library.esdm_records_write.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.esdm_records_write.restype = ctypes.c_int
    with tempfile.TemporaryFile() as file:
        check(library.esdm_records_write(file.fileno(), ctypes.byref(error)), error)
        file.seek(0)
        return Report(file.read())
