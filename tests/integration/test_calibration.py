#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The measured model of a site: how calibration finds it, what is kept of it, and what becomes of a damaged one."""

import contextlib
import json
import re
import signal
import sqlite3
import subprocess
import time

from esdmtest import by_clock, expect, expect_error, main, run, tool
from measured import ENOUGH, SECONDS, SPEEDS, calibrate, explain, packs, site, stored, write


@by_clock
def test_calibration_finds_the_speed_of_targets():
    with site(SPEEDS) as s:
        dry = run([tool("esdm-mkfs"), "--calibrate", "--dry-run"]).stdout
        expect("measure target 'slow'" in dry and "removed" in dry, dry)
        plain = run([tool("esdm-mkfs"), "--calibrate=quick", SECONDS, "--target",
                     "slow"]).stdout
        expect("slow, write: latency" in plain and "fast" not in plain, plain)
        wrong = None
        for _ in range(6):  # other programs may have the processors for most of a calibration
            report = calibrate("--plot", str(s.file("model.svg")), seconds=ENOUGH)
            models = {(m["target"], m["direction"]): m for m in report["models"]}
            expect(len(models) == 4, f"{sorted(models)}")
            expect(all(m["held_out"] >= 6 for m in models.values()), f"{models}")
            wrong = [m for (target, _), m in models.items()
                     if not 0.5e6 < (m["shared_bytes_per_s"] or 0) / SPEEDS[target] < 1.5e6 or
                     m["error"] >= m["naive_error"]]
            if not wrong:
                break
        expect(not wrong, f"{wrong}")
        svg = s.file("model.svg").read_text()
        expect(svg.count("<polyline") >= 8 and svg.rstrip().endswith("</svg>"), svg[:300])
        expect("slow: read" in svg and "at once" in svg, svg[:300])
        expect(not packs(s, "fast") and not packs(s, "slow"), "packs are left")
        run([tool("esdm-mkfs"), "--plot", s.file("again.svg")])
        expect(s.file("again.svg").read_text() == svg, "the plot alone differs")


@by_clock
def test_memory_is_kept_out_of_measurements():
    targets = [{"name": name, "plugin": "buffered", "directory": name, "bytes_per_s": 50e6,
                "latency_ms": 0.2, "service_ms": 0.05, **keys}
               for name, keys in (("disk", {}), ("keeper", {"keeps": True}))]
    with site({}, targets=targets) as s:
        done = run([tool("esdm-mkfs"), "--calibrate=quick", ENOUGH])
        expect(done.stdout.count("cannot be kept out") == 1 and
               "keeper, read: the memory" in done.stdout, done.stdout)
        report = json.loads(run([tool("esdm-mkfs"), "--json", "--plot", s.file("x.svg")]).stdout)
        models = {(m["target"], m["direction"]): m for m in report["models"]}
        for (target, direction), m in models.items():
            memory = (target, direction) == ("keeper", "read")
            expect(m["past_memory"] != memory, f"{m}")
            # A memory gives some gigabytes a second.
            expect(memory or m["shared_bytes_per_s"] < 200e6, f"{m}")
        write("a", 64)  # programs meet the memory: that is not the disk's speed
        with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db, db:
            db.execute("UPDATE store SET value = replace(value, '\"past_memory\":true', "
                       "'\"past_memory\":false') WHERE key = 'fact:model'")
        s.file("header.cdl").write_text("netcdf h { dimensions: x = 1000000 ; variables: double v(x) ; }")
        plan = run([tool("esdm-mkfs"), "--plan", s.file("header.cdl")]).stdout
        expect("had a part in measuring target disk" in plan, plan)


def test_wrong_uses_are_told():
    with site({"one": 400}) as s:
        expect_error(run([tool("esdm-mkfs"), "--calibrate=slowly"], check=False), "quick")
        expect_error(run([tool("esdm-mkfs"), "--calibrate=quick", "--target", "two"], check=False),
                     "no target 'two'")
        expect_error(run([tool("esdm-mkfs"), "--target", "one"], check=False), "--calibrate")
        expect_error(run([tool("esdm-mkfs"), "--plot", s.file("x.svg")], check=False),
                     "--calibrate")
        expect_error(run([tool("esdm-mkfs"), "--calibrate", "--check"], check=False), "exclude")
        calibrate()
        expect_error(run([tool("esdm-mkfs"), "--plot", s.file("no/such/x.svg")], check=False),
                     "no/such")
        s.file("one/esdm-mark.json").unlink()
        expect_error(run([tool("esdm-mkfs"), "--calibrate=quick"], check=False), "one")


