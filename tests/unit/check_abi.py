#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that were linked with an older libesdm run with this one: no function is gone, and no public structure
has another layout.

tests/unit/abi/VERSION.txt holds, for each version that was released, what `--write` prints: the exported functions
with their symbol versions, and size and offsets of each public structure, the values of the
constants. Of each file every line must hold today,
but for structures that a new version of the functions that take them replaced (cmake/esdm.map): their
lines are then moved to VERSION-old.txt by hand, where the old functions are named that still take them.

Usage: check_abi.py SOURCE LIBRARY COMPILER [--write]
"""
import os
import re
import subprocess
import sys
import tempfile

source, library, compiler = sys.argv[1:4]
include = os.path.join(source, "src/include")
folder = os.path.join(source, "tests/unit/abi")
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\n\} \1;", re.S)
ENUM = re.compile(r"(?:typedef )?enum (?:\w+ )?\{(.*?)\}", re.S)
MEMBER = re.compile(r"^(?:.*?\(\*(\w+)\)\(.*|.*?(\w+)(?:\[[^]]*\])*)$", re.S)


def headers():
    """The public headers without comments: (path, text)."""
    public = os.path.join(include, "esdm")
    for file in sorted(os.listdir(public)):
        if file.endswith(".h") and file != "mpi.h":
            text = open(os.path.join(public, file)).read()
            yield "esdm/" + file, re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structures(text):
    """Names of the structures and of their members."""
    for name, body in STRUCT.findall(text):
        body = re.sub(r"(union|struct|enum)[^{;]*\{[^}]*\}", "int", body)
        found = [MEMBER.match(d.strip()) for d in body.split(";") if d.strip()]
        yield name, [f.group(1) or f.group(2) for f in found]


def layouts():
    texts = list(headers())
    rows = [row for _, text in texts for row in structures(text)]
    names = [n for _, text in texts for body in ENUM.findall(text) for n in re.findall(r"(?:^|,)\s*(ESDM_\w+)", body)]
    if len(rows) < 10 or len(names) < 10:
        sys.exit("too little was found in the headers: %d structures, %d constants" % (len(rows), len(names)))
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += ['#include "%s"' % header for header, _ in texts]
    lines += ["int", "main(void)", "{"]
    lines += ['    printf("constant %s = %%d\\n", (int) %s);' % (name, name) for name in names]
    for name, members in rows:
        lines.append('    printf("struct %s bytes %%zu\\n", sizeof(%s));' % (name, name))
        for member in members:
            lines.append('    printf("struct %s.%s at %%zu bytes %%zu\\n", offsetof(%s, %s), sizeof(((%s *) 0)->%s));'
                         % (name, member, name, member, name, member))
    lines += ["    return 0;", "}"]
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "layout")
        with open(program + ".c", "w") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([compiler, "-I", include, program + ".c", "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def functions():
    table = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in table.splitlines() if line.split()[1] in "TW"]
    return ["function " + n.replace("@@", "@") for n in sorted(names) if n.startswith("esdm_")]


now = layouts() + functions()
if "--write" in sys.argv:
    print("\n".join(now))
    sys.exit(0)
held = set(now)
versions = sorted(f for f in os.listdir(folder) if f.endswith(".txt") and not f.endswith("-old.txt"))
if not versions:
    sys.exit("no version in " + folder)
failed = 0
for version in versions:
    lines = open(os.path.join(folder, version)).read().splitlines()
    if len(lines) < 100:
        sys.exit("%s has %d lines only" % (version, len(lines)))
    for line in lines:
        if line not in held:
            failed += 1
            what = " ".join(line.split()[:2])
            print("%s: \"%s\" holds no more; today: %s"
                  % (version, line, next((n for n in now if (n + " ").startswith(what + " ")), "nothing of that name")))
if failed:
    sys.exit("Programs that were linked with these versions would break. Give the functions that take a changed structure a "
             "new symbol version, and keep the old one (cmake/esdm.map). Of a version that was not released yet, write "
             "the file anew: tests/unit/check_abi.py SOURCE LIBRARY COMPILER --write")
print("all that programs of %s use is there" % ", ".join(v[:-4] for v in versions))
