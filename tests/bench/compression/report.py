# SPDX-License-Identifier: LGPL-3.0-or-later
"""Tables of what compare.py measured, and the goals of the design with the gap to each."""

import math

LOSSY_RIVALS = ("zfp", "SZ3", "SPERR")


def mean_of(values):
    """Geometric mean; NaN of nothing."""
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def speed(rows, what):
    """MB/s: all bytes by all time."""
    seconds = sum(r[what] for r in rows)
    return sum(r["raw_bytes"] for r in rows) / seconds / 1e6 if seconds else math.nan


def summary(results):
    """A line for each compressor and task."""
    lines = []
    for key in dict.fromkeys((r["kind"], r["bound"], r["name"]) for r in results):
        rows = [r for r in results if (r["kind"], r["bound"], r["name"]) == key]
        good = [r for r in rows if "failed" not in r]
        lines.append({
            "kind": key[0], "bound": key[1], "name": key[2], "fields": len(good),
            "failed": len(rows) - len(good), "ratio": mean_of(r["ratio"] for r in good),
            "encode_MB_s": speed(good, "encode_s"), "decode_MB_s": speed(good, "decode_s"),
            "worst": max((r["worst"] for r in good), default=math.nan),
            "violations": sum(r["violations"] for r in good),
            "fields_violated": sum(r["violations"] > 0 for r in good),
            "mean_change": max((abs(r["mean_change"]) for r in good), default=math.nan)})
    return lines


def table(lines):
    text = []
    for kind, bound in dict.fromkeys((s["kind"], s["bound"]) for s in lines):
        title = {"lossless": "lossless", "absolute": f"absolute tolerance {bound:g} x range",
                 "relative": f"relative tolerance {bound:g}"}[kind]
        text.append(f"\n{title:<34}{'ratio':>8} {'encode':>8} {'decode':>8} {'error/':>9} "
                    f"{'points beyond':>14} {'change of':>10}")
        text.append(f"{'':<34}{'':>8} {'MB/s':>8} {'MB/s':>8} {'bound':>9} {'(fields)':>14} "
                    f"{'mean/range':>10}")
        rows = [s for s in lines if (s["kind"], s["bound"]) == (kind, bound)]
        for s in sorted(rows, key=lambda s: -s["ratio"] if s["fields"] else 0):
            failed = f"; failed on {s['failed']} of {s['fields'] + s['failed']}" if s["failed"] else ""
            text.append(f"  {s['name']:<32}{s['ratio']:8.2f} {s['encode_MB_s']:8.0f} "
                        f"{s['decode_MB_s']:8.0f} {s['worst']:9.3g} "
                        f"{s['violations']:>9} ({s['fields_violated']:>2}) {s['mean_change']:10.1e}{failed}")
    return text


def by_field(results):
    """The ratio of every field."""
    fields = list(dict.fromkeys(r["field"] for r in results))
    text = ["\n" + " " * 36 + " ".join(f"{f[:12]:>12}" for f in fields)]
    for key in dict.fromkeys((r["kind"], r["bound"], r["name"]) for r in results):
        rows = {r["field"]: r for r in results if (r["kind"], r["bound"], r["name"]) == key}
        cells = [f"{rows[f]['ratio']:12.2f}" if "ratio" in rows.get(f, {}) else f"{'-':>12}"
                 for f in fields]
        text.append(f"{key[0][:4]} {key[1]:<7g}{key[2]:<24}" + " ".join(cells))
    return text


# ---- goals ---------------------------------------------------------------------------------------


class Figures:
    """Looks results up."""

    def __init__(self, results):
        self.results = [r for r in results if "failed" not in r]
        self.lines = {(s["kind"], s["bound"], s["name"]): s for s in summary(results)}

    def bounds(self, kind):
        return sorted({r["bound"] for r in self.results if r["kind"] == kind})

    def ratios(self, kind, bound, name):
        return {r["field"]: r["ratio"] for r in self.results
                if (r["kind"], r["bound"], r["name"]) == (kind, bound, name)}

    def line(self, kind, bound, name, what):
        return self.lines.get((kind, bound, name), {}).get(what, math.nan)

    def over(self, kind, name, rivals):
        """Ratio of `name` by the best of the rivals, for each field and bound."""
        quotients = []
        for bound in self.bounds(kind):
            others = [self.ratios(kind, bound, rival) for rival in rivals]
            for field, ratio in self.ratios(kind, bound, name).items():
                best = max((o[field] for o in others if field in o), default=None)
                if best is not None:
                    quotients.append(ratio / best)
        return quotients

    def speeds(self, kind, name, what):
        """Geometric mean over the bounds."""
        found = [self.line(kind, bound, name, what) for bound in self.bounds(kind)]
        return mean_of(v for v in found if not math.isnan(v))