def test_interruption_keeps_the_old_model_and_no_packs():
    with site({"one": 100}) as s:
        before = calibrate()["models"][0]["measured"]
        busy = subprocess.Popen([tool("esdm-mkfs"), "--calibrate"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        while not packs(s, "one") and busy.poll() is None:
            time.sleep(0.02)
        busy.send_signal(signal.SIGINT)
        message = busy.communicate(timeout=600)[1]
        expect(busy.returncode > 0 and "interrupted" in message, f"{busy.returncode} {message}")
        expect(not packs(s, "one"), "packs are left")
        done = run([tool("esdm-mkfs"), "--plot", s.file("x.svg"), "--json"])
        expect(json.loads(done.stdout)["models"][0]["measured"] == before, "another model")


def measured(report):
    """Target -> when it was measured."""
    return {m["target"]: m["measured"] for m in report["models"]}


def test_a_dead_target_does_not_cost_the_others_their_models():
    with site({"one": 400, "two": 300, "three": 200}) as s:
        before = measured(calibrate())
        expect(set(before) == {"one", "two", "three"}, f"{before}")
        s.file("two").rename(s.file("away"))
        time.sleep(1.1)  # the report tells seconds
        done = run([tool("esdm-mkfs"), "--calibrate=quick", SECONDS, "--json", "--plot",
                    s.file("model.svg")], check=False)
        expect_error(done, "1 of 3 targets were not measured", "'two'")
        report = json.loads(done.stdout)
        after = measured(report)
        expect(report["status"] != "ok" and "two" in report["message"], f"{report}")
        expect(after["two"] == before["two"], f"{before} {after}")
        expect(after["one"] > before["one"] and after["three"] > before["three"], f"{after}")
        expect(s.file("model.svg").stat().st_size > 0, "no plot")
        plain = run([tool("esdm-mkfs"), "--calibrate=quick", SECONDS], check=False)
        expect_error(plain, "the others' measurements are kept")
        expect("target 'two' was not measured" in plain.stdout, plain.stdout)
        for name in ("one", "three"):
            s.file(name).rename(s.file(f"{name}-away"))
        done = run([tool("esdm-mkfs"), "--calibrate=quick", SECONDS], check=False)
        expect_error(done, "3 of 3 targets were not measured")


@by_clock
def test_a_slow_target_is_measured_enough():
    with site({"slow": 4}) as s:
        config = json.loads(s.config.read_text())
        config["targets"][0]["latency_ms"] = 20
        s.config.write_text(json.dumps(config))
        for model in calibrate(seconds="--seconds=0.01")["models"]:
            sizes = {sample[0] for sample in model["samples"]}
            expect(len(sizes) >= 3 and len(model["samples"]) >= 6, f"{model}")
            expect(len({sample[1] for sample in model["samples"]}) > 1, f"{model}")


def damage(s, change):
    with contextlib.closing(sqlite3.connect(s.file("metadata/catalogue.sqlite"))) as db, db:
        text = db.execute("SELECT value FROM store WHERE key = 'fact:model'").fetchone()[0]
        db.execute("UPDATE store SET value = ? WHERE key = 'fact:model'", (change(text),))


@by_clock
def test_a_damaged_model_is_told_and_does_without():
    with site(SPEEDS) as s:
        calibrate()
        kept = []
        damage(s, lambda t: kept.append(t) or t)
        for change in (lambda t: t[:500],
                       lambda t: re.sub(r'"stream_s_per_byte":[^,]*', '"stream_s_per_byte":-1', t)):
            damage(s, lambda _, change=change: change(kept[0]))
            expect_error(run([tool("esdm-mkfs"), "--plot", s.file("x.svg")], check=False),
                         "damaged", "esdm-mkfs --calibrate")
            write("default", 16)
            ratio = stored(s, "fast") / stored(s, "slow")
            expect(0.9 < ratio < 1.1, f"targets take turns: {ratio}")
            run([tool("esdm-rm"), "--for-good", "default"])
        damage(s, lambda _: kept[0].replace('"format":1', '"format":2'))
        expect_error(run([tool("esdm-mkfs"), "--plot", s.file("x.svg")], check=False), "newer")
        expect_error(run([tool("esdm-mkfs"), "--calibrate=quick"], check=False), "newer")
        write("default", 16)

        damage(s, lambda _: kept[0])  # and a good one survives a migration
        old = run([tool("esdm-mkfs"), "--json", "--plot", s.file("x.svg")]).stdout
        config = json.loads(s.config.read_text())
        config["metadata"]["directory"] = "elsewhere"
        new = s.file("new.json")
        new.write_text(json.dumps(config))
        told = explain("default")
        run([tool("esdm-mkfs"), "--migrate", s.config, new])
        moved = run([tool("esdm-mkfs"), "--json", "--plot", s.file("x.svg"), new]).stdout
        expect(json.loads(old)["models"] == json.loads(moved)["models"], "another model")
        expect(explain("--config", new, "default") == told, "another explanation")


main(test_calibration_finds_the_speed_of_targets, test_memory_is_kept_out_of_measurements, test_wrong_uses_are_told,
     test_interruption_keeps_the_old_model_and_no_packs, test_a_dead_target_does_not_cost_the_others_their_models,
     test_a_slow_target_is_measured_enough, test_a_damaged_model_is_told_and_does_without)
