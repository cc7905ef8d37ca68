#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Fragments on several targets: reads survive the loss of one, and of parts of each."""

import json
import random
import re
import subprocess

from esdmtest import (BUILD, Site, by_size, client, environment, expect, expect_error, is_pack,
                      main, run, skip, tool)
from faults import (DYING, PROGRAM, check_goes_on, generation, must, need_netcdf4_python, program,
                    shown, writes)

NAMES = ("one", "two", "three")


def site(names=NAMES, copies=2, **changes):
    targets = [{"name": n, "plugin": "posix", "directory": n} for n in names]
    return Site(targets=targets, copies=copies, **changes)


def packs(place, name):
    return {p.name: p for p in place.file(name).rglob("*") if p.is_file() and
            is_pack(p)}


def all_packs(place, names=NAMES):
    """name of the pack → targets that hold it"""
    found = {}
    for name in names:
        for pack in packs(place, name):
            found.setdefault(pack, []).append(name)
    return found


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    at = random.Random(3).randrange(len(data)) if at is None else at
    data[at] ^= 16
    path.chmod(0o644)
    path.write_bytes(data)


def stat_targets(name):
    text = run([tool("esdm-stat"), "--json", "--fragments", name]).stdout
    return set(re.findall(r'"target": "([^"]+)"', text))


def test_copies__lie_on_distinct_targets():
    with site() as place:
        must("write", "a", 1, 2)
        told = writes("a")
        expect(told["fragments"] > 0 and told["elsewhere"] == told["fewer_copies"] == 0, f"{told}")
        expect("than planned" not in run([tool("esdm-stat"), "a"]).stdout, "it went as planned")
        found = all_packs(place)
        expect(found and all(len(targets) == 2 for targets in found.values()), f"{found}")
        for pack, (first, second) in found.items():
            expect(packs(place, first)[pack].read_bytes() == packs(place, second)[pack].read_bytes(),
                   f"the copies of {pack} differ")
        expect(any("," in t for t in stat_targets("a")), f"esdm-stat: {stat_targets('a')}")
        run([tool("esdm-fsck"), "--data"])


def test_copies__survive_the_loss_of_any_target():
    with site() as place:
        must("write", "a", 1, 3)
        for name in NAMES:
            place.file(name).rename(place.file("away"))
            expect(generation("a") == 3, f"without target {name}")
            must("write", f"without-{name}", 1, 1)
            place.file("away").rename(place.file(name))
            expect(generation(f"without-{name}") == 1, f"written without target {name}")
        check_goes_on("a", 3)


