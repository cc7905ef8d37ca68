#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every function of the public headers is called with NULL for each of its pointers, and for all at
once: none crashes, and those that return a status say which argument is missing. The table of what may
be NULL is below; a function that is new is called as well, without anybody having to think of it."""

import re
import subprocess

from esdmtest import BUILD, SANITIZE, SOURCE, Failed, Site, expect, main

HEADERS = sorted(p for p in (SOURCE / "src/include/esdm").glob("*.h") if p.name != "mpi.h")

# Arguments that may be NULL: by name everywhere, or of one function.
OPTIONAL = {"err", "user", "ret_out_of_range", "message", "ret_index", "ret_is_default"}
OPTIONAL_IN = {
    "esdm_container_move_seen": {"uuid"}, "esdm_dataset_chunk_for_readers": {"ret_why"},
    "esdm_container_renamed": {"ret_time_ns"},
    "esdm_container_set_stub": {"folder", "place"},
    "esdm_container_stub": {"container", "ret_version"},
    "esdm_container_stub_folder": {"container"},
    "esdm_container_stub_is_at": {"container", "place"}, "esdm_container_stub_is_renamed": {"container"},
    "esdm_container_restored_ns": {"container"},
    "esdm_stub_place": {"session", "folder", "ret_place"},
    "esdm_container_check_seen": {"uuid"}, "esdm_container_name_is_left": {"ret_elsewhere"},
    "esdm_accuracy_set": {"units"}, "esdm_accuracy_parse": {"units"},
    "esdm_container_list": {"prefix"}, "esdm_session_open": {"options"},
    "esdm_site_validate": {"options"}, "esdm_site_create": {"options"},
    "esdm_site_check": {"options"}, "esdm_site_remove": {"options"},
    "esdm_site_contents": {"options", "ret_containers", "ret_bytes"}, "esdm_site_directories": {"options"},
    "esdm_site_calibrate": {"options", "how"}, "esdm_site_migrate": {"from"},
    "esdm_site_restore": {"options", "ret_result"},
    "esdm_records_read": {"context"}, "esdm_runs_read": {"config_path", "program", "context"},
    "esdm_runs_add": {"config_path"}, "esdm_runs_rule": {"config_path"}, "esdm_runs_trace": {"config_path"}, "esdm_fsck": {"options", "ret_result"}, "esdm_gc": {"options", "ret_result"},
    "esdm_restoration_end": {"ret_restoration"},
    "esdm_drain": {"options", "ret_result"},
    "esdm_dataset_statistics": {"space"}, "esdm_reduce": {"space", "ret_valid"},
    "esdm_reduce_weighted": {"space", "ret_weights"}, "esdm_histogram": {"space", "ret_rest"},
    "esdm_shapes_update": {"options", "ret_result"}, "esdm_shapes_remove": {"ret_bytes"},
    "esdm_shapes_visit": {"ret_stored_bytes"},
    "esdm_compact": {"options", "ret_result"}, "esdm_reindex": {"options", "ret_result"},
    "esdm_container_tag": {"ret_snapshot"}, "esdm_container_retract": {"reason"},
    "esdm_find_rows": {"columns"}, "esdm_find_sorted": {"columns"}, "esdm_find_save": {"expression"},
    "esdm_gather_left": {"name"}, "esdm_view_name": {"value"}, "esdm_branch_create": {"ret_snapshot"},
    "esdm_merge": {"branch", "options", "ret_result"}, "esdm_dedup": {"options", "ret_result"}, "esdm_dedup_foretell": {"options"},
    "esdm_pin": {"options", "ret_result"}, "esdm_read_stream": {"space"},
    # NULL: nothing is stated, or there is nothing to close.
    "esdm_dataset_set_accuracy": {"accuracy"}, "esdm_container_close": {"container"},
    "esdm_container_set_hint": {"value"}, "esdm_dataset_set_hint": {"value"},
    "esdm_dataset_set_fill": {"value"}, "esdm_dataset_set_chunk": {"shape"},
    "esdm_dataset_set_codec": {"chain"}, "esdm_former_list": {"prefix"},
    "esdm_dataspace_init": {"offset"}, "esdm_compound_add": {"shape"},
    # Numbers and texts need no container.
    "esdm_type_is_fixed_size": {"container"}, "esdm_values_copy": {"container"},
    # All ranks take part, and one that is wrong makes all fail, or brings nothing; former containers are named by either.
    "esdm_write_collective": {"space", "buffer"}, "esdm_read_collective": {"space", "buffer"},
    "esdm_dataset_align": {"space"},
    "esdm_former_restore": {"id", "to"},
}

# Cases that would do what cannot be done here, as removing the site.
SKIPPED = {("esdm_site_remove", "options"), ("esdm_site_calibrate", "options"),
           ("esdm_site_calibrate", "how"), ("esdm_site_create", "options")}

VALUES = {"esdm_session *": "session", "esdm_container *": "container", "esdm_group *": "root",
          "esdm_dataset *": "dataset", "esdm_dimension *": "dimension",
          "esdm_attributes *": "attributes", "esdm_comm *": "NULL", "char *": "text",
          "esdm_dataspace *": "&space", "esdm_accuracy *": "&accuracy",
          "esdm_dimension *const *": "&dimension", "char *const *": "names", "void *": "numbers", "int64_t *": "numbers",
          "uint64_t *": "numbers", "uint32_t *": "numbers", "double *": "numbers",
          "esdm_error *": "&error"}
TEXTS = {"buffer": "buffer", "units": '"K"', "expression": '"a = 1"', "text": '"abs=1 K"',
         "chain": '"lz4"'}

PROGRAM = """
#include <esdm/esdm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t numbers[1 << 14];
static const char *const names[] = {"units"};
static char buffer[1 << 16];
static char spare[16][8192]; /* what results go to */
static esdm_session *session;
static esdm_container *container;
static esdm_group *root;
static esdm_dimension *dimension;
static esdm_dataset *dataset;
static esdm_attributes *attributes;
static esdm_dataspace space;
static esdm_accuracy accuracy;
static esdm_error error;

