/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Define mode, commits, closing. */

#include "storage.h"

#include <inttypes.h>

#include "calls.h"

/* ---- commits -------------------------------------------------------------------------------- */

/* Once for each file, and by one rank. */
static void
tell_settled(esdmnc_file *file)
{
    char text[300];
    const esdm_comm *comm = esdmnc_comm(file);
    if (comm == NULL || !esdm_container_settled(file->container, text, sizeof text))
        return;
    if (comm->rank == 0 && !file->settled_told)
        esdmnc_say("'%s': %s, and maybe others, had another value on other ranks than on rank 0, "
                   "whose value is kept",
                   file->name, text);
    file->settled_told = true;
}

/* @param last nobody will read or write by it. */
static int
commit(esdmnc_file *file, const char *what, bool last)
{
    esdm_error err;
    if (!file->writable || file->transient)
        return NC_NOERR;
    /* Their codes differ from that of a failed commit. */
    int rc = esdmnc_agree(file, esdmnc_types_complete(file));
    if (rc != NC_NOERR)
        return rc;
    bool first = esdm_container_snapshot(file->container) == 0;
    esdm_status status = last && !esdmnc_files_share(file)
                             ? esdm_container_commit_last(file->container, NULL, &err)
                             : esdm_container_commit(file->container, NULL, &err);
    file->commit_failed = status != ESDM_OK;
    /* Others were first: it never will be, and who opens it again to look must not be shown it. */
    if (status == ESDM_ECONFLICT)
        file->hidden = true;
    if (file->commit_failed)
        return esdmnc_error_of_all(file, &err, what);
    esdmnc_recipe_note_file("write", file);
    esdmnc_seen_note(file);
    if (first)
        esdmnc_replaced_note(file);
    tell_settled(file);
    esdmnc_accuracy_tell(file);
    esdm_container_mark(file->container);
    file->published = true;
    return NC_NOERR;
}

/* Goes back to the structure that a file would have on the disk. */
static void
revert(const esdmnc_file *file)
{
    esdm_container_revert(file->container);
    esdmnc_files_trim(file->container);
}

/* ---- define mode ---------------------------------------------------------------------------- */

int
esdmnc_need_define(esdmnc_file *file)
{
    if (atomic_load_explicit(&file->indef, memory_order_relaxed))
        return NC_NOERR;
    if (esdmnc_is_classic(file))
        return NC_ENOTINDEFINE;
    if (!file->writable)
        return NC_EPERM;
    atomic_store_explicit(&file->indef, true, memory_order_relaxed);
    return NC_NOERR;
}

static int
settle_var(esdmnc_file *file, esdmnc_var *var)
{
    if (!var->created)
        return esdmnc_storage_create(file, var);
    return var->restated ? esdmnc_accuracy_settle(file, var) : NC_NOERR;
}

/* New variables come into being. As with netCDF-4, a setting that cannot be met is told once, and
 * those behind the variable stay as they are. */
static int
create_vars(esdmnc_file *file)
{
    for (size_t g = 0; g < file->group_count; g++) {
        const esdmnc_group *group = file->groups[g];
        for (size_t v = 0; v < group->count; v++) {
            int rc = settle_var(file, group->vars[v]);
            if (rc != NC_NOERR)
                return rc;
            group->vars[v]->created = true;
        }
    }
    file->refused = false;
    return NC_NOERR;
}

static const esdmnc_padding no_padding;

int
esdmnc_leave_define(esdmnc_file *file, const esdmnc_padding *padding)
{
    int rc = esdmnc_classic_sizes(file, padding);
    if (rc == NC_NOERR)
        rc = esdmnc_fill_check(file);
    if (rc == NC_EBADTYPE && !file->is_new)
        esdm_container_mark(file->container); /* netCDF-3 has written the header by then */
    if (rc == NC_NOERR)
        rc = esdmnc_fill_settle(file);
    if (rc != NC_NOERR)
        return rc;
    file->record_fill = ESDMNC_RECORDS_UNKNOWN;
    atomic_store_explicit(&file->indef, false, memory_order_relaxed);
    rc = esdmnc_types_complete(file); /* define mode is over also when this fails */
    if (rc == NC_NOERR)
        rc = create_vars(file);
    if (rc == NC_NOERR)
        file->is_new = false; /* until then nothing is committed */
    if (!file->refused)
        esdm_container_mark(file->container); /* what nc_abort() goes back to */
    return rc;
}

int
esdmnc_need_data(esdmnc_file *file)
{
    if (!atomic_load_explicit(&file->indef, memory_order_relaxed))
        return NC_NOERR;
    if (esdmnc_is_classic(file))
        return NC_EINDEFINE;
    return esdmnc_leave_define(file, &no_padding);
}

/* Whether define mode was left in vain: it is tried again, as what was wrong may have been set
 * right since then. */
