# SPDX-License-Identifier: LGPL-3.0-or-later
"""Finds and loads ESDM's libraries: libesdm.so and the NetCDF plug-in."""

import ctypes
import os
import pathlib
import shutil

MESSAGE_BYTES = 500
PLUGIN = "libesdm-netcdf.so"


class EsdmError(OSError):
    """A failure, with ESDM's own words. `status` is the number of esdm/status.h."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message

    def __str__(self):
        return self.message

    def __reduce__(self):  # dask's processes send their errors
        return type(self), (self.status, self.message)


class NotFound(EsdmError, FileNotFoundError):
    """There is no such container, snapshot or site."""


class Error(ctypes.Structure):
    """esdm_error"""
    _fields_ = [("status", ctypes.c_int), ("os_errno", ctypes.c_int),
                ("message", ctypes.c_char * MESSAGE_BYTES)]


def folders():
    """Where the libraries may be, most wanted first."""
    if os.environ.get("ESDM_LIBRARY_DIR"):
        yield from map(pathlib.Path, os.environ["ESDM_LIBRARY_DIR"].split(":"))
    yield pathlib.Path(__file__).parent / "lib"
    runner = shutil.which("esdm-run")
    if runner:
        prefix = pathlib.Path(runner).resolve().parent.parent
        yield prefix / "lib"
        yield from sorted(prefix.glob("lib/*-linux-gnu"))
        yield prefix  # a build folder: tools/esdm-run
        yield prefix / "netcdf-plugin"


def load(name):
    """The library of that name: from the folders above, else as the dynamic linker finds it."""
    for folder in folders():
        path = folder / name
        if path.exists():
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"{name} was not found: install ESDM, or say where its libraries are with "
            f"ESDM_LIBRARY_DIR=FOLDER[:FOLDER…] ({error})") from None


def check(status, error):
    """Raises what a function of the C API told."""
    if status == 0:
        return
    text = error.message.decode("utf-8", "replace")
    raise (NotFound if status == 2 else EsdmError)(status, text)
