/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Classes of times. The density of the logarithms of times of one kind of call is estimated
 * (Gaussian kernels, Silverman's width); its minima part the times into classes. Each gets the
 * cause that its sizes, rates and order speak for.
 */
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <stdlib.h>

#define GRID        512
#define CLASSES     6
#define LEAST_SHARE 0.003 /* of the calls: a smaller class belongs to its neighbour */
#define LEAST_CALLS 3
#define VALLEY      0.8 /* a minimum parts two classes when it is that deep below the lower top */
#define PADDING     0.5 /* of the grid beyond the times, in decades */

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

/* ---- density ----------------------------------------------------------------------------------
 */

typedef struct grid {
    double low; /* logarithms, base 10 */
    double step;
    double density[GRID];
} grid;

/* Robust against far classes: the smaller of deviation and quartiles, as Silverman (1986, 3.31),
 * and half of it, as there are several tops. */
static double
width_of(const double *times, gsize n)
{
    double mean = 0;
    double square = 0;
    for (gsize i = 0; i < n; i++)
        mean += log10(times[i]) / (double) n;
    for (gsize i = 0; i < n; i++)
        square += pow(log10(times[i]) - mean, 2) / (double) n;
    double quartiles = (log10(times[n * 3 / 4]) - log10(times[n / 4])) / 1.34;
    double spread = sqrt(square);
    if (quartiles > 0 && quartiles < spread)
        spread = quartiles;
    double width = 0.45 * spread * pow((double) n, -0.2);
    return CLAMP(width, 0.03, 0.15);
}

static void
fill_density(grid *g, const double *times, gsize n, double width)
{
    double counts[GRID] = {0};
    g->low = log10(times[0]) - PADDING;
    g->step = (log10(times[n - 1]) + PADDING - g->low) / (GRID - 1);
    for (gsize i = 0; i < n; i++)
        counts[(int) ((log10(times[i]) - g->low) / g->step + 0.5)]++;
    int reach = (int) ceil(4 * width / g->step);
    for (int i = 0; i < GRID; i++) {
        g->density[i] = 0;
        for (int k = MAX(0, i - reach); k <= MIN(GRID - 1, i + reach); k++) {
            double z = (i - k) * g->step / width;
            g->density[i] += counts[k] * exp(-z * z / 2);
        }
        g->density[i] /= (double) n * width * sqrt(2 * G_PI);
    }
}

static int
top_between(const grid *g, int from, int to)
{
    int top = from;
    for (int i = from; i <= to; i++)
        top = g->density[i] > g->density[top] ? i : top;
    return top;
}

static int
bottom_between(const grid *g, int from, int to)
{
    int bottom = from;
    for (int i = from; i <= to; i++)
        bottom = g->density[i] < g->density[bottom] ? i : bottom;
    return bottom;
}

static double
share_between(const double *times, gsize n, double low, double high)
{
    gsize count = 0;
    for (gsize i = 0; i < n; i++)
        count += times[i] >= low && times[i] < high;
    return (double) count / (double) n;
}

static double
time_at(const grid *g, int i)
{
    return pow(10, g->low + i * g->step);
}

guint
density_classes(const double *times, gsize n, double *ret_cuts, double *ret_peaks, guint most)
{
    grid g;
    int tops[GRID];
    int ntops = 0;
    if (n == 0)
        return 0;
    fill_density(&g, times, n, width_of(times, n));
    for (int i = 1; i + 1 < GRID; i++) {
        if (g.density[i] > g.density[i - 1] && g.density[i] >= g.density[i + 1])
            tops[ntops++] = i;
    }
    double least = MAX(LEAST_SHARE, (double) LEAST_CALLS / (double) n);
    guint classes = 1;
    int last = ntops > 0 ? tops[0] : top_between(&g, 0, GRID - 1);
    int begin = 0;
    ret_peaks[0] = time_at(&g, last);
    for (int t = 1; t < ntops && classes < most; t++) {
        int cut = bottom_between(&g, last, tops[t]);
        double lower = MIN(g.density[last], g.density[tops[t]]);
        bool deep = g.density[cut] < VALLEY * lower;
        bool enough = share_between(times, n, time_at(&g, begin), time_at(&g, cut)) >= least &&
                      share_between(times, n, time_at(&g, cut), INFINITY) >= least;
        if (deep && enough) {
            ret_cuts[classes - 1] = time_at(&g, cut);
            classes++;
            begin = cut;
            last = tops[t];
        } else if (g.density[tops[t]] > g.density[last]) {
            last = tops[t];
        }
        ret_peaks[classes - 1] = time_at(&g, last);
    }
    return classes;
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

/* The time that goes with mean_bytes(): where sizes differ much, so do times, and the most frequent
 * one is that of other sizes. */
static double
usual_s(const time_class *c)
{
    double mean = c->calls > 0 ? c->seconds / (double) c->calls : 0;
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
        if (!answers_from_memory(list, c) && (found == NULL || c->calls > found->calls))
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
    if (c != device && times / larger > LATER) {
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

static void
explain_reads(const GPtrArray *list)
{
    const time_class *device = device_of(list);
    for (guint i = 0; i < list->len; i++) {
        time_class *c = list->pdata[i];
        char *typical = time_text(usual_s(c));
        char *size = bytes_text(mean_bytes(c));
        if (answers_from_memory(list, c))
            explain_fast(c, device, typical, size);
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
            memory_s = c->typical_s;
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
                          typical, size, c->typical_s / memory_s));
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
        if (!g_str_equal(a->cause, b->cause)) {
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

static time_class *
class_at(const GPtrArray *list, double seconds)
{
    guint k = 0;
    while (k + 1 < list->len && seconds >= ((const time_class *) list->pdata[k])->high_s)
        k++;
    return list->pdata[k];
}

static GPtrArray *
classes_of(const run *r, watch_kind kind)
{
    GArray *times = g_array_new(FALSE, FALSE, sizeof(double));
    double cuts[CLASSES];
    double peaks[CLASSES];
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        double seconds = seconds_of(c->ns);
        if (is_of(c, kind))
            g_array_append_val(times, seconds);
    }
    if (times->len > 1)
        qsort(times->data, times->len, sizeof(double), compare_times);
    guint n =
        density_classes((const double *) (void *) times->data, times->len, cuts, peaks, CLASSES);
    for (guint i = 0; i < n; i++) {
        time_class *c = g_new0(time_class, 1);
        c->low_s = i > 0 ? cuts[i - 1] : 0;
        c->high_s = i + 1 < n ? cuts[i] : INFINITY;
        c->typical_s = peaks[i];
        g_ptr_array_add(list, c);
    }
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (is_of(c, kind))
            add_to_class(class_at(list, seconds_of(c->ns)), c);
    }
    g_array_free(times, TRUE);
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
            c->class = class_at(c->kind == WATCH_KIND_READ ? r->read_classes : r->write_classes,
                                seconds_of(c->ns));
    }
}
