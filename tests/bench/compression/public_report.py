# SPDX-License-Identifier: LGPL-3.0-or-later
"""What public.py measured, as one table and as one page that needs nothing else."""

import html
import math

import report

COLUMNS = [("kept", "bound kept"), ("ratio", "ratio"), ("encode_MB_s", "in, MB/s"),
           ("decode_MB_s", "out, MB/s"), ("psnr", "PSNR, dB"), ("dssim", "DSSIM"),
           ("spectral_error", "spectral error"), ("mean_change", "mean"),
           ("extremes_change", "extremes"), ("autocorrelation", "autocorr.")]
COLOURS = ["#0b6e4f", "#1f9e89", "#6ece58", "#b5179e", "#f3722c", "#4361ee", "#8d99ae", "#bc6c25"]


def mean_of(rows, what, size=abs):
    found = [size(r[what]) for r in rows if r.get(what) is not None]
    return sum(found) / len(found) if found else None


def summary(results):
    """A line for each compressor and bound."""
    lines = []
    for bound, name in dict.fromkeys((r["bound"], r["name"]) for r in results):
        rows = [r for r in results if (r["bound"], r["name"]) == (bound, name)]
        good = [r for r in rows if "failed" not in r]
        line = {"bound": bound, "name": name, "own": rows[0]["own"], "fields": len(rows),
                "failed": len(rows) - len(good),
                "kept": sum(r["violations"] == 0 for r in good),
                "ratio": report.mean_of(r["ratio"] for r in good) if good else None,
                "encode_MB_s": report.speed(good, "encode_s"),
                "decode_MB_s": report.speed(good, "decode_s")}
        for what in ("psnr", "dssim", "spectral_error", "mean_change", "extremes_change",
                     "autocorrelation"):
            line[what] = mean_of(good, what, size=float if what in ("psnr", "dssim") else abs)
        lines.append(line)
    return sorted(lines, key=lambda s: (-s["bound"], -(s["ratio"] or 0)))


def cell(line, what):
    value = line[what]
    if what == "kept":
        return f"{value} of {line['fields']}" + (f" ({line['failed']} failed)" if line["failed"] else "")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if what.endswith("MB_s"):
        return f"{value:.0f}"
    if what == "dssim":
        return f"{value:.5f}"
    if what in ("ratio", "psnr", "autocorrelation"):
        return f"{value:.2f}" if what != "psnr" else f"{value:.1f}"
    return f"{value:.1e}"


def notes(results, left_out, absent):
    fields = list(dict.fromkeys(r["field"] for r in results))
    told = [f"{len(fields)} fields: {', '.join(fields)}."]
    if left_out:
        told.append(f"Left out, as time was up: {', '.join(left_out)}.")
    told += [f"Absent: {name} ({why})." for name, why in absent]
    return told


def markdown(results, told):
    text = []
    lines = summary(results)
    for bound in dict.fromkeys(s["bound"] for s in lines):
        text += [f"Tolerance {bound * 100:g} % of the range:", "",
                 "| compressor | " + " | ".join(title for _, title in COLUMNS) + " |",
                 "| --- |" + " ---: |" * len(COLUMNS)]
        for s in (s for s in lines if s["bound"] == bound):
            name = f"**{s['name']}**" if s["own"] else s["name"]
            text.append(f"| {name} | " + " | ".join(cell(s, what) for what, _ in COLUMNS) + " |")
        text.append("")
    return "\n".join(text + ["Changes of the mean and of extremes are shares of the range. " + " ".join(told), ""])


# ---- the page ------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, TOP = 520, 300, 60, 20


def scale(values, log):
    """From values to 0 ... 1, and ticks."""
    values = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
    if not values:
        return lambda v: 0.5, []
    low, high = min(values), max(values)
    if log:
        low, high = math.floor(math.log10(low)), math.ceil(math.log10(high * 1.0001))
        ticks = [m * 10.0 ** e for e in range(low, high) for m in (1, 2, 5)] + [10.0 ** high]
        return lambda v: (math.log10(v) - low) / ((high - low) or 1), ticks
    pad = (high - low) * 0.08 or abs(high) * 0.01 or 1
    low, high = low - pad, high + pad
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 6)
    first = math.ceil(low / step)
    ticks = [(first + i) * step for i in range(8) if (first + i) * step <= high]
    return lambda v: (v - low) / (high - low), ticks


