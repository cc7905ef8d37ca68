/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* All calls of a run, of all its ranks, as one archive of the Open Trace Format 2, which Vampir,
 * Scalasca and Score-P's tools read. The format and its library: OTF2 3.0, reference manual. */
#include "esdm-explain/esdm-explain.h"

#ifdef EXPLAIN_OTF2

#include <glib/gstdio.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EVENT_CHUNK_BYTES (UINT64_C(1) << 20)
#define DEFS_CHUNK_BYTES  (UINT64_C(4) << 20)

/* Who does the I/O, as calls of one layer are made of those of the next. */
enum { LAYER_POSIX, LAYER_MPI, LAYER_NETCDF, LAYER_ESDM, LAYERS };

static const struct {
    const char *id;
    const char *name;
    OTF2_IoParadigmClass class;
    OTF2_IoParadigmFlag flags;
} layers[LAYERS] = {
    {"POSIX", "POSIX I/O", OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_OS},
    {"MPI-IO", "MPI-IO", OTF2_IO_PARADIGM_CLASS_PARALLEL, OTF2_IO_PARADIGM_FLAG_NONE},
    {"NetCDF", "NetCDF", OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_NONE},
    {"ESDM", "targets of ESDM", OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_NONE},
};

/* One thread of one process. */
typedef struct lane {
    const process *process;
    guint32 thread;
    guint64 number; /* OTF2's location */
    guint group;    /* its process */
    GPtrArray *calls;
    guint64 events;
} lane;

/* What a process does with a file or variable in one layer. */
typedef struct handle {
    guint file;
    guint layer;
} handle;

typedef struct writer {
    const run *run;
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *defs;
    OTF2_ErrorCode code; /* the first one that is none of success */
    guint64 origin_ns;   /* since 1970 */
    guint64 end_ns;
    GPtrArray *lanes;
    GHashTable *lane_of; /* "host:process:thread" -> lane */
    GHashTable *strings; /* text -> number + 1 */
    GHashTable *regions; /* name -> number + 1 */
    GHashTable *files;   /* object -> number + 1 */
    GHashTable *handles; /* "host:process:file:layer" -> number + 1 */
    GArray *handle_list;
    GPtrArray *file_list;
    GPtrArray *region_list; /* call, the first of each region */
} writer;

static OTF2_FlushType
flush_always(void *user, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void) user;
    (void) type;
    (void) location;
    (void) caller;
    (void) final;
    return OTF2_FLUSH;
}

static const OTF2_FlushCallbacks flushing = {flush_always, NULL};

/* What fails is told once, by us. */
static OTF2_ErrorCode
be_silent(void *user, const char *file, uint64_t line, const char *function, OTF2_ErrorCode code,
          const char *format, va_list arguments)
{
    (void) user;
    (void) file;
    (void) line;
    (void) function;
    (void) format;
    (void) arguments;
    return code;
}

static void
note(writer *w, OTF2_ErrorCode code)
{
    if (w->code == OTF2_SUCCESS)
        w->code = code;
}

/* ---- what is in it -------------------------------------------------------------------------- */

static guint
layer_of(const call *c)
{
    if (c->object->target)
        return LAYER_ESDM;
    return c->kind >= WATCH_KIND_NC_READ    ? LAYER_NETCDF
           : c->kind >= WATCH_KIND_MPI_READ ? LAYER_MPI
                                            : LAYER_POSIX;
}

static bool
moves(const call *c)
{
    switch (c->kind) {
    case WATCH_KIND_READ:
    case WATCH_KIND_WRITE:
    case WATCH_KIND_MPI_READ:
    case WATCH_KIND_MPI_WRITE:
    case WATCH_KIND_NC_READ:
    case WATCH_KIND_NC_WRITE:
        return true;
    default:
        return false;
    }
}

static OTF2_IoOperationMode
mode_of(const call *c)
{
    bool writes = c->kind == WATCH_KIND_WRITE || c->kind == WATCH_KIND_MPI_WRITE ||
                  c->kind == WATCH_KIND_NC_WRITE;
    return writes ? OTF2_IO_OPERATION_MODE_WRITE : OTF2_IO_OPERATION_MODE_READ;
}