static bool
is_unsettled(const esdmnc_file *file)
{
    return file->is_new || file->refused;
}

/* Before a commit. */
static int
settle(esdmnc_file *file)
{
    if (is_unsettled(file) && !atomic_load(&file->indef))
        return esdmnc_leave_define(file, &no_padding);
    return esdmnc_need_data(file);
}

/* When a call ends define mode, netCDF-4 takes the variables of that group for written. */
static void
mark_written(const esdmnc_file *file, esdmnc_group *group)
{
    for (size_t i = 0; !esdmnc_is_nc3(file) && i < group->count; i++)
        atomic_store_explicit(&group->vars[i]->written, true, memory_order_relaxed);
}

/* All ranks come here, whatever mode they are in. */
static int
compare_ranks(esdmnc_file *file, int rc)
{
    esdm_error err;
    if (esdm_container_align(file->container, &err) != ESDM_OK)
        return esdmnc_error_of_all(file, &err, "nc_enddef of");
    tell_settled(file);
    return rc;
}

int
esdmnc__enddef(esdmnc_id id, size_t header_free, size_t variable_align, size_t variable_free,
               size_t record_align)
{
    esdmnc_padding padding = {.header_free = header_free,
                              .variable_align = variable_align,
                              .variable_free = variable_free,
                              .record_align = record_align};
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    mark_written(file, group); /* before anything is looked at */
    rc = atomic_load(&file->indef) ? esdmnc_leave_define(file, &padding) : NC_ENOTINDEFINE;
    return esdmnc_comm(file) != NULL ? compare_ranks(file, rc) : rc;
}

/* ---- synchronisation ------------------------------------------------------------------------ */

/* netCDF-3 reads the header of a shared file again, and so forgets what it did not write, the fill
 * mode of variables and the room that names had. */
static void
read_again(esdmnc_file *file, esdmnc_group *group)
{
    revert(file);
    esdmnc_rooms_clear(file);
    for (size_t i = 0; i < group->count; i++)
        group->vars[i]->nofill = false;
}

int
esdmnc_redef(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!file->writable)
        return NC_EPERM;
    /* The netCDF-4 model enters it by itself, so being in it already is no mistake there. */
    if (atomic_load(&file->indef))
        return esdmnc_is_classic(file) ? NC_EINDEFINE : NC_NOERR;
    if (esdmnc_is_nc3(file) && (file->mode & NC_SHARE) != 0)
        read_again(file, group);
    atomic_store(&file->indef, true);
    return NC_NOERR;
}

/* Gives up the container of a file, which frees it unless another file of this process uses it. */
static void
let_go(esdmnc_file *file)
{
    esdm_container *old = file->container;
    file->container = NULL;
    if (!esdmnc_files_use(old))
        esdm_container_discard(old);
}

/* Whether everything that the ids of a file stand for is in another version of its container, so
 * that the ids go on meaning the same. */
static bool
holds_all_of(esdm_container *newer, const esdmnc_file *file)
{
    for (size_t g = 0; g < file->group_count; g++) {
        const esdmnc_group *group = file->groups[g];
        esdm_group *same = esdm_container_group(newer, (uint32_t) g);
        for (size_t v = 0; same != NULL && v < group->count; v++) {
            const esdm_dataset *dataset = esdm_group_dataset_at(same, v);
            if (dataset == NULL ||
                esdm_dataset_type(dataset) != esdm_dataset_type(group->vars[v]->dataset) ||
                esdm_dataset_rank(dataset) != group->vars[v]->rank ||
                esdm_dataset_id(dataset) != esdm_dataset_id(group->vars[v]->dataset))
                return false;
        }
        if (same == NULL)
            return false;
    }
    return esdm_container_type_count(newer) >= file->types.count &&
           esdm_container_dimension_count(newer) >= esdm_container_dimension_count(file->container);
}

/* Takes over a container whose structure was extended. NC_NOERR, also when the file stays where it
 * is because the container is another one by now. */
static int
follow_structure(esdmnc_file *file)
{
    esdm_container *newer = NULL;
    int rc = esdmnc_open_again(file, ESDM_SNAPSHOT_LATEST, &newer);
    if (rc == NC_ECANTREAD)
        return NC_NOERR;
    if (rc != NC_NOERR)
        return rc;
    if (!holds_all_of(newer, file)) {
        esdmnc_debug("sync '%s': stays at its snapshot: the structure is another one", file->name);
        esdm_container_discard(newer);
        return NC_NOERR;
    }
    esdmnc_file_forget(file);
    let_go(file);
    file->container = newer;
    file->shared = false;
    return NC_NOERR;
}

/* A reader follows the writer. One whose container was removed or replaced keeps what it has, as
 * a file that was unlinked stays readable. */