def plot(title, x_title, y_title, series, log_x=True, log_y=True):
    """Curves of (x, y) as SVG. `series`: (name, colour, points)."""
    everything = [p for _, _, points in series for p in points]
    to_x, ticks_x = scale([p[0] for p in everything], log_x)
    to_y, ticks_y = scale([p[1] for p in everything], log_y)

    def place(x, y):
        return LEFT + to_x(x) * WIDTH, TOP + (1 - to_y(y)) * HEIGHT
    parts = [f'<figure><figcaption>{html.escape(title)}</figcaption>'
             f'<svg viewBox="0 0 {LEFT + WIDTH + 20} {TOP + HEIGHT + 50}" role="img">'
             f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>']
    for ticks, of_x in ((ticks_x, True), (ticks_y, False)):
        for tick in ticks:
            x, y = place(tick, everything[0][1]) if of_x else place(everything[0][0], tick)
            line = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}"' if of_x else \
                f'x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"'
            at = f'x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle"' if of_x else \
                f'x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end"'
            parts.append(f'<line {line} class="tick"/><text {at}>{tick:g}</text>')
    for name, colour, points in series:
        drawn = [place(*p) for p in points]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)}" '
                     f'stroke="{colour}" class="curve"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{html.escape(name)}: '
                  f'{p[0]:.4g}, {p[1]:.4g}</title></circle>' for (x, y), p in zip(drawn, points)]
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 40}" text-anchor="middle">'
                 f'{html.escape(x_title)}</text><text transform="translate(14 {TOP + HEIGHT / 2}) '
                 f'rotate(-90)" text-anchor="middle">{html.escape(y_title)}</text></svg></figure>')
    return "".join(parts)


def curves(lines, x, y):
    names = list(dict.fromkeys(s["name"] for s in sorted(lines, key=lambda s: (not s["own"], s["name"]))))
    series = []
    for i, name in enumerate(names):
        points = [(s[x], s[y]) for s in lines if s["name"] == name and s[x] and s[y]]
        if points:
            series.append((name, COLOURS[i % len(COLOURS)], points))
    return series


def legend(lines):
    return "<p class=legend>" + " ".join(
        f'<span style="color:{colour}">●</span> {html.escape(name)}'
        for name, colour, _ in curves(lines, "ratio", "encode_MB_s")) + "</p>"


def table(lines):
    head = "".join(f"<th>{html.escape(title)}</th>" for _, title in COLUMNS)
    rows = []
    for s in lines:
        cells = "".join(
            f'<td{" class=bad" if what == "kept" and s["kept"] < s["fields"] else ""}>{cell(s, what)}</td>'
            for what, _ in COLUMNS)
        rows.append(f'<tr{" class=own" if s["own"] else ""}><th>{html.escape(s["name"])}</th>{cells}</tr>')
    return f"<table><tr><th>compressor</th>{head}</tr>{''.join(rows)}</table>"


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:0 0 1.5rem}td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}
tr th:first-child{text-align:left}tr.own{background:#eef7f2}td.bad{color:#b00020;font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:1rem}figure{margin:0}
svg{width:100%;height:auto;font-size:12px}.frame{fill:none;stroke:#999}.tick{stroke:#eee}.curve{fill:none;stroke-width:2}"""


def page(results, told):
    """One file, with its plots in it."""
    lines = summary(results)
    plots = [plot("Size and fidelity", "ratio", "PSNR, dB", curves(lines, "ratio", "psnr"), log_y=False),
             plot("Size and speed of writing", "ratio", "MB/s of one core", curves(lines, "ratio", "encode_MB_s")),
             plot("Size and speed of reading", "ratio", "MB/s of one core", curves(lines, "ratio", "decode_MB_s")),
             plot("Size and structure", "ratio", "1 - DSSIM",
                  curves([{**s, "loss": 1 - s["dssim"]} for s in lines if s["dssim"] is not None and
                          s["dssim"] < 1], "ratio", "loss")),
             plot("Size and spectra", "ratio", "spectral error", curves(lines, "ratio", "spectral_error")),
             plot("Size and means", "ratio", "change of the mean by the range",
                  curves(lines, "ratio", "mean_change"))]
    tables = "".join(f"<h2>Tolerance {bound * 100:g} % of the range</h2>"
                     + table([s for s in lines if s["bound"] == bound])
                     for bound in dict.fromkeys(s["bound"] for s in lines))
    return (f'<!doctype html><html lang=en><meta charset=utf-8><title>Compression of real fields</title>'
            f'<style>{STYLE}</style><h1>Compression of real fields</h1><p>{html.escape(" ".join(told))}</p>'
            f'{legend(lines)}<div class=plots>{"".join(plots)}</div>{tables}'
            f'<p>Bound kept: fields in which no number is further off. DSSIM: 1 is no difference. Spectral error: '
            f'largest change of the power of a wavenumber along rows, of those with 99.9 % of the variance. '
            f'Mean and extremes: their change as a share of the range. Autocorr.: of errors of neighbours, '
            f'0 is noise.</p></html>\n')
