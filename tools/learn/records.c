/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Records of runs as tables: what is known of a call before it is made, and how fast it was. */
#include "learn/learn.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#ifdef LEARN_WATCH
#include "esdm-explain/esdm-explain.h"
#endif

/* Bytes by which it is known what of a file was touched before. */
#define GRAIN UINT64_C(65536)
/* Calls under way that are looked at. */
#define UNDER_WAY  256u
#define STEPS_MOST 16

enum {
    WRITES,
    BYTES,
    HOLE,
    AGAIN,
    STEPS,
    BESIDE,
    PAUSE,
    CACHED,
    SINCE,
    SPEED,
    HERE,
    LATELY,
    LACKED,
    FEATURES
};

/* Bytes since something was touched that was not. */
#define NEVER 1e15

static const learn_feature call_features[FEATURES] = {
    [WRITES] = {"writes", .binary = true, .less = "reads", .more = "writes"},
    [BYTES] = {"bytes", .sizes = true, .less = "of less than %s", .more = "of %s or more"},
    [HOLE] = {"hole", .sizes = true, .less = "less than %s from the end of the one before",
              .more = "%s or more from the end of the one before"},
    [AGAIN] = {"again", .less = "less than %s of it touched before in the run",
               .more = "%s or more of it touched before in the run"},
    [STEPS] = {"steps", .counts = true, .less = "at the distance of fewer than %s calls before",
               .more = "at the distance of %s or more calls before"},
    [BESIDE] = {"beside", .counts = true, .less = "with fewer than %s others under way",
                .more = "with %s or more others under way"},
    [PAUSE] = {"pause", .less = "less than %s us after the call before",
               .more = "%s us or more after the call before"},
    [CACHED] = {"cached", .less = "less than %s of it in memory",
                .more = "%s or more of it in memory"},
    [SINCE] = {LEARN_SINCE, .sizes = true, .less = "touched less than %s of other data ago",
               .more = "not touched, or %s or more of other data ago"},
    [SPEED] = {"speed", .less = "behind a call of less than %s MB/s",
               .more = "behind a call of %s MB/s or more"},
    [HERE] = {"here", .less = "not read from memory before, or at less than %s MB/s",
              .more = "read from memory at %s MB/s or more before"},
    [LATELY] = {"lately", .less = "behind others of its kind of less than %s MB/s",
                .more = "behind others of its kind of %s MB/s or more"},
    [LACKED] = {"lacked", .sizes = true, .less = "less than %s after memory lacked something",
                .more = "%s or more after memory lacked something"},
};

/* Tables of calls, and of requests of ESDM, have other columns. */
static tool_exit
claim(learn_table *t, const learn_feature *features, guint count, const char *path)
{
    if (t->features == 0) {
        memcpy(t->feature, features, count * sizeof *features);
        t->features = count;
        t->target = "MB/s";
    }
    if (t->features == count && g_str_equal(t->feature[0].name, features[0].name))
        return TOOL_OK;
    tool_error(
        "%s: these are records of another kind than those before: learn from each kind alone",
        path);
    return TOOL_USAGE;
}

/* ---- what was before ------------------------------------------------------------------------ */

/* Where calls of a file by a process have been. */
typedef struct trail {
    guint64 end;
    guint64 start;
    gint64 distance;
    guint steps;
    bool begun;
} trail;

/* Ends of calls that may still be under way. */
typedef struct under_way {
    guint64 ends[UNDER_WAY];
    guint count;
} under_way;

static guint
count_beside(under_way *u, guint64 start, guint64 end)
{
    guint left = 0;
    for (guint i = 0; i < u->count; i++)
        if (u->ends[i] > start)
            u->ends[left++] = u->ends[i];
    u->count = left;
    if (u->count < UNDER_WAY)
        u->ends[u->count++] = end;
    return left;
}

static double
follow(trail *t, guint64 position, guint64 bytes)
{
    gint64 distance = t->begun ? (gint64) (position - t->start) : 0;
    double hole = !t->begun ? 0 : fabs((double) position - (double) t->end);
    t->steps = t->begun && distance == t->distance && t->steps < STEPS_MOST ? t->steps + 1
               : t->begun && distance == t->distance                        ? t->steps
                                                                            : 0;
    t->distance = distance;
    t->start = position;
    t->end = position + bytes;
    t->begun = true;
    return hole;
}

/* The share of a range that was touched before; it is now.
 * @param ret_since bytes of all calls since its beginning was. */
