/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the steps of sharing_model do with containers. */

#include "faults/sharing_model.h"

#include "esdm/branch.h"
#include "esdm/upkeep.h"

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
compact(esdm_session *session, const char *name, uint64_t *compacted)
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

void
do_step(const operation *op, uint64_t *compacted)
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
        compact(session, a, compacted);
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

void
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
