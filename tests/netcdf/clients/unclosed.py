# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes a data set and ends without closing it: unclosed.py PATH HOW [FORMAT]."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import netCDF4
import numpy as np

path, how = sys.argv[1:3]
kind = sys.argv[3] if len(sys.argv) > 3 else "NETCDF4"

nc = netCDF4.Dataset(path, "w", format=kind)
# Nobody lets go of it any more, so that Python cannot close it at the end.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(nc))
nc.createDimension("time", None)
nc.createDimension("x", 1000)
v = nc.createVariable("v", "f8", ("time", "x"))
v[0:3] = np.arange(3000).reshape(3, 1000)
if how == "synced":
    nc.sync()
    v[0:3] = -1


def forever():
    while True:
        time.sleep(0.001)
        np.asarray(v[0])


if how == "exit3":
    sys.exit(3)
elif how == "exception":
    raise ValueError("after the data was written")
elif how == "daemon":
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.1)
elif how == "child":  # ends before the parent, and without a word
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
elif how in ("_exit", "synced"):
    os._exit(0)
elif how == "terminated":
    os.kill(os.getpid(), signal.SIGTERM)