static double
touch(GHashTable *touched, guint32 file, guint64 position, guint64 bytes, guint64 moved,
      double *ret_since)
{
    guint64 before = 0;
    guint64 count = 0;
    const guint64 first = ((guint64) file << 40) ^ position / GRAIN;
    const guint64 *at = g_hash_table_lookup(touched, &first);
    *ret_since = at != NULL ? (double) (moved - *at) : NEVER;
    for (guint64 grain = position / GRAIN; grain <= (position + bytes - 1) / GRAIN; grain++) {
        guint64 *key = g_new(guint64, 1);
        *key = ((guint64) file << 40) ^ grain;
        count++;
        before += !g_hash_table_insert(touched, key, g_memdup2(&moved, sizeof moved));
    }
    return (double) before / (double) count;
}

/* ---- calls of a program --------------------------------------------------------------------- */

#ifdef LEARN_WATCH
static bool
is_wanted(const call *c)
{
    return c->object->entry.kind == WATCH_FILE && !c->failed && c->bytes > 0 && c->ns > 0 &&
           c->bytes < UINT64_C(1) << 40 && c->position != WATCH_NOWHERE &&
           (c->kind == WATCH_KIND_READ || c->kind == WATCH_KIND_WRITE);
}

/* Microseconds since the call before of the process: a processor that slept is slower. */
static double
pause_before(GHashTable *ends, const call *c)
{
    guint64 *end = g_hash_table_lookup(ends, c->process);
    if (end == NULL) {
        end = g_new0(guint64, 1);
        g_hash_table_insert(ends, c->process, end);
    }
    double pause = *end > 0 && c->start_ns > *end ? (double) (c->start_ns - *end) / 1e3 : 0;
    *end = MAX(*end, c->start_ns + c->ns);
    return pause;
}

/* That of the thread's call before, which is over. */
static double
speed_before(GHashTable *speeds, const call *c, double speed)
{
    char *key = g_strdup_printf("%p %u", (void *) c->process, c->thread);
    const double *last = g_hash_table_lookup(speeds, key);
    double before = last != NULL ? *last : 0;
    g_hash_table_insert(speeds, key, g_memdup2(&speed, sizeof speed));
    return before;
}

static guint
cached_of(const call *c)
{
    return (guint) c->flags >> WATCH_CACHED_BIT & 15u;
}

/* The newest one's share of the speed of the last ones. */
#define NEWEST 0.3
/* Calls have fewer bytes than 2 to that. */
#define SIZES 64u

/* Of a run. */
typedef struct learn_lately {
    double speed[2][2][SIZES + 1]; /* writes; memory has all; binary digits of bytes. 0: none yet */
    guint64 lacked_at;
} learn_lately;

/* Whether memory had it: nobody asked. */
#define UNKNOWN (-1.0)

/* How fast memory gave what begins there when it was last read: data in caches of the processor
 * are copied several times as fast. What was not in memory has new pages then.
 * @param cached the share that memory has. */
static double
speed_here(GHashTable *here, guint32 file, const call *c, double cached, double speed)
{
    const guint64 key = ((guint64) file << 40) ^ c->position / GRAIN;
    const double *last = g_hash_table_lookup(here, &key);
    double before = last != NULL && cached >= 1 ? *last : 0;
    if (cached >= 1)
        g_hash_table_insert(here, g_memdup2(&key, sizeof key), g_memdup2(&speed, sizeof speed));
    else if (cached >= 0)
        (void) g_hash_table_remove(here, &key);
    return before;
}

/* How fast the last ones were that are alike in what decides most: of reads of 4 KiB that memory
 * had, caches of processors may have had them, too, or others may use these meanwhile. */
static double
speed_lately(learn_lately *l, const double *x, double speed)
{
    double *lately = &l->speed[x[WRITES] > 0.5][x[CACHED] >= 1][g_bit_storage((gulong) x[BYTES])];
    double before = *lately;
    *lately = before > 0 ? (1 - NEWEST) * before + NEWEST * speed : speed;
    return before;
}

/* Bytes that were moved since a read last found less than all of its data in memory. */
static double
since_lack(learn_lately *l, double cached, guint64 moved)
{
    double since = (double) (moved - l->lacked_at);
    if (cached >= 0 && cached < 1)
        l->lacked_at = moved;
    return since;
}

/* The speed of the call before that was the same in all that does not depend on time; NAN: none. */
static double
speed_alike(GHashTable *alike, guint32 file, const call *c, double speed)
{
    char *key = g_strdup_printf("%u %d %u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, file,
                                c->kind == WATCH_KIND_WRITE, cached_of(c), c->position, c->bytes);
    const double *last = g_hash_table_lookup(alike, key);
    double before = last != NULL ? *last : NAN;
    g_hash_table_insert(alike, key, g_memdup2(&speed, sizeof speed));
    return before;
}

