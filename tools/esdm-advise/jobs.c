/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What monitored jobs did with variables and files, from the records of esdm-run --records. */

#include "esdm-advise/esdm-advise.h"

#include <string.h>

#ifdef ADVISE_WATCH
#include "esdm-explain/esdm-explain.h"
#endif

static void
free_use(gpointer data)
{
    advise_use *use = data;
    g_array_unref(use->accesses);
    g_free(use->name);
    g_free(use);
}

static void
free_ahead(gpointer data)
{
    g_free(((advise_ahead *) data)->name);
    g_free(data);
}

void
advise_jobs_clear(advise_jobs *jobs)
{
    g_clear_pointer(&jobs->uses, g_ptr_array_unref);
    g_clear_pointer(&jobs->aheads, g_ptr_array_unref);
}

#ifdef ADVISE_WATCH
/* The variables that the calls of a run are about, as uses. */
static advise_use *
use_of(GHashTable *uses, const object *o, const char *job)
{
    advise_use *use = g_hash_table_lookup(uses, o);
    const watch_entry *e = &o->entry;
    if (use != NULL || e->rank == 0 || e->rank > WATCH_DIMS || e->element_bytes == 0 ||
        e->element_bytes > 8)
        return use;
    g_autofree char *file = g_path_get_basename(o->name);
    use = g_new0(advise_use, 1);
    use->name =
        g_strdup_printf("%s in %s (%s)", o->variable != NULL ? o->variable : "?", file, job);
    use->rank = e->rank;
    use->element_bytes = e->element_bytes;
    use->accesses = g_array_new(FALSE, FALSE, sizeof(advise_access));
    for (uint32_t i = 0; i < e->rank; i++)
        use->size[i] = MAX(e->size[i], 1);
    g_hash_table_insert(uses, (gpointer) o, use);
    return use;
}

static void
add_call(advise_use *use, const call *c)
{
    advise_access access = {.row = c->position == WATCH_NOWHERE ? 0 : c->position,
                            .rows = MAX(c->wanted, 1),
                            .bytes = c->bytes,
                            .writes = c->kind == WATCH_KIND_NC_WRITE};
    /* A record dimension was shorter when the variable was entered. */
    if (access.rows < UINT64_C(1) << 40 && access.row < UINT64_C(1) << 40)
        use->size[0] = MAX(use->size[0], access.row + access.rows);
    g_array_append_val(use->accesses, access);
    use->seconds += seconds_of(c->ns);
    *(access.writes ? &use->written_bytes : &use->read_bytes) += c->bytes;
}

static void
add_ahead(advise_jobs *jobs, const object *o)
{
    const watch_entry *e = &o->entry;
    if (e->kind != WATCH_FILE || e->plain_reads == 0 || e->advised_reads == 0)
        return;
    advise_ahead *ahead = g_new0(advise_ahead, 1);
    ahead->name = g_path_get_basename(o->name);
    ahead->reads = e->plain_reads + e->advised_reads;
    ahead->plain_s = seconds_of(e->plain_ns) / (double) e->plain_reads;
    ahead->advised_s =
        seconds_of(e->advised_ns + e->plain_ns + e->ahead_ns) / (double) ahead->reads;
    g_ptr_array_add(jobs->aheads, ahead);
}

static double
bytes_of(const advise_use *use)
{
    double bytes = use->element_bytes;
    for (uint32_t i = 0; i < use->rank; i++)
        bytes *= (double) use->size[i];
    return bytes;
}

static bool
asked_early(const run *r)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->entry.ahead_calls > 0 || o->entry.plain_reads > 0 || o->entry.advised_reads > 0)
            return true;
    }
    return false;
}

static tool_exit
load_run(advise_jobs *jobs, const char *folder)
{
    run r;
    g_autofree char *job = g_path_get_basename(folder);
    tool_exit result = run_load(folder, &r);
    if (result != TOOL_OK)
        return result;
    g_autoptr(GHashTable) uses = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r.calls->len; i++) {
        const call *c = &g_array_index(r.calls, call, i);
        if (c->failed || c->bytes == 0 || c->object->kind != WATCH_VARIABLE ||
            (c->kind != WATCH_KIND_NC_READ && c->kind != WATCH_KIND_NC_WRITE))
            continue;
        advise_use *use = use_of(uses, c->object, job);
        if (use != NULL)
            add_call(use, c);
    }
    for (guint i = 0; i < r.objects->len; i++) {
        advise_use *use = g_hash_table_lookup(uses, r.objects->pdata[i]);
        add_ahead(jobs, r.objects->pdata[i]);
        if (use == NULL)
            continue;
        jobs->read_bytes += use->read_bytes;
        jobs->written_bytes += use->written_bytes;
        if (bytes_of(use) > ADVISE_SMALL_BYTES) {
            g_ptr_array_add(jobs->uses, use);
        } else {
            jobs->small_uses++;
            free_use(use);
        }
    }
    jobs->jobs++;
    jobs->plain_jobs += !asked_early(&r);
    return TOOL_OK;
}

