/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/branches.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/process_place.h"
#include "base/text.h"
#include "io/commit/extents.h"
#include "io/io.h"
#include "io/read/read.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "merge/merge.h"
#include "upkeep/upkeep.h"

/* How often it is done again when others write to the branch meanwhile. */
#define ATTEMPTS 8

/* Handles are owned. */
typedef struct adopting {
    esdm_session *session;
    const char *from;
    const char *to;
    const esdm_meta_seen *seen;
    esdm_merge_options options;
    esdm_merge_result result;
    esdm__merging m;
} adopting;

/* ---- whether one has all of the other -------------------------------------------------------- */

static bool
has_dimensions(const esdm__merging *m)
{
    bool has = true;
    for (uint32_t i = 0; i < esdm_container_dimension_count(m->base) && has; i++) {
        const esdm_dimension *ours = esdm_container_dimension(m->base, i);
        const esdm_dimension *theirs = esdm__merge_dimension_in(m, m->theirs, ours);
        has = theirs != NULL && theirs->unlimited == ours->unlimited &&
              (ours->unlimited ? esdm_dimension_length(theirs) >= esdm_dimension_length(ours)
                               : esdm_dimension_length(theirs) == esdm_dimension_length(ours));
    }
    return has;
}

static bool
has_variables(const esdm__merging *m)
{
    bool has = true;
    for (size_t i = 0; i < m->base->datasets.count && has; i++) {
        const esdm_dataset *ours = m->base->datasets.items[i];
        const esdm_dataset *theirs = esdm__merge_same(m, m->theirs, ours);
        has = theirs != NULL && theirs->rank == ours->rank &&
              esdm_type_equal(m->theirs, theirs->type, m->base, ours->type);
        for (uint32_t d = 0; has && d < ours->rank; d++)
            has = esdm__merge_dimension_in(m, m->theirs, ours->dimensions[d]) ==
                  theirs->dimensions[d];
    }
    return has;
}

