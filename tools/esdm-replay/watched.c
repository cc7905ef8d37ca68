/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Records of libesdm-watch.so (esdm-run --records): NetCDF calls on plain files, as operations on
 * containers. Calls on ESDM's own containers are in traces beside them. */
#include "esdm-replay/esdm-replay.h"

#ifdef REPLAY_WATCH
#define WATCH_NAMES
#include "esdm-explain/esdm-explain.h"

#include <string.h>

typedef struct watched {
    replay_load *load;
    GHashTable *files; /* replay_file by name */
    GHashTable *open;  /* replay_handle by "PROCESS FILE" */
    GHashTable *esdm;  /* "PROCESS FILE" of what is a container, under whatever name */
    guint64 id;        /* of the last operation */
} watched;

/* "text", "float", …: the end of the names of calls; esdm types are those of nc_type. */
static esdm_type
memory_of(const char *call_name, esdm_type own)
{
    static const struct {
        const char *end;
        esdm_type type;
    } ends[] = {{"text", ESDM_TYPE_CHAR},      {"schar", ESDM_TYPE_INT8},
                {"uchar", ESDM_TYPE_UINT8},    {"ushort", ESDM_TYPE_UINT16},
                {"short", ESDM_TYPE_INT16},    {"uint", ESDM_TYPE_UINT32},
                {"int", ESDM_TYPE_INT32},      {"ulonglong", ESDM_TYPE_UINT64},
                {"longlong", ESDM_TYPE_INT64}, {"long", ESDM_TYPE_INT64},
                {"float", ESDM_TYPE_FLOAT32},  {"double", ESDM_TYPE_FLOAT64},
                {"ubyte", ESDM_TYPE_UINT8},    {"string", ESDM_TYPE_STRING}};
    const char *end = strrchr(call_name, '_') + 1;
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (g_str_equal(end, ends[i].end))
            return ends[i].type;
    }
    return own;
}

static bool
is_atomic(gint32 type)
{
    return type >= ESDM_TYPE_INT8 && type <= ESDM_TYPE_STRING;
}

/* The process that a trace beside the records is of, too. */
static replay_process *
process_of(watched *w, const process *p)
{
    for (guint i = 0; i < w->load->processes->len; i++) {
        replay_process *one = w->load->processes->pdata[i];
        if (one->pid == p->head.pid && one->host != NULL && g_str_equal(one->host, p->head.host))
            return one;
    }
    replay_process *made = replay_process_new(w->load, p->head.pid);
    made->rank = p->head.rank;
    made->host = g_strdup(p->head.host);
    made->program = g_strdup(p->head.program);
    made->ahead_ns = p->head.started_realtime_ns - p->head.started_ns;
    return made;
}

/* The open file of that name; one whose opening was not seen is opened when it is first used. */
static replay_handle *
handle_of(watched *w, replay_process *p, const char *name, bool opens)
{
    g_autofree char *key = g_strdup_printf("%p %s", (void *) p, name);
    replay_handle *h = opens ? NULL : g_hash_table_lookup(w->open, key);
    if (h == NULL) {
        h = replay_handle_new(p, replay_file_named(w->load, w->files, name), 0);
        h->commits = true;
        g_hash_table_insert(w->open, g_steal_pointer(&key), h);
    }
    return h;
}

static replay_dataset *
dataset_of(watched *w, replay_handle *h, const object *o)
{
    g_autofree char *path = g_strconcat(o->variable[0] == '/' ? "" : "/", o->variable, NULL);
    const watch_entry *e = &o->entry;
    replay_dataset *d = replay_dataset_in(h->datasets, path);
    if (d != NULL || e->rank > WATCH_DIMS)
        return d;
    d = g_new0(replay_dataset, 1);
    d->path = g_steal_pointer(&path);
    d->id = ++w->load->datasets;
    d->type = is_atomic(e->type) ? e->type : ESDM_TYPE_NONE;
    d->rank = e->rank;
    for (guint i = 0; i < d->rank; i++) {
        d->dimensions[i] =
            (replay_dimension){.id = (guint32) e->dimension[i],
                               .name = g_strdup_printf("dimension%d", (int) e->dimension[i]),
                               .length = MIN(e->size[i], G_MAXINT64),
                               .unlimited = (e->unlimited >> i & 1u) != 0};
    }
    if (e->chunked == 1 && d->rank > 0 && e->chunk[0] > 0)
        d->chunk = g_memdup2(e->chunk, sizeof e->chunk);
    d->compressed = e->deflate > 0;
    g_ptr_array_add(h->datasets, d);
    return d;
}