/* Numbers from 0 in the order in which things come. @param ret_new whether it did so now. */
static guint
number_in(GHashTable *table, gpointer key, bool *ret_new)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(table, key));
    *ret_new = known == 0;
    if (known == 0) {
        known = g_hash_table_size(table) + 1;
        g_hash_table_insert(table, key, GUINT_TO_POINTER(known));
    }
    return known - 1;
}

static guint
region_of(writer *w, const call *c)
{
    bool is_new;
    guint number = number_in(w->regions, (gpointer) call_name(c), &is_new);
    if (is_new)
        g_ptr_array_add(w->region_list, (gpointer) c);
    return number;
}

static guint
handle_of(writer *w, const call *c)
{
    bool is_new;
    guint layer = layer_of(c);
    guint file = number_in(w->files, c->object, &is_new);
    if (is_new)
        g_ptr_array_add(w->file_list, c->object);
    const watch_head *head = &c->process->head;
    char *key = g_strdup_printf("%s:%d:%u:%u", head->host, head->pid, file, layer);
    guint number = number_in(w->handles, key, &is_new);
    if (is_new) {
        const handle h = {file, layer};
        g_array_append_val(w->handle_list, h);
    } else {
        g_free(key);
    }
    return number;
}

/* Clocks of nodes begin anywhere: by the time of day, as far as they agree on that. */
static guint64
begin_of(const call *c)
{
    const watch_head *head = &c->process->head;
    return c->start_ns - head->started_ns + head->started_realtime_ns;
}

static void
sort_calls(writer *w)
{
    w->origin_ns = G_MAXUINT64;
    for (guint i = 0; i < w->run->calls->len; i++) {
        const call *c = &g_array_index(w->run->calls, call, i);
        const watch_head *head = &c->process->head;
        /* A process that becomes another program stays the same one. */
        g_autofree char *key = g_strdup_printf("%s:%d:%u", head->host, head->pid, c->thread);
        lane *l = g_hash_table_lookup(w->lane_of, key);
        if (l == NULL) {
            l = g_new0(lane, 1);
            l->process = c->process;
            l->thread = c->thread;
            l->number = w->lanes->len;
            l->calls = g_ptr_array_new();
            g_ptr_array_add(w->lanes, l);
            g_hash_table_insert(w->lane_of, g_steal_pointer(&key), l);
        }
        g_ptr_array_add(l->calls, (gpointer) c);
        w->origin_ns = MIN(w->origin_ns, begin_of(c));
        if (c->ns <= G_MAXINT64 - MIN(begin_of(c), G_MAXINT64))
            w->end_ns = MAX(w->end_ns, begin_of(c) + c->ns);
        w->end_ns = MAX(w->end_ns, begin_of(c));
    }
    if (w->lanes->len == 0)
        w->origin_ns = w->end_ns = 0;
}

/* ---- events --------------------------------------------------------------------------------- */

/* A call that has begun and not ended yet. */
typedef struct pending {
    const call *call;
    guint64 end; /* not after that of the call around it */
    guint region, handle;
    guint64 id;
} pending;

static void
end_call(writer *w, OTF2_EvtWriter *out, lane *l, GArray *stack)
{
    const pending p = g_array_index(stack, pending, stack->len - 1);
    g_array_set_size(stack, stack->len - 1);
    if (moves(p.call)) {
        note(w, OTF2_EvtWriter_IoOperationComplete(out, NULL, p.end, p.handle,
                                                   p.call->failed ? 0 : p.call->bytes, p.id));
        l->events++;
    }
    note(w, OTF2_EvtWriter_Leave(out, NULL, p.end, p.region));
    l->events++;
}

