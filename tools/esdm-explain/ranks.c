/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Files that ranks share by MPI: who called together, who waited for whom, which hints were kept.
 */
#include "esdm-explain/esdm-explain.h"

#include <string.h>

#define SMALL_BYTES 65536.0
#define GOOD_BYTES  1048576.0
#define MANY_CALLS  100 /* from which on small ones are worth a sentence */

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Wall clock time: clocks of nodes begin apart. */
static guint64
wall_start(const call *c)
{
    return c->start_ns - c->process->head.started_ns + c->process->head.started_realtime_ns;
}

/* The n-th collective call of each rank. */
static void
add_waiting(const run *r, object *o, const GArray *calls, GHashTable *late)
{
    guint64 last = 0;
    const call *slowest = NULL;
    for (guint i = 0; i < calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, g_array_index(calls, guint, i));
        if (slowest == NULL || wall_start(c) > last) {
            last = wall_start(c);
            slowest = c;
        }
    }
    guint64 sum = 0;
    for (guint i = 0; i < calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, g_array_index(calls, guint, i));
        sum += MIN(last - wall_start(c), c->ns);
    }
    o->waiting_ns += sum;
    gpointer rank = GINT_TO_POINTER(slowest->process->head.rank);
    guint64 *of_rank = g_hash_table_lookup(late, rank);
    if (of_rank == NULL) {
        of_rank = g_new0(guint64, 1);
        g_hash_table_insert(late, rank, of_rank);
    }
    *of_rank += sum;
}

static void
find_latest(object *o, GHashTable *late)
{
    GHashTableIter iter;
    gpointer rank;
    gpointer ns;
    guint64 most = 0;
    o->latest = -1;
    g_hash_table_iter_init(&iter, late);
    while (g_hash_table_iter_next(&iter, &rank, &ns)) {
        if (*(guint64 *) ns > most) {
            most = *(guint64 *) ns;
            o->latest = GPOINTER_TO_INT(rank);
        }
    }
}

/* Calls of one file are in the same order on all ranks; where one lacks some (records were dropped,
 * or a part of the ranks opened it), nothing is concluded from these. */
static void
find_waiting(const run *r, object *o, const GArray *collective)
{
    GPtrArray *rounds = g_ptr_array_new();
    GHashTable *counts = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    GHashTable *late = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    for (guint i = 0; i < collective->len; i++) {
        guint at = g_array_index(collective, guint, i);
        const call *c = &g_array_index(r->calls, call, at);
        guint *n = g_hash_table_lookup(counts, c->process);
        if (n == NULL) {
            n = g_new0(guint, 1);
            g_hash_table_insert(counts, c->process, n);
        }
        if (*n == rounds->len)
            g_ptr_array_add(rounds, g_array_new(FALSE, FALSE, sizeof(guint)));
        g_array_append_val((GArray *) g_ptr_array_index(rounds, *n), at);
        (*n)++;
    }
    for (guint i = 0; i < rounds->len; i++) {
        GArray *calls = g_ptr_array_index(rounds, i);
        if (calls->len == o->entry.ranks)
            add_waiting(r, o, calls, late);
        g_array_free(calls, TRUE);
    }
    find_latest(o, late);
    g_hash_table_destroy(late);
    g_hash_table_destroy(counts);
    g_ptr_array_free(rounds, TRUE);
}

void
run_ranks(run *r)
{
    GHashTable *calls = g_hash_table_new(g_direct_hash, g_direct_equal); /* object → its calls */
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object->kind != WATCH_MPI_FILE)
            continue;
        c->object->calls_with_gaps += (c->flags & WATCH_FLAG_GAPS) != 0;
        GArray *of = g_hash_table_lookup(calls, c->object);
        if (of == NULL) {
            of = g_array_new(FALSE, FALSE, sizeof(guint));
            g_hash_table_insert(calls, c->object, of);
        }
        if (c->flags & WATCH_FLAG_TOGETHER)
            g_array_append_val(of, i);
    }
    GHashTableIter iter;
    gpointer o;
    gpointer of;
    g_hash_table_iter_init(&iter, calls);
    while (g_hash_table_iter_next(&iter, &o, &of)) {
        if (((object *) o)->entry.ranks > 1)
            find_waiting(r, o, of);
        g_array_free(of, TRUE);
    }
    g_hash_table_destroy(calls);
}

/* ---- hints ------------------------------------------------------------------------------------
 */

/* The line "KEY=VALUE" of the same key; NULL: none. */
static const char *
same_key(const GPtrArray *hints, const char *hint)
{
    gsize length = (gsize) (strchr(hint, '=') + 1 - hint);
    for (guint i = 0; i < hints->len; i++) {
        if (strncmp(g_ptr_array_index(hints, i), hint, length) == 0)
            return g_ptr_array_index(hints, i);
    }
    return NULL;
}

static void
print_hints(const object *o)
{
    for (guint i = 0; o->asked != NULL && i < o->asked->len; i++) {
        const char *asked = g_ptr_array_index(o->asked, i);
        const char *used = same_key(o->used, asked);
        if (used == NULL)
            (void) printf("    hint %s: the MPI library does not know it, or keeps silent\n",
                          asked);
        else
            (void) printf("    hint %s: %s%s\n", asked,
                          strcmp(used, asked) == 0 ? "the library accepts it" : "the library uses ",
                          strcmp(used, asked) == 0 ? "" : used);
    }
}

/* ---- the report -------------------------------------------------------------------------------
 */