/* Boxes are what the program gave: they may lie outside, and then the call has failed. */
static esdm_dataspace *
space_of(const watch_box *box, guint rank)
{
    guint64 stride[ESDM_MAX_RANK];
    esdm_dataspace *space = g_new0(esdm_dataspace, 1);
    bool good = esdm_dataspace_init(space, rank, box->start, box->count, NULL) == ESDM_OK;
    for (guint i = 0; i < rank && good; i++) {
        stride[i] = box->stride[i];
        guint64 steps = box->count[i] > 0 ? box->count[i] - 1 : 0;
        good = stride[i] > 0 && steps <= G_MAXINT64 / stride[i] &&
               box->start[i] <= G_MAXINT64 - steps * stride[i];
    }
    if (good && esdm_dataspace_set_stride(space, stride, NULL) == ESDM_OK)
        return space;
    g_free(space);
    return NULL;
}

static void
grow(replay_dataset *d, const esdm_dataspace *space, bool writes)
{
    for (guint i = 0; i < d->rank && writes && space->size[i] > 0; i++) {
        guint64 end = space->offset[i] + (space->size[i] - 1) * space->stride[i] + 1;
        if (end > d->dimensions[i].length)
            d->dimensions[i].unlimited = true; /* of a parent group, which was not asked */
    }
}

static void
add_transfer(watched *w, replay_process *p, const call *c, replay_operation *o)
{
    replay_handle *h = o->handle;
    o->kind = c->kind == WATCH_KIND_NC_WRITE ? REPLAY_WRITE : REPLAY_READ;
    h->writes = h->writes || o->kind == REPLAY_WRITE;
    o->dataset = dataset_of(w, h, c->object);
    if (o->dataset != NULL && o->dataset->type != ESDM_TYPE_NONE && c->box != NULL) {
        bool text = o->dataset->type == ESDM_TYPE_CHAR || o->dataset->type == ESDM_TYPE_STRING;
        o->memory = text ? o->dataset->type : memory_of(watch_ops[c->op].name, o->dataset->type);
        o->space = space_of(c->box, o->dataset->rank);
    }
    if (o->space == NULL) {
        w->load->left_out++;
        return;
    }
    guint64 elements = esdm_dataspace_elements(o->space);
    if (elements > G_MAXINT64 / 16) {
        w->load->left_out++;
        return;
    }
    o->bytes = elements * esdm_type_size(o->dataset->type);
    grow(o->dataset, o->space, o->kind == REPLAY_WRITE);
    g_array_append_val(p->operations, *o);
}

static void
add_meta(watched *w, replay_process *p, const call *c, replay_operation *o)
{
    const char *name = watch_ops[c->op].name;
    (void) w;
    if (g_str_has_suffix(name, "_create"))
        o->kind = REPLAY_CREATE;
    else if (g_str_has_suffix(name, "_open"))
        o->kind = REPLAY_OPEN;
    else if (g_str_equal(name, "nc_close"))
        o->kind = REPLAY_CLOSE;
    else if (g_str_equal(name, "nc_sync"))
        o->kind = REPLAY_COMMIT;
    else
        return; /* nc_enddef(): definitions are made at once */
    if (o->kind == REPLAY_CREATE)
        o->handle->creates = o->handle->replaces = o->handle->writes = true;
    g_array_append_val(p->operations, *o);
}

/* ---- containers under names of files ----------------------------------------------------------
 */