static void
begin_call(writer *w, OTF2_EvtWriter *out, lane *l, GArray *stack, const call *c, guint64 id)
{
    guint64 begin = begin_of(c) - w->origin_ns;
    guint64 left = w->end_ns - begin_of(c); /* what a damaged record may say at most */
    pending p = {.call = c, .end = begin + MIN(c->ns, left), .region = region_of(w, c), .id = id};
    if (stack->len > 0) {
        const pending *around = &g_array_index(stack, pending, stack->len - 1);
        p.end = MIN(p.end, around->end);
    }
    note(w, OTF2_EvtWriter_Enter(out, NULL, begin, p.region));
    l->events++;
    if (moves(c)) {
        OTF2_IoOperationFlag flags = (c->flags & WATCH_FLAG_TOGETHER) != 0
                                         ? OTF2_IO_OPERATION_FLAG_COLLECTIVE
                                         : OTF2_IO_OPERATION_FLAG_NONE;
        p.handle = handle_of(w, c);
        note(w, OTF2_EvtWriter_IoOperationBegin(out, NULL, begin, p.handle, mode_of(c), flags,
                                                MAX(c->wanted, c->bytes), id));
        l->events++;
    }
    g_array_append_val(stack, p);
}

/* What encloses others comes first. */
static gint
by_begin(gconstpointer a, gconstpointer b)
{
    const call *x = *(const call *const *) a;
    const call *y = *(const call *const *) b;
    if (begin_of(x) != begin_of(y))
        return begin_of(x) < begin_of(y) ? -1 : 1;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static void
write_lane(writer *w, lane *l)
{
    OTF2_EvtWriter *out = OTF2_Archive_GetEvtWriter(w->archive, l->number);
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(pending));
    if (out == NULL) {
        note(w, OTF2_ERROR_MEM_ALLOC_FAILED);
        return;
    }
    g_ptr_array_sort(l->calls, by_begin);
    for (guint i = 0; i < l->calls->len; i++) {
        const call *c = l->calls->pdata[i];
        while (stack->len > 0 &&
               g_array_index(stack, pending, stack->len - 1).end <= begin_of(c) - w->origin_ns)
            end_call(w, out, l, stack);
        begin_call(w, out, l, stack, c, i);
    }
    while (stack->len > 0)
        end_call(w, out, l, stack);
    note(w, OTF2_Archive_CloseEvtWriter(w->archive, out));
}

/* ---- definitions ---------------------------------------------------------------------------- */

static OTF2_StringRef
text_ref(writer *w, const char *text)
{
    bool is_new;
    char *key = g_strdup(text);
    guint number = number_in(w->strings, key, &is_new);
    if (is_new)
        note(w, OTF2_GlobalDefWriter_WriteString(w->defs, number, text));
    else
        g_free(key);
    return number;
}

static void
define_regions(writer *w)
{
    for (guint i = 0; i < w->region_list->len; i++) {
        const call *c = w->region_list->pdata[i];
        OTF2_StringRef name = text_ref(w, call_name(c));
        note(w, OTF2_GlobalDefWriter_WriteRegion(
                    w->defs, i, name, name, text_ref(w, layers[layer_of(c)].name),
                    moves(c) ? OTF2_REGION_ROLE_FILE_IO : OTF2_REGION_ROLE_FILE_IO_METADATA,
                    layer_of(c) == LAYER_MPI ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_UNKNOWN,
                    OTF2_REGION_FLAG_NONE, text_ref(w, ""), 0, 0));
    }
}

static void
define_files(writer *w)
{
    for (guint i = 0; i < LAYERS; i++)
        note(w, OTF2_GlobalDefWriter_WriteIoParadigm(w->defs, (OTF2_IoParadigmRef) i,
                                                     text_ref(w, layers[i].id),
                                                     text_ref(w, layers[i].name), layers[i].class,
                                                     layers[i].flags, 0, NULL, NULL, NULL));
    for (guint i = 0; i < w->file_list->len; i++) {
        const object *o = w->file_list->pdata[i];
        g_autofree char *name = o->variable != NULL
                                    ? g_strdup_printf("%s: %s", o->name, o->variable)
                                    : g_strdup(o->name != NULL ? o->name : "");
        note(w, OTF2_GlobalDefWriter_WriteIoRegularFile(w->defs, i, text_ref(w, name), 0));
    }
    for (guint i = 0; i < w->handle_list->len; i++) {
        const handle *h = &g_array_index(w->handle_list, handle, i);
        note(w, OTF2_GlobalDefWriter_WriteIoHandle(w->defs, i, text_ref(w, ""), h->file,
                                                   (OTF2_IoParadigmRef) h->layer,
                                                   OTF2_IO_HANDLE_FLAG_PRE_CREATED,
                                                   OTF2_UNDEFINED_COMM, OTF2_UNDEFINED_IO_HANDLE));
        note(w, OTF2_GlobalDefWriter_WriteIoPreCreatedHandleState(
                    w->defs, i, OTF2_IO_ACCESS_MODE_READ_WRITE, OTF2_IO_STATUS_FLAG_NONE));
    }
}

