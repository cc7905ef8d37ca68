# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a disk may hold after the power was lost.

record() runs a program under strace and gives its changes of files below a folder, with what they wrote, and the
lines that it printed. A Disk takes the changes one by one and knows what has been flushed: the bytes of a file by
fsync() and fdatasync() of it, the entries of a folder by fsync() of the folder, as POSIX promises and no more. Of
what was not flushed anything may be there: lost() picks a state by a generator of chance, and write() makes it.

Model: changes of entries that were not flushed survive up to some point in their order (file systems keep them in a
journal), each folder for itself where `apart`; writes that were not flushed survive one by one, in any choice, and one of
them may be torn between sectors. Bytes of a file that was extended but not written are zeros.
"""

import os
import pathlib
import re
import subprocess

SECTOR = 512
CALLS = ("openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync,syncfs,ftruncate,truncate,fallocate,"
         "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,mmap,"
         "copy_file_range,sendfile,io_uring_enter,io_submit")
LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?")
BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
ENDED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
FD = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")
PASSING = ("-shm", "/pins")  # locks and what is made anew; never what was stored


class NotModelled(Exception):
    pass


def decoded(text):
    return bytes.fromhex(text.replace("\\x", ""))


class Change:
    """One call, with `number` in the order of their ends and `begun` in that of their beginnings."""

    def __init__(self, call, arguments, result, opened, begun, number):
        self.call, self.result, self.begun, self.number = call, result, begun, number
        self.strings = [decoded(s) for s in STRING.findall(arguments)]
        self.folders = ["" if gone else os.fsdecode(decoded(path)) for path, gone in FD.findall(arguments)]
        self.plain = FD.sub("FD", STRING.sub('"', arguments))
        self.opened = os.fsdecode(decoded(opened)) if opened else None

    def path(self, which, at):
        """The string `which`, seen from the folder `at` where the call has one."""
        base = self.folders[at] if at < len(self.folders) else "/"
        return os.path.normpath(os.path.join(base, os.fsdecode(self.strings[which])))

    def last_number(self):
        return int(self.plain.rsplit(",", 1)[1])


def record(command, env, log, first=0):
    """Runs it; returns its changes, and [(number, line it printed)]. @param first less than all numbers."""
    done = subprocess.run(["strace", "-f", "-y", "-xx", "-s", str(1 << 26), "-e", f"trace={CALLS}", "-e", "signal=none", "-o", log,
                           *map(str, command)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False, timeout=600)
    changes, said, waiting = [], [], {}
    with open(log, encoding="ascii") as lines:
        for number, line in enumerate(lines, first + 1):
            line, begun = line.rstrip("\n"), number
            if match := BEGUN.match(line):
                waiting[match[1]] = (number, match[3])
                continue
            if match := ENDED.match(line):
                begun, head = waiting.pop(match[1])
                line = f"{match[1]} {match[2]}({head}{match[3]}"
            match = LINE.match(line)
            if match is None or int(match[4]) < 0:
                continue
            change = Change(match[2], match[3], int(match[4]), match[5], begun, number)
            if change.call == "write" and change.plain.startswith("FD") and re.match(r"1<", match[3]):
                said += [(number, text) for text in change.strings[0].decode(errors="replace").splitlines()]
            else:
                changes.append(change)
    os.unlink(log)
    return done, changes, said


class Node:
    """A file, or a folder. `stored` is on the disk for sure; `pending` are changes after that, in order."""

    def __init__(self, is_folder, content=b""):
        self.is_folder = is_folder
        self.now = {} if is_folder else bytearray(content)
        self.stored = {} if is_folder else bytes(content)
        self.pending = []  # files: (number, position, bytes) or (number, None, size)
        self.written_to = 0  # by write(), which has no position


def put(data, position, piece):
    if len(data) < position + len(piece):
        data.extend(bytes(position + len(piece) - len(data)))
    data[position:position + len(piece)] = piece


def resize(data, size):
    if len(data) > size:
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class Disk:
    """A folder as it is when the recording begins, flushed; then with changes."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.root = self.read(pathlib.Path(folder))
        self.moves = []  # changes of entries that were not flushed: (number, [(folder, name, node or None)…])

    def read(self, path):
        if not path.is_dir():
            return Node(False, path.read_bytes())
        node = Node(True)
        node.now = {one.name: self.read(one) for one in path.iterdir()}
        node.stored = dict(node.now)
        return node

    def inside(self, path):
        return path is not None and path.startswith(self.folder + "/")

    def file_of(self, c):
        """The file that a call with a descriptor changes; None: none of ours, removed, or only passing."""
        path = c.folders[0] if c.folders else None
        return self.find(path) if self.inside(path) and not path.endswith(PASSING) else None

    def find(self, path):
        node = self.root
        for part in pathlib.PurePath(path).relative_to(self.folder).parts:
            node = node.now.get(part) if node is not None and node.is_folder else None
        return node

    def above(self, path):
        return self.find(os.path.dirname(path)), os.path.basename(path)

    def enter(self, number, *entries):
        """Entries (path, node or None) that come or go together."""
        done = []
        for path, node in entries:
            folder, name = self.above(path)
            if node is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = node
            done.append((folder, name, node))
        self.moves.append((number, done))

    def change(self, c):
        handler = getattr(self, f"on_{c.call}", None)
        if handler is not None:
            handler(c)
        elif any(self.inside(f) for f in c.folders[:2]):
            raise NotModelled(f"{c.call} {c.folders}")

    def on_openat(self, c):
        if not self.inside(c.opened) or "O_TMPFILE" in c.plain:
            if self.inside(c.opened):
                raise NotModelled("O_TMPFILE")
            return
        node = self.find(c.opened)
        if node is None:
            if "O_CREAT" not in c.plain:
                return  # it has gone since
            node = Node(False)
            self.enter(c.number, (c.opened, node))
        if not node.is_folder:
            node.written_to = len(node.now) if "O_APPEND" in c.plain else 0
            if "O_TRUNC" in c.plain and node.now:
                self.resize(c.number, node, 0)

    on_open = on_creat = on_openat

    def resize(self, number, node, size):
        resize(node.now, size)
        node.pending.append((number, None, size))

    def store(self, c, position):
        node = self.file_of(c)
        if node is None:
            return
        piece = b"".join(c.strings)[:c.result]
        if position is None:
            position, node.written_to = node.written_to, node.written_to + len(piece)
        put(node.now, position, piece)
        node.pending.append((c.number, position, piece))

    def on_write(self, c):
        self.store(c, None)

    on_writev = on_write

    def on_pwrite64(self, c):
        self.store(c, c.last_number())

    on_pwritev = on_pwrite64

    def on_pwritev2(self, c):
        self.store(c, int(c.plain.rsplit(",", 2)[1]))

    def on_ftruncate(self, c):
        node = self.file_of(c)
        if node is not None:
            self.resize(c.number, node, c.last_number())

    def on_fallocate(self, c):
        node = self.file_of(c)
        _, mode, start, length = c.plain.split(",")
        if mode.strip() == "FALLOC_FL_KEEP_SIZE":
            return  # room alone
        if node is not None and mode.strip() != "0":
            raise NotModelled(f"fallocate {mode}")
        if node is not None and len(node.now) < int(start) + int(length):
            self.resize(c.number, node, int(start) + int(length))

    def on_fsync(self, c):
        path = c.folders[0]
        node = self.find(path) if path == self.folder or self.inside(path) else None
        if node is None:
            return
        if node.is_folder:
            self.flush(node, c.begun)
        else:
            data = bytearray(node.stored)
            for pending in (p for p in node.pending if p[0] < c.begun):
                apply_data(data, pending)
            node.stored = bytes(data)
            node.pending = [p for p in node.pending if p[0] >= c.begun]

    on_fdatasync = on_fsync

    def flush(self, folder, begun):
        """What came before in a folder, and in those that its entries came from or went to."""
        folders, left, flushed = {folder}, [], []
        for move in reversed(self.moves):
            touched = {f for f, _, _ in move[1]}
            if move[0] < begun and touched & folders:
                folders |= touched
                flushed.append(move)
            else:
                left.append(move)
        self.moves = left[::-1]
        for move in reversed(flushed):
            for where, name, node in move[1]:
                set_entry(where.stored, name, node)

    def on_rename(self, c):
        at = 1 if len(c.folders) > 1 else 0
        old, new = c.path(0, 0), c.path(1, at)
        if "RENAME_EXCHANGE" in c.plain:
            raise NotModelled("RENAME_EXCHANGE")
        if self.inside(old) != self.inside(new):
            raise NotModelled(f"a rename into or out of the folder: {old} {new}")
        if self.inside(old):
            self.enter(c.number, (new, self.find(old)), (old, None))

    on_renameat = on_renameat2 = on_rename

    def on_unlink(self, c):
        path = c.path(0, 0)
        if self.inside(path):
            self.enter(c.number, (path, None))

    on_unlinkat = on_rmdir = on_unlink

    def on_mkdir(self, c):
        path = c.path(0, 0)
        if self.inside(path):
            self.enter(c.number, (path, Node(True)))

    on_mkdirat = on_mkdir

    def on_link(self, c):
        old, new = c.path(0, 0), c.path(1, 1 if len(c.folders) > 1 else 0)
        if self.inside(new):
            if not self.inside(old):
                raise NotModelled(f"a link to {old}")
            self.enter(c.number, (new, self.find(old)))

    on_linkat = on_link

    def on_mmap(self, c):
        if "MAP_SHARED" in c.plain and "PROT_WRITE" in c.plain and self.file_of(c):
            raise NotModelled(f"a mapping that is written: {c.folders[0]}")

    # ---- states

    def lost(self, chance, keep):
        """A state for write(). @param keep the share of what was not flushed that is there: 0 and 1 are sure."""
        apart, common, most, dropped, entries = chance.random() < 0.5, chance.randint(0, len(self.moves)), {}, set(), {}
        for i, (_, changes) in enumerate(self.moves):
            folders = {folder for folder, _, _ in changes}
            for folder in folders - most.keys():
                most[folder] = len(self.moves) * keep if keep in (0, 1) else chance.randint(0, len(self.moves)) if apart else common
            if folders & dropped or any(i >= most[folder] for folder in folders):
                dropped |= folders  # and what came later there
                continue
            for folder, name, node in changes:
                set_entry(entries.setdefault(folder, dict(folder.stored)), name, node)
        return entries, lambda node: bytes_of(node, chance, keep)

    def write(self, state, folder):
        """Makes the state below a folder, which must be empty."""
        entries, content = state

        def make(node, path):
            if not node.is_folder:
                path.write_bytes(content(node))
                return
            path.mkdir(exist_ok=True)
            for name, one in entries.get(node, node.stored).items():
                make(one, path / name)
        make(self.root, pathlib.Path(folder))


def set_entry(entries, name, node):
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def bytes_of(node, chance, keep):
    if keep == 1 or not node.pending:
        return bytes(node.now)
    data = bytearray(node.stored)
    torn = chance.randrange(len(node.pending)) if chance.random() < 0.5 else None
    for i, (number, position, piece) in enumerate(node.pending if keep else []):
        if i == torn and position is not None:
            first = -position % SECTOR  # sectors are counted from the beginning of the file
            cut = min(len(piece), first + SECTOR * chance.randint(0, max(len(piece) - first, 0) // SECTOR))
            front = chance.random() < 0.5
            apply_data(data, (number, position, piece[:cut]) if front else (number, position + cut, piece[cut:]))
        elif chance.random() < keep:
            apply_data(data, (number, position, piece))
    return bytes(data)


def apply_data(data, pending):
    _, position, piece = pending
    if position is None:
        resize(data, piece)
    else:
        put(data, position, piece)