static void
add_calls(learn_table *t, const run *r)
{
    guint64 moved = 0;
    g_autoptr(GHashTable) here = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_autoptr(GHashTable) alike = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) speeds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) ends = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    under_way beside = {.count = 0};
    learn_lately lately = {.lacked_at = 0};
    g_autoptr(GHashTable) touched =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_autoptr(GHashTable) trails = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (!is_wanted(c))
            continue;
        char *key = g_strdup_printf("%p %p", (void *) c->object, (void *) c->process);
        trail *way = g_hash_table_lookup(trails, key);
        if (way == NULL) {
            way = g_new0(trail, 1);
            g_hash_table_insert(trails, key, way);
        } else {
            g_free(key);
        }
        if (!g_hash_table_contains(numbers, c->object))
            g_hash_table_insert(numbers, c->object,
                                GUINT_TO_POINTER(g_hash_table_size(numbers) + 1));
        guint file = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, c->object));
        double x[FEATURES];
        x[WRITES] = c->kind == WATCH_KIND_WRITE;
        x[BYTES] = (double) c->bytes;
        x[HOLE] = follow(way, c->position, c->bytes);
        x[AGAIN] = touch(touched, file, c->position, c->bytes, moved, &x[SINCE]);
        x[STEPS] = way->steps;
        x[BESIDE] = count_beside(&beside, c->start_ns, c->start_ns + c->ns);
        double speed = (double) c->bytes * 1e3 / (double) c->ns;
        x[SPEED] = speed_before(speeds, c, speed);
        x[PAUSE] = pause_before(ends, c);
        x[CACHED] = cached_of(c) > 0             ? (cached_of(c) - 1) / 8.0
                    : c->kind == WATCH_KIND_READ ? UNKNOWN
                                                 : 0;
        x[HERE] = speed_here(here, file, c, x[CACHED], speed);
        x[LATELY] = speed_lately(&lately, x, speed);
        x[LACKED] = since_lack(&lately, c->kind == WATCH_KIND_READ ? x[CACHED] : 1, moved);
        moved += c->bytes;
        learn_add(t, x, speed, speed_alike(alike, file, c, speed));
    }
}

/* Where it is known of some reads, in whichever run, the others teach little; where it is known of
 * none, that is no difference between them. */
void
learn_end_records(learn_table *t)
{
    if (t->features != FEATURES || !g_str_equal(t->feature[CACHED].name, "cached"))
        return;
    bool asked = false;
    for (gsize i = 0; i < t->rows && !asked; i++) {
        const double *x = t->x + i * t->features;
        asked = x[WRITES] < 0.5 && x[CACHED] >= 0;
    }
    gsize kept = 0;
    for (gsize i = 0; i < t->rows; i++) {
        double *x = t->x + i * t->features;
        if (asked && x[CACHED] < 0)
            continue;
        x[CACHED] = MAX(x[CACHED], 0);
        learn_move(t, kept++, i);
    }
    t->left_out += t->rows - kept;
    t->rows = kept;
}

static tool_exit
load_folder(learn_table *t, const char *path)
{
    run r;
    tool_exit result = claim(t, call_features, FEATURES, path);
    if (result == TOOL_OK)
        result = run_load(path, &r);
    t->runs++;
    if (result == TOOL_OK)
        add_calls(t, &r);
    return result;
}
#else
void
learn_end_records(learn_table *t)
{
    (void) t; /* there are none of calls */
}

static tool_exit
load_folder(learn_table *t, const char *path)
{
    (void) t;
    tool_error("%s: records of esdm-run cannot be read: this ESDM was built without libesdm-watch",
               path);
    return TOOL_FAILED;
}
#endif

/* ---- requests of ESDM ----------------------------------------------------------------------- */

#define TARGETS_FROM 4u /* columns from there on: one a target */

static const learn_feature span_features[TARGETS_FROM] = {
    {"stores", .binary = true, .less = "requests that read", .more = "requests that store"},
    {"bytes", .sizes = true, .less = "of less than %s", .more = "of %s or more"},
    {"pieces", .counts = true, .less = "of fewer than %s pieces", .more = "of %s pieces or more"},
    {"beside", .counts = true, .less = "with fewer than %s others under way",
     .more = "with %s or more others under way"},
};

