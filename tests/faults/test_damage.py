#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Flipped bits, truncated and lost packs, damaged pages and documents: an error that says which
container, dataset, box and pack; other data stay readable; wrong data never come back."""

import random
import shutil
import sqlite3

from esdmtest import Site, by_size, client, expect, expect_error, main, run, tool
from faults import database, must, program, shown

DATASETS = ("tiny", "small", "large", "packed")


def read_datasets(name):
    """Text after the name for each dataset: "ok N" or "STATUS: MESSAGE"."""
    done = program("read", name)
    expect(done.returncode == 0, f"reading as far as possible:\n{shown(done)}")
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if line != "started"]
    return dict(lines)


def check_damage(name, result, pack=None):
    """Every dataset is right or has an error that names the place; returns the bad ones."""
    bad = [d for d in DATASETS if not result[d].startswith("ok")]
    for dataset in DATASETS:
        text = result[dataset]
        if dataset not in bad:
            expect(text == "ok 1", f"{dataset}: {text}")
            continue
        for word in (name, dataset, "[", pack or ""):
            expect(word in text, f"the message does not say '{word}': {text}")
    return bad


def flip(path, position, bit):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << bit)]))


def test_flipped_bit_in_a_pack__is_found_and_named():
    generator = random.Random(2)
    found = 0
    with Site() as site:
        must("write", "c", 1, 1)
        packs = site.pack_files()
        expect(packs, "no packs were written")
        rounds = by_size(20, 80, 800)
        for _ in range(rounds):
            pack = generator.choice(packs)
            position, bit = generator.randrange(pack.stat().st_size), generator.randrange(8)
            flip(pack, position, bit)
            bad = check_damage("c", read_datasets("c"), pack.name)
            expect(len(bad) <= 1, f"one bit damaged {bad}")
            found += len(bad)
            flip(pack, position, bit)
        # Every byte of a pack is data or a checksummed header.
        expect(found == rounds, f"{found} of {rounds} flips were noticed")
        expect(check_damage("c", read_datasets("c")) == [], "not as before")


def test_truncated_and_lost_packs__are_named():
    with Site() as site:
        must("write", "c", 1, 1)
        for pack in site.pack_files():
            aside = site.file("aside")
            shutil.copy2(pack, aside)
            with open(pack, "r+b") as file:
                file.truncate(pack.stat().st_size // 2)
            expect(check_damage("c", read_datasets("c"), pack.name), f"{pack.name} was cut")
            pack.unlink()
            expect(check_damage("c", read_datasets("c"), pack.name), f"{pack.name} was lost")
            pack.write_bytes(b"\0" * aside.stat().st_size)
            expect(check_damage("c", read_datasets("c"), pack.name), f"{pack.name} was zeroed")
            shutil.copy2(aside, pack)
        expect(check_damage("c", read_datasets("c")) == [], "not as before")


def change_blobs(site, table, column, change):
    """Applies change(bytes) to each blob of a column, one at a time; yields in between."""
    with sqlite3.connect(database(site)) as db:
        rows = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    expect(rows, f"{table} is empty")
    for rowid, blob in rows:
        if not isinstance(blob, (bytes, str)) or not blob:
            continue
        for value in (change(blob), blob):
            connection = sqlite3.connect(database(site))
            with connection as db:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid))
            connection.close()
            if value != blob:
                yield


def flipped(blob):
    middle = len(blob) // 2
    if isinstance(blob, str):
        return blob[:middle] + "\x07" + blob[middle + 1:]
    return blob[:middle] + bytes([blob[middle] ^ 16]) + blob[middle + 1:]


def letter_changed(document):
    """Another text that is as good as before: the last letter of the last name."""
    at = document.rindex('"name":"' if isinstance(document, str) else b'"name":"') + 8
    letter = document[at:at + 1]
    other = "Q" if isinstance(document, str) else b"Q"
    expect(letter != other, "choose another letter")
    return document[:at] + other + document[at + 1:]


def test_damaged_page__other_datasets_stay_readable():
    with Site() as site:
        must("write", "c", 1, 1)
        hit = set()
        for change in (flipped, lambda b: b[: len(b) // 2], lambda b: b""):
            for _ in change_blobs(site, "page_data", "data", change):
                result = read_datasets("c")
                bad = [d for d in DATASETS if not result[d].startswith("ok")]
                for dataset in bad:
                    expect("c" in result[dataset] and dataset in result[dataset], result[dataset])
                    expect("damage" in result[dataset] or "corrupt" in result[dataset].lower(),
                           result[dataset])
                expect(len(bad) <= 1, f"one page damaged {bad}")
                hit.update(bad)
        expect(hit == set(DATASETS), f"only pages of {hit} were hit")
        expect(check_damage("c", read_datasets("c")) == [], "not as before")


def test_damaged_document__is_told():
    with Site() as site:
        must("write", "c", 1, 1)
        must("write", "other", 1, 1)
        damaged = set()
        for change in (flipped, letter_changed, lambda b: b[: len(b) // 2]):
            for _ in change_blobs(site, "snapshot", "document", change):
                results = {name: program("check", name) for name in ("c", "other")}
                bad = [name for name, done in results.items() if done.returncode]
                expect(len(bad) == 1, f"one document is damaged, and not: {bad}")
                expect_error(results[bad[0]], bad[0], "document")
                damaged.update(bad)
                done = run([tool("esdm-fsck"), "--data"], check=False)
                expect(done.returncode == 1 and "document" in done.stdout + done.stderr, shown(done))
        expect(damaged == {"c", "other"}, f"only {damaged} was hit")
        must("check", "c")
        run([tool("esdm-fsck"), "--data"])


def test_damaged_database__is_told_without_a_crash():
    with Site() as site:
        must("write", "c", 1, 1)
        file = database(site)
        good = file.read_bytes()
        generator = random.Random(3)
        for damage in ("cut", "zero", "noise", "foreign"):
            for extra in site.folder.glob("metadata/*-wal"):
                extra.unlink()
            if damage == "cut":
                file.write_bytes(good[: len(good) // 3])
            elif damage == "zero":
                file.write_bytes(good[:100] + b"\0" * (len(good) - 100))
            elif damage == "noise":
                file.write_bytes(generator.randbytes(len(good)))
            else:
                file.write_bytes(b"These are my notes.\n" * 100)
            done = program("check", "c")
            expect(done.returncode in (3, 4) or damage == "cut", f"{damage}:\n{shown(done)}")
            expect(done.returncode != 4, f"{damage}: wrong data:\n{shown(done)}")
            for name in ("esdm-ls", "esdm-mkfs --check"):
                words = name.split()
                run([tool(words[0]), *words[1:]], check=False)  # no signal
        file.write_bytes(good)


def test_netcdf_program__is_told():
    with Site() as site:
        must("write", "c", 1, 1)
        for pack in site.pack_files():
            flip(pack, pack.stat().st_size // 2, 3)
        done = client(["ncdump", "esdm://c"], check=False)
        expect_error(done)
        client(["ncdump", "-h", "esdm://c"])
        client(["ncdump", "-v", "tiny", "esdm://c"])
        expect_error(client(["nccopy", "esdm://c", site.file("out.nc")], check=False))
        expect_error(run([tool("esdm-cp"), "esdm://c", site.file("out2.nc")], check=False))


main(
    test_flipped_bit_in_a_pack__is_found_and_named,
    test_truncated_and_lost_packs__are_named,
    test_damaged_page__other_datasets_stay_readable,
    test_damaged_document__is_told,
    test_damaged_database__is_told_without_a_crash,
    test_netcdf_program__is_told,
)
