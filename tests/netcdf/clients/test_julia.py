#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""With --long: a process in which Julia runs. PyPI has no Julia, but a package whose library was compiled from Julia and carries Julia's
runtime, without the compiler. Code of Julia runs first; libnetcdf and the plug-in are then opened and called by the functions of
the runtime by which `dlopen`, `dlsym` and `ccall` do so, beside the runtime's own libz, libstdc++ and libcurl."""

import subprocess
import sys
import zipfile

from clients import cache_folder
from esdmtest import BUILD, SANITIZE, SIZE, Site, client_environment, expect, main, run, skip, tool
from inprocess import names

PACKAGE = "ace-jax-coupling==0.2.0"
SCRIPT = """
import ctypes, glob, sys
folder, plugin_path, first = sys.argv[1:]
compiled = ctypes.CDLL(folder + "/lib/libetcouple.so", mode=ctypes.RTLD_GLOBAL)
assert compiled.etc_max_order() == 8, "code of Julia"
path, = glob.glob(folder + "/lib/julia/*_libjulia-internal.so.*")
julia = ctypes.CDLL(path)
assert julia.ijl_is_initialized() == 1
julia.ijl_load_dynamic_library.restype = ctypes.c_void_p
LOCAL_LAZY = 1 | 4

def opened(name):
    return julia.ijl_load_dynamic_library(name.encode(), LOCAL_LAZY, 1)

def call(library, name, *arguments):
    found = ctypes.c_void_p()
    assert julia.ijl_dlsym(ctypes.c_void_p(library), name.encode(), ctypes.byref(found), 1, 0) == 1, name
    status = ctypes.CFUNCTYPE(ctypes.c_int)(found.value)(*arguments)
    assert library == plugin or status == 0, f"{name}: {status}"
    return status

plugin, size = None, ctypes.c_size_t
file, dim, var = (ctypes.c_int() for _ in range(3))
if first == "netcdf":
    stock = opened("libnetcdf.so.19")
    call(stock, "nc_create", b"plain.nc", 0, ctypes.byref(file))
    call(stock, "nc_close", file)
plugin = opened(plugin_path)
assert call(plugin, "esdm_netcdf_activate", None, size(0)) > 0
stock = opened("libnetcdf.so.19")
call(stock, "nc_create", b"esdm://julia.nc", 0x1000, ctypes.byref(file))
call(stock, "nc_def_dim", file, b"x", size(3), ctypes.byref(dim))
call(stock, "nc_def_var", file, b"v", 4, 1, ctypes.byref(dim), ctypes.byref(var))
call(stock, "nc_enddef", file)
call(stock, "nc_put_var_int", file, var, (ctypes.c_int * 3)(5, 6, 7))
call(stock, "nc_close", file)
call(stock, "nc_open", b"esdm://julia.nc", 0, ctypes.byref(file))
values = (ctypes.c_int * 3)()
call(stock, "nc_get_var_int", file, 0, values)
call(stock, "nc_close", file)
call(plugin, "esdm_netcdf_records", b"told.jsonl", None, size(0))
print(*values)
"""


def julia():
    """The folder of the compiled library; downloaded once."""
    folder = cache_folder() / PACKAGE.replace("==", "-")
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), PACKAGE], capture_output=True,
                              text=True, check=False, timeout=300)
        if done.returncode:
            skip(f"no package index: {done.stderr.strip()[-300:]}")
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder)
        (folder / "complete").touch()
    return folder / "ace_jax_coupling/_lib"


def check(first):
    with Site() as site:
        env = {k: v for k, v in client_environment().items() if k != "LD_PRELOAD"}
        plugin = BUILD / "netcdf-plugin/libesdm-netcdf.so"
        told = run(["/usr/bin/python3", "-c", SCRIPT, julia(), plugin, first], env=env, cwd=site.folder).stdout
        expect(told == "5 6 7\n" and names() == ["julia.nc"], f"{told}{names()}")
        told = run([tool("esdm-explain"), site.file("told.jsonl")]).stdout
        expect("/v" in told, told)
        return site.file("plain.nc").exists()


def test_netcdf_first():
    expect(check("netcdf"), "the plain file is no file")


def test_the_plug_in_first():
    expect(not check("plug-in"), "a plain file out of nothing")


if SIZE != "long":
    print("Julia's runtime is downloaded with --long alone")
    sys.exit(77)
if SANITIZE:
    print("the sanitizer's library must come first, and nothing is preloaded here")
    sys.exit(77)
main(test_netcdf_first, test_the_plug_in_first)
