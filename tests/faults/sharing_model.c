/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Random changes of containers that share packs, compared with a model; run by test_sharing.py.
 *
 *     sharing_model STEPS SEED
 *
 * Each step is done by a process of its own, which is killed at a random time in a part of the
 * cases: then its container is as before, or as after it. Readers have containers open meanwhile.
 * What nobody refers to is gone after esdm_gc().
 */

#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "esdm/branch.h"
#include "esdm/upkeep.h"

enum { NAMES = 6, ROWS = 10, COLUMNS = 300, READERS = 2, KINDS = 18, VALUES = 200000 };

#include "integration/rows.h"

/* One container as it should be. */
typedef struct content {
    bool exists;
    uint32_t rows;
    int32_t values[ROWS];
} content;

typedef struct state {
    content now;
    bool knows_before;
    content before; /* of the snapshot before */
    content branch; /* as its branch should be */
    content base;   /* of the branch when it began, or was merged */
} state;

typedef enum kind {
    CREATE,
    OVERWRITE,
    APPEND,
    CLONE,
    CLONE_BEFORE,
    REMOVE,
    ERASE,
    RENAME,
    COLLECT,
    DRAIN,
    DRAIN_ONE,
    COMPACT,
    REPAIR,
    DEDUP,
    BRANCH,
    CHANGE_BRANCH,
    MERGE,
    UNBRANCH
} kind;

static const char *const kind_names[KINDS] = {
    "create", "overwrite", "append",  "clone",         "clone before", "remove",
    "erase",  "rename",    "collect", "drain",         "drain one",    "compact",
    "repair", "dedup",     "branch",  "change branch", "merge",        "unbranch"};

typedef struct operation {
    kind kind;
    uint32_t a;
    uint32_t b;
    uint32_t row;
    int32_t value;
} operation;

typedef struct reader {
    pid_t pid; /* 0: none */
    int wake;
    uint64_t until;
} reader;

static state model[NAMES];
static reader readers[READERS];
static uint64_t seed;
static uint64_t counts[KINDS];
static uint64_t took_us[KINDS]; /* about */
static uint64_t kills;
static uint64_t *compacted; /* fragments, by all processes */

static uint32_t
any(uint32_t below)
{
    return (uint32_t) (next_random(&seed) % below);
}

static const char *
name_of(uint32_t i)
{
    static const char *const names[NAMES] = {"n0", "n1", "sub/n2", "sub/n3", "n4", "n5"};
    return names[i];
}

/* ---- what a step does --------------------------------------------------------------------- */

static void
create(esdm_session *session, const char *name, uint32_t rows, int32_t value)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    for (uint32_t i = 0; i < rows; i++)
        write_row(container, i, value + (int32_t) i);
    ok(esdm_container_close(container, ERR));
}

static void
change(esdm_session *session, const char *name, uint32_t row, int32_t value)
{
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, ERR));
    write_row(container, row, value);
    ok(esdm_container_close(container, ERR));
}

static void
clone_before(esdm_session *session, const char *from, const char *to)
{
    char name[64];
    snprintf(name, sizeof name, "%s@-1", from);
    ok(esdm_container_clone(session, name, to, true, ERR));
}

static void
change_branch(esdm_session *session, const char *name, uint32_t row, int32_t value)
{
    char full[64];
    snprintf(full, sizeof full, "%s@branch:b", name);
    change(session, full, row, value);
}

static void
merge(esdm_session *session, const char *name)
{
    const esdm_merge_options options = {.prefer = ESDM_MERGE_THEIRS};
    ok(esdm_merge(session, name, "b", &options, NULL, ERR));
}

static void
drain(esdm_session *session, const char *name, uint32_t target)
{
    static const char *const targets[] = {"fast", "disk", "more"};
    esdm_drain_result result;
    const esdm_drain_options options = {.containers = name != NULL ? &name : NULL,
                                        .ncontainers = name != NULL,
                                        .from = &targets[target],
                                        .nfrom = 1};
    ok(esdm_drain(session, &options, &result, ERR));
    check(result.failed == 0);
}

static void
compact(esdm_session *session, const char *name)
{
    esdm_compact_result result;
    ok(esdm_compact(session, name, NULL, &result, ERR));
    *compacted += result.fragments;
}

static void
say_finding(const esdm_finding *finding, void *user)
{
    (void) user;
    fprintf(stderr, "%s: %s: %s\n", finding->container != NULL ? finding->container : "",
            finding->place != NULL ? finding->place : "", finding->what);
}

static void
repair(esdm_session *session, bool mends, esdm_fsck_result *ret)
{
    const esdm_fsck_options options = {.data = true, .repair = mends, .report = say_finding};
    ok(esdm_fsck(session, &options, ret, ERR));
    check(ret->problems == ret->repaired);
}

