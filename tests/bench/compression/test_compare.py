#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""compare.py runs, its checks see what is wrong, and its tables agree with its results."""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

BUILD = pathlib.Path(os.environ["ESDM_BUILD"])
HERE = pathlib.Path(__file__).parent
SKIPPED = 77
if os.environ.get("ESDM_SANITIZE"):
    print("a Python without sanitizers cannot load the library with them")
    sys.exit(SKIPPED)
try:
    import numpy
except ImportError:
    print("numpy is missing")
    sys.exit(SKIPPED)
if not (BUILD / "tests/bench/bench_rivals.so").exists():
    print("bench_rivals was not built: zlib is missing")
    sys.exit(SKIPPED)
sys.path.insert(0, str(HERE))
import measure  # pylint: disable=wrong-import-position
import properties  # pylint: disable=wrong-import-position
import regions  # pylint: disable=wrong-import-position
import quality  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position


def field_of(values, fill=None):
    values = numpy.array(values, numpy.float32)
    is_data = numpy.abs(values) < measure.HUGE
    if fill is not None:
        is_data &= values != fill
    return types.SimpleNamespace(values=values, is_data=is_data, range=10.0, name="f")


class Checks(unittest.TestCase):
    """A checker that sees nothing would call every rival good."""

    def test_points_beyond_the_bound_are_counted(self):
        field = field_of([0, 1, 2, 3])
        again = numpy.array([0.5, 1.25, 2, 2.25], numpy.float32)
        self.assertEqual(measure.compare(field, "absolute", 0.25, again, False), (2, 3.0, 0.0))
        self.assertEqual(measure.compare(field, "absolute", 0.75, again, False)[0], 0)
        self.assertEqual(measure.compare(field, "relative", 0.25, again, False)[0], 1)

    def test_fill_values_must_come_back_unless_masked(self):
        field = field_of([1, math.nan, 1e20, -5], fill=-5)
        again = numpy.array([1, 0, 1e20, -5], numpy.float32)
        self.assertEqual(measure.compare(field, "absolute", 1, again, False)[0], 1)
        self.assertEqual(measure.compare(field, "absolute", 1, again, True)[0], 0)

    def test_lossless_is_bit_for_bit(self):
        field = field_of([0.0, 1])
        again = numpy.array([-0.0, 1], numpy.float32)
        self.assertEqual(measure.compare(field, "lossless", 0, again, False)[0], 1)

    def test_change_of_the_mean_is_a_share_of_the_range(self):
        field = field_of([0, 0])
        again = numpy.array([1, 0], numpy.float32)
        self.assertAlmostEqual(measure.compare(field, "absolute", 1, again, False)[2], 0.05)


class Qualities(unittest.TestCase):
    """Of fields of which the answer is known."""

    def setUp(self):
        y, x = numpy.mgrid[:40, :64]
        waves = numpy.sin(2 * numpy.pi * 5 * x / 64) + 0.1 * numpy.cos(0.2 * y)
        self.waves = waves.astype(numpy.float32)
        self.field = field_of(self.waves)
        self.field.is_data, self.field.shape = self.field.is_data.reshape(-1), self.waves.shape
        self.field.range = float(self.waves.max() - self.waves.min())

    def test_what_is_the_same_is_perfect(self):
        found = quality.of(self.field, self.waves)
        self.assertEqual((found["psnr"], found["dssim"], found["spectral_error"]), (None, 1.0, 0.0))

    def test_noise_costs_structure_and_no_mean(self):
        noise = 0.1 * numpy.random.default_rng(1).choice([-1, 1], self.waves.shape)
        noise -= noise.mean()
        found = quality.of(self.field, self.waves + noise)
        self.assertAlmostEqual(found["psnr"], 20 * math.log10(self.field.range / 0.1), places=1)
        self.assertTrue(0.5 < found["dssim"] < 0.99, found)
        self.assertTrue(abs(found["mean_change"]) < 1e-6 and abs(found["autocorrelation"]) < 0.1, found)

    def test_damped_waves_are_seen_in_the_spectrum(self):
        found = quality.of(self.field, self.waves * 0.9)
        self.assertAlmostEqual(found["spectral_error"], 1 - 0.9 ** 2, places=2)
        self.assertTrue(found["extremes_change"] > 0.04 and found["autocorrelation"] > 0.5, found)

    def test_missing_points_do_not_count(self):
        self.field.values[10:20] = 1e20
        self.field.is_data = (numpy.abs(self.field.values) < measure.HUGE).reshape(-1)
        again = self.field.values.copy()
        again[10:20] = -7
        self.assertEqual(quality.of(self.field, again)["dssim"], 1.0)


