/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Classes of times of one kind of call (density.c). Each gets the cause that its sizes, rates and
 * order speak for. Where records tell of reads whether memory had what they asked for
 * (watch/resident.c), reads that it had and others are classes apart.
 */
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <stdlib.h>

#define CLASSES 6

/* statfs() of NFS, SMB, CIFS, Lustre, BeeGFS, GPFS, AFS, Ceph, 9p, PanFS, OrangeFS. */
static bool
is_remote_file_system(guint32 type)
{
    static const guint32 known[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                    0x0bd00bd0, 0x19830326, 0x47504653, 0x5346414f,
                                    0x00c36400, 0x01021997, 0xaad7aaea, 0x20030528};
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        if (known[i] == type)
            return true;
    }
    return false;
}

/* tmpfs, ramfs */
static bool
is_memory_file_system(guint32 type)
{
    return type == 0x01021994 || type == 0x858458f6;
}

/* ---- causes ------------------------------------------------------------------------------------
 */

#define COPY_LATENCY_S 6e-6   /* of a call that memory answers, at most, … */
#define COPY_LEAST_S   1.5e-6 /* … and at least: others hold it up at times */
#define COPY_RATE      1.5e9  /* and of its bytes */
#define COPY_FACTOR    4.0
#define SPINDLE_S      3e-3 /* a disk that moves its head */
#define LATER          3.0  /* so many times the device's time: the call waited for others */
#define FOLLOWING      0.7
#define MIXED          3.0
#define WAITED_S       100e-6 /* storing older data takes longer */

static double
mean_bytes(const time_class *c)
{
    return c->calls > 0 ? (double) c->bytes / (double) c->calls : 0;
}

static double
following(const time_class *c)
{
    return c->calls > 0 ? (double) c->following / (double) c->calls : 0;
}

static double
beside(const time_class *c)
{
    return c->calls > 0 ? (double) c->beside / (double) c->calls : 0;
}

static bool
is_remote(const time_class *c)
{
    return 2 * c->remote > c->calls;
}

static bool
is_target(const time_class *c)
{
    return 2 * c->targets > c->calls;
}

static double
mean_s(const time_class *c)
{
    return c->calls > 0 ? c->seconds / (double) c->calls : 0;
}

/* The time that goes with mean_bytes(): where sizes differ much, so do times, and the most frequent
 * one is that of other sizes. */
static double
usual_s(const time_class *c)
{
    double mean = mean_s(c);
    return mean > MIXED * c->typical_s ? mean : c->typical_s;
}

/* What a call costs that memory answers: as in the fastest class, where that is memory's. */
static double
latency_of(const GPtrArray *list)
{
    if (list->len == 0)
        return COPY_LATENCY_S;
    const time_class *fastest = list->pdata[0];
    double latency = fastest->typical_s - mean_bytes(fastest) / COPY_RATE;
    return CLAMP(latency, COPY_LEAST_S, COPY_LATENCY_S);
}

static bool
answers_from_memory(const GPtrArray *list, const time_class *c)
{
    return usual_s(c) < COPY_FACTOR * (latency_of(list) + mean_bytes(c) / COPY_RATE);
}

/* ---- what memory had ---------------------------------------------------------------------------
 */

#define KNOWN_LEAST 30  /* reads of which it is known, to part all by it … */
#define KNOWN_SHARE 0.1 /* … and their share */

static guint
eighths_of(const call *c)
{
    return (guint) c->flags >> WATCH_CACHED_BIT & 15u;
}

/* Of reads that nobody asked about, which were mostly quick, times decide. */
static memory_had
memory_of(const call *c)
{
    guint eighths = eighths_of(c);
    double copied = COPY_LATENCY_S + (double) c->bytes / COPY_RATE;
    if (eighths > 0)
        return eighths == 9 ? MEMORY_HAD_ALL : MEMORY_LACKED;
    return seconds_of(c->ns) < COPY_FACTOR * copied ? MEMORY_HAD_ALL : MEMORY_LACKED;
}

static void
set_cause(time_class *c, const char *cause, char *because)
{
    c->cause = g_strdup(cause);
    c->because = because;
}