def goals(results):
    """(goal, wanted, reached, unit), NaN where it could not be measured."""
    f = Figures(results)
    archive = f.over("absolute", "ESDM archive", LOSSY_RIVALS)
    fast = "field fast"
    found = [
        ("archive, absolute: ratio by the best of zfp, SZ3, SPERR", 1.5, mean_of(archive), "x"),
        ("archive, absolute: share of fields not lost", 1.0,
         sum(q >= 1 for q in archive) / len(archive) if archive else math.nan, ""),
        ("archive, absolute: encoding by SZ3's speed", 1.0,
         f.speeds("absolute", "ESDM archive", "encode_MB_s")
         / f.speeds("absolute", "SZ3", "encode_MB_s"), "x"),
        ("archive, absolute: decoding by SZ3's speed", 1.0,
         f.speeds("absolute", "ESDM archive", "decode_MB_s")
         / f.speeds("absolute", "SZ3", "decode_MB_s"), "x"),
        ("fast lossy (codec alone): encoding", 10000,
         f.speeds("absolute", fast, "encode_MB_s"), "MB/s"),
        ("fast lossy (codec alone): decoding", 8000,
         f.speeds("absolute", fast, "decode_MB_s"), "MB/s"),
        ("fast lossy (codec alone): ratio by zfp's", 1.5,
         mean_of(f.over("absolute", fast, ("zfp",))), "x"),
        ("relative: archive by bitround+shuffle+zstd-3", 2.0,
         mean_of(f.over("relative", "ESDM archive", ("bitround+shuffle+zstd-3",))), "x"),
        ("relative: archive by log+SPERR, the least of a field", 1.0,
         min(f.over("relative", "ESDM archive", ("log+SPERR",)), default=math.nan), "x"),
        ("archive: by balanced, the least of a field and bound", 1.0,
         min((q for kind in ("lossless", "absolute", "relative")
              for q in f.over(kind, "ESDM archive", ("ESDM balanced",))), default=math.nan), "x"),
        ("lossless: archive, ratio", 2.9, f.line("lossless", 0.0, "ESDM archive", "ratio"), ""),
        ("lossless: speed, ratio by shuffle+zlib-4's", 1.0,
         mean_of(f.over("lossless", "ESDM speed", ("shuffle+zlib-4",))), "x"),
        ("lossless: speed, encoding", 1000,
         f.line("lossless", 0.0, "ESDM speed", "encode_MB_s"), "MB/s"),
        ("no violation by ESDM: points beyond a bound", 0,
         sum(r["violations"] for r in f.results if r["own"]), ""),
    ]
    return [{"goal": goal, "wanted": wanted, "reached": reached, "unit": unit,
             "met": reached <= wanted if wanted == 0 else reached >= wanted}
            for goal, wanted, reached, unit in found]


def goal_table(lines):
    text = [f"\n{'goals':<60}{'wanted':>9} {'reached':>9}  gap"]
    for g in lines:
        if math.isnan(g["reached"]):
            gap = "not measured: a rival is absent"
        elif g["met"]:
            gap = "met"
        else:
            gap = f"{g['reached'] / g['wanted'] - 1:+.0%}" if g["wanted"] else "not met"
        text.append(f"  {g['goal']:<58}{g['wanted']:9.5g} {g['reached']:9.4g}  {g['unit']:<5}{gap}")
    return text


def tables(results, per_field=False):
    """All as text, and the goals."""
    reached = goals(results)
    text = table(summary(results)) + goal_table(reached)
    if per_field:
        text += by_field(results)
    return "\n".join(text), reached