/* The column of a target; LEARN_FEATURES: there are too many. */
static guint
column_of(learn_table *t, const char *target)
{
    guint column = TARGETS_FROM;
    while (column < t->features && !g_str_equal(t->feature[column].name, target))
        column++;
    return column;
}

static bool
is_request(const json_t *span)
{
    const char *kind = json_string_value(json_object_get(span, "kind"));
    return kind != NULL && json_is_string(json_object_get(span, "target")) &&
           (g_str_equal(kind, "append") || g_str_equal(kind, "fetch")) &&
           json_integer_value(json_object_get(span, "status")) == 0 &&
           json_integer_value(json_object_get(span, "bytes")) > 0 &&
           json_integer_value(json_object_get(span, "ns")) > 0;
}

static void
add_span(learn_table *t, const json_t *span, under_way *beside)
{
    double x[LEARN_FEATURES] = {0};
    guint column = column_of(t, json_string_value(json_object_get(span, "target")));
    guint64 start = (guint64) json_integer_value(json_object_get(span, "start_ns"));
    guint64 ns = (guint64) json_integer_value(json_object_get(span, "ns"));
    double bytes = (double) json_integer_value(json_object_get(span, "bytes"));
    x[0] = g_str_equal(json_string_value(json_object_get(span, "kind")), "append");
    x[1] = bytes;
    x[2] = (double) json_integer_value(json_object_get(span, "pieces"));
    x[3] = count_beside(beside, start, start + ns);
    if (column < t->features)
        x[column] = 1;
    learn_add(t, x, bytes * 1e3 / (double) ns, NAN);
}

static gint
by_start(gconstpointer a, gconstpointer b)
{
    const json_t *const *x = a;
    const json_t *const *y = b;
    json_int_t first = json_integer_value(json_object_get(*x, "start_ns"));
    json_int_t second = json_integer_value(json_object_get(*y, "start_ns"));
    return first < second ? -1 : first > second;
}

/* Each target gets a column before the first row. */
static void
add_targets(learn_table *t, const GPtrArray *spans)
{
    for (guint i = 0; i < spans->len; i++) {
        const char *target = json_string_value(json_object_get(spans->pdata[i], "target"));
        if (column_of(t, target) < t->features || t->features == LEARN_FEATURES)
            continue;
        t->feature[t->features++] =
            (learn_feature){.name = g_intern_string(target),
                            .binary = true,
                            .less = g_intern_string(g_strconcat("not on ", target, NULL)),
                            .more = g_intern_string(g_strconcat("on ", target, NULL))};
    }
}

/* Clocks of nodes begin when these do: times of day tell what was under way at once.
 * @param offset_ns of the process. */
static void
take_line(GPtrArray *spans, json_t *line, gint64 *offset_ns)
{
    if (g_strcmp0(json_string_value(json_object_get(line, "what")), "process") == 0)
        *offset_ns = json_integer_value(json_object_get(line, "realtime_ns")) -
                     json_integer_value(json_object_get(line, "monotonic_ns"));
    if (!is_request(line))
        return;
    json_int_t start = json_integer_value(json_object_get(line, "start_ns"));
    (void) json_object_set_new(line, "start_ns", json_integer(start + *offset_ns));
    g_ptr_array_add(spans, json_incref(line));
}

static tool_exit
load_lines(learn_table *t, const char *path)
{
    tool_exit read = TOOL_OK;
    if (t->features > 0)
        return claim(t, span_features, TARGETS_FROM, path) == TOOL_OK && t->rows == 0
                   ? TOOL_OK
                   : tool_usage("--learn: one file of JSON Lines or one database at a time");
    g_autofree char *text = tool_records_text(path, &read);
    if (text == NULL)
        return read;
    g_autoptr(GPtrArray) spans = g_ptr_array_new_with_free_func((GDestroyNotify) json_decref);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gint64 offset_ns = 0;
    for (guint i = 0; lines[i] != NULL; i++) {
        json_t *line =
            tool_json_read(lines[i], -1, 0, NULL); /* the last one of a killed run is cut */
        if (line != NULL)
            take_line(spans, line, &offset_ns);
        json_decref(line);
    }
    g_ptr_array_sort(spans, by_start);
    tool_exit result = claim(t, span_features, TARGETS_FROM, path);
    under_way beside = {.count = 0};
    t->runs++;
    add_targets(t, spans);
    for (guint i = 0; i < spans->len && result == TOOL_OK; i++)
        add_span(t, spans->pdata[i], &beside);
    return result;
}

tool_exit
learn_load_records(learn_table *t, const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_DIR) ? load_folder(t, path) : load_lines(t, path);
}