/* The class of the device: of those that memory does not answer, the one with most calls. */
static const time_class *
device_of(const GPtrArray *list)
{
    const time_class *found = NULL;
    for (guint i = 0; i < list->len; i++) {
        const time_class *c = list->pdata[i];
        bool waits = c->memory == MEMORY_UNKNOWN ? !answers_from_memory(list, c)
                                                 : c->memory == MEMORY_LACKED;
        if (waits && (found == NULL || c->calls > found->calls))
            found = c;
    }
    return found;
}

static void
explain_fast(time_class *c, const time_class *device, const char *typical, const char *size)
{
    bool streams = following(c) > FOLLOWING && device != NULL && following(device) > FOLLOWING &&
                   device->calls * 64 > c->calls;
    if (streams)
        set_cause(
            c, "read-ahead",
            g_strdup_printf("%s for %s, each where the one before ended, and one in %.0f waits "
                            "for the device: the system had read them early",
                            typical, size, (double) c->calls / (double) device->calls + 1));
    else
        set_cause(c, "page cache",
                  g_strdup_printf("%s for %s is what a copy from memory takes", typical, size));
}

static void
explain_slow(time_class *c, const time_class *device, const char *typical, const char *size)
{
    double times = device->typical_s > 0 ? c->typical_s / device->typical_s : 1;
    /* Larger calls may take longer, as they are larger. */
    double larger = MAX(1, mean_bytes(c) / MAX(mean_bytes(device), 1));
    double on_average = mean_s(c) / MAX(mean_s(device), 1e-9);
    if (c != device && MIN(times, on_average) / larger > LATER) {
        char *usual = time_text(device->typical_s);
        char *many = beside(c) > beside(device) + 0.5
                         ? g_strdup_printf("%.1f other calls were under way", beside(c))
                         : g_strdup("behind those of other programs, or of this one");
        set_cause(c, "contention",
                  g_strdup_printf("%s for %s, %.0f times the usual %s: the calls waited (%s)",
                                  typical, size, times, usual, many));
        g_free(many);
        g_free(usual);
    } else if (c != device && times < 1 / LATER && following(c) > FOLLOWING) {
        set_cause(c, "read-ahead",
                  g_strdup_printf(
                      "%s for %s, each where the one before ended: the system had begun to read "
                      "them, and they waited for the rest",
                      typical, size));
    } else if (is_target(c)) {
        set_cause(c, "target",
                  g_strdup_printf("%s for %s: memory did not have them; the device or the network "
                                  "behind the target takes that long",
                                  typical, size));
    } else if (is_remote(c)) {
        set_cause(c, "network",
                  g_strdup_printf("%s for %s, on a file system of other nodes", typical, size));
    } else if (2 * c->in_memory > c->calls) {
        set_cause(c, "contention",
                  g_strdup_printf("%s for %s, on a file system in memory: the calls waited for "
                                  "other programs",
                                  typical, size));
    } else {
        set_cause(c, "device",
                  g_strdup_printf("%s for %s: memory did not have them%s", typical, size,
                                  c->typical_s > SPINDLE_S ? ", and the device takes long" : ""));
    }
}

/* Memory had them, as the kernel said, and yet they took longer than a copy. */
static void
explain_late(time_class *c, const char *typical, const char *size)
{
    if (following(c) > FOLLOWING)
        set_cause(c, "read-ahead",
                  g_strdup_printf("%s for %s: the system was reading them already, and they "
                                  "waited for the rest",
                                  typical, size));
    else
        set_cause(c, "contention",
                  g_strdup_printf("%s for %s, which memory had, or was getting: the calls waited "
                                  "for a processor, or behind other calls",
                                  typical, size));
}

static void
explain_reads(const GPtrArray *list)
{
    const time_class *device = device_of(list);
    for (guint i = 0; i < list->len; i++) {
        time_class *c = list->pdata[i];
        char *typical = time_text(usual_s(c));
        char *size = bytes_text(mean_bytes(c));
        if (c->memory != MEMORY_LACKED && answers_from_memory(list, c))
            explain_fast(c, device, typical, size);
        else if (c->memory == MEMORY_HAD_ALL)
            explain_late(c, typical, size);
        else
            explain_slow(c, device, typical, size);
        g_free(typical);
        g_free(size);
    }
}