def test_copies__survive_missing_short_and_damaged_packs():
    generator = random.Random(1)
    with site(names=("one", "two")) as place:
        must("write", "a", 1, 2)
        for pack in all_packs(place):
            victim = packs(place, generator.choice(("one", "two")))[pack]
            whole = victim.read_bytes()
            victim.chmod(0o644)
            victim.unlink()
            expect(generation("a") == 2, "a pack is missing")
            victim.write_bytes(whole[:len(whole) // 2])
            expect(generation("a") == 2, "a pack is short")
            victim.write_bytes(whole)
            for _ in range(by_size(2, 5, 50)):
                flip(victim, generator.randrange(len(whole)))
            expect(generation("a") == 2, "a pack is damaged")


def test_copies__what_both_have_lost_is_told():
    with site(names=("one", "two")) as place:
        must("write", "a", 1, 1)
        pack = max(all_packs(place), key=lambda p: packs(place, "one")[p].stat().st_size)
        bytes_of = packs(place, "one")[pack].stat().st_size
        flip(packs(place, "one")[pack], bytes_of - 100)
        expect(generation("a") == 1, "one copy is damaged")
        flip(packs(place, "two")[pack], bytes_of - 100)
        done = program("check", "a")
        expect(done.returncode == 3, shown(done))
        for word in ("damaged", "none of its 2 copies", pack):
            expect(word in done.stderr, f"no {word}: {done.stderr}")
        done = run([tool("esdm-fsck"), "--data", "--json"], check=False)
        expect(done.returncode == 1 and "cannot be read" in done.stdout, done.stdout[-3000:])


def test_copies__fewer_targets_than_copies():
    with site(names=("one", "two")) as place:
        place.file("two").rename(place.file("away"))
        must("write", "a", 1, 2)
        place.file("away").rename(place.file("two"))
        expect(generation("a") == 2, "written to the other target alone")
        told = writes("a")
        expect(told["fewer_copies"] == told["fragments"] > 0 == told["elsewhere"], f"{told}")
        text = run([tool("esdm-stat"), "a"]).stdout
        expect("with fewer copies than asked for" in text and "--repair" in text, text)
        check_goes_on("a", 2)


def test_copies__esdm_cp_tells_of_fewer():
    with site(names=("one", "two")) as place:
        must("write", "a", 1, 2)
        done = run([tool("esdm-cp"), "esdm://a", "esdm://well", "--json"])
        told = json.loads(done.stdout)["copies"][0]["writes"]
        expect(told["fragments"] > 0 == told["elsewhere"] == told["fewer_copies"], f"{told}")
        expect(done.stderr == "", done.stderr)
        place.file("two").rename(place.file("away"))
        done = run([tool("esdm-cp"), "esdm://a", "esdm://fewer", "--json"])
        told = json.loads(done.stdout)["copies"][0]["writes"]
        expect(told["fewer_copies"] == told["fragments"] > 0, f"{told}")
        words = f"{told['fewer_copies']} of {told['fragments']} fragments have fewer copies"
        expect("'fewer'" in done.stderr and words in done.stderr, done.stderr)
        place.file("away").rename(place.file("two"))


def test_copies__a_target_that_dies_while_it_is_written():
    """The n-th append, seal or creation fails: the other target has everything."""
    if not (BUILD / "plugins/esdm-data-faulty.so").exists():
        skip("esdm-data-faulty was not built")
    targets = [{"name": "one", "plugin": "posix", "directory": "one"},
               {"name": "two", "plugin": "faulty", "directory": "two"}]
    path = {"ESDM_PLUGIN_PATH": str(BUILD / "plugins")}
    with Site(make=False, targets=targets, copies=2, durability="system"):
        run([tool("esdm-mkfs")], env=environment(path))
        must("write", "well", 1, 3, env=path)
        expect(writes("well", path)["fewer_copies"] == 0, f"{writes('well', path)}")
        for number, fault in enumerate(("create:1+0:fail:EIO", "append:1+0:fail:ENOSPC",
                                        "append:2:fail:EIO", "append:3+0:short:ENOSPC",
                                        "sync:1+0:fail:EIO", "seal:1+0:fail:EIO",
                                        "append:2:flip")):
            must("write", f"a{number}", 1, 3, env={**path, "ESDM_FAULTY": fault})
            expect("generation 3" in must("check", f"a{number}", env=path).stdout, fault)
            told = writes(f"a{number}", path)
            expect(told["fewer_copies"] <= told["fragments"], f"{fault}: {told}")
            if "+0" in fault:  # one that comes once may meet what is tried again
                expect(told["fewer_copies"] > 0, f"{fault}: {told}")
            if "flip" in fault:  # nobody has noticed
                expect(told["fewer_copies"] == 0, f"{fault}: {told}")
        done = run([tool("esdm-fsck"), "--data"], check=False, env=environment(path))
        expect(done.returncode == 1, f"nothing was found: {done.stdout}")


def test_copies__what_went_elsewhere_is_counted():
    """One copy on two targets that take turns; one of them dies, for good or for a moment."""
    if not (BUILD / "plugins/esdm-data-faulty.so").exists():
        skip("esdm-data-faulty was not built")
    need_netcdf4_python()
    targets = [{"name": "one", "plugin": "faulty", "directory": "one"},
               {"name": "two", "plugin": "posix", "directory": "two"}]
    path = {"ESDM_PLUGIN_PATH": str(BUILD / "plugins")}
    with Site(make=False, targets=targets):
        run([tool("esdm-mkfs")], env=environment(path))
        for fault, some in (("append:3+0:fail:EIO", True), ("append:2:fail:EIO", True), ("", False)):
            done = client(["/usr/bin/python3", DYING, "write", "esdm://a.nc", "12", "0", "true"],
                          env={**path, "ESDM_FAULTY": fault})
            told = writes("a.nc", path)
            expect(told["fewer_copies"] == 0 < told["fragments"] and
                   (0 < told["elsewhere"] <= told["fragments"]) == some, f"{fault}: {told}")
            expect(("esdm: close 'a.nc'" in done.stderr) == some, f"{fault}: {shown(done)}")
            if some:
                words = f"{told['elsewhere']} of {told['fragments']} fragments"
                expect(words in done.stderr, f"{fault}: {told}: {shown(done)}")
                text = run([tool("esdm-stat"), "a.nc"], env=environment(path)).stdout
                expect(words in text and "another target than planned" in text, text)
            run([tool("esdm-fsck"), "--data"], env=environment(path))


def repair(status=1):
    done = run([tool("esdm-fsck"), "--data", "--repair", "--json"], check=False)
    expect(done.returncode == status, f"status {done.returncode}:\n{done.stdout[-4000:]}{done.stderr}")
    return json.loads(done.stdout)


def test_copies__are_restored():
    """--repair makes what is missing or damaged anew; esdm-gc removes what was replaced."""
    generator = random.Random(5)
    with site(history=3) as place:
        must("write", "a", 1, 3)
        for pack, targets in all_packs(place).items():
            victim = packs(place, generator.choice(targets))[pack]
            if generator.random() < 0.5:
                victim.unlink()
            else:
                flip(victim, victim.stat().st_size // 2)
        expect(run([tool("esdm-fsck"), "--data"], check=False).returncode == 1, "nothing was found")
        result = repair()
        expect(result["repaired"] == result["problems"] > 0, f"{result}")
        run([tool("esdm-fsck"), "--data"])
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        run([tool("esdm-fsck"), "--data"])
        expect(all(len(t) == 2 for t in all_packs(place).values()), f"{all_packs(place)}")
        for name in NAMES:
            place.file(name).rename(place.file("away"))
            expect(generation("a") == 3, f"without target {name}")
            place.file("away").rename(place.file(name))
        check_goes_on("a", 3)


def test_copies__more_are_made_when_the_site_asks_for_more():
    with site(copies=1) as place:
        must("write", "a", 1, 2)
        config = json.loads(place.config.read_text())
        config["copies"] = 3
        place.config.write_text(json.dumps(config))
        expect(generation("a") == 2, "with another configuration")
        repair()
        expect({t.count(",") for t in stat_targets("a") if t != "(inline)"} == {2}, "copies")
        config["copies"] = 1
        place.config.write_text(json.dumps(config))
        run([tool("esdm-fsck"), "--data"])
        expect(generation("a") == 2, "fewer copies are wanted")


def test_copies__repair_of_a_lost_target():
    with site() as place:
        must("write", "a", 1, 2)
        place.file("two").rename(place.file("away"))
        result = repair(status=4)  # the target itself is still away
        expect(result["repaired"] > 0 and result["problems"] == result["repaired"] + 1, f"{result}")
        expect(generation("a") == 2, "after the repair")
        for name in ("one", "three"):
            place.file(name).rename(place.file("aside"))
            expect(generation("a") == 2, f"without {name} too")
            place.file("aside").rename(place.file(name))


def test_copies__readers_go_on_during_repairs():
    with site() as place:
        must("write", "a", 1, 2)
        reader = subprocess.Popen([PROGRAM, "check", "a"], env=environment(),
                                  stdout=subprocess.PIPE, text=True)
        for pack, targets in all_packs(place).items():
            packs(place, targets[0])[pack].unlink()
        repair()
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        expect("generation 2" in reader.communicate()[0], "a reader was disturbed")


def test_copies__policies():
    policies = [{"variable": "large", "copies": 2}, {"container": "exp/*", "copies": 3},
                {"variable": "/small", "copies": 2}]
    with site(copies=1, policies=policies):
        must("write", "a", 1, 1)
        must("write", "exp/b", 1, 1)
        counts = {t.count(",") + 1 for t in stat_targets("exp/b") if t != "(inline)"}
        expect(counts == {2, 3}, f"exp/b: {counts}")
        counts = {t.count(",") + 1 for t in stat_targets("a") if t != "(inline)"}
        expect(counts == {1, 2}, f"a: {counts}")


def test_copies__configuration():
    def wrong(words, **changes):
        with Site(make=False, **changes):
            expect_error(run([tool("esdm-mkfs"), "--validate"], check=False), *words)
    wrong(["copies", "2 copies need as many targets"], copies=2)
    wrong(["copies"], copies=0)
    wrong(["policies[0]", "copies"], policies=[{"copies": 9}])
    wrong(["policies[0]", "variable"], policies=[{"variables": "x"}])
    wrong(["accessibility"], targets=[{"name": "a", "plugin": "posix", "directory": "a",
                                       "accessibility": "everywhere"}])


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
