#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Where fragments go: by the measured model of a site, by what was learned and seen, by policies; and why."""

import contextlib
import json
import os
import re
import sqlite3

from esdmtest import BUILD, Site, by_clock, by_size, client, expect, expect_error, main, need_program, run, tool
from measured import ENOUGH, SPEEDS, calibrate, explain, packs, site, stored, write


@by_clock
def test_fragments_are_shared_by_speed():
    with site(SPEEDS) as s:
        write("before")
        ratio = stored(s, "fast") / stored(s, "slow")
        expect(0.9 < ratio < 1.1, f"without a model targets take turns: {ratio}")
        run([tool("esdm-rm"), "--for-good", "before"])
        calibrate(seconds=ENOUGH)
        write("after", 96)
        ratio = stored(s, "fast") / max(stored(s, "slow"), 1)
        expect(1.5 < ratio < 16, f"four to one, about: {ratio}")


def small_writes(name, requests, trace=None):
    """Writes that are cut into fragments of 64 KiB, six at once."""
    env = dict(os.environ)
    if trace:
        env["ESDM_MONITOR"] = f"trace:{trace}"
    mib = str(requests // 16)
    return float(re.search(r"[0-9.]+", run([BUILD / "tests/bench/bench_placement", "write", name, mib, mib],
                                           env=env).stdout).group())


@by_clock
def test_placement_goes_by_what_was_learned():
    """A target whose small requests are slow when more than one is under way: no calibration has such a bend."""
    common = {"plugin": "throttled", "bytes_per_s": 200e6, "latency_ms": 0.2}
    targets = [{"name": "bent", "directory": "bent", "service_ms": 0.2, "crowd_above": 1, "crowd_below_bytes": 1e6,
                "crowd_factor": 20, **common},
               {"name": "steady", "directory": "steady", "service_ms": 2, **common}]
    with site({}, targets=targets, engine={"threads": 6, "fragment": "64 KiB"}) as s:
        trace = s.file("trace.jsonl")
        small_writes("unknown", 112, trace)
        expect_error(run([tool("esdm-tune"), "--learn", "--apply", trace], check=False), "was not measured",
                     "--calibrate")
        calibrate(seconds=ENOUGH)
        s.file("header.cdl").write_text("netcdf h { dimensions: x = 1000000 ; variables: double v(x) ; }")
        plan = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", s.file("header.cdl")]).stdout)
        expect({m["model"] for m in plan["models"]} == {"measured"} and len(plan["models"]) == 4, str(plan["models"]))
        trace.unlink()
        for _ in range(4):  # on a busy machine times say little
            before = small_writes("seen", 480, trace)
            learned = json.loads(run([tool("esdm-tune"), "--learn", "--apply", "--json", trace]).stdout)["targets"]
            bent = [t for t in learned if t["target"] == "bent" and t["direction"] == "write"]
            if bent and bent[0]["learned"]:
                break
        expect(len(bent) == 1 and bent[0]["learned"] and bent[0]["error"] < 0.9 * bent[0]["measured_error"],
               f"{learned}")
        plan = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", s.file("header.cdl")]).stdout)
        models = {(m["target"], m["direction"]): m for m in plan["models"]}
        expect(models["bent", "write"]["model"] == "learned" and models["bent", "read"]["model"] == "measured" and
               models["bent", "write"]["requests"] == bent[0]["requests"], f"{models}")
        after = min(small_writes("after", 480) for _ in range(3))
        print(f"480 requests: {before:.2f} s as measured, {after:.2f} s as learned")
        expect(after < 0.95 * before, f"{before} {after}")
        expect("writes to bent: as learned from" in run([tool("esdm-stat"), "--explain", "after"]).stdout, "explain")
        # A calibration begins anew.
        calibrate("--target", "bent")
        plan = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", s.file("header.cdl")]).stdout)
        models = {(m["target"], m["direction"]): m["model"] for m in plan["models"]}
        expect(models["bent", "write"] == "measured", f"{models}")
        expect_error(run([tool("esdm-tune"), "--learn", "--apply", s.file("header.cdl")], check=False),
                     "no requests to targets")


def facts(s):
    with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db:
        return [row[0] for row in db.execute("SELECT key FROM store WHERE key LIKE '%/place/%'")]


@by_clock
def test_decisions_are_explained():
    with site(SPEEDS) as s:
        write("turns")
        by_turns = explain("turns")[0]["targets"]
        expect(all(t["why"] == "targets take turns" and t["predicted_s"] is None
                   for t in by_turns), f"{by_turns}")
        calibrate(seconds=ENOUGH)
        write("a/b", 64)
        variable = explain("--fragments", "a/b/v")[0]
        targets = {t["target"]: t for t in variable["targets"]}
        fast = targets["fast"]
        expect(fast["why"] == "does its share" and fast["predicted_s"] > 0 and
               fast["observed_s"] > 0.03 and fast["alternatives"][0]["target"] == "slow" and
               fast["alternatives"][0]["predicted_s"] > 0, f"{fast}")
        parts = [f for f in variable["fragments"] if f["target"] == "fast"]
        expect(len(parts) == fast["fragments"], "fragments are missing")
        total = sum(f["observed_s"] for f in parts)
        expect(abs(total / fast["observed_s"] - 1) < 1e-6, f"{total} {fast}")
        text = run([tool("esdm-stat"), "--explain", "--fragments", "a/b"]).stdout
        expect("predicted" in text and "observed" in text and "not slow:" in text, text)
        expect_error(run([tool("esdm-stat"), "--explain", "a/b/w"], check=False),
                     "no variable 'w'")
        expect(len(facts(s)) == 2, f"{facts(s)}")
        with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db, db:
            db.execute("UPDATE store SET value = '{damaged' WHERE key LIKE '%/place/%'")
        expect("nobody told why" in run([tool("esdm-stat"), "--explain", "a/b"]).stdout, "damage")
        run([tool("esdm-rm"), "--for-good", "a/b", "turns"])
        write("next", 4)
        expect(len(facts(s)) == 1, f"what was told of removed containers is left: {facts(s)}")


def posix_site(targets, **changes):
    """A site with POSIX targets: name -> further keys."""
    listed = [{"name": name, "plugin": "posix", "directory": name, **keys}
              for name, keys in targets.items()]
    return site({}, targets=listed, **changes)


def holders(s):
    return {t["name"] for t in json.loads(s.config.read_text())["targets"] if packs(s, t["name"])}


def observed(s):
    with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db:
        row = db.execute("SELECT value FROM store WHERE key = 'fact:observed'").fetchone()
        return json.loads(row[0]) if row else None


def set_model(s, speeds):
    """As a calibration on an idle machine finds it."""
    with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db, db:
        model = json.loads(db.execute("SELECT value FROM store WHERE key = 'fact:model'").fetchone()[0])
        for name, target in model["targets"].items():
            for direction in ("write", "read"):
                target[direction].update(latency_s=2e-4, stream_s_per_byte=1e-6 / speeds[name],
                                         service_s=5e-5, shared_s_per_byte=1e-6 / speeds[name])
        db.execute("UPDATE store SET value = ? WHERE key = 'fact:model'", (json.dumps(model),))


def set_speeds(s, speeds):
    config = json.loads(s.config.read_text())
    for target in config["targets"]:
        target["bytes_per_s"] = speeds[target["name"]] * 1e6
    s.config.write_text(json.dumps(config))


def planned_seconds(s, bytes_):
    s.file("header.cdl").write_text("netcdf h { dimensions: x = %d ; variables: byte v(x) ; }" % bytes_)
    return json.loads(run([tool("esdm-mkfs"), "--json", "--plan", s.file("header.cdl")]).stdout)["seconds"]


@by_clock
def test_targets_that_store_in_the_background():
    need_program("cdo")
    speeds = {"fast": 80, "slow": 20}
    targets = [{"name": name, "plugin": "background", "directory": name, "bytes_per_s": speed * 1e6,
                "latency_ms": 0.2, "service_ms": 0.05} for name, speed in speeds.items()]
    with site({}, targets=targets, engine={"memory": "128 MiB", "pack": "4 MiB"}) as s:
        calibrate()
        set_model(s, speeds)
        # Each call returns when its data are in memory: what is on its way counts all the same.
        run([BUILD / "tests/bench/bench_placement", "write", "steps", "128", "16"])
        ratio = stored(s, "fast") / max(stored(s, "slow"), 1)
        expect(2 < ratio < 8, f"four to one, about: {ratio}")
        told = {t["target"]: t for t in explain("steps")[0]["targets"]}
        for name, speed in speeds.items():
            expect(told[name]["observed_s"] > 0.5e-6 * told[name]["bytes"] / speed, f"{told[name]}")
        seconds = planned_seconds(s, 200 << 20)
        expect(1 < seconds < 10, f"2 s, on an idle machine: {seconds}")
        # An unmodified program, which ends with its session open, sees a tenth of the speed.
        expect(observed(s) is not None, "nothing was kept")
        with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db, db:
            db.execute("DELETE FROM store WHERE key = 'fact:observed'")
        set_speeds(s, {"fast": 8, "slow": 20})
        client(["cdo", "-s", "-f", "nc4", "-b", "F32", "random,r4096x4096", "esdm://random.nc"])
        expect(observed(s) is not None, "what a program saw is lost")
        seconds = planned_seconds(s, 200 << 20)
        expect(seconds > 3.5, f"7.5 s, on an idle machine: {seconds}")


@contextlib.contextmanager
def background_site(speeds, memory, **keys):
    """Two targets that store while the program goes on, and whose model is right."""
    targets = [{"name": name, "plugin": "background", "directory": name, "bytes_per_s": speed * 1e6,
                "latency_ms": 0.2, "service_ms": 0.05, **keys.get(name, {})}
               for name, speed in speeds.items()]
    with site({}, targets=targets, engine={"memory": memory, "pack": "4 MiB"}) as s:
        calibrate()
        set_model(s, speeds)
        yield s


def write_steps(mib, step):
    return float(run([BUILD / "tests/bench/bench_placement", "write", "steps", str(mib), str(step)]).stdout)


@by_clock
def test_a_program_that_writes_steps_gets_the_sum_of_the_speeds():
    """Also where a step fills the memory of a target: then the program would wait for it, and the other
    target would get nothing. Nor may it wait for one that is full while the other has nothing to do."""
    speeds = {"fast": 40, "slow": 10}
    mib = by_size(128, 160, 512)
    for memory, step in (("64 MiB", 4), ("128 MiB", 16)):
        shares = []
        for _ in range(3):
            with background_site(speeds, memory) as s:
                seconds = write_steps(mib, step)
                least = max(stored(s, name) / speed / 1e6 for name, speed in speeds.items())
            best = mib * 2**20 / sum(speeds.values()) / 1e6
            shares.append((best / least, best / seconds))
            if shares[-1][0] > 0.9 and shares[-1][1] > 0.9:
                break
        expect(max(balance for balance, _ in shares) > 0.9, f"{memory} {step}: {shares}")
        expect(max(speed for _, speed in shares) > 0.9, f"{memory} {step}: {shares}")


FOLLOWED = 64e6  # bytes of the target within which a change of its speed is known


@by_clock
def test_a_target_that_becomes_ten_times_slower_gets_less():
    speeds, then, changes_at = {"one": 40, "two": 20}, 4, 32 << 20
    mib = by_size(160, 160, 384)
    with background_site(speeds, "128 MiB", one={"changes_at": changes_at,
                                                 "then_bytes_per_s": then * 1e6}) as s:
        write_steps(mib, 4)
        got = stored(s, "one")
        begun = changes_at * sum(speeds.values()) / speeds["one"]
        fair = changes_at + (mib * 2**20 - begun) * then / (then + speeds["two"])
        expect(abs(got - fair) < FOLLOWED, f"{got >> 20} MiB, {int(fair) >> 20} MiB are fair")


@by_clock
def test_a_target_that_becomes_ten_times_faster_gets_its_share():
    speeds, then = {"one": 40, "two": 8}, 80
    with background_site(speeds, "128 MiB", two={"changes_at": 1, "then_bytes_per_s": then * 1e6}) as s:
        write_steps(by_size(352, 352, 768), 4)
        seen, after = 0, []
        for f in explain("--fragments", "steps")[0]["fragments"]:
            if seen > FOLLOWED:
                after.append(f["target"])
            seen += f["bytes"] if f["target"] == "two" else 0
        share, fair = after.count("two") / max(len(after), 1), then / (then + speeds["one"])
        expect(len(after) >= 12, f"{len(after)} fragments are left: it got {seen >> 20} MiB")
        expect(0.7 * fair < share < 1.3 * fair, f"{share} of {after}, {fair} is fair")


def test_policies_choose_targets():
    with posix_site({"ssd": {"tier": "hot", "cost": 5}, "hdd": {"cost": 1}, "tape": {"cost": 1}},
                    policies=[{"container": "only/*", "variable": "v", "targets": ["tape"]},
                              {"container": "hot/*", "tier": "hot"},
                              {"variable": "/v", "container": "cheap", "prefer": "cost"},
                              {"container": "series", "access": "time-series"}]) as s:
        for name, wanted in (("only/this", {"tape"}), ("hot/a/b", {"ssd"}),
                             ("cheap", {"hdd", "tape"}), ("any", {"ssd", "hdd", "tape"})):
            write(name, 32)
            expect(holders(s) == wanted, f"{name}: {holders(s)}")
            run([tool("esdm-rm"), "--for-good", name])
            run([tool("esdm-mkfs"), "--check"])
        why = {}
        write("cheap", 16)
        for t in explain("cheap")[0]["targets"]:
            why.update({a["target"]: a["why"] for a in t["alternatives"]})
        expect(why["ssd"] == "costs more", f"{why}")
        write("only/that", 16)
        why = explain("only/that")[0]["targets"][0]["alternatives"]
        expect(all(a["why"] == "is not allowed by the site's policies" for a in why), f"{why}")
        write("series", 32)
        shapes = {f["size"] for f in explain("--fragments", "series")[0]["fragments"]}
        expect(all(shape.startswith("32x") for shape in shapes), f"{shapes}")


def test_copies_are_explained():
    with posix_site({"p1": {}, "p2": {}, "p3": {}}, copies=2) as s:
        write("twice")
        places = explain("twice")[0]["targets"]
        expect(places and all("," in p["target"] for p in places), f"{places}")
        for p in places:
            expect(p["why"] == "targets take turns" and p["observed_s"] > 0, f"{p}")
            others = {a["target"] for a in p["alternatives"]}
            expect(others == {"p1", "p2", "p3"} - set(p["target"].split(",")), f"{p}")
        text = run([tool("esdm-stat"), "--explain", "twice"]).stdout
        expect("each on 2 targets" in text and "targets take turns" in text and
               "nobody told" not in text, text)


def test_a_reserve_is_kept():
    with posix_site({"small": {"reserve": "900 TiB"}, "large": {"reserve": "1 KiB"}}) as s:
        write("a", 16)
        expect(holders(s) == {"large"}, f"{holders(s)}")
    with posix_site({"small": {"reserve": "900 TiB"}}) as s:
        write("a", 16)  # nobody else takes it


def test_wrong_policies_are_told():
    for changes, words in (
            ({"policies": [{"targets": ["b"]}]}, ("policies[0].targets[0]", 'no target "b"')),
            ({"policies": [{"targets": []}]}, ("policies[0].targets", "nowhere")),
            ({"policies": [{"tier": "x"}]}, ("policies[0].tier", 'no target has the tier "x"')),
            ({"policies": [{"tier": "x", "targets": ["a"]}]}, ("exclude",)),
            ({"policies": [{"targets": ["a"], "copies": 2}]}, ("copies",)),
            ({"policies": [{"access": "often"}]}, ("policies[0].access",)),
            ({"prefer": "both"}, ("prefer",)),
            ({"targets": [{"name": "a", "plugin": "posix", "directory": "a", "cost": -1}]},
             ("targets[0].cost",)),
            ({"targets": [{"name": "a", "plugin": "posix", "directory": "a", "tier": ""}]},
             ("targets[0].tier",)),
            ({"targets": [{"name": "a", "plugin": "posix", "directory": "a", "reserve": "x"}]},
             ("targets[0].reserve",))):
        with posix_site({"a": {}}) as s:
            s.config.write_text(json.dumps(dict(json.loads(s.config.read_text()), **changes)))
            expect_error(run([tool("esdm-mkfs"), "--check"], check=False), *words)


def test_netcdf_programs_say_how_data_are_read():
    need_program("ncgen")
    cdl = """netcdf a { dimensions: t = 2 ; x = 3 ; variables: int v(t, x) ;
        v:esdm_access = "time-series" ; data: v = 1, 2, 3, 4, 5, 6 ; }"""
    with Site() as s:
        s.file("a.cdl").write_text(cdl)
        client(["ncgen", "-o", "esdm://good.nc", s.file("a.cdl")])
        expect("time-series" in run([tool("esdm-stat"), "-a", "good.nc"]).stdout, "the attribute")


main(test_fragments_are_shared_by_speed, test_targets_that_store_in_the_background,
     test_a_program_that_writes_steps_gets_the_sum_of_the_speeds,
     test_a_target_that_becomes_ten_times_slower_gets_less,
     test_a_target_that_becomes_ten_times_faster_gets_its_share, test_placement_goes_by_what_was_learned,
     test_decisions_are_explained, test_policies_choose_targets, test_copies_are_explained, test_a_reserve_is_kept,
     test_netcdf_programs_say_how_data_are_read, test_wrong_policies_are_told)
