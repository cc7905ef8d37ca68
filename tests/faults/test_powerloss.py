#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The power is lost at any point: with durability "system" all that was committed is there, and what was not is there as a whole
or not at all. Writes, flushes and changes of folders are recorded, and states of the disk are made of them in which what
was not flushed is missing, torn or out of order (see powerloss.py)."""

import json
import pathlib
import random
import shutil
import subprocess
import tempfile

from esdmtest import SANITIZE, SEED, Site, by_size, environment, expect, in_memory, main, run, skip, tool
from faults import PROGRAM, need_strace
from powerloss import Disk, record

ALL = {"ESDM_FAULT_SMALL": "1"}


class Story:
    """Steps in order: what each changes, and what containers there are before and after, {name: generation}."""

    def __init__(self, site):
        self.site = site
        self.now = {}
        self.changes = []  # of all steps
        self.legal = []    # beside them: containers that may be there if the power is lost right behind the change

    def add(self, command, step):
        """@param step(line): what is there once the line was printed; None stands for the end of the program."""
        done, changes, said = record(command, environment(ALL), self.site.file("strace.log"),
                                     self.changes[-1].number if self.changes else 0)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        expect(changes, f"{command}: nothing was recorded")
        for change in changes:
            while said and said[0][0] < change.number:
                self.now = step(said.pop(0)[1]) or self.now
            coming = next((after for after in (step(line) for _, line in said) if after), None) or step(None)
            self.changes.append(change)
            self.legal.append([self.now, coming or self.now])
        for _, line in said:
            self.now = step(line) or self.now
        self.now = step(None) or self.now
        self.legal[-1] = [self.now]

    def write(self, name, first, last):
        now = dict(self.now)

        def step(line):
            return {**now, name: int(line.split()[1])} if line and line.startswith("committed ") else None
        self.add([PROGRAM, "write", name, first, last], step)

    def tool(self, after, name, *arguments):
        self.add([tool(name), *arguments], lambda line: after if line is None else None)


def tell(site):
    """All that changes catalogue and packs: commits, names, clones, removals, tags, garbage, equal fragments that are
    shared, a target that is emptied."""
    story = Story(site)
    story.write("a", 1, 3)
    story.write("b", 1, 2)
    story.tool({"a": 3, "c": 2}, "esdm-mv", "b", "c")
    story.tool({"a": 3, "c": 2, "d": 2}, "esdm-cp", "--reflink", "esdm://c", "esdm://d")
    story.write("d", 3, 3)
    story.tool({"a": 3, "d": 3}, "esdm-rm", "c")
    story.tool({"a": 3, "d": 3}, "esdm-tag", "a", "paper")
    story.write("a", 4, 5)
    story.tool({"a": 5, "d": 3}, "esdm-gc", "--yes", "--age", "0", "--replaced-now")
    story.write("f", 1, 1)
    story.write("g", 1, 1)
    now = {"a": 5, "d": 3, "f": 1, "g": 1}
    story.tool(now, "esdm-dedup", "f", "g")
    story.tool(now, "esdm-drain", "--from", "other", "--age", "0")
    story.tool(now, "esdm-compact", "a")
    story.tool(now, "esdm-gc", "--yes", "--age", "0")
    story.write("a", 6, 6)
    return story


def containers_of(config):
    env = environment({**ALL, "ESDM_CONFIG": str(config)})
    listed = json.loads(run([tool("esdm-ls"), "--json"], env=env).stdout)
    found = {}
    for name in (c["name"] for c in listed["containers"]):
        done = subprocess.run([PROGRAM, "check", name], env=env, capture_output=True, text=True, check=False, timeout=300)
        expect(done.returncode == 0, f"{name} cannot be read: {done.stdout}{done.stderr}")
        found[name] = int(done.stdout.split("generation ")[1].split()[0])
    return found


def check_state(site, folder, legal, whole):
    config = folder / site.config.name
    config.write_text(json.dumps({**json.loads(config.read_text()), "durability": "process"}))  # nothing is lost again
    found = containers_of(config)
    expect(found in legal, f"there is {found}, but there should be one of {legal}")
    if not whole:
        return
    env = environment({**ALL, "ESDM_CONFIG": str(config)})
    done = run([tool("esdm-fsck"), "--data"], env=env, check=False)
    expect(done.returncode == 0, f"esdm-fsck: {done.stdout}{done.stderr}")
    last = found.get("a", 0)
    run([PROGRAM, "write", "a", str(last + 1), str(last + 1)], env=env)
    run([tool("esdm-gc"), "--yes", "--age", "0"], env=env)
    found["a"] = last + 1
    again = containers_of(config)
    expect(again == found, f"after going on there is {again}, not {found}")


def unflushed(disk):
    """Which folders of the site have something that was not flushed."""
    def has_some(node):
        return any(one.pending if not one.is_folder else has_some(one) for one in node.now.values())
    touched = {folder for _, changes in disk.moves for folder, _, _ in changes}

    def moved(node):
        return node in touched or any(one.is_folder and moved(one) for one in node.now.values())
    return {name for name, node in disk.root.now.items() if node.is_folder and (has_some(node) or moved(node))}


PACKS = {"packs", "other"}
CATALOGUE = {"metadata"}


def draw(chance, loose, states):
    """[(change behind which the power is lost, share of what was not flushed that is there)…]: `states` at least in which something
    of the catalogue may be missing, and as many of packs; every tenth is any. @param loose of each change, what unflushed() tells."""
    at, counts = [], [0, 0]
    choices = [[i for i, what in enumerate(loose) if what & parts] for parts in (CATALOGUE, PACKS)]
    expect(all(choices), f"nothing is ever unflushed: {[len(one) for one in choices]}")
    while min(counts) < states:
        kind = 0 if counts[0] < states else 1
        i = chance.choice(choices[kind]) if len(at) % 10 else chance.randrange(len(loose))
        keep = chance.choice((0, 0.1, 0.5, 0.9, 0, 0.1, 0.5, 0.9, 1))
        at.append((i, keep))
        for k, parts in enumerate((CATALOGUE, PACKS)):
            counts[k] += keep < 1 and bool(loose[i] & parts)
    return sorted(at), counts


def lose_power(plugin, states):
    """In every fifth state all is verified, too, and a writer goes on. @param states of the catalogue, and of packs, at least."""
    need_strace()
    if SANITIZE:
        skip("strace and the sanitizers' runtime do not go together")
    chance = random.Random(SEED)
    targets = [{"name": name, "plugin": plugin, "directory": name} for name in ("packs", "other")]
    with Site(durability="system", targets=targets) as site:
        disk, twin = Disk(site.folder), Disk(site.folder)
        story = tell(site)
        loose = []
        for change in story.changes:
            twin.change(change)
            loose.append(unflushed(twin))
        at, counts = draw(chance, loose, states)
        wanted, made = len(at), 0
        with tempfile.TemporaryDirectory(prefix="esdm-test.", dir=in_memory()) as folder:
            place = pathlib.Path(folder) / "lost"
            for i, (change, legal) in enumerate(zip(story.changes, story.legal)):
                disk.change(change)
                while at and at[0][0] == i:
                    _, keep = at.pop(0)
                    shutil.rmtree(place, ignore_errors=True)
                    place.mkdir()
                    disk.write(disk.lost(chance, keep), place)
                    try:
                        check_state(site, place, legal, made % 5 == 0)
                    except Exception as problem:
                        raise type(problem)(f"state {made}, {keep} of what was not flushed, behind change {i}, {change.call} "
                                            f"{change.folders[:1]}: {problem}") from problem
                    made += 1
        print(f"{made} states of {len(story.changes)} changes: in {counts[0]} something of the catalogue (SQLite) that was not "
              f"flushed may be missing, in {counts[1]} something of packs ({plugin})")
        expect(made == wanted, "states were left out")


def test_powerloss__all_that_was_committed_is_there():
    lose_power("posix", by_size(20, 50, 2000))


if __name__ == "__main__":
    main(test_powerloss__all_that_was_committed_is_there)
