# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs on kernels that lack a system call, as older ones do: it answers ENOSYS (seccomp)."""

# Numbers from 424 on are those of all machines.
CLOSE_RANGE = 436  # Linux 5.9
CACHESTAT = 451    # Linux 6.5
CANNOT = 77        # exit status: nothing can be taken away here

WITHOUT = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)]  # 0x26: ENOSYS
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(steps), ctypes.addressof(filter))), 0, 0):
    sys.exit(77)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def without(number):
    """What stands before a command that is to lack this system call, or to end with CANNOT."""
    return ["/usr/bin/python3", "-c", WITHOUT, str(number)]
