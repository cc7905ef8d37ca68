# SPDX-License-Identifier: LGPL-3.0-or-later
"""Finds and loads ESDM's libraries: libesdm.so and the NetCDF plug-in."""

import ctypes
import os  # no more: each program that imports esdm pays for this

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


def plain_name(name):
    """A name of a container without esdm://. @param name a text or a path; pathlib makes esdm:/ of esdm://."""
    if isinstance(name, str):
        return name.removeprefix("esdm://")
    try:
        return os.fsdecode(name).removeprefix("esdm://").removeprefix("esdm:/")
    except TypeError:
        raise TypeError(f"the name of a container is a text or a path, not a {type(name).__name__}") from None


def on_path(name):
    """The program of that name that the shell would start; None: there is none."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def folders():
    """Where the libraries may be, most wanted first."""
    if os.environ.get("ESDM_LIBRARY_DIR"):
        yield from os.environ["ESDM_LIBRARY_DIR"].split(":")
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    runner = on_path("esdm-run")
    if runner:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(runner)))
        library = os.path.join(prefix, "lib")
        yield library
        if os.path.isdir(library):
            yield from (os.path.join(library, f) for f in sorted(os.listdir(library)) if f.endswith("-linux-gnu"))
        yield prefix  # a build folder: tools/esdm-run
        yield os.path.join(prefix, "netcdf-plugin")


def load(name):
    """The library of that name: from the folders above, else as the dynamic linker finds it."""
    for folder in folders():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return ctypes.CDLL(path)
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