static bool
holds_records(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;)
        if (g_str_has_suffix(name, ".watch"))
            return true;
    return false;
}

static gint
by_seconds(gconstpointer a, gconstpointer b)
{
    const advise_use *x = *(advise_use *const *) a, *y = *(advise_use *const *) b;
    return x->seconds > y->seconds ? -1 : x->seconds < y->seconds;
}

tool_exit
advise_load_jobs(advise_jobs *jobs, const char *folder)
{
    g_autoptr(GError) problem = NULL;
    if (jobs->uses == NULL) {
        jobs->uses = g_ptr_array_new_with_free_func(free_use);
        jobs->aheads = g_ptr_array_new_with_free_func(free_ahead);
    }
    g_autoptr(GPtrArray) names = tool_folder_names(folder, &problem);
    if (names == NULL) {
        tool_error("%s", problem->message);
        return TOOL_NOT_FOUND;
    }
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(g_free);
    if (holds_records(folder))
        g_ptr_array_add(runs, g_strdup(folder));
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(folder, g_ptr_array_index(names, i), NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR) && holds_records(path))
            g_ptr_array_add(runs, g_steal_pointer(&path));
    }
    if (runs->len == 0) {
        tool_error("neither '%s' nor a folder in it holds records of jobs: make them with "
                   "'esdm-run --records FOLDER PROGRAM'",
                   folder);
        return TOOL_NOT_FOUND;
    }
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < runs->len && result == TOOL_OK; i++)
        result = load_run(jobs, runs->pdata[i]);
    g_ptr_array_sort(jobs->uses, by_seconds);
    return result;
}
#else
tool_exit
advise_load_jobs(advise_jobs *jobs, const char *folder)
{
    jobs->uses = g_ptr_array_new_with_free_func(free_use);
    jobs->aheads = g_ptr_array_new_with_free_func(free_ahead);
    tool_error("%s: records of jobs cannot be read: this ESDM was built without libesdm-watch",
               folder);
    return TOOL_FAILED;
}
#endif

/* Records need not be true: one user weighs no more than all the others. */
static void
weigh(advise_jobs *jobs, GHashTable *users)
{
    GHashTableIter at;
    gpointer value;
    const double *most = NULL; /* read, written */
    g_hash_table_iter_init(&at, users);
    while (g_hash_table_iter_next(&at, NULL, &value)) {
        const double *one = value;
        jobs->runs_read += one[0];
        jobs->runs_written += one[1];
        most = most == NULL || one[0] + one[1] > most[0] + most[1] ? one : most;
    }
    jobs->weight_read = jobs->runs_read;
    jobs->weight_written = jobs->runs_written;
    double by_most = most != NULL ? most[0] + most[1] : 0;
    double rest = jobs->runs_read + jobs->runs_written - by_most;
    if (rest > 0 && by_most > rest) {
        jobs->weight_read -= most[0] * (1 - rest / by_most);
        jobs->weight_written -= most[1] * (1 - rest / by_most);
    }
    jobs->runs_read = MIN(jobs->runs_read, 1e19); /* as 64 bits hold */
    jobs->runs_written = MIN(jobs->runs_written, 1e19);
}

void
advise_load_runs(advise_jobs *jobs)
{
    static const char *const reads[] = {"read", "file-read"};
    static const char *const writes[] = {"write", "file-write"};
    g_autoptr(GPtrArray) runs = tool_runs(NULL, NULL);
    g_autoptr(GHashTable) programs = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) users = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    for (guint i = 0; runs != NULL && i < runs->len; i++) {
        const tool_run *one = runs->pdata[i];
        double *moved = g_hash_table_lookup(users, &one->user);
        if (moved == NULL) {
            moved = g_new0(double, 2);
            g_hash_table_insert(users, (gpointer) &one->user, moved);
        }
        (void) g_hash_table_add(programs, (gpointer) one->program);
        for (gsize k = 0; k < G_N_ELEMENTS(reads); k++) {
            moved[0] += tool_run_moved(one, reads[k], NULL).bytes;
            moved[1] += tool_run_moved(one, writes[k], NULL).bytes;
        }
    }
    weigh(jobs, users);
    jobs->runs = runs != NULL ? runs->len : 0;
    jobs->users = runs != NULL ? tool_run_users(runs) : 0;
    jobs->programs = g_hash_table_size(programs);
}