static void
need(esdm_status status, const char *what)
{
    if (status != ESDM_OK) {
        fprintf(stderr, "%s: %s\\n", what, error.message);
        exit(2);
    }
}

static void
prepare(void)
{
    const uint64_t zero = 0, two = 2;
    need(esdm_session_open(NULL, &session, &error), "session");
    need(esdm_container_create(session, "null/made.nc", ESDM_CREATE_REPLACE, &container, &error), "container");
    root = esdm_container_root(container);
    attributes = esdm_group_attributes(root);
    need(esdm_dimension_create(root, "x", 2, &dimension, &error), "dimension");
    need(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dimension, &dataset, &error), "dataset");
    need(esdm_dataspace_init(&space, 1, &zero, &two, &error), "space");
    esdm_accuracy_init(&accuracy);
}

static void
begin(const char *what)
{
    memset(&error, 0, sizeof error);
    memset(spare, 0, sizeof spare);
    printf("%s ", what);
    fflush(stdout);
}

static void
end(int status)
{
    printf("%d %s\\n", status, error.message);
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 0;
    (void) argv;
    prepare();
    switch (first) {
@CASES@
    }
    printf("end\\n");
    return 0;
}
"""


def functions():
    """(returned type, name, [(type, name)…]) of each."""
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        pattern = r"ESDM_API\s+(?:ESDM_MUST_CHECK\s+)?([\w\s*]+?)(\besdm_\w+)\s*\(([^;]*?)\)[^;()]*;"
        for returned, name, rest in re.findall(pattern, text):
            parameters = []
            for part in " ".join(rest.split()).split(","):
                part = part.strip()
                if part == "void":
                    continue
                kind, word = re.fullmatch(r"(.*?)(\w+)", part).groups()
                parameters.append((kind.strip(), word))
            yield returned.strip(), name, parameters


def is_pointer(kind):
    return "*" in kind or kind.endswith(("_visitor", "_reporter"))


def value_of(kind, name, place):
    """An argument that is right, as far as it matters."""
    if not is_pointer(kind):
        return f"({kind}) 1" if kind in ("esdm_type", "size_t", "uint64_t", "uint32_t") else f"({kind}) 0"
    if kind.endswith(("_visitor", "_reporter")):
        return f"({kind}) (void (*)(void)) prepare"
    plain = kind.removeprefix("const ").strip()
    if kind == "char *" and name == "text":  # room for one
        return f"(void *) spare[{place}]"
    if name in TEXTS and plain == "char *":
        return TEXTS[name]
    if name.startswith("ret") or plain not in VALUES:
        return f"(void *) spare[{place}]"
    return '"name"' if plain == "char *" else VALUES[plain]


def cases():
    """(function, what is NULL, whether it must be EINVAL, C statements)."""
    for returned, name, parameters in functions():
        pointers = [word for kind, word in parameters if is_pointer(kind)]
        optional = OPTIONAL | OPTIONAL_IN.get(name, set())
        every = [(word, {word}) for word in pointers if word not in OPTIONAL]
        if len(every) > 1:
            every.append(("all", set(pointers) - {"err"}))
        for what, absent in every:
            if (name, what) in SKIPPED or (what == "all" and SKIPPED & {(name, w) for w in absent}):
                continue
            call = ", ".join(
                f"({kind}) NULL" if word in absent else value_of(kind, word, place)
                for place, (kind, word) in enumerate(parameters))
            must = returned == "esdm_status" and bool(absent - optional)
            call = f"{name}({call})"
            statement = f"end((int) {call});" if returned == "esdm_status" else (
                f"{call}; end(0);" if returned == "void" else f"(void) {call}; end(0);")
            yield name, what, must, statement


def build(folder):
    source, program = folder / "nulls.c", folder / "nulls"
    listed = list(cases())
    text = "".join(f'    case {i}: begin("{name}.{what}"); {statement} /* fall through */\n'
                   for i, (name, what, _, statement) in enumerate(listed))
    source.write_text(PROGRAM.replace("@CASES@", text + f"    case {len(listed)}:;"))
    flags = [f"-fsanitize={SANITIZE.split(',')[0]}"] if SANITIZE else []
    done = subprocess.run(["cc", *flags, "-g", "-w", "-Werror=implicit-function-declaration", f"-I{SOURCE}/src/include", str(source), "-o",
                           str(program), f"-L{BUILD}", "-lesdm", f"-Wl,-rpath,{BUILD}"],
                          stderr=subprocess.PIPE, text=True, check=False)
    expect(done.returncode == 0, done.stderr[-3000:])
    return program, listed


def test_every_function():
    with Site() as site:
        program, listed = build(site.folder)
        expect(len({name for name, *_ in listed}) > 150, f"only {len(listed)} cases were found")
        wrong, at = [], 0
        while True:
            done = subprocess.run([program, str(at)], stdout=subprocess.PIPE, text=True, timeout=300,
                                  stderr=subprocess.PIPE, check=False)
            lines = done.stdout.splitlines()
            for line in lines:
                if line == "end":
                    continue
                what, _, rest = line.partition(" ")
                status, _, message = rest.partition(" ")
                must = listed[at][2]
                if what != ".".join(listed[at][:2]):
                    raise Failed(f"{line} instead of {listed[at]}")
                at += 1
                if not rest:
                    wrong.append(f"{what}: ended the process ({done.returncode}) {done.stderr[-300:]}")
                elif must and (status != "1" or "NULL" not in message):
                    wrong.append(f"{what}: {status} {message}")
            if lines and lines[-1] == "end":
                break
            expect(lines, f"{done.returncode} {done.stderr[-500:]}")
        expect(not wrong, f"{len(wrong)} of {len(listed)}:\n" + "\n".join(wrong))


main(test_every_function)