static int
follow(esdmnc_file *file)
{
    esdm_error err;
    if (file->shared && esdmnc_files_writer(file->name) == file->container)
        return esdmnc_file_index(file);
    esdm_status st = esdm_container_refresh(file->container, &err);
    int rc = NC_NOERR;
    if (st == ESDM_ENOENT)
        esdmnc_debug("sync '%s': stays at its snapshot: %s", file->name, err.message);
    else if (st == ESDM_ECONFLICT)
        rc = follow_structure(file);
    else if (st != ESDM_OK)
        rc = esdmnc_error(&err, "sync", file->name);
    if (rc != NC_NOERR)
        return rc;
    file->snapshot = esdm_container_snapshot(file->container);
    rc = esdmnc_file_index(file);
    esdmnc_file_settle_stored(file);
    return rc;
}

int
esdmnc_sync(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!file->writable)
        return follow(file);
    if (atomic_load(&file->indef) && !esdmnc_is_classic(file))
        mark_written(file, group);
    rc = esdmnc_agree(file, settle(file));
    if (rc != NC_NOERR)
        return rc;
    rc = commit(file, "commit of", false);
    if (rc == NC_NOERR)
        file->snapshot = esdm_container_snapshot(file->container);
    return rc;
}

static void
dispose(esdmnc_id id, esdmnc_file *file)
{
    (void) esdmnc_files_remove(id);
    if (file->generation == esdmnc_session_generation() && !esdmnc_files_use(file->container))
        esdm_container_discard(file->container); /* what was to be kept is committed */
    esdmnc_file_free(file);
}

/* nc_create() was to replace it: as with a file, nothing is left. What another one has made under
 * the name since then stays. */
static void
remove_replaced(const esdmnc_file *file)
{
    esdm_container_info info;
    esdm_session *session;
    esdm_error err;
    const esdm_comm *comm = esdmnc_comm(file);
    if (file->transient || (comm != NULL && comm->rank != 0) ||
        esdmnc_session(true, &session) != NC_NOERR ||
        esdm_container_stat(session, file->name, &info, &err) != ESDM_OK ||
        info.created_ns > file->opened_ns)
        return;
    if (esdm_container_remove(session, file->name, &err) != ESDM_OK)
        (void) esdmnc_error(&err, "nc_abort of", file->name);
}

/* What nc_abort() does. In define mode, and in netCDF-4 always, structure is again what it was when
 * define mode ended or nc_sync() was called last; data are kept. Of a new container nothing is
 * left, unless define mode has ended on some rank. */
static int
give_up(esdmnc_id id, esdmnc_file *file)
{
    bool keep = false;
    bool indef = atomic_load(&file->indef);
    int rc = esdmnc_any(file, !file->is_new, &keep);
    if (rc == NC_NOERR && !keep)
        remove_replaced(file);
    if (rc == NC_NOERR && keep && file->writable) {
        if (indef || !esdmnc_is_nc3(file))
            revert(file);
        rc = commit(file, "commit at nc_abort of", false);
    }
    dispose(id, file);
    return rc;
}

/* Once for what was freed. */
static void
warn_of_relief(void)
{
    static _Atomic uint64_t told;
    uint64_t containers = 0;
    uint64_t bytes = 0;
    const esdm_session *session = esdmnc_session_now();
    if (session == NULL)
        return;
    esdm_session_relieved(session, &containers, &bytes);
    if (containers == 0 || atomic_exchange(&told, containers) == containers)
        return;
    esdmnc_say("storage was full: %" PRIu64 " containers that had been replaced or removed were "
               "freed for good (%" PRIu64 " MiB)",
               containers, bytes >> 20);
}

/* What a program cannot see otherwise: its data are safe, but not where they were to be. Of
 * parallel files one rank tells it for all. */
static void
warn_of_writes(const esdmnc_file *file)
{
    esdm_write_counts writes;
    esdm_error err;
    esdm_comm *comm = esdmnc_comm(file);
    if (!file->writable || file->transient)
        return;
    warn_of_relief();
    esdm_container_write_counts(file->container, &writes);
    const uint64_t mine[3] = {writes.fragments, writes.elsewhere, writes.fewer_copies};
    uint64_t all[3] = {mine[0], mine[1], mine[2]};
    uint64_t lower[3];
    if (comm != NULL && comm->ops->sums(comm, mine, 3, lower, all, &err) != ESDM_OK) {
        (void) esdmnc_error(&err, "parallel access to", file->name);
        return;
    }
    if (comm != NULL && comm->rank != 0)
        return;
    if (all[1] > 0)
        esdmnc_say("close '%s': a target was full, failed or was not reached: %" PRIu64
                   " of %" PRIu64 " fragments are on another one than planned",
                   file->name, all[1], all[0]);
    if (all[2] > 0)
        esdmnc_say(
            "close '%s': %" PRIu64 " of %" PRIu64
            " fragments have fewer copies than asked for: esdm-fsck --repair makes the others",
            file->name, all[2], all[0]);
}