char *
ranks_text(const object *o)
{
    const watch_entry *e = &o->entry;
    guint64 together = e->together_read.calls + e->together_write.calls;
    guint64 alone = e->read.calls + e->write.calls - together;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "%u rank%s: %" G_GUINT64_FORMAT " collective calls, %" G_GUINT64_FORMAT
                           " independent",
                           e->ranks, e->ranks == 1 ? "" : "s", together, alone);
    if (o->calls_with_gaps > 0)
        g_string_append_printf(text, ", %" G_GUINT64_FORMAT " through views with gaps",
                               o->calls_with_gaps);
    return g_string_free(text, FALSE);
}

void
print_ranks(const object *o)
{
    if (o->waiting_ns > 1000000) {
        char *time = time_text(seconds_of(o->waiting_ns));
        (void) printf("    ranks waited %s (all together) in collective calls for the last one to "
                      "call, most for rank %d\n",
                      time, o->latest);
        g_free(time);
    }
    print_hints(o);
    if (o->hints_text != NULL)
        (void) printf("    %s\n", o->hints_text);
}

static json_t *
hints_json(const GPtrArray *hints)
{
    json_t *json = json_object();
    for (guint i = 0; hints != NULL && i < hints->len; i++) {
        char **pair = g_strsplit(g_ptr_array_index(hints, i), "=", 2);
        (void) json_object_set_new(json, pair[0], tool_json_text(pair[1]));
        g_strfreev(pair);
    }
    return json;
}

static json_t *
together_json(const watch_counts *all, const watch_counts *together)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:f,s:f}", "collective", (json_int_t) together->calls,
                     "independent", (json_int_t) (all->calls - together->calls), "collective_bytes",
                     (json_int_t) together->bytes, "independent_bytes",
                     (json_int_t) (all->bytes - together->bytes), "collective_seconds",
                     seconds_of(together->ns), "independent_seconds",
                     seconds_of(all->ns - MIN(all->ns, together->ns)));
}

void
ranks_json(json_t *json, const object *o)
{
    const watch_entry *e = &o->entry;
    json_t *more =
        json_pack("{s:I,s:o,s:o,s:I,s:f,s:i,s:o,s:o}", "ranks", (json_int_t) e->ranks, "reads",
                  together_json(&e->read, &e->together_read), "writes",
                  together_json(&e->write, &e->together_write), "through_gaps",
                  (json_int_t) o->calls_with_gaps, "waiting_seconds", seconds_of(o->waiting_ns),
                  "latest_rank", (int) o->latest, "hints_asked", hints_json(o->asked), "hints_used",
                  hints_json(o->used));
    (void) json_object_set_new(json, "hints_chosen", hints_json(o->chosen));
    if (o->hints_text != NULL)
        (void) json_object_set_new(
            json, "earlier_runs",
            json_pack("{s:s,s:f}", "hints", o->hints_text, "gain_s", o->hints_gain_s));
    (void) json_object_update(json, more);
    json_decref(more);
}

/* ---- advice -----------------------------------------------------------------------------------
 */

static void
alone_and_small(run *r, const object *o, bool writes)
{
    const watch_counts *all = writes ? &o->entry.write : &o->entry.read;
    const watch_counts *together = writes ? &o->entry.together_write : &o->entry.together_read;
    guint64 calls = all->calls - together->calls;
    guint64 bytes = all->bytes - together->bytes;
    double seconds = seconds_of(all->ns - MIN(all->ns, together->ns));
    if (o->entry.ranks < 2 || calls < MANY_CALLS || (double) bytes > SMALL_BYTES * (double) calls)
        return;
    double fewer = (double) bytes / GOOD_BYTES + 1;
    char *name = short_name(o->name);
    char *size = bytes_text((double) bytes / (double) calls);
    char *time = time_text(seconds);
    advise(
        r, 0.8 * seconds * (1 - fewer / (double) calls),
        "%s is %s by %u ranks, each on its own, in %" G_GUINT64_FORMAT
        " calls of %s on average, %s together. In collective calls a few ranks put the pieces of "
        "all together: nc_var_par_access(…, NC_COLLECTIVE), H5Pset_dxpl_mpio(…, "
        "H5FD_MPIO_COLLECTIVE), MPI_File_%s_at_all, ncmpi_%s_vara_all.",
        name, writes ? "written" : "read", o->entry.ranks, calls, size, time,
        writes ? "write" : "read", writes ? "put" : "get");
    g_free(time);
    g_free(size);
    g_free(name);
}

static void
late_ranks(run *r, const object *o)
{
    char *name = short_name(o->name);
    char *time = time_text(seconds_of(o->waiting_ns));
    if (o->entry.ranks > 1 && o->waiting_ns > 0)
        advise(r, seconds_of(o->waiting_ns) / o->entry.ranks,
               "In collective calls for %s ranks waited for the last one to call: %s of all "
               "together, most for rank %d. That is time of uneven work before, not of storage: "
               "share the work evenly, or write with calls that do not wait (MPI_File_iwrite_all, "
               "one step later).",
               name, time, o->latest);
    g_free(time);
    g_free(name);
}

void
ranks_advise(run *r)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind != WATCH_MPI_FILE)
            continue;
        alone_and_small(r, o, false);
        alone_and_small(r, o, true);
        late_ranks(r, o);
    }
}

bool
ranks_are_alone(const run *r, const char *file, bool writes)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        const watch_counts *all = writes ? &o->entry.write : &o->entry.read;
        const watch_counts *together = writes ? &o->entry.together_write : &o->entry.together_read;
        if (o->kind == WATCH_MPI_FILE && g_str_equal(o->name, file))
            return o->entry.ranks > 1 && all->calls - together->calls >= MANY_CALLS;
    }
    return false;
}

bool
ranks_share_files(const run *r)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_MPI_FILE && o->entry.ranks > 1)
            return true;
    }
    return false;
}