/* What is done with is gone; a server may hear a little later that a writer is dead. */
static void
collect(esdm_session *session, bool replaced, bool nothing_left)
{
    const esdm_gc_options options = {.any_age = true, .replaced = replaced};
    esdm_fsck_result seen = {0};
    for (int i = 0; i < 300; i++) {
        esdm_gc_result result;
        ok(esdm_gc(session, &options, &result, ERR));
        check(result.failed == 0);
        ok(esdm_fsck(session, NULL, &seen, ERR)); /* clones may have fewer copies than wanted */
        if (seen.orphans == 0 && seen.unpublished == 0 && (!nothing_left || seen.packs == 0))
            return;
        (void) usleep(50000);
    }
    die("esdm_gc left %" PRIu64 " packs that nobody refers to, of %" PRIu64, seen.orphans,
        seen.packs);
}

static void
run(const operation *op)
{
    esdm_fsck_result result;
    esdm_session *session = open_session();
    const char *a = name_of(op->a);
    const char *b = name_of(op->b);
    switch (op->kind) {
    case CREATE:
        create(session, a, op->row + 1, op->value);
        break;
    case OVERWRITE:
    case APPEND:
        change(session, a, op->row, op->value);
        break;
    case CLONE:
        ok(esdm_container_clone(session, a, b, true, ERR));
        break;
    case CLONE_BEFORE:
        clone_before(session, a, b);
        break;
    case REMOVE:
        ok(esdm_container_remove(session, a, ERR));
        break;
    case ERASE:
        ok(esdm_container_erase(session, a, ERR));
        break;
    case RENAME:
        ok(esdm_container_move(session, a, b, true, ERR));
        break;
    case COLLECT:
        collect(session, op->row % 2 == 0, false);
        break;
    case DRAIN:
    case DRAIN_ONE:
        drain(session, op->kind == DRAIN_ONE ? a : NULL, op->row % 3);
        break;
    case COMPACT:
        compact(session, a);
        break;
    case REPAIR:
        repair(session, true, &result);
        break;
    case DEDUP:
        ok(esdm_dedup(session, NULL, NULL, ERR));
        break;
    case BRANCH:
        ok(esdm_branch_create(session, a, "b", NULL, ERR));
        break;
    case CHANGE_BRANCH:
        change_branch(session, a, op->row, op->value);
        break;
    case MERGE:
        merge(session, a);
        break;
    case UNBRANCH:
        ok(esdm_branch_remove(session, a, "b", ERR));
        break;
    }
    esdm_session_close(session);
}

/* ---- what should be there then ------------------------------------------------------------ */

static void
commit(state *s, uint32_t row, int32_t value)
{
    s->before = s->now;
    s->knows_before = true;
    s->now.values[row] = value;
    if (row == s->now.rows)
        s->now.rows++;
}

/* Theirs wins where both have changed a row. */
static void
merge_rows(state *s)
{
    const content *base = &s->base;
    const content *theirs = &s->branch;
    for (uint32_t row = 0; row < theirs->rows; row++) {
        if (row >= base->rows || theirs->values[row] != base->values[row])
            s->now.values[row] = theirs->values[row];
    }
    s->now.rows = theirs->rows > s->now.rows ? theirs->rows : s->now.rows;
    s->base = s->branch;
    s->knows_before = false;
}

static void
apply(const operation *op, state *all)
{
    state *a = &all[op->a];
    state *b = &all[op->b];
    switch (op->kind) {
    case CREATE:
        *a = (state){.now = {.exists = true, .rows = op->row + 1}};
        for (uint32_t i = 0; i <= op->row; i++)
            a->now.values[i] = op->value + (int32_t) i;
        break;
    case OVERWRITE:
    case APPEND:
        commit(a, op->row, op->value);
        break;
    case CLONE:
        *b = (state){.now = a->now};
        break;
    case CLONE_BEFORE:
        *b = (state){.now = a->before};
        break;
    case RENAME:
        *b = *a;
        *a = (state){.knows_before = false};
        break;
    case REMOVE:
    case ERASE:
        *a = (state){.knows_before = false};
        break;
    case COMPACT: /* perhaps there was nothing to do, and no commit */
        a->knows_before = false;
        break;
    case BRANCH:
        a->branch = a->base = a->now;
        break;
    case CHANGE_BRANCH:
        a->branch.values[op->row] = op->value;
        a->branch.rows += op->row == a->branch.rows;
        break;
    case MERGE:
        merge_rows(a);
        break;
    case UNBRANCH:
        a->branch = a->base = (content){.exists = false};
        break;
    default:
        break;
    }
}