/* The end of a file whose define mode could not be left. netCDF-3 aborts then, and so do we, but
 * where ESDM refused what netCDF takes: nothing comes of that file, and what stood there stays. */
static void
close_refused(esdmnc_id id, esdmnc_file *file)
{
    bool refused = false;
    bool nothing = is_unsettled(file) && !file->published && !atomic_load(&file->indef);
    int rc = esdmnc_any(file, nothing, &refused);
    if (rc == NC_NOERR && !refused)
        (void) give_up(id, file);
    else
        dispose(id, file);
}

/* Whether it is seen later what becomes of the file: a Python program closes it because it fails.
 */
static bool
put_off(esdmnc_file *file)
{
    if (!file->writable || file->transient || esdmnc_comm(file) != NULL ||
        esdmnc_types_complete(file) != NC_NOERR || !esdm_container_is_dirty(file->container))
        return false;
    return esdmnc_postpone(file, esdmnc_python_closing(file->opening));
}

int
esdmnc_close(esdmnc_id id, void *memory)
{
    (void) memory;
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_EBADID)
        return rc;
    if (rc != NC_NOERR) {
        /* Inherited over a fork and not to be had here: the parent will close it. */
        file = esdmnc_files_remove(id);
        esdmnc_file_free(file);
        return NC_NOERR;
    }
    if (atomic_load(&file->indef) || is_unsettled(file))
        rc = esdmnc_leave_define(file, &no_padding);
    rc = esdmnc_agree(file, rc);
    if (rc != NC_NOERR) {
        if (esdmnc_types_complete(file) == NC_NOERR)
            close_refused(id, file); /* types can be finished after nc_redef() */
        return rc;
    }
    rc = file->writable ? esdmnc_doubt_end(file) : NC_NOERR;
    if (rc == NC_NOERR && put_off(file))
        return NC_NOERR;
    if (rc == NC_NOERR)
        rc = commit(file, "commit at close of", true);
    if (rc != NC_NOERR)
        return rc; /* the handle stays: the program may free space and try again, or abort */
    warn_of_writes(file);
    if (file->writable)
        esdmnc_seen_hand_on(file);
    dispose(id, file);
    return NC_NOERR;
}

int
esdmnc_abort(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_EBADID)
        return rc;
    if (rc != NC_NOERR) {
        esdmnc_file_free(esdmnc_files_remove(id));
        return NC_NOERR;
    }
    return give_up(id, file);
}

/* ---- modes and formats ---------------------------------------------------------------------- */

int
esdmnc_set_fill(esdmnc_id id, int fill_mode, int *ret_old)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!file->writable)
        return NC_EPERM;
    if (fill_mode != NC_FILL && fill_mode != NC_NOFILL)
        return NC_EINVAL;
    int old = file->fill_mode;
    if (ret_old != NULL)
        *ret_old = old;
    file->fill_mode = fill_mode;
    /* netCDF-3 writes the header then. */
    if (esdmnc_is_nc3(file) && old == NC_NOFILL && fill_mode == NC_FILL &&
        !atomic_load(&file->indef))
        esdm_container_mark(file->container);
    /* netCDF-3 has one mode for the whole file. */
    for (size_t i = 0; esdmnc_is_nc3(file) && i < group->count; i++)
        group->vars[i]->nofill = fill_mode == NC_NOFILL;
    return NC_NOERR;
}

int
esdmnc_inq_format(esdmnc_id id, int *ret_format)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && ret_format != NULL)
        *ret_format = file->format;
    return rc;
}

int
esdmnc_inq_format_extended(esdmnc_id id, int *ret_format, int *ret_mode)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    int classic = esdmnc_comm(file) != NULL ? NC_FORMATX_PNETCDF : NC_FORMATX_NC3;
    if (ret_format != NULL)
        *ret_format = esdmnc_is_nc3(file) ? classic : NC_FORMATX_NC_HDF5;
    if (ret_mode != NULL)
        *ret_mode = file->mode;
    return NC_NOERR;
}

int
esdmnc_inq(esdmnc_id id, int *ret_dims, int *ret_vars, int *ret_atts, int *ret_unlimited)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (ret_dims != NULL)
        *ret_dims = (int) esdm_group_dimension_count(group->group);
    if (ret_vars != NULL)
        *ret_vars = (int) group->count;
    if (ret_atts != NULL)
        *ret_atts = (int) esdm_attribute_count(esdm_group_attributes(group->group));
    return ret_unlimited == NULL ? NC_NOERR : esdmnc_inq_unlimdim(id, ret_unlimited);
}

int
esdmnc_show_metadata(esdmnc_id id)
{
    esdmnc_file *file;
    esdmnc_group *group;
    return esdmnc_find(id, &file, &group);
}
