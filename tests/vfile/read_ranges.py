#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""read_ranges.py URL: reads a file by HTTP ranges through h5py, as fsspec does; prints two values."""

import io
import sys
import urllib.request

import h5py


class Remote(io.RawIOBase):
    def __init__(self, url):
        super().__init__()
        self.url, self.at = url, 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as reply:
            self.size = int(reply.headers["Content-Length"])

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = (offset, self.at + offset, self.size + offset)[whence]
        return self.at

    def readinto(self, buffer):
        count = min(len(buffer), self.size - self.at)
        if count <= 0:
            return 0
        wanted = {"Range": f"bytes={self.at}-{self.at + count - 1}"}
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=wanted)) as reply:
            data = reply.read()
        buffer[:len(data)] = data
        self.at += len(data)
        return len(data)


with h5py.File(Remote(sys.argv[1]), "r") as file:
    print(file["v"][1, 2, 1], file["g/w"][1])
