#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Takes mended faults back, one after the other, and sees a test fail of each: what shows that tests
find as much as before after they were made smaller. Needs git, and the time of some builds.

    mutations.py                 all of them
    mutations.py NAME…           these alone, in this order
    mutations.py --help          this text
    mutations.py --list          their names, commits and tests
    mutations.py --promises      what is promised (promises.py), its tests and faults; status 1: one of them is
                                 not there, or the source is not as a fault wants it. $ESDM_BUILD (build): a
                                 build folder
    mutations.py --folder F      works in F, a tree of its own, and leaves it there for the next time;
                                 without it the tree is in build-mutations and removed

The tests have the default size, or $ESDM_TEST_SIZE, and seeds from 1 on: what draws some of many cases
need not find a fault with each seed. Exit status 1: a fault was not found, or could not be made.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import promises

SOURCE = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 1800

# commit: which mended it; changes: (file, text, text of before); targets: of ninja; test: of ctest;
# functions: of the test, () for all; seeds: how many are tried.
Mutation = collections.namedtuple("Mutation", "name commit changes targets test functions seeds")

LIBRARY = ("libesdm.so",)
MUTATIONS = [
    Mutation("beyond-valid-range", "eaf95112", [
        ("src/codec/limits.c", "left |= ((x < low) & (y >= low)) | ((x > high) & (y <= high)) |", "left |=")],
        LIBRARY, "netcdf.clients.accuracy", ("test_valid_range",), 1),
    Mutation("statistics-of-unsigned-numbers", "fd8be078", [
        ("src/io/container/missing.c", "const esdm_type type = esdm__type_of_readers(dataset);",
         "const esdm_type type = dataset->type;")],
        LIBRARY, "integration.unsigned", (), 1),
    Mutation("told-of-the-newest-statement", "f39eabe6", [
        ("src/api/accuracy_attributes.c", "    if (!s->any)\n        return stated;",
         "    if (s != NULL)\n        return stated;")],
        LIBRARY, "netcdf.clients.accuracy", ("test_what_readers_are_told_holds_for_all_that_is_stored",), 1),
    Mutation("half-a-key", "22cb096", [
        ("tools/esdm-seal/sign.c", "int fd = g_mkstemp_full(begun, O_WRONLY | O_CLOEXEC, mode);",
         "int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);"),
        ("tools/esdm-seal/sign.c", "else if (link(begun, file) != 0)", "else if (false)")],
        ("tools/esdm-seal",), "faults.kill_history", ("test_kill_history__seal",), 4),
    Mutation("interrupted-rename", "90fc9f0", [
        ("src/api/catalogue.c", "if (status == ESDM_ENOENT && strcmp(normal_from, normal_to) != 0) {",
         "if (false) {")],
        LIBRARY, "faults.kill_history", ("test_kill_history__rename_with_branches",), 4),
    Mutation("removal-not-flushed", "b4a0df4", [
        ("backends/meta/sqlite/open.c", "store->flushes = config->durable;", "store->flushes = false;")],
        LIBRARY, "faults.powerloss", (), 4),
    Mutation("traps-of-models", "450db29", [
        ("netcdf-plugin/dispatch/thunks.h", "        ESDM_FLOAT_ENV_OWN;                         ",
         "                                                    ")],
        ("esdm-netcdf-core",), "netcdf.compare_traps", (), 1),
    Mutation("links-of-records", "3835fba", [
        ("src/io/session/earlier_file.c", "O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC",
         "O_RDONLY | O_DIRECTORY | O_CLOEXEC"),
        ("src/io/session/earlier_file.c", "return S_ISDIR(mode) && strspn",
         "return (S_ISDIR(mode) || S_ISLNK(mode)) && strspn")],
        LIBRARY, "integration.earlier", ("test_earlier__only_its_own_files_are_removed",), 1),
    Mutation("unsigned-tolerances", "3835fba", [
        ("tools/esdm-recipe/tolerance.c", '"_Unsigned", &attribute, NULL))',
         '"_Unsigned", &attribute, NULL) && false)')],
        ("tools/esdm-recipe",), "integration.recipe", (), 1),
    Mutation("clone-of-a-coarse-name", "1614f09", [
        ("src/api/clone.c", "if (status == ESDM_OK && source->coarse)", "if (false)")],
        LIBRARY, "netcdf.clients.progressive", ("test_units_variables_and_what_is_told",), 1),
    Mutation("what-a-door-pins", "76d60d8", [
        ("tools/esdm-serve/model.c", 'asked != NULL ? asked : "");', '"");'),
        ("tools/esdm-serve/model.c", "const char *asked = m->end.name[0] != '?' ?",
         "G_GNUC_UNUSED const char *asked = m->end.name[0] != '?' ?")],
        ("tools/esdm-serve",), "netcdf.clients.progressive", ("test_mounted_and_over_http",), 1),
    Mutation("outdated-unlimited-dimension", "9dce2e7", [
        ("tools/esdm-serve/dap-text.c", "if (!is_outdated(set, a))", "if (is_outdated(set, a) || true)")],
        ("tools/esdm-serve",), "netcdf.clients.dap", (), 1),
    Mutation("nothing-is-cut", "32fe4c1", [
        ("tools/esdm-advise/estimate.c", "#define CUT_SHARE 0.01", "#define CUT_SHARE 0.0")],
        ("tools/esdm-advise",), "integration.advise_intervals", (), 1),
    Mutation("branches-that-are-gone", "1de9c53", [
        ("src/api/lines.c", "status == ESDM_OK ? esdm__branch_names(session, base, begin_with, &e, err) : status;",
         "status;")],
        LIBRARY, "integration.branch_lines", ("test_a_line_keeps_what_branches_of_removed_ones_began_with",), 1),
    Mutation("tags-of-erased-branches", "1de9c53", [
        ("src/api/former.c", "if (esdm__name_branch(normal, NULL) != NULL) {",
         "if (esdm__name_branch(normal, NULL) != NULL && ret_removed == NULL) {")],
        LIBRARY, "integration.branch_lines", ("test_a_line_keeps_what_branches_of_removed_ones_began_with",), 1),
    Mutation("bases-in-any-order", "e3730af7", [
        ("src/api/line_bases.c", "int order = strcmp(x->branch, y->branch);",
         "int order = strcmp(y->branch, x->branch);")],
        LIBRARY, "integration.branch_lines", ("test_three_in_common",), 1),
    Mutation("questions-of-many-states", "821f4c6f", [
        ("src/query/state.c", "if (meta->hold == NULL)", "if (true)")],
        LIBRARY, "integration.find_sorted", ("test_find_sorted__what_moves_is_in_the_answer",), 1),
    Mutation("infinite-costs", "c842cdc", [
        ("tools/esdm-cost/esdm-cost.c", "if (!good) {", "if (!good && year < 0) {")],
        ("tools/esdm-cost",), "integration.cost", (), 1),
    Mutation("clones-of-a-query", "92fe3fe", [
        ("tools/esdm-cp/plan.c", "if (name[0] == '?' && p->to_container && p->into_folder &&",
         "if (name[0] == '?' && p->to_container && p->into_folder && p->session == NULL && false &&")],
        ("tools/esdm-cp",), "integration.reflink", (), 1),
    Mutation("names-what-was-given-up", "7a4e2df", [
        ("src/upkeep/dedup.c", "if (d->blobs[i].same != NONE && !d->blobs[d->blobs[i].same].named)",
         "if (d->blobs[i].same != NONE && !d->blobs[d->blobs[i].same].named && d->nblobs == 0)")],
        LIBRARY, "faults.named_meanwhile", ("test_what_was_given_up_since_it_was_listed_is_not_named",), 1),
    Mutation("writers-that-live-count-as-dead", "7a4e2df", [
        ("src/upkeep/strays.c", "dead[i] = writer[0] != '\\0' && !lives;", "dead[i] = writer[0] != '\\0';"),
        ("src/upkeep/strays.c", "(session->store, writer, &lives, NULL) == ESDM_OK && !lives;",
         "(session->store, writer, &lives, NULL) == ESDM_OK;")],
        LIBRARY, "faults.concurrent_history", ("test_concurrent_history__sqlite",), 3),
    Mutation("fewer-copies-than-wanted", "d8df91d", [
        ("src/upkeep/dedup_wish.c", "    return copies >= wish->copies ||", "    return copies > 0 || copies >= wish->copies ||"),
        ("src/upkeep/dedup.c", "return places[0] > places[1] ? -1 : 1;", "return places[0] < places[1] ? -1 : 1;")],
        LIBRARY, "integration.dedup", ("test_what_is_named_has_the_copies_and_the_targets_that_are_wanted",), 1),
    Mutation("fewer-copies-of-what-is-shared", "067f214", [
        ("src/upkeep/drain.c", "if (d->shared && !balance)", "if (d->shared && balance)")],
        LIBRARY, "integration.dedup", ("test_what_is_named_has_the_copies_and_the_targets_that_are_wanted",), 1),
    Mutation("merges-that-nobody-notes", "463664c", [
        ("src/api/merge.c", "session->meta->commit_tags)", "session->meta->commit_tags && all->record == 0)")],
        LIBRARY, "faults.merged_meanwhile", ("test_what_was_merged_is_known_although_its_program_was_killed",), 1),
    Mutation("older-merges-in-the-place-of-newer-ones", "463664c", [
        ("src/api/lines.c", "return unless_gone(set_tag(session, on, name, snapshot, author, true, &why), &why, err);",
         "return unless_gone(set_tag(session, on, name, snapshot, author, false, &why), &why, err);")],
        LIBRARY, "faults.merged_meanwhile", ("test_a_newer_merge_is_not_forgotten",), 1),
    Mutation("merges-past-each-other", "e35cc6be", [
        ("src/api/merge.c", "pick != 0 || !all->session->meta->commit_follows)", "pick != 0 || all->session->meta != NULL)")],
        LIBRARY, "faults.merged_meanwhile", ("test_a_conflict_that_both_directions_decide_at_once_is_decided_once",), 1),
    Mutation("fragments-beyond-valid-range", "ab449fd7", [
        ("src/io/read/statistics.c", "esdm__box_equal(&piece->part, &fragment->box) && esdm__beyond_none(&g->beyond, &all);",
         "esdm__box_equal(&piece->part, &fragment->box);")],
        LIBRARY, "integration.valid_range", (), 1),
    Mutation("commits-that-saved-queries-miss", "091f5be3", [
        ("src/io/commit/extents.c", "status = put_mark(esdm__io_of(container)->session, ret_extents, &why);",
         "status = ESDM_OK;")],
        LIBRARY, "integration.find_follow", (), 1),
    Mutation("copies-that-are-put-back", "025d1000", [
        ("src/journal/put_back.c", "    if (newest_ns <= limit_ns)", "    if (true || newest_ns <= limit_ns)")],
        LIBRARY, "integration.put_back", (), 1),
    Mutation("what-was-left-open", "afab829b", [
        ("netcdf-plugin/dispatch/opening.c", "if (ranks == NULL && !file->transient)\n        esdmnc_files_supersede",
         "if (ranks == NULL && !file->transient && file->hidden)\n        esdmnc_files_supersede")],
        ("esdm-netcdf-core",), "netcdf.clients.opened_again", (), 1),
    Mutation("locks-of-all-lanes", "6cbddddc", [
        ("src/io/session/cache.c", "unsigned taken = atomic_load(&cache->taken) | 1U;",
         "unsigned taken = atomic_load(&cache->taken) | 255U;")],
        (*LIBRARY, "unit_io_cache"), "unit.io.cache", (), 1),
    Mutation("second-connection-of-a-child", "bfa80244", [
        ("backends/meta/sqlite/second.c", "is == SQLITE__SECOND_NEVER || store->pid != esdm__own_pid() ||",
         "is == SQLITE__SECOND_NEVER ||")],
        (*LIBRARY, "unit_sqlite_second"), "unit.sqlite.second", (), 1),
    Mutation("strides-read-what-they-leave-out", "c31a6e93", [
        ("src/io/read/jobs.c", "if (is_left_out(t, &pieces[i]))", "if (is_left_out(t, &pieces[i]) && i > npieces)")],
        LIBRARY, "integration.tune_requests", (), 1),
]
MUTATIONS += [Mutation(*fault) for fault in promises.FAULTS]


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