class Goals(unittest.TestCase):
    def result(self, name, ratio, **more):
        return {"name": name, "own": name.startswith("ESDM"), "field": "f", "kind": "absolute",
                "bound": 1e-3, "raw_bytes": 8e6, "ratio": ratio, "encode_s": 0.5, "decode_s": 0.25,
                "violations": 0, "worst": 0.5, "mean_change": 0.0, **more}

    def test_best_rival_of_each_field_counts(self):
        results = [self.result("ESDM archive", 6), self.result("ESDM archive", 4, field="g"),
                   self.result("zfp", 2), self.result("SZ3", 3),
                   self.result("zfp", 8, field="g"), self.result("SZ3", 1, field="g")]
        found = {g["goal"].split(":")[1].strip(): g for g in report.goals(results)}
        self.assertAlmostEqual(found["ratio by the best of zfp, SZ3, SPERR"]["reached"], 1.0)
        self.assertFalse(found["ratio by the best of zfp, SZ3, SPERR"]["met"])
        self.assertAlmostEqual(found["share of fields not lost"]["reached"], 0.5)

    def test_a_violation_by_esdm_is_a_goal_not_met(self):
        bad = report.goals([self.result("ESDM archive", 2, violations=3)])[-1]
        self.assertEqual((bad["reached"], bad["met"]), (3, False))


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        for name, *options in (("waves", "--land", "0.3"), ("random",)):
            subprocess.run([BUILD / "tools/esdm-pattern", "--shape", "4x30x40", "--pattern", name,
                            "--variable", name, *options, folder / f"{name}.nc"],
                           check=True, capture_output=True)
        done = subprocess.run(
            [sys.executable, HERE / "compare.py", "--build", BUILD, "--fields", folder, "--quick",
             "--per-field", "--json", folder / "out.json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.text, cls.out = done.stdout, json.loads((folder / "out.json").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_compressor_has_a_result_for_every_field(self):
        names = {r["name"] for r in self.out["results"]}
        self.assertLessEqual({"ESDM speed", "ESDM balanced", "ESDM archive", "field fast",
                              "shuffle+zstd-3", "shuffle+zlib-4"}, names)
        for name in names:
            fields = [r["field"] for r in self.out["results"]
                      if r["name"] == name and r["kind"] == "lossless"]
            self.assertIn(len(fields), (0, 2), name)

    def test_public_makes_table_page_and_json(self):
        folder = pathlib.Path(self.folder.name)
        done = subprocess.run(
            [sys.executable, HERE / "public.py", "--build", BUILD, "--fields", folder, "--short", "--json",
             folder / "public.json", "--html", folder / "public.html", "--markdown", folder / "public.md"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads((folder / "public.json").read_text(encoding="utf-8"))
        text, page = ((folder / f"public.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
        own = [s for s in out["summary"] if s["own"]]
        self.assertEqual(len(own), 9)  # three modes, three bounds
        for s in own:
            self.assertEqual((s["kept"], s["failed"]), (2, 0), s)
            self.assertIn(f"| **{s['name']}** | 2 of 2 | {s['ratio']:.2f} |", text)
        self.assertEqual(page.count("<svg"), 6)
        self.assertNotRegex(page, r"(src|href)=|nan|inf\b")
        for name in out["absent"]:
            self.assertIn(f"Absent: {name} (", text)

    def test_summary_is_the_mean_of_the_results(self):
        for line in self.out["summary"]:
            rows = [r for r in self.out["results"] if "failed" not in r and
                    all(r[key] == line[key] for key in ("kind", "bound", "name"))]
            product = math.prod(r["raw_bytes"] / r["stored_bytes"] for r in rows)
            self.assertAlmostEqual(line["ratio"], product ** (1 / len(rows)), places=9)
            self.assertIn(f"{line['name']:<32}{line['ratio']:8.2f}", self.text)

    def test_own_results_keep_their_bounds_and_lossless_loses_nothing(self):
        for r in self.out["results"]:
            if r["own"] or r["kind"] == "lossless":
                self.assertEqual(r["violations"], 0, r)
        archive = next(s for s in self.out["summary"]
                       if (s["kind"], s["name"]) == ("absolute", "ESDM archive"))
        self.assertTrue(0 < archive["worst"] <= 1)

    def test_absent_ones_are_named(self):
        names = {r["name"] for r in self.out["results"]} | set(self.out["absent"])
        self.assertLessEqual({"zfp", "fpzip", "libaec", "SZ3", "SPERR", "pcodec-8", "blosc2"}, names)
        for name in self.out["absent"]:
            self.assertIn(f"absent: {name}: ", self.text)

    def test_goals_are_printed_with_their_gap(self):
        for goal in self.out["goals"]:
            line = next(l for l in self.text.split("\n") if goal["goal"] in l)
            expected = "not measured" if math.isnan(goal["reached"]) else \
                "met" if goal["met"] else ("%" if goal["wanted"] else "not met")
            self.assertIn(expected, line)


class Properties(unittest.TestCase):
    """On two real fields: what was stated holds, a looser statement takes no more bytes, and numbers that are
    written again keep their bits."""

    def test_of_small_real_fields(self):
        if not measure.default_fields().is_dir():
            self.skipTest("the fields of $ESDM_TEST_DATA are not there")
        done = subprocess.run([sys.executable, HERE / "properties.py", "--build", BUILD, "--quick", "--strict", "--fields",
                               measure.default_fields(), "--modes", "balanced", "--count", "4"], stdout=subprocess.PIPE,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("0 change numbers again", done.stdout)

    def test_a_checker_sees_what_is_wrong(self):
        part = properties.Part(types.SimpleNamespace(
            name="f", shape=(2, 3), values=numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
            raw=types.SimpleNamespace(block=types.SimpleNamespace(fill=0.0))), 0)
        again = part.values.copy()
        again[1, 2] += 0.25
        self.assertEqual(properties.off(part, {"abs": 0.25}, part.values, again)[0], 0)
        for statement in ({"abs": 0.2}, {"gradient": 0.4}, {"rel": 0.04}, {"range": 0.04}, {"bits": 5}, {"digits": 2},
                          {"abs": 1.0, "exact": [5.0]}, {"abs": 1.0, "lossless_from": 5.0}, {"psnr": 60}):
            self.assertGreater(properties.off(part, statement, part.values, again)[0], 0, statement)
        self.assertAlmostEqual(properties.off(part, {"abs": 1}, part.values, again)[1], 0.25 / 15)
        where = numpy.arange(6) >= 4
        for mean, place, stated, bad in ((0.05, where, {"abs": 0.3}, 0), (0.04, where, {"abs": 0.3}, 1),
                                         (0.05, where, {"abs": 0.2}, 1), (0.05, ~where, {"abs": 0.2}, 0),
                                         (0.05, where, {"mean": 0.13}, 0), (0.05, where, {"mean": 0.12}, 1)):
            statement = {"abs": 1.0, "mean": mean, "regions": [({"mask": 1.0}, place, stated)]}
            self.assertEqual(properties.off(part, statement, part.values, again)[0], bad, (mean, stated))
        self.assertEqual(properties.off(part, {"abs": 1.0, "conserve": 1e-2}, part.values, again)[0], 1)

    def test_which_points_a_region_has(self):
        for seed in range(8):
            grid = regions.Grid((4, 9, 12), random.Random(seed))
            all_around, none = grid.inside({"box": (-180.0, -90.0, 180.0, 90.0)}), grid.inside({"mask": 200.0})
            self.assertTrue(all_around.all())
            self.assertEqual(int(none.sum()), 4)  # where the mask has no value, at each level
            self.assertEqual([bool(plane.all()) for plane in grid.inside({"level": (900.0, 1000.0)})],
                             [True, True, False, False])
            east, west = grid.inside({"box": (0.0, -90.0, 179.99, 90.0)}), grid.inside({"box": (180.0, -90.0, 359.99, 90.0)})
            self.assertTrue((east ^ west).mean() > 0.99)


if __name__ == "__main__":
    unittest.main()