static gint
by_start(gconstpointer a, gconstpointer b)
{
    const replay_operation *x = a;
    const replay_operation *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Whether the trace has an operation that the call made. */
static bool
made_spans(const replay_process *p, const call *c)
{
    guint64 start = c->start_ns + p->ahead_ns;
    guint low = 0;
    guint high = p->operations->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(p->operations, replay_operation, middle).start_ns < start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->operations->len; low++) {
        const replay_operation *o = &g_array_index(p->operations, replay_operation, low);
        if (o->start_ns > start + c->ns)
            return false;
        if (o->thread == (gint32) c->thread && o->start_ns + o->ns <= start + c->ns)
            return true;
    }
    return false;
}

/* Routes and files that stand for containers: what is done with these is in the trace. */
static void
find_containers(watched *w, const run *r)
{
    for (guint i = 0; i < w->load->processes->len; i++)
        g_array_sort(((replay_process *) w->load->processes->pdata[i])->operations, by_start);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        bool nc = c->kind == WATCH_KIND_NC_READ || c->kind == WATCH_KIND_NC_WRITE ||
                  c->kind == WATCH_KIND_NC_META;
        if (!nc || c->failed || c->object->name == NULL)
            continue;
        replay_process *p = process_of(w, c->process);
        if (p->operations->len > 0 && made_spans(p, c))
            g_hash_table_add(w->esdm, g_strdup_printf("%p %s", (void *) p, c->object->name));
    }
}

static bool
is_container(watched *w, const replay_process *p, const char *name)
{
    g_autofree char *key = g_strdup_printf("%p %s", (const void *) p, name);
    return strstr(name, "esdm:") != NULL || g_hash_table_contains(w->esdm, key);
}

static void
add_call(watched *w, const call *c)
{
    const char *op = watch_ops[c->op].name;
    bool moves = c->kind == WATCH_KIND_NC_READ || c->kind == WATCH_KIND_NC_WRITE;
    if ((!moves && c->kind != WATCH_KIND_NC_META) || c->object->name == NULL ||
        (moves && c->object->variable == NULL) || (!moves && c->object->kind != WATCH_DATASET))
        return;
    if (c->failed) {
        w->load->failed++;
        return;
    }
    replay_process *p = process_of(w, c->process);
    if (is_container(w, p, c->object->name))
        return;
    replay_operation o = {.start_ns = c->start_ns + p->ahead_ns,
                          .ns = c->ns,
                          .id = ++w->id,
                          .thread = (gint32) c->thread};
    bool opens = g_str_has_suffix(op, "_open") || g_str_has_suffix(op, "_create");
    o.handle = handle_of(w, p, c->object->name, opens);
    if (o.ns > G_MAXINT64 || o.start_ns > G_MAXINT64)
        return;
    if (moves)
        add_transfer(w, p, c, &o);
    else
        add_meta(w, p, c, &o);
}

tool_exit
replay_load_watched(replay_load *load, const char *folder, GHashTable *files)
{
    run r;
    watched w = {.load = load,
                 .files = files,
                 .open = g_hash_table_new(g_str_hash, g_str_equal),
                 .esdm = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                 .id = UINT64_C(1) << 62}; /* no span of a trace has such a number */
    tool_exit result = run_load(folder, &r);
    if (result == TOOL_OK)
        find_containers(&w, &r);
    for (guint i = 0; result == TOOL_OK && i < r.calls->len; i++)
        add_call(&w, &g_array_index(r.calls, call, i));
    for (guint i = 0; result == TOOL_OK && i < r.processes->len; i++)
        load->dropped += ((const process *) r.processes->pdata[i])->head.dropped;
    g_hash_table_destroy(w.open);
    g_hash_table_destroy(w.esdm);
    return result;
}
#else
tool_exit
replay_load_watched(replay_load *load, const char *folder, GHashTable *files)
{
    (void) load;
    (void) files;
    tool_error("%s: records of plain files cannot be read: this ESDM was built without "
               "libesdm-watch",
               folder);
    return TOOL_FAILED;
}
#endif