/* Whether each element is written: what is not would show what the branch had. */
static esdm_status
is_full(esdm_dataset *theirs, bool *ret, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm__plan plan = {0};
    esdm__box all = {.rank = theirs->rank};
    for (uint32_t d = 0; d < theirs->rank; d++)
        all.n[d] = esdm_dimension_length(theirs->dimensions[d]);
    esdm_status status = esdm__dataset_io_get(theirs, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__dataset_load_directory(theirs, io, err);
    if (status == ESDM_OK)
        status = esdm__read_plan(theirs, io, &all, &plan, NULL, err);
    esdm__dataset_io_put(theirs);
    *ret = plan.covered;
    esdm__plan_clear(&plan);
    return status;
}

/* As nothing of what the branch had is left, its fill values may change. */
static esdm_status
take_fills(const esdm__merging *m, bool *ret_full, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret_full = true;
    for (size_t i = 0; i < m->base->datasets.count && *ret_full && status == ESDM_OK; i++) {
        esdm_dataset *base = m->base->datasets.items[i];
        esdm_dataset *theirs = esdm__merge_same(m, m->theirs, base);
        esdm_dataset *ours = esdm__merge_same(m, m->ours, base);
        bool standard = false;
        const void *fill = esdm_dataset_fill(theirs, &standard);
        if (esdm_dataset_has_data(base))
            status = is_full(theirs, ret_full, err);
        if (status == ESDM_OK && *ret_full)
            status = esdm__dataset_put_fill(ours, standard ? NULL : fill, err);
    }
    return status;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static esdm_status
open_all(adopting *all, esdm_error *err)
{
    uint64_t record, snapshot;
    esdm_status status = esdm__io_open(all->session, all->from, ESDM_OPEN_READ,
                                       ESDM_SNAPSHOT_LATEST, &all->m.theirs, err);
    if (status == ESDM_OK)
        status = esdm_container_open(all->session, all->to, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST,
                                     &all->m.ours, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_position(all->m.ours, &record, &snapshot);
    if (all->seen != NULL && (record != all->seen->container || snapshot != all->seen->snapshot))
        return ESDM_ECONFLICT; /* who asked says by whom */
    status = esdm__io_open(all->session, all->to, ESDM_OPEN_READ, snapshot, &all->m.base, err);
    all->m.before = all->m.base;
    return status;
}

static void
close_all(adopting *all)
{
    esdm__pack_guard_free(all->m.guard); /* after the commit */
    esdm_container_discard(all->m.ours);
    esdm_container_discard(all->m.base);
    esdm_container_discard(all->m.theirs);
    all->m = (esdm__merging){.options = &all->options,
                             .result = &all->result,
                             .apart = true,
                             .whole = true,
                             .writes = true};
}

static esdm_status
publish(adopting *all, esdm_error *err)
{
    esdm_session *session = all->session;
    esdm__container_io *io = esdm__io_of(all->m.ours);
    uint64_t theirs, ours, snapshot;
    esdm_status status = ESDM_OK;
    esdm__container_position(all->m.theirs, &theirs, &snapshot);
    esdm__container_position(all->m.ours, &ours, &snapshot);
    if (all->m.shares) /* too much does no harm */
        status = session->meta->share(session->store, ours, theirs, err);
    io->opened.guards_all = true;
    return status == ESDM_OK ? esdm__io_commit(all->m.ours, NULL, err) : status;
}

static esdm_status
adopt_once(adopting *all, bool *ret_done, esdm_error *err)
{
    all->result = (esdm_merge_result){0};
    esdm_status status = open_all(all, err);
    if (status != ESDM_OK || !has_dimensions(&all->m) || !has_variables(&all->m))
        return status;
    bool full = false;
    status = take_fills(&all->m, &full, err);
    if (status != ESDM_OK || !full)
        return status;
    all->m.guard = esdm__pack_guard_new(all->session);
    if (all->m.guard == NULL)
        return esdm__error_nomem(err, 256, "a branch");
    esdm_error why = {0};
    status = esdm__merge_branch(&all->m, &why);
    if (status == ESDM_ENOTSUP || (status == ESDM_OK && all->result.conflicts > 0))
        return ESDM_OK; /* user-defined types */
    if (status != ESDM_OK && err != NULL)
        *err = why;
    if (status == ESDM_OK)
        status = publish(all, err);
    *ret_done = status == ESDM_OK;
    return status;
}

esdm_status
esdm__branch_adopt(esdm_session *session, const char *from, const char *to,
                   const esdm_meta_seen *seen, bool *ret_done, esdm_error *err)
{
    esdm_meta_container there;
    esdm_error ignored;
    adopting all = {.session = session, .from = from, .to = to, .seen = seen};
    *ret_done = false;
    if (esdm__name_branch(to, NULL) == NULL || session->meta->share == NULL ||
        session->meta->container_find(session->store, to, &there, &ignored) != ESDM_OK)
        return ESDM_OK;
    esdm_status status = ESDM_ECONFLICT;
    for (int i = 0; i < ATTEMPTS && status == ESDM_ECONFLICT && (seen == NULL || i == 0); i++) {
        close_all(&all);
        status = adopt_once(&all, ret_done, err);
    }
    close_all(&all);
    return status;
}

/* ---- what is created over a branch ------------------------------------------------------------
 */

bool
esdm_container_name_is_left(const char *name, bool *ret_elsewhere)
{
    static const char *const hex = "0123456789abcdef";
    const char *at =
        name != NULL && esdm__name_branch(name, NULL) != NULL ? strstr(name, ".pid") : NULL;
    if (at == NULL)
        return false;
    char *end = NULL;
    const char *place = at + 4 + strspn(at + 4, "0123456789");
    long pid = strtol(at + 4, &end, 10);
    if (end != place || place[0] != '.' || strspn(place + 1, hex) != 8 || place[9] != '-')
        return false;
    uint32_t where = (uint32_t) strtoul(place + 1, NULL, 16);
    const char *count = place + 10 + strspn(place + 10, hex);
    if (count == place + 10 || count[0] != '-' ||
        strcmp(count + 1 + strspn(count + 1, hex), ".esdm.tmp") != 0)
        return false;
    bool elsewhere = where != esdm__process_place();
    if (ret_elsewhere != NULL)
        *ret_elsewhere = elsewhere;
    return pid > 0 && pid <= INT32_MAX &&
           (elsewhere || (kill((pid_t) pid, 0) != 0 && errno == ESRCH));
}

void
esdm__branch_over_name(esdm_session *session, const char *name,
                       char ret_name[ESDM_CONTAINER_NAME_MAX + 1])
{
    static atomic_uint count;
    esdm_meta_container there;
    esdm_error ignored;
    char made[ESDM_CONTAINER_NAME_MAX + 96];
    esdm__text_copy(ret_name, ESDM_CONTAINER_NAME_MAX + 1, name);
    if (esdm__name_branch(name, NULL) == NULL || session->meta->share == NULL ||
        esdm_container_name_is_intermediate(name) ||
        session->meta->container_find(session->store, name, &there, &ignored) != ESDM_OK)
        return;
    (void) snprintf(made, sizeof made, "%s.pid%ld.%08" PRIx32 "-%" PRIx64 "-%x.esdm.tmp", name,
                    (long) getpid(), esdm__process_place(), esdm__now_ns(),
                    atomic_fetch_add(&count, 1));
    if (esdm__name_normalise(made, ret_name, &ignored) != ESDM_OK) /* too long: it is replaced */
        (void) snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%s", name);
}

bool
esdm__branch_over_is_made(const esdm_container *container)
{
    const esdm__container_io *io = esdm__io_of(container);
    return io->over != NULL && io->record != 0;
}

esdm_status
esdm__branch_over_publish(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm_session *session = container->session;
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t replaced = 0;
    bool done = false;
    if (!esdm__branch_over_is_made(container))
        return ESDM_OK;
    esdm_status status = esdm__branch_adopt(session, container->name, io->over, NULL, &done, err);
    if (status == ESDM_OK && done)
        esdm__drain_later(session, io->over);
    if (status != ESDM_OK || done)
        return status;
    status =
        esdm__named_move(session, container->name, io->over, true,
                         esdm__former_name(session, io->over, false, stored), NULL, &replaced, err);
    if (status != ESDM_OK)
        return status;
    free(container->name);
    container->name = io->over;
    io->over = NULL;
    esdm__extents_mark(session, container->name);
    if (replaced != 0)
        esdm__session_replaced(session);
    return ESDM_OK;
}

void
esdm__branch_over_end(esdm_session *session, const char *name)
{
    esdm_error ignored;
    (void) !esdm_container_erase(session, name, &ignored);
}
