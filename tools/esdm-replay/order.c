/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What was recorded, in order: calls in calls are left out, what must be there before is found, and
 * who waits for whom. */
#include "esdm-replay/esdm-replay.h"

#include <string.h>

/* ---- order ----------------------------------------------------------------------------------- */

static gint
by_start(gconstpointer a, gconstpointer b)
{
    const replay_operation *x = a;
    const replay_operation *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static gint
processes_by_start(gconstpointer a, gconstpointer b)
{
    const replay_process *x = *(const replay_process *const *) a;
    const replay_process *y = *(const replay_process *const *) b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* A read of a container that is put together makes its members read. */
static void
drop_nested(replay_process *p)
{
    g_autoptr(GHashTable) ids = g_hash_table_new(g_int64_hash, g_int64_equal);
    GArray *outer = g_array_new(FALSE, TRUE, sizeof(replay_operation));
    for (guint i = 0; i < p->operations->len; i++)
        g_hash_table_add(ids, &g_array_index(p->operations, replay_operation, i).id);
    for (guint i = 0; i < p->operations->len; i++) {
        const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
        if (o->cause == 0 || o->cause == o->id || !g_hash_table_contains(ids, &o->cause))
            g_array_append_val(outer, *o);
    }
    g_hash_table_remove_all(ids);
    g_array_free(p->operations, TRUE);
    p->operations = outer;
}

static void
settle_process(replay_process *p)
{
    drop_nested(p);
    g_array_sort(p->operations, by_start);
    p->start_ns = G_MAXUINT64;
    for (guint i = 0; i < p->operations->len; i++) {
        const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
        p->start_ns = MIN(p->start_ns, o->start_ns);
        p->end_ns = MAX(p->end_ns, o->start_ns + o->ns);
    }
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static const replay_operation *
operation_at(const replay_process *p, guint i)
{
    return &g_array_index(p->operations, replay_operation, i);
}

/* When each file is first made by somebody; files are numbered. */
static guint64 *
creations(const replay_load *load)
{
    guint64 *first = g_new(guint64, load->files->len);
    for (guint i = 0; i < load->files->len; i++)
        first[i] = G_MAXUINT64;
    for (guint k = 0; k < load->processes->len; k++) {
        const replay_process *p = load->processes->pdata[k];
        for (guint i = 0; i < p->operations->len; i++) {
            const replay_operation *o = operation_at(p, i);
            guint64 *at = &first[o->handle->file->number];
            if (o->kind == REPLAY_CREATE)
                *at = MIN(*at, o->start_ns);
        }
    }
    return first;
}

static replay_dataset *
input_named(const replay_file *file, const char *path)
{
    for (guint i = 0; i < file->inputs->len; i++) {
        replay_dataset *d = file->inputs->pdata[i];
        if (g_str_equal(d->path, path))
            return d;
    }
    return NULL;
}

static void
add_inputs(replay_file *file, const replay_handle *handle)
{
    file->input = true;
    for (guint i = 0; i < handle->datasets->len; i++) {
        replay_dataset *d = handle->datasets->pdata[i];
        if (input_named(file, d->path) == NULL)
            g_ptr_array_add(file->inputs, d);
    }
}

/* What is read needs values; only where it was when the program found it. */
static void
note_read(const replay_operation *o)
{
    replay_dataset *d = input_named(o->handle->file, o->dataset->path);
    if (d == NULL || d->rank != o->dataset->rank || esdm_dataspace_elements(o->space) == 0)
        return;
    for (guint i = 0; i < d->rank; i++) {
        guint64 last = o->space->offset[i] + (o->space->size[i] - 1) * o->space->stride[i];
        guint64 end = MIN(last + 1, d->dimensions[i].length);
        d->first[i] = d->is_read ? MIN(d->first[i], o->space->offset[i]) : o->space->offset[i];
        d->end[i] = MAX(d->end[i], end);
    }
    d->is_read = true;
}

static void
find_inputs(replay_load *load)
{
    g_autofree guint64 *created = creations(load);
    for (int pass = 0; pass < 2; pass++) {
        for (guint k = 0; k < load->processes->len; k++) {
            const replay_process *p = load->processes->pdata[k];
            for (guint i = 0; i < p->operations->len; i++) {
                const replay_operation *o = operation_at(p, i);
                if (o->handle->creates || o->start_ns >= created[o->handle->file->number])
                    continue;
                if (pass == 0)
                    add_inputs(o->handle->file, o->handle);
                else if (o->kind == REPLAY_READ)
                    note_read(o);
            }
        }
    }
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

static void
add_wait(GArray **waits, guint process, guint64 operations)
{
    if (*waits == NULL)
        *waits = g_array_new(FALSE, FALSE, sizeof(replay_wait));
    const replay_wait one = {process, operations};
    g_array_append_val(*waits, one);
}

/* The last commit of the file by a process that had ended before that time; 0: none. */
static guint64
commit_before(const replay_process *p, const replay_file *file, guint64 time_ns)
{
    guint64 found = 0;
    for (guint i = 0; i < p->operations->len; i++) {
        const replay_operation *o = operation_at(p, i);
        if (o->start_ns >= time_ns)
            break;
        bool commits = o->kind == REPLAY_COMMIT || (o->kind == REPLAY_CLOSE && o->handle->commits);
        if (commits && o->handle->file == file && o->start_ns + o->ns < time_ns)
            found = i + 1;
    }
    return found;
}

/* Who opens a container sees what was committed before; who started when another had ended starts
 * then. What is waited for ended strictly before, so that nobody waits in a circle. */
static void
find_waits(replay_load *load)
{
    for (guint k = 0; k < load->processes->len; k++) {
        replay_process *p = load->processes->pdata[k];
        for (guint other = 0; other < load->processes->len; other++) {
            const replay_process *q = load->processes->pdata[other];
            if (other == k)
                continue;
            if (q->end_ns < p->start_ns) {
                add_wait(&p->waits, other, q->operations->len);
                continue;
            }
            for (guint i = 0; i < p->operations->len; i++) {
                replay_operation *o = &g_array_index(p->operations, replay_operation, i);
                if (o->kind != REPLAY_OPEN)
                    continue;
                guint64 done = commit_before(q, o->handle->file, o->start_ns);
                if (done > 0)
                    add_wait(&o->waits, other, done);
            }
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool
add_bytes(guint64 *sum, guint64 more)
{
    return !__builtin_add_overflow(*sum, more, sum) && *sum <= G_MAXINT64;
}

static bool
count_input(guint64 *sum, const replay_dataset *d)
{
    guint64 bytes = esdm_type_size(d->type);
    for (guint i = 0; i < d->rank; i++) {
        guint64 length = d->end[i] > d->first[i] ? d->end[i] - d->first[i] : 0;
        if (__builtin_mul_overflow(bytes, length, &bytes))
            return false;
    }
    return add_bytes(sum, bytes);
}

static bool
count_bytes(replay_load *load)
{
    bool good = true;
    for (guint k = 0; k < load->processes->len; k++) {
        const replay_process *p = load->processes->pdata[k];
        for (guint i = 0; i < p->operations->len && good; i++) {
            if (operation_at(p, i)->kind == REPLAY_WRITE)
                good = add_bytes(&load->written_bytes, operation_at(p, i)->bytes);
        }
    }
    for (guint k = 0; k < load->files->len && good; k++) {
        const replay_file *file = load->files->pdata[k];
        for (guint i = 0; i < file->inputs->len && good; i++) {
            const replay_dataset *d = file->inputs->pdata[i];
            if (d->is_read)
                good = count_input(&load->input_bytes, d);
        }
    }
    return good;
}

tool_exit
replay_settle(replay_load *load)
{
    g_autoptr(GPtrArray) all = load->processes;
    load->processes = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        settle_process(all->pdata[i]);
        if (((replay_process *) all->pdata[i])->operations->len > 0)
            g_ptr_array_add(load->processes, all->pdata[i]);
    }
    if (load->processes->len == 0) {
        tool_error("the records hold no call that could be replayed: record a program with "
                   "ESDM_MONITOR=trace:FILE.jsonl, or with esdm-run --records FOLDER");
        return TOOL_NOT_FOUND;
    }
    g_ptr_array_sort(load->processes, processes_by_start);
    if (replay_find_meetings(load) != TOOL_OK)
        return TOOL_FAILED;
    find_inputs(load);
    find_waits(load);
    if (!count_bytes(load)) {
        tool_error("the records tell of more than 2^63 bytes: they are damaged");
        return TOOL_FAILED;
    }
    return TOOL_OK;
}
