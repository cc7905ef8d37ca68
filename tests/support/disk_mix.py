# SPDX-License-Identifier: LGPL-3.0-or-later
"""disk_mix.py FILE SEED ROUNDS: series of reads and writes of a file on a disk, each of equal calls: of 512 bytes to 4 MiB, one behind
the other, with holes or in any order, of what memory has and of what it has not. A program to learn from; needs no library."""

import os
import random
import sys
import time


def main():
    chance = random.Random(int(sys.argv[2]))
    fd = os.open(sys.argv[1], os.O_RDWR)
    size = os.fstat(fd).st_size
    values = os.urandom(4 << 20)
    for _ in range(int(sys.argv[3])):
        bytes = int(2 ** chance.uniform(9, 22))
        count = chance.randrange(4, max(5, min(64, (16 << 20) // bytes) + 1))
        hole = chance.choice([0, 0, int(2 ** chance.uniform(9, 22))])
        if count * (bytes + hole) > size // 2:
            hole = 0
        at = chance.randrange(size - count * (bytes + hole)) & ~511
        places = [at + i * (bytes + hole) for i in range(count)]
        if chance.random() < 0.2:
            chance.shuffle(places)
        what = chance.random()
        if what < 0.4:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        elif what < 0.7:
            for place in places:
                os.pread(fd, bytes, place)
        if what < 0.75:
            for place in places:
                os.pread(fd, bytes, place)
        else:
            for place in places:
                os.pwrite(fd, values[:bytes], place)
            if chance.random() < 0.5:
                os.fsync(fd)
        if chance.random() < 0.3:
            time.sleep(chance.random() / 100)


main()
