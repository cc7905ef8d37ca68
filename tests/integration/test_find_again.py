#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A program that asks again and again finds what itself and others have committed, changed, renamed and removed
meanwhile, whether it is in the index already or not."""

import subprocess

from esdmtest import BUILD, SOURCE, Site, by_size, client, client_environment, expect, main, need_program, run, tool

# A line is a question; one that begins with '+' names a container that is to be made.
ASK = """
import sys
import esdm, netCDF4
for line in sys.stdin:
    line = line.strip()
    if line.startswith("+"):
        with netCDF4.Dataset(f"esdm://{line[1:]}", "w") as d:
            d.model = "own"
        print("made", flush=True)
    else:
        try:
            print(*sorted({m.container for m in esdm.find(line)}), flush=True)
        except esdm.EsdmError:
            print("error", flush=True)
"""


class Asker:
    def __enter__(self):
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        self.process = subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", ASK], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


def make(site, name, model):
    text = site.file("x.cdl")
    text.write_text(f'netcdf x {{ dimensions: n = 1 ; variables: float v(n) ; v:units = "{model}-units" ; :model = "{model}" ; }}')
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


if __name__ == "__main__":
    main(test_what_was_committed_meanwhile_is_found)
