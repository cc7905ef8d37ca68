#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-advise --site and --jobs: defaults for a whole site follow from what jobs did and what data are, their
means from the cases, and the lines for the configuration do what was told."""

import json
import struct

from esdmtest import Site, client, expect, expect_error, main, need_program, run, tool

WINDOW = 65536
DEVICE = ["--latency", "5", "--bandwidth", "200"]
SERIES = ["-d", "lat,5", "-d", "lon,7"]


def pattern(site, name, *options):
    run([tool("esdm-pattern"), "-q", "-f", "-s", "time=300,lat=90,lon=180", "-v", "tas", *options, name],
        cwd=site.folder)


def record(site, job, *command):
    site.file("jobs").mkdir(exist_ok=True)
    run([tool("esdm-run"), "-q", "--records", site.file("jobs") / job, *command], cwd=site.folder)


def advise(site, *arguments, check=True, as_json=True):
    done = run([tool("esdm-advise"), "-q", *(["--json"] if as_json else []), *arguments], check=check, cwd=site.folder)
    return json.loads(done.stdout) if check and as_json else done


def check_means(told):
    choices = told["choices"]
    for case in choices[0]["cases"]:
        expect(max(c["cases"][case] for c in choices) == 1, f"{case}: nothing is the best of it")
    for choice in choices:
        values = list(choice["cases"].values())
        expect(all(0 < v <= 1 for v in values), choice)
        expect(abs(choice["arithmetic"] - sum(values) / len(values)) < 1e-9, choice)
        expect(abs(choice["harmonic"] - len(values) / sum(1 / v for v in values)) < 1e-9, choice)
    harmonic = {c["name"]: c["harmonic"] for c in choices}
    right = max(harmonic, key=harmonic.get)
    if harmonic[right] <= 1.02 * harmonic[told["usual"]]:
        right = told["usual"]
    expect(told["best"] == right, f"{told['best']} instead of {right}: {harmonic}")


def requests(site, *command):
    """How many pieces the program makes ESDM fetch."""
    stats = site.file("stats.json")
    stats.unlink(missing_ok=True)
    client(list(command), env={"ESDM_MONITOR": f"stats:{stats}"})
    return sum(s["pieces"] for line in stats.read_text().splitlines()
               for s in json.loads(line)["spans"] if s["kind"] == "fetch")


def test_series__want_another_cut_than_maps_and_the_lines_do_it():
    need_program("ncks", "ncra")
    with Site() as site:
        pattern(site, "in.nc")
        record(site, "series", "ncks", "-O", *SERIES, "in.nc", "out.nc")
        told = advise(site, "--jobs", "jobs", *DEVICE)
        expect(told["jobs"] == 1 and told["uses"] == 1 and told["codec"] is None, told)
        said = advise(site, "--jobs", "jobs", *DEVICE, as_json=False).stdout
        expect(said.startswith("1 job that read ") and " of 2 variables (" in said, said)
        check_means(told["layout"])
        access = told["configuration"].get("policies", [{}])[0].get("access")
        expect(access in ("both", "time-series"), told["configuration"])

        run([tool("esdm-cp"), "-q", "in.nc", "esdm://before.nc"], cwd=site.folder)
        before = requests(site, "ncks", "-O", *SERIES, "esdm://before.nc", str(site.file("a.nc")))
        path = site.file("site.json")
        config = json.loads(path.read_text(encoding="utf-8"))
        for key, value in told["configuration"].items():
            config[key] = {**config[key], **value} if isinstance(value, dict) and key in config else value
        path.write_text(json.dumps(config))
        run([tool("esdm-mkfs"), "--check"])
        run([tool("esdm-cp"), "-q", "in.nc", "esdm://after.nc"], cwd=site.folder)
        after = requests(site, "ncks", "-O", *SERIES, "esdm://after.nc", str(site.file("b.nc")))
        expect(after * 4 <= before, f"{after} pieces with the advice, {before} without")

        pattern(site, "records.nc", "-u")
        record(site, "maps", "ncra", "-O", "records.nc", "mean.nc")
        both = advise(site, "--jobs", "jobs", *DEVICE)
        expect(both["jobs"] == 2 and both["uses"] == 2, both)
        check_means(both["layout"])
        maps = advise(site, "--jobs", str(site.file("jobs") / "maps"), *DEVICE)
        check_means(maps["layout"])
        expect(maps["configuration"].get("policies") is None, f"maps are read: {maps['configuration']}")

        text = advise(site, "--jobs", "jobs", *DEVICE, as_json=False).stdout
        for words in ("2 jobs that read", "A request takes 5 ms", "It serves 'tas in ", "harmonic", "of its best",
                      "For the site's configuration", '"access"', "Name files or containers"):
            expect(words in text, f"'{words}' is missing in {text}")


def test_codecs__follow_time_and_space():
    with Site() as site:
        small = ("-s", "time=75,lat=90,lon=180")  # each codec is run on it six times
        pattern(site, "noise.nc", *small, "-p", "random", "-v", "a")
        pattern(site, "smooth.nc", *small, "-p", "noise:octaves=1", "-v", "b")
        files = ["noise.nc", "smooth.nc", "-n", "8", "--site"]
        space = advise(site, *files, *DEVICE, "--weigh", "space")
        check_means(space["codec"])
        expect(space["layout"] is None and space["codec"]["best"] == "mode=archive", space)
        expect(space["configuration"] == {"accuracy": [{"quantities": "mode=archive"}]}, space["configuration"])
        slow = advise(site, *files, "--latency", "5", "--bandwidth", "0.01", "--weigh", "time")
        for one, other in zip(slow["codec"]["choices"], space["codec"]["choices"]):  # bytes are time there
            expect(abs(one["harmonic"] - other["harmonic"]) < 0.02, f"{one} {other}")
        fast = advise(site, *files, "--latency", "0.001", "--bandwidth", "1e6", "--weigh", "time")
        check_means(fast["codec"])
        harmonic = {c["name"]: c["harmonic"] for c in fast["codec"]["choices"]}
        expect(harmonic["mode=archive"] < 0.5 * max(harmonic.values()), f"time of processors: {harmonic}")
        check_means(advise(site, *files, *DEVICE)["codec"])
        text = advise(site, *files, "--weigh", "space", as_json=False).stdout
        for words in ("by the space that is taken", "mode=archive", "assumed"):
            expect(words in text, f"'{words}' is missing in {text}")


def write_ahead(folder, plain, advised, asked_s):
    """Records of a job that read one file; (reads, seconds)."""
    folder.mkdir(parents=True)
    head = struct.pack("<QIiiiiIQQQQQQQQQ64s256s2048s", 0x3168637461776465, WINDOW, 7, 1, -1, 0, 2, 10**18, 1, 10**10,
                       0, 0, 0, 1, 0, 0, b"host", b"/bin/x", b"x\0").ljust(WINDOW, b"\0")
    entry = struct.pack("<IIiIIiiI", 1, 0, 0, 0, 0, -1, -1, 0) + bytes(96 + 16 + 128 + 16)
    entry += struct.pack("<QQQQQQQQ", 5, 0, int(asked_s * 1e9), plain[0], int(plain[1] * 1e9), advised[0],
                         int(advised[1] * 1e9), 0)
    entry = (entry + b"/data/" + folder.name.encode() + b".nc").ljust(1024, b"\0")
    (folder / "host.7.0.watch").write_bytes(head + (struct.pack("<II56x", 1, 0) + entry).ljust(WINDOW, b"\0"))


def test_read_ahead__is_judged_by_its_controls():
    with Site() as site:
        write_ahead(site.file("jobs") / "slow", (10, 1.0), (90, 0.9), 0.1)   # 100 ms; 20 ms with all
        write_ahead(site.file("jobs") / "fast", (10, 0.01), (90, 0.08), 0.02)  # 1 ms; 1.1 ms
        told = advise(site, "--jobs", "jobs")["read_ahead"]
        check_means(told)
        off, on = told["choices"]
        expect(abs(off["cases"]["slow.nc"] - 0.2) < 1e-6 and on["cases"]["slow.nc"] == 1, off)
        expect(off["cases"]["fast.nc"] == 1 and abs(on["cases"]["fast.nc"] - 1 / 1.1) < 1e-6, on)
        expect(told["best"] == on["name"], told["best"])
        text = advise(site, "--jobs", "jobs", as_json=False).stdout
        expect("run with 'esdm-run --read-ahead'" in text and "No job used a variable" in text, text)
        text = advise(site, "--jobs", str(site.file("jobs") / "fast"), as_json=False).stdout
        expect("let jobs" not in text and "No other one is better" in text, text)


def test_bad_input__is_told():
    with Site() as site:
        pattern(site, "a.nc")
        site.file("none").mkdir()
        for words, status, arguments in ((["--records"], 3, ["--jobs", "none"]), (["nowhere"], 3, ["--jobs", "nowhere"]),
                                         (["--weigh"], 2, ["--site", "--weigh", "x", "a.nc"]),
                                         (["--latency"], 2, ["--site", "--latency", "-1", "a.nc"]),
                                         (["--site and --jobs"], 2, ["--weigh", "time", "a.nc"]),
                                         (["--accuracy"], 2, ["--site", "-a", "digits=3", "a.nc"]),
                                         (["--jobs"], 2, ["--site"])):
            done = advise(site, *arguments, check=False)
            expect_error(done, *words)
            expect(done.returncode == status, f"{arguments}: status {done.returncode}")


main(
    test_series__want_another_cut_than_maps_and_the_lines_do_it,
    test_codecs__follow_time_and_space,
    test_read_ahead__is_judged_by_its_controls,
    test_bad_input__is_told,
)
