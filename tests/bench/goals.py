# SPDX-License-Identifier: LGPL-3.0-or-later
"""What benchmarks are to reach, and what they reached."""

import json


class Goals:
    """Rows of a table; `results` has whatever else belongs into the JSON file."""

    def __init__(self):
        self.rows = []
        self.results = {}

    def add(self, name, goal, reached, holds):
        """Texts, and whether the goal is reached."""
        self.rows.append({"name": name, "goal": goal, "reached": reached, "holds": bool(holds)})

    def least(self, name, value, least, unit=""):
        self.add(name, f">= {least:g}{unit}", f"{value:.2f}{unit}", value >= least)

    def most(self, name, value, most, unit=""):
        self.add(name, f"<= {most:.3g}{unit}", f"{value:.3g}{unit}", value <= most)

    def end(self, file=None):
        """Prints the table, writes the file. Exit status: 1 when a goal was missed."""
        wide = max((len(row["name"]) for row in self.rows), default=0)
        print(f"\n{'':8}{'':{wide}}  {'goal':>20}  {'reached':>14}")
        for row in self.rows:
            print(f"{'ok' if row['holds'] else 'MISSED':8}{row['name']:{wide}}  {row['goal']:>20}  "
                  f"{row['reached']:>14}")
        if file:
            file.write_text(json.dumps({"goals": self.rows, **self.results}, indent=2) + "\n")
        return 0 if all(row["holds"] for row in self.rows) else 1