static void
explain_writes(const GPtrArray *list)
{
    double memory_s = 0;
    for (guint i = 0; i < list->len; i++) {
        time_class *c = list->pdata[i];
        char *typical = time_text(usual_s(c));
        char *size = bytes_text(mean_bytes(c));
        if (answers_from_memory(list, c)) {
            memory_s = usual_s(c);
            set_cause(c, "page cache",
                      g_strdup_printf("%s for %s: memory took them, the device gets them later",
                                      typical, size));
        } else if (memory_s > 0 && usual_s(c) < WAITED_S) {
            set_cause(
                c, "page cache",
                g_strdup_printf("%s for %s: too short to have waited for a device", typical, size));
        } else if (2 * c->in_memory > c->calls) {
            set_cause(c, "contention",
                      g_strdup_printf("%s for %s, on a file system in memory: the calls waited for "
                                      "free memory, or for other programs",
                                      typical, size));
        } else if (memory_s > 0) {
            set_cause(c, "write-back",
                      g_strdup_printf(
                          "%s for %s, %.0f times the others: these calls waited until older data "
                          "were stored",
                          typical, size, usual_s(c) / memory_s));
        } else {
            set_cause(c,
                      is_target(c)   ? "target"
                      : is_remote(c) ? "network"
                                     : "device",
                      g_strdup_printf("%s for %s: no call was faster", typical, size));
        }
        g_free(typical);
        g_free(size);
    }
}

/* Neighbours with the same cause are one class for those who read of them; the one with more time
 * speaks for both. */
static void
join_neighbours(GPtrArray *list)
{
    for (guint i = 1; i < list->len;) {
        time_class *a = list->pdata[i - 1];
        time_class *b = list->pdata[i];
        if (!g_str_equal(a->cause, b->cause) || a->memory != b->memory) {
            i++;
            continue;
        }
        if (b->seconds > a->seconds) {
            char *because = a->because;
            a->because = b->because;
            b->because = because;
            a->typical_s = b->typical_s;
        }
        a->high_s = b->high_s;
        a->calls += b->calls;
        a->bytes += b->bytes;
        a->seconds += b->seconds;
        a->following += b->following;
        a->beside += b->beside;
        a->remote += b->remote;
        a->targets += b->targets;
        a->in_memory += b->in_memory;
        (void) g_ptr_array_remove_index(list, i);
        g_free(b->cause);
        g_free(b->because);
        g_free(b);
    }
}

/* ---- the classes of a run ----------------------------------------------------------------------
 */

