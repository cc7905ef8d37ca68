#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A program that asks again and again finds what itself and others have committed, changed, renamed and removed
meanwhile, whether it is in the index already or not."""

import subprocess

from esdmtest import BUILD, SOURCE, Site, by_size, client, client_environment, expect, main, need_program, run, tool

# A line is a question; one that begins with '+' names a container that is to be made, '#' counts values of two attributes.
ASK = """
import ctypes, sys
import esdm, netCDF4
lib = ctypes.CDLL(LIBRARY)
VISITOR = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p)
session, error = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
def facets(expression):
    told = []
    if not session:
        assert lib.esdm_session_open(None, ctypes.byref(session), error) == 0, error.raw
    def visit(name, value, n, _):
        told.append(f"{value.decode()}={n}")
        return True
    names = (ctypes.c_char_p * 2)(b"model", b"parity")
    assert lib.esdm_find_facets(session, expression.encode(), names, ctypes.c_size_t(2), VISITOR(visit), None, error) == 0, error.raw
    return sorted(told)
for line in sys.stdin:
    line = line.strip()
    if line.startswith("+"):
        with netCDF4.Dataset(f"esdm://{line[1:]}", "w") as d:
            d.model = "own"
        print("made", flush=True)
    elif line.startswith("#"):
        print(*facets(line[1:]), flush=True)
    else:
        try:
            print(*sorted({m.container for m in esdm.find(line)}), flush=True)
        except esdm.EsdmError:
            print("error", flush=True)
"""


class Asker:
    def __enter__(self):
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        self.process = subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", ASK.replace("LIBRARY", repr(str(BUILD / "libesdm.so")))], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


def make(site, name, model, more=""):
    text = site.file("x.cdl")
    text.write_text(f'netcdf x {{ dimensions: n = 1 ; variables: float v(n) ; v:units = "{model}-units" ; :model = "{model}" ; {more} }}')
    client(["ncgen", "-4", "-o", f"esdm://{name}", text])


def test_what_was_committed_meanwhile_is_found():
    need_program("ncgen")
    with Site() as site, Asker() as asker:
        made = []
        for i in range(by_size(40, 80, 200)):  # more than wait to be entered at once
            make(site, f"r{i:03}", f"m{i % 2}")
            made.append(f"r{i:03}")
            if i % 7 == 0:
                for _ in range(2):
                    found = asker.ask("model = m0 or model = m1")
                    expect(found == made, f"{i}: {found}")
        expect(asker.ask("model = own") == [], "nothing of its own yet")
        expect(asker.ask("+own") == ["made"] and asker.ask("model = own") == ["own"], "its own")
        expect(asker.ask(":model = own") == ["own"] and asker.ask("units = m1-units")[:1] == [made[1]], "others")
        run([tool("esdm-attr"), "--set", "model=m2", "own"])
        expect(asker.ask("model = m2") == ["own"] and asker.ask("model = own") == [], "changed")
        run([tool("esdm-mv"), "own", "other"])
        expect(asker.ask("model = m2") == ["other"], "renamed")
        make(site, "last", "m2")
        run([tool("esdm-rm"), "-y", "other"])
        expect(asker.ask("model = m2") == ["last"], "removed")
        expect(asker.ask("model = ~ =") == ["error"] and asker.ask("model = m2") == ["last"], "after an error")
        run([tool("esdm-mkfs"), "--reindex"])
        expect(asker.ask("model = m2") == ["last"] and asker.ask("model = m1") == made[1::2], "after the index was made anew")


def test_values_are_counted_as_they_are_now():
    """As often as it asks, and whoever has committed since; values that are kept are those of one state."""
    need_program("ncgen")
    with Site() as site, Asker() as asker:
        models, parities = {}, {}

        def check(note):
            for expression, have in (("exists :model", models), ("exists :parity", parities)):
                want = [f"{v}={n}" for of in (models, parities) for v, n in
                        sorted({x: sum(1 for k in have if of.get(k) == x) for x in set(of.values())}.items()) if n > 0]
                for _ in range(3):
                    told = asker.ask(f"#{expression}")
                    expect(told == sorted(want), f"{note}: {expression}: {told} not {sorted(want)}")

        for i in range(by_size(70, 140, 300)):
            name, parity = f"r{i:03}", f"p{i % 3}" if i % 3 else None
            make(site, name, f"m{i % 5}", f':parity = "{parity}" ;' if parity else "")
            models[name] = f"m{i % 5}"
            if parity:
                parities[name] = parity
            if i % 23 == 0 or i > 62 and i < 68:
                check(f"{i} made")
        run([tool("esdm-attr"), "--set", "model=changed", "r001"])
        models["r001"] = "changed"
        check("one of the index is changed")
        run([tool("esdm-rm"), "-y", "r002"])
        del models["r002"], parities["r002"]
        check("one is removed")
        run([tool("esdm-attr"), "--set", "parity=7", "r004"])
        parities["r004"] = "7"
        check("a number, as a text or not")


def test_times_in_months_and_those_that_nobody_knows():
    """Times in months, years and nanoseconds were in no answer, and so were those with a calendar or units that are no
    dates, without a word: what an answer lacks is told."""
    need_program("ncgen")
    months = {"months": ("months since 2000-01-01", "standard", "0, 1, 14.5"),
              "years": ("years since 1998-01-01", "360_day", "0, 1, 4"),
              "ns": ("nanoseconds since 1970-01-01", "standard", "946684800000000000, 1015000000000000000"),
              "ns2": ("nanoseconds since 1970-01-01", "standard", "5, 6"),
              "days": ("days since 2000-01-01", "noleap", "0, 800"),
              "none": ("days since 2000-01-01", "none", "0, 800"),
              "zone": ("days since 2000-01-01 00:00 CET", "standard", "0, 800")}
    with Site() as site:
        for name, (units, calendar, times) in months.items():
            text = site.file(f"{name}.cdl")
            text.write_text(f"netcdf t {{ dimensions: time = UNLIMITED; variables: double time(time); time:units = \"{units}\"; "
                            f"time:calendar = \"{calendar}\"; float tas(time); tas:units = \"K\"; :run = \"{name.strip('2')}\"; "
                            f"data: time = {times}; tas = {times}; }}")
            client(["ncgen", "-4", "-o", f"esdm://{name}", text])

        def find(question):
            done = run([tool("esdm-find"), "-c", question], check=False)
            return done.stdout.split(), done.stderr

        told = "2 containers have a dimension 'time', but nobody knows the dates"
        for question, names in (("time overlaps 2001-03-15", ["days", "months", "ns", "years"]),
                                ("time overlaps 2001-04 .. 2001-12", ["days", "ns", "years"]),
                                ("(time overlaps 2002-01-01 and tas:units = K)", ["days", "ns", "years"]),
                                ("tas:time overlaps 1998-01-01", ["years"])):
            found, err = find(question)
            expect(found == names and err.startswith(f"esdm-find: {told}"), (question, found, err))
        found, err = find("run = zone and time overlaps 2000 .. 2001")
        expect(found == [] and "1 container has a dimension 'time'" in err, err)
        for question in ("run = days and time overlaps 2000", "not (time overlaps 2001-03-15)", "tas:units = K"):
            expect("nobody knows" not in find(question)[1], question)
        failed = client(["ncdump", "esdm://?run=ns"], check=False)
        expect(failed.returncode != 0 and "times in nanoseconds cannot be joined" in failed.stderr, failed)


if __name__ == "__main__":
    main(test_what_was_committed_meanwhile_is_found, test_values_are_counted_as_they_are_now,
         test_times_in_months_and_those_that_nobody_knows)