/* Node 0 is all of the machine; then come the hosts. */
static guint
define_node(writer *w, GHashTable *nodes, const char *host)
{
    bool is_new;
    guint number = number_in(nodes, (gpointer) host, &is_new) + 1;
    if (is_new)
        note(w, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                    w->defs, number, text_ref(w, host[0] != '\0' ? host : "node"),
                    text_ref(w, "node"), 0));
    return number;
}

static void
define_lanes(writer *w)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    note(w, OTF2_GlobalDefWriter_WriteSystemTreeNode(w->defs, 0, text_ref(w, "machine"),
                                                     text_ref(w, "machine"),
                                                     OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (guint i = 0; i < w->lanes->len; i++) {
        bool is_new;
        lane *l = w->lanes->pdata[i];
        const watch_head *head = &l->process->head;
        g_autofree char *of = head->rank >= 0 ? g_strdup_printf("rank %d", head->rank)
                                              : g_strdup_printf("process %d", head->pid);
        g_autofree char *name = g_strdup_printf("%s thread %u", of, l->thread);
        char *key = g_strdup_printf("%s:%d", head->host, head->pid);
        l->group = number_in(groups, key, &is_new);
        if (!is_new)
            g_free(key);
        else
            note(w, OTF2_GlobalDefWriter_WriteLocationGroup(
                        w->defs, l->group, text_ref(w, of), OTF2_LOCATION_GROUP_TYPE_PROCESS,
                        define_node(w, nodes, head->host), OTF2_UNDEFINED_LOCATION_GROUP));
        note(w, OTF2_GlobalDefWriter_WriteLocation(w->defs, l->number, text_ref(w, name),
                                                   OTF2_LOCATION_TYPE_CPU_THREAD, l->events,
                                                   l->group));
    }
}

static void
write_definitions(writer *w)
{
    note(w, OTF2_Archive_OpenDefFiles(w->archive));
    for (guint i = 0; i < w->lanes->len && w->code == OTF2_SUCCESS; i++) {
        const lane *l = w->lanes->pdata[i];
        OTF2_DefWriter *own = OTF2_Archive_GetDefWriter(w->archive, l->number);
        note(w, own == NULL ? OTF2_ERROR_MEM_ALLOC_FAILED
                            : OTF2_Archive_CloseDefWriter(w->archive, own));
    }
    note(w, OTF2_Archive_CloseDefFiles(w->archive));
    w->defs = OTF2_Archive_GetGlobalDefWriter(w->archive);
    if (w->defs == NULL || w->code != OTF2_SUCCESS) {
        note(w, OTF2_ERROR_MEM_ALLOC_FAILED);
        return;
    }
    note(w, OTF2_GlobalDefWriter_WriteClockProperties(w->defs, 1000000000, 0,
                                                      w->end_ns - w->origin_ns + 1, w->origin_ns));
    define_lanes(w);
    define_regions(w);
    define_files(w);
}

/* ---- */

static void
free_lane(gpointer data)
{
    lane *l = data;
    (void) g_ptr_array_free(l->calls, TRUE);
    g_free(l);
}

static void
writer_clear(writer *w)
{
    g_ptr_array_unref(w->lanes);
    g_hash_table_unref(w->lane_of);
    g_hash_table_unref(w->strings);
    g_hash_table_unref(w->regions);
    g_hash_table_unref(w->files);
    g_hash_table_unref(w->handles);
    g_array_unref(w->handle_list);
    g_ptr_array_unref(w->file_list);
    g_ptr_array_unref(w->region_list);
}

static tool_exit
write_archive(writer *w, const char *folder, const char *name, const char *file)
{
    w->archive = OTF2_Archive_Open(folder, name, OTF2_FILEMODE_WRITE, EVENT_CHUNK_BYTES,
                                   DEFS_CHUNK_BYTES, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (w->archive == NULL) {
        tool_error("%s: an archive cannot be made there", file);
        return TOOL_FAILED;
    }
    note(w, OTF2_Archive_SetFlushCallbacks(w->archive, &flushing, NULL));
    note(w, OTF2_Archive_SetSerialCollectiveCallbacks(w->archive));
    note(w, OTF2_Archive_SetCreator(w->archive, "esdm-explain"));
    note(w, OTF2_Archive_OpenEvtFiles(w->archive));
    sort_calls(w);
    for (guint i = 0; i < w->lanes->len && w->code == OTF2_SUCCESS; i++)
        write_lane(w, w->lanes->pdata[i]);
    note(w, OTF2_Archive_CloseEvtFiles(w->archive));
    if (w->code == OTF2_SUCCESS)
        write_definitions(w);
    note(w, OTF2_Archive_Close(w->archive));
    guint64 events = 0;
    for (guint i = 0; i < w->lanes->len; i++)
        events += ((const lane *) w->lanes->pdata[i])->events;
    if (w->code == OTF2_SUCCESS && otf2_is_whole(file, w->lanes->len, events))
        return TOOL_OK;
    tool_error("%s: %s%s", file,
               w->code == OTF2_SUCCESS ? "it was written, but cannot be read again"
                                       : OTF2_Error_GetDescription(w->code),
               otf2_disk_is_full(folder) ? "; the file system is full" : "");
    return TOOL_FAILED;
}

/* What was begun would stand in the way of the next one. */
static void
remove_begun(const char *file, const char *beside)
{
    g_autofree char *definitions = g_strconcat(beside, ".def", NULL);
    GDir *dir = g_dir_open(beside, 0, NULL);
    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(beside, name, NULL);
        (void) g_unlink(path);
    }
    if (dir != NULL)
        g_dir_close(dir);
    (void) g_rmdir(beside);
    (void) g_unlink(definitions);
    (void) g_unlink(file);
}

tool_exit
write_otf2(const run *r, const char *file)
{
    struct stat st;
    g_autofree char *folder = g_path_get_dirname(file);
    g_autofree char *name = g_path_get_basename(file);
    g_autofree char *beside = g_strndup(file, strlen(file) - strlen(".otf2"));
    name[strlen(name) - strlen(".otf2")] = '\0';
    if (name[0] == '\0')
        return tool_usage("--trace: expected a name before .otf2");
    g_autofree char *definitions = g_strconcat(beside, ".def", NULL);
    if (lstat(file, &st) == 0 || lstat(beside, &st) == 0 || lstat(definitions, &st) == 0) {
        tool_error("%s: an archive has this file, '%s.def' and the folder '%s'; some of that is "
                   "there already: remove it, or take another name",
                   file, beside, beside);
        return TOOL_FAILED;
    }
    (void) OTF2_Error_RegisterCallback(be_silent, NULL);
    writer w = {
        .run = r,
        .lanes = g_ptr_array_new_with_free_func(free_lane),
        .lane_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .strings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .regions = g_hash_table_new(g_str_hash, g_str_equal),
        .files = g_hash_table_new(NULL, NULL),
        .handles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .handle_list = g_array_new(FALSE, FALSE, sizeof(handle)),
        .file_list = g_ptr_array_new(),
        .region_list = g_ptr_array_new(),
    };
    tool_exit result = write_archive(&w, folder, name, file);
    if (result != TOOL_OK)
        remove_begun(file, beside);
    writer_clear(&w);
    return result;
}

#else

tool_exit
write_otf2(const run *r, const char *file)
{
    (void) r;
    tool_error("%s: this ESDM was built without OTF2 (package libotf2-trace-dev); a name that ends "
               "in .jsonl gets JSON Lines, one in .json trace events for Perfetto",
               file);
    return TOOL_FAILED;
}

#endif
