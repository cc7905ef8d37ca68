#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-mkfs --plan: what a header would take, how long, and where it would go."""

import json
import re

from esdmtest import by_clock, expect, expect_error, main, run, tool
from measured import ENOUGH, SPEEDS, calibrate, site

HEADER = """netcdf run1 { // an experiment
dimensions:
\ttime = UNLIMITED ; // (48 currently)
\tlat = 96 ;
\tlon = 192 ;
variables:
\tdouble time(time) ;
\t\ttime:units = "days since 2000-1-1; \\"}" ;
\tfloat tas(time, lat, lon) ;
\t\ttas:esdm_access = "maps" ;
\tfloat orog(lat, lon) ;
\t\tstring orog:note = "a", "b" ;

// global attributes:
\t\t:Conventions = "CF-1.7" ;

group: ocean {
  dimensions:
  \tdepth = 40 ;
  variables:
  \tfloat thetao(time, depth, lat, lon) ;
  } // group ocean
}
"""


@by_clock
def test_output_is_planned():
    with site(SPEEDS) as s:
        header = s.file("run1.cdl")
        header.write_text(HEADER)
        text = run([tool("esdm-mkfs"), "--plan", header]).stdout
        expect("not known" in text and "--calibrate" in text and "fast 50 %" in text, text)
        calibrate(seconds=ENOUGH)
        text = run([tool("esdm-mkfs"), "--plan", header]).stdout
        expect("ocean/thetao" in text and "together" in text and "fragments" in text, text)
        plan = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", header]).stdout)
        sizes = {v["path"]: v["bytes"] for v in plan["variables"]}
        expect(sizes == {"time": 48 * 8, "tas": 48 * 96 * 192 * 4, "orog": 96 * 192 * 4,
                         "ocean/thetao": 48 * 40 * 96 * 192 * 4}, f"{sizes}")
        expect(sum(t["bytes"] for t in plan["targets"]) == sum(sizes.values()), f"{plan}")
        seconds = plan["seconds"]
        expect(sizes["ocean/thetao"] / 250e6 < seconds < sizes["ocean/thetao"] / 2e6, f"{plan}")
        twice = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", header, "--steps",
                                "96"]).stdout)
        expect(1.8 < twice["seconds"] / seconds < 2.2, f"{twice}")
        for wrong, words in ((HEADER.replace("lat = 96", "lat = many"), ("run1.cdl:4", "many")),
                             (HEADER.replace("(lat, lon)", "(lat, level)"), ("no dimension",)),
                             (HEADER[:200], ("run1.cdl",)), ("", ("ncdump -h",)),
                             ("CDF\1", ("ncdump -h", "such a file itself")),
                             ("time,tas\n1,2\n", ("run1.cdl:1", "no header", "ncdump -h")),
                             (HEADER.replace('"maps"', '"often"'), ("often",))):
            header.write_text(wrong)
            expect_error(run([tool("esdm-mkfs"), "--plan", header], check=False), *words)
        expect_error(run([tool("esdm-mkfs"), "--plan", "no-such.cdl"], check=False), "no-such")
        expect_error(run([tool("esdm-mkfs"), "--steps", "3"], check=False), "--plan")


def test_plans_count_copies_and_ask_for_steps():
    with site(SPEEDS, copies=2) as s:
        header = s.file("run1.cdl")
        header.write_text(HEADER)
        plan = json.loads(run([tool("esdm-mkfs"), "--json", "--plan", header]).stdout)
        thetao = next(v for v in plan["variables"] if v["path"] == "ocean/thetao")
        once = 48 * 40 * 96 * 192 * 4
        expect(thetao["bytes"] == 2 * once and thetao["copies"] == 2, f"{thetao}")
        expect({t["target"]: t["bytes"] for t in thetao["targets"]} == {"fast": once, "slow": once},
               f"{thetao}")
        expect("(2 copies)" in run([tool("esdm-mkfs"), "--plan", header]).stdout, "as text")
        header.write_text(re.sub(r"UNLIMITED ; //.*", "UNLIMITED ; // (0 currently)", HEADER))
        done = run([tool("esdm-mkfs"), "--plan", header])
        expect("'time' has length 0" in done.stderr and "--steps" in done.stderr, done.stderr)
        done = run([tool("esdm-mkfs"), "--plan", header, "--steps", "3"])
        expect("--steps" not in done.stderr, done.stderr)


main(test_output_is_planned, test_plans_count_copies_and_ask_for_steps)