/* false: it makes no sense now. */
static bool
choose(operation *op)
{
    static const kind often[] = {
        CREATE,        OVERWRITE,     OVERWRITE,     OVERWRITE, APPEND, APPEND,  CLONE,   CLONE,
        CLONE,         CLONE,         CLONE_BEFORE,  REMOVE,    ERASE,  RENAME,  COLLECT, DRAIN,
        DRAIN_ONE,     COMPACT,       COMPACT,       REPAIR,    DEDUP,  BRANCH,  BRANCH,  BRANCH,
        CHANGE_BRANCH, CHANGE_BRANCH, CHANGE_BRANCH, MERGE,     MERGE,  UNBRANCH};
    *op = (operation){.kind = often[any(sizeof often / sizeof often[0])],
                      .a = any(NAMES),
                      .b = any(NAMES),
                      .row = any(ROWS),
                      .value = (int32_t) any(VALUES)};
    const state *a = &model[op->a];
    const state *b = &model[op->b];
    if (op->kind == BRANCH)
        return a->now.exists && !a->branch.exists;
    if (op->kind == CHANGE_BRANCH)
        op->row %= a->branch.rows + 1;
    if (op->kind == CHANGE_BRANCH || op->kind == MERGE || op->kind == UNBRANCH)
        return a->branch.exists && op->row < ROWS;
    /* What is replaced, removed or renamed has no branches here. */
    if ((op->kind == CREATE || op->kind == REMOVE || op->kind == ERASE || op->kind == RENAME) &&
        a->branch.exists)
        return false;
    if ((op->kind == CLONE || op->kind == CLONE_BEFORE || op->kind == RENAME) && b->branch.exists)
        return false;
    if (op->kind == DEDUP || op->kind == COLLECT || op->kind == DRAIN || op->kind == REPAIR ||
        op->kind == CREATE)
        return true;
    if (op->kind == APPEND)
        op->row = a->now.rows;
    if (op->kind == OVERWRITE && a->now.rows > 0)
        op->row %= a->now.rows;
    if (op->kind == CLONE_BEFORE)
        return a->now.exists && a->knows_before;
    if (op->kind == CLONE || op->kind == RENAME)
        return a->now.exists && op->a != op->b;
    return a->now.exists && (op->kind != APPEND || op->row < ROWS);
}

/* ---- comparing ---------------------------------------------------------------------------- */

static bool
is_like(esdm_container *container, const content *wanted)
{
    static int32_t data[ROWS * COLUMNS];
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "a");
    check(dataset != NULL);
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(dataset, 0));
    if (rows != wanted->rows)
        return false;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){rows, COLUMNS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (uint64_t row = 0; row < rows; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            if (data[row * COLUMNS + i] != wanted->values[row] * 10000 + i)
                return false;
        }
    }
    return true;
}

static bool
stands(esdm_session *session, const char *name, const content *wanted)
{
    esdm_container *container = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, ERR);
    if (status == ESDM_ENOENT)
        return !wanted->exists;
    ok(status);
    bool like = wanted->exists && is_like(container, wanted);
    ok(esdm_container_close(container, ERR));
    return like;
}

static bool
stands_with_branch(esdm_session *session, uint32_t name, const state *wanted)
{
    char branch[64];
    snprintf(branch, sizeof branch, "%s@branch:b", name_of(name));
    return stands(session, name_of(name), &wanted->now) && stands(session, branch, &wanted->branch);
}

/* Exit status: whether the containers a and b (all: every one) are as in `all`. */
static bool
compare(const operation *op, const state *all)
{
    int status = 0;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        bool same = true;
        esdm_session *session = open_session();
        for (uint32_t i = 0; i < NAMES && same; i++) {
            if (op == NULL || i == op->a || i == op->b)
                same = stands_with_branch(session, i, &all[i]);
            if (!same && op == NULL)
                fprintf(stderr, "%s is not what it should be\n", name_of(i));
        }
        esdm_session_close(session);
        _exit(same ? 0 : 10);
    }
    check(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 10))
        die("a container cannot be read: status 0x%x", (unsigned) status);
    return WEXITSTATUS(status) == 0;
}

/* ---- readers ------------------------------------------------------------------------------ */

static void
begin_reading(reader *r, uint32_t name, uint64_t until)
{
    int wake[2];
    int ready[2];
    char byte = 0;
    check(pipe(wake) == 0 && pipe(ready) == 0);
    r->pid = fork();
    check(r->pid >= 0);
    if (r->pid == 0) {
        esdm_container *container;
        (void) close(wake[1]);
        esdm_session *session = open_session();
        ok(esdm_container_open(session, name_of(name), ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                               &container, ERR));
        check(write(ready[1], &byte, 1) == 1);
        if (read(wake[0], &byte, 1) != 1) /* the test has failed elsewhere */
            _exit(1);
        bool like = is_like(container, &model[name].now);
        ok(esdm_container_close(container, ERR));
        esdm_session_close(session);
        _exit(like ? 0 : 10);
    }
    (void) close(wake[0]);
    (void) close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        die("a reader could not open %s", name_of(name));
    (void) close(ready[0]);
    r->wake = wake[1];
    r->until = until;
}