def must(command, **options):
    done = run(command, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout[-3000:]}")
    return done.stdout


class Tree:
    """This commit in a folder of its own, with all changes that are not committed, built."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"
        if not folder.exists():
            must(["git", "-C", SOURCE, "worktree", "add", "-q", "--detach", folder, "HEAD"])
        must(["git", "-C", folder, "checkout", "-q", "--force", "--detach",
              must(["git", "-C", SOURCE, "rev-parse", "HEAD"]).strip()])
        changed = must(["git", "-C", SOURCE, "diff", "--binary", "HEAD"])
        if changed:
            subprocess.run(["git", "-C", folder, "apply"], input=changed, text=True, check=True)
        self.env = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
        ccache = run(["sh", "-c", "command -v ccache"]).returncode == 0
        must(["cmake", "-S", folder, "-B", self.build, "-G", "Ninja", "-DESDM_WERROR=ON",
              "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG",  # as tests/run.sh: the compiler's cache has it
              *(["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if ccache else [])], env=self.env)
        must(["ninja", "-C", self.build], env=self.env)

    def remove(self):
        must(["git", "-C", SOURCE, "worktree", "remove", "--force", self.folder])

    def make(self, targets):
        return run(["ninja", "-C", self.build, *targets], env=self.env)

    def test(self, mutation, seed):
        """Of ctest, its status and what it says."""
        known = json.loads(must(["ctest", "--test-dir", self.build, "--show-only=json-v1", "-R",
                                 f"^{re.escape(mutation.test)}$"]))["tests"]
        known.sort(key=lambda one: one["name"] == mutation.test)  # after what it needs
        if not known or known[-1]["name"] != mutation.test:
            sys.exit(f"there is no test {mutation.test}")
        env = dict(os.environ, ESDM_TEST_SEED=str(seed))
        env.setdefault("ESDM_TEST_SIZE", "default")
        env.setdefault("ESDM_TEST_DATA", str((SOURCE / "../shared/data").resolve()))
        for one in known:
            for each in one["properties"]:
                if each["name"] == "ENVIRONMENT":
                    env.update(pair.split("=", 1) for pair in each["value"])
            done = run([*one["command"], *(mutation.functions if one is known[-1] else ())], env=env,
                       timeout=SECONDS, cwd=self.build)
        return done.returncode, done.stdout


def change(tree, mutation):
    """Takes the fault back. Returns what undoes that, or says what is not as it was."""
    kept = {}
    for file, now, before in mutation.changes:
        path = tree.folder / file
        text = path.read_text()
        kept.setdefault(path, text)
        if text.count(now) != 1:
            restore(kept)
            return None, f"'{now}' is {text.count(now)} times in {file}: mutations.py must follow"
        path.write_text(text.replace(now, before))
    return kept, None


def restore(kept):
    for path, text in kept.items():
        path.write_text(text)


def check(tree, mutation):
    """None, or what is wrong."""
    status, said = tree.test(mutation, 1)
    if status != 0:
        return f"{mutation.test} fails (status {status}) without it, too:\n{said[-2000:]}"
    kept, why = change(tree, mutation)
    if why:
        return why
    try:
        built = tree.make(mutation.targets)
        if built.returncode != 0:
            return f"it does not compile:\n{built.stdout[-2000:]}"
        for seed in range(1, mutation.seeds + 1):
            status, said = tree.test(mutation, seed)
            if status not in (0, 77):
                line = next((l for l in said.splitlines() if "FAILED" in l or "rror" in l), "").strip()
                print(f"found    {mutation.name} by {mutation.test}, seed {seed}: {line[:160]}", flush=True)
                return None
        how = "was skipped" if status == 77 else "passes with it"
        return f"{mutation.test} {how}, seeds 1 to {mutation.seeds}"
    finally:
        restore(kept)
        tree.make(mutation.targets)


def defined(name):
    """The functions of a test in Python."""
    stem = name.rsplit(".", 1)[-1]
    return {f for path in (SOURCE / "tests").rglob(f"test_{stem}.py")
            for f in re.findall(r"^def (test_\w+)", path.read_text(), re.M)}


def is_source(name):
    """Whether it is a test that this build leaves out."""
    stem = name.rsplit(".", 1)[-1]
    return any(path.stem in (stem, f"test_{stem}") for path in (SOURCE / "tests").rglob(f"*{stem}.*"))


def show_promises():
    build = pathlib.Path(os.environ.get("ESDM_BUILD", SOURCE / "build"))
    tests = {t["name"] for t in json.loads(must(["ctest", "--test-dir", build, "--show-only=json-v1"]))["tests"]}
    faults = {m.name: m for m in MUTATIONS}
    wrong = 0
    for what, named, taken_back in promises.PROMISES:
        print(what)
        for test in named:
            name, _, functions = test.partition(": ")
            known = name in tests or is_source(name)
            missing = ([] if known else [name]) + sorted(set(functions.split()) - defined(name))
            wrong += len(missing)
            print(f"    {test}" + "".join(f"  MISSING {m}" for m in missing))
        for fault in taken_back:
            wrong += fault not in faults
            print(f"    without it: {fault}" + ("" if fault in faults else "  MISSING"))
    for m in MUTATIONS:
        for file, now, _ in m.changes:
            count = (SOURCE / file).read_text().count(now)
            wrong += count != 1
            if count != 1:
                print(f"{m.name}: '{now}' is {count} times in {file}")
    return 1 if wrong else 0


def main():
    words = sys.argv[1:]
    if "--promises" in words:
        return show_promises()
    if "--help" in words:
        print(__doc__.strip())
        return 0
    if "--list" in words:
        for m in MUTATIONS:
            print(f"{m.name:30} {m.commit}  {m.test} {' '.join(m.functions)}")
        return 0
    folder = None
    if "--folder" in words:
        at = words.index("--folder")
        folder = pathlib.Path(words[at + 1]).resolve()
        del words[at:at + 2]
    known = {m.name: m for m in MUTATIONS}
    unknown = set(words) - set(known)
    if unknown:
        sys.exit(f"no such mutation: {' '.join(sorted(unknown))}")
    tree = Tree(folder or SOURCE / "build-mutations")
    missed = 0
    try:
        for mutation in [known[word] for word in words] or MUTATIONS:
            why = check(tree, mutation)
            if why:
                missed += 1
                print(f"MISSED   {mutation.name} ({mutation.commit}): {why}", flush=True)
    finally:
        if folder is None:
            tree.remove()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