static int
compare_times(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static bool
is_of(const call *c, watch_kind kind)
{
    return c->kind == kind && c->ns > 0 && c->bytes > 0 && c->object->kind == WATCH_FILE;
}

static bool
is_data(const call *c)
{
    return is_of(c, WATCH_KIND_READ) || is_of(c, WATCH_KIND_WRITE);
}

static bool
goes_on(GHashTable *ends, const call *c)
{
    guint64 *end = g_hash_table_lookup(ends, c->object);
    if (end == NULL) {
        end = g_new0(guint64, 1);
        *end = G_MAXUINT64;
        g_hash_table_insert(ends, c->object, end);
    }
    bool follows = *end == c->position;
    *end = c->position + c->bytes;
    return follows;
}

/* What the calls are beside their times: how they follow, and what is under way with them. */
static void
mark_calls(const run *r)
{
    GHashTable *ends = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    guint64 under_way[256] = {0}; /* ends of calls */
    for (guint i = 0; i < r->calls->len; i++) {
        call *c = &g_array_index(r->calls, call, i);
        if (!is_data(c))
            continue;
        guint count = 0;
        guint free = 0;
        for (guint k = 0; k < G_N_ELEMENTS(under_way); k++) {
            count += under_way[k] > c->start_ns;
            free = under_way[k] <= c->start_ns ? k : free;
        }
        under_way[free] = c->start_ns + c->ns;
        c->beside = (guint8) MIN(count, 255);
        c->follows = goes_on(ends, c);
    }
    g_hash_table_destroy(ends);
}

static void
add_to_class(time_class *class, const call *c)
{
    class->calls++;
    class->bytes += c->bytes;
    class->seconds += seconds_of(c->ns);
    class->following += c->follows;
    class->beside += c->beside;
    class->targets += c->object->target;
    class->in_memory += is_memory_file_system(c->object->entry.file_system);
    class->remote += is_remote_file_system(c->object->entry.file_system);
}

/* Whether the list tells what memory had from what it lacked. */
static bool
are_parted(const GPtrArray *list)
{
    return list->len > 0 && ((const time_class *) list->pdata[0])->memory != MEMORY_UNKNOWN;
}

static time_class *
class_at(const GPtrArray *list, const call *c)
{
    memory_had memory = are_parted(list) ? memory_of(c) : MEMORY_UNKNOWN;
    time_class *found = NULL;
    for (guint k = 0; k < list->len; k++) {
        time_class *class = list->pdata[k];
        if (class->memory != memory)
            continue;
        found = class;
        if (seconds_of(c->ns) < class->high_s)
            break;
    }
    return found;
}

static void
add_classes(const run *r, watch_kind kind, memory_had memory, GPtrArray *list)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(double));
    double cuts[CLASSES];
    double peaks[CLASSES];
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        double seconds = seconds_of(c->ns);
        if (is_of(c, kind) && (memory == MEMORY_UNKNOWN || memory_of(c) == memory))
            g_array_append_val(times, seconds);
    }
    if (times->len > 1)
        qsort(times->data, times->len, sizeof(double), compare_times);
    guint n =
        density_classes((const double *) (void *) times->data, times->len, cuts, peaks, CLASSES);
    for (guint i = 0; i < n; i++) {
        time_class *c = g_new0(time_class, 1);
        c->memory = memory;
        c->low_s = i > 0 ? cuts[i - 1] : 0;
        c->high_s = i + 1 < n ? cuts[i] : INFINITY;
        c->typical_s = peaks[i];
        g_ptr_array_add(list, c);
    }
}

static bool
is_memory_known(const run *r, watch_kind kind)
{
    gsize calls = 0;
    gsize known = 0;
    for (guint i = 0; i < r->calls->len && kind == WATCH_KIND_READ; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        calls += is_of(c, kind);
        known += is_of(c, kind) && eighths_of(c) > 0;
    }
    return known >= KNOWN_LEAST && (double) known >= KNOWN_SHARE * (double) calls;
}

static GPtrArray *
classes_of(const run *r, watch_kind kind)
{
    GPtrArray *list = g_ptr_array_new();
    if (is_memory_known(r, kind)) {
        add_classes(r, kind, MEMORY_HAD_ALL, list);
        add_classes(r, kind, MEMORY_LACKED, list);
    } else {
        add_classes(r, kind, MEMORY_UNKNOWN, list);
    }
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (is_of(c, kind))
            add_to_class(class_at(list, c), c);
    }
    return list;
}

/* What the reads would have taken from memory: as those that memory answered, which stay as they
 * are. */
static double
best_of(const GPtrArray *list)
{
    double latency = COPY_LATENCY_S;
    double best = 0;
    for (guint i = 0; i < list->len; i++) {
        const time_class *c = list->pdata[i];
        if (i == 0 && answers_from_memory(list, c))
            latency = c->typical_s / 2;
        double copied = (double) c->calls * latency + (double) c->bytes / COPY_RATE;
        best += g_str_equal(c->cause, "page cache") ? c->seconds : MIN(c->seconds, copied);
    }
    return best;
}

void
run_classes(run *r)
{
    mark_calls(r);
    g_ptr_array_free(r->read_classes, TRUE); /* the empty ones of run_new() */
    g_ptr_array_free(r->write_classes, TRUE);
    r->read_classes = classes_of(r, WATCH_KIND_READ);
    r->write_classes = classes_of(r, WATCH_KIND_WRITE);
    explain_reads(r->read_classes);
    explain_writes(r->write_classes);
    join_neighbours(r->read_classes);
    join_neighbours(r->write_classes);
    r->best_s = best_of(r->read_classes);
    for (guint i = 0; i < r->calls->len; i++) {
        call *c = &g_array_index(r->calls, call, i);
        if (is_data(c))
            c->class = class_at(c->kind == WATCH_KIND_READ ? r->read_classes : r->write_classes, c);
    }
}