static void
end_reading(reader *r)
{
    int status = 0;
    check(write(r->wake, "", 1) == 1);
    check(waitpid(r->pid, &status, 0) == r->pid);
    (void) close(r->wake);
    r->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("a reader has not read what it opened: status 0x%x", (unsigned) status);
}

static void
turn_readers(uint64_t step)
{
    for (int i = 0; i < READERS; i++) {
        reader *r = &readers[i];
        uint32_t name = any(NAMES);
        if (r->pid != 0 && step >= r->until)
            end_reading(r);
        else if (r->pid == 0 && any(10) == 0 && model[name].now.exists)
            begin_reading(r, name, step + 1 + any(25));
    }
}

/* ---- steps -------------------------------------------------------------------------------- */

static uint64_t
now_us(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* Whether it was killed before its end. */
static bool
run_child(const operation *op, bool kills_it)
{
    int status = 0;
    uint64_t began_us = now_us();
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        for (int i = 0; i < READERS; i++) {
            if (readers[i].pid != 0)
                (void) close(readers[i].wake);
        }
        run(op);
        _exit(0);
    }
    if (kills_it) {
        (void) usleep((useconds_t) (next_random(&seed) % (took_us[op->kind] + 2000)));
        (void) kill(child, SIGKILL);
    }
    check(waitpid(child, &status, 0) == child);
    if (kills_it && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("it ended with status 0x%x", (unsigned) status);
    if (!kills_it)
        took_us[op->kind] = (took_us[op->kind] + now_us() - began_us) / 2;
    return false;
}

static void
step(uint64_t number)
{
    operation op;
    state after[NAMES];
    while (!choose(&op))
        ;
    bool kills_it = any(4) == 0;
    fprintf(stderr, "step %" PRIu64 ": %s %s %s %u%s\n", number, kind_names[op.kind], name_of(op.a),
            name_of(op.b), op.row, kills_it ? ", killed" : "");
    memcpy(after, model, sizeof after);
    apply(&op, after);
    counts[op.kind]++;
    bool killed = run_child(&op, kills_it);
    kills += killed;
    if (!killed) {
        memcpy(model, after, sizeof after);
    } else {
        bool took_place = !compare(&op, model);
        if (took_place && !compare(&op, after))
            die("after a kill it is neither as before nor as after");
        if (took_place)
            memcpy(model, after, sizeof after);
        model[op.a].knows_before = model[op.b].knows_before = false;
        if (op.kind ==
            MERGE) { /* whether it is noted that it was merged cannot be seen: it goes on */
            memcpy(after, model, sizeof after);
            apply(&op, after);
            (void) run_child(&op, false);
            memcpy(model, after, sizeof after);
        }
    }
    if (number % 16 == 0 || op.kind >= COLLECT) {
        if (!compare(NULL, model))
            die("after step %" PRIu64, number);
    } else if (!killed && !compare(&op, model)) {
        die("after step %" PRIu64, number);
    }
    turn_readers(number);
}

static void
leave_nothing(void)
{
    esdm_session *session = open_session();
    for (uint32_t i = 0; i < NAMES; i++) {
        if (model[i].branch.exists)
            ok(esdm_branch_remove(session, name_of(i), "b", ERR));
        if (model[i].now.exists)
            ok(esdm_container_erase(session, name_of(i), ERR));
    }
    collect(session, true, true);
    esdm_session_close(session);
}

int
main(int argc, char **argv)
{
    check(argc == 3);
    uint64_t steps = strtoull(argv[1], NULL, 10);
    seed = strtoull(argv[2], NULL, 10);
    compacted =
        mmap(NULL, sizeof *compacted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(compacted != MAP_FAILED);
    for (uint64_t i = 1; i <= steps; i++)
        step(i);
    for (int i = 0; i < READERS; i++) {
        if (readers[i].pid != 0)
            end_reading(&readers[i]);
    }
    if (!compare(NULL, model))
        die("in the end");
    /* The last child of its own, so that this process never has a session. */
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        leave_nothing();
        _exit(0);
    }
    wait_children(&child, 1);
    for (int i = 0; i < KINDS; i++)
        printf("%s %" PRIu64 "\n", kind_names[i], counts[i]);
    printf("killed %" PRIu64 "\nfragments compacted %" PRIu64 "\n", kills, *compacted);
    if (counts[COMPACT] >= 10 && *compacted == 0)
        die("of %" PRIu64 " compactions none had anything to do", counts[COMPACT]);
    return 0;
}
