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

#define COPY_LATENCY_S 12e-6 /* of a call that memory answers, on a busy node */
#define COPY_RATE      1.5e9 /* and of its bytes */
#define COPY_FACTOR    3.0
#define NETWORK_S      0.9e-3 /* a local device that is not busy answers sooner */
#define SPINDLE_S      3e-3

/* What all times of a kind look like together. */
typedef struct evidence {
    double memory_s; /* of a typical call, if memory answers */
    double device_s; /* typical time of the class that is most probably the device; 0: none */
} evidence;

static bool
answers_from_memory(const time_class *c, double mean_bytes)
{
    return c->typical_s < COPY_FACTOR * (COPY_LATENCY_S + mean_bytes / COPY_RATE);
}

static void
set_cause(time_class *c, const char *cause, char *because)
{
    c->cause = g_strdup(cause);
    c->because = because;
}

/* Whose calls follow each other comes from read-ahead, though it is slower than memory. */
static void
explain_read(time_class *c, double *device_s)
{
    double mean = c->calls > 0 ? (double) c->bytes / (double) c->calls : 0;
    double following = c->calls > 0 ? (double) c->following / (double) c->calls : 0;
    double rate = c->typical_s > 0 ? mean / c->typical_s : 0;
    char *typical = time_text(c->typical_s);
    char *size = bytes_text(mean);
    if (answers_from_memory(c, mean)) {
        set_cause(c, "page cache",
                  g_strdup_printf("%s for %s is what a copy from memory takes", typical, size));
    } else if (*device_s > 0 && c->typical_s > 4 * *device_s) {
        set_cause(c, "contention",
                  g_strdup_printf("%s is %.0f times what the device needs otherwise: the calls "
                                  "wait behind others",
                                  typical, c->typical_s / *device_s));
    } else if (*device_s == 0 && following > 0.7 && mean > 0 && rate > 100e6 &&
               c->typical_s < NETWORK_S) {
        set_cause(c, "read-ahead",
                  g_strdup_printf("%.0f %% of these calls go on where one ended; %s each is more "
                                  "than memory takes and less than a device: the system had begun "
                                  "to read them",
                                  100 * following, typical));
    } else {
        bool far = c->typical_s > NETWORK_S && c->typical_s < SPINDLE_S;
        *device_s = c->typical_s;
        set_cause(
            c,
            c->typical_s > SPINDLE_S ? "slow device"
            : far                    ? "network or busy device"
                                     : "device",
            g_strdup_printf("%s for %s; memory would take %s", typical, size, "microseconds"));
    }
    g_free(typical);
    g_free(size);
}

static void
explain_write(time_class *c, double *memory_s)
{
    double mean = c->calls > 0 ? (double) c->bytes / (double) c->calls : 0;
    char *typical = time_text(c->typical_s);
    char *size = bytes_text(mean);
    if (answers_from_memory(c, mean)) {
        *memory_s = c->typical_s;
        set_cause(c, "page cache",
                  g_strdup_printf("%s for %s: memory took them, the device gets them later",
                                  typical, size));
    } else if (*memory_s > 0) {
        set_cause(
            c, "write-back",
            g_strdup_printf("%s for %s is %.0f times the others: these calls waited until the "
                            "system had stored older data",
                            typical, size, c->typical_s / *memory_s));
    } else {
        set_cause(c, "device", g_strdup_printf("%s for %s: no call was faster", typical, size));
    }
    g_free(typical);
    g_free(size);
}

/* Neighbours with the same cause are one class for those who read of them; the one with more time
 * speaks for both. */
static void
join_neighbours(GPtrArray *list)
{
    for (guint i = 1; i < list->len;) {
        time_class *a = list->pdata[i - 1];
        const time_class *b = list->pdata[i];
        if (!g_str_equal(a->cause, b->cause)) {
            i++;
            continue;
        }
        if (b->seconds > a->seconds) {
            a->because = b->because;
            a->typical_s = b->typical_s;
        }
        a->high_s = b->high_s;
        a->calls += b->calls;
        a->bytes += b->bytes;
        a->seconds += b->seconds;
        a->following += b->following;
        (void) g_ptr_array_remove_index(list, i);
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
counts(const call *c, watch_kind kind)
{
    return c->kind == kind && c->ns > 0 && c->bytes > 0 && c->object->kind == WATCH_FILE;
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
        if (counts(c, kind))
            g_array_append_val(times, seconds);
    }
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
    GHashTable *ends = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (!counts(c, kind))
            continue;
        guint k = 0;
        bool follows = goes_on(ends, c);
        while (k + 1 < n && seconds_of(c->ns) >= cuts[k])
            k++;
        time_class *class = list->pdata[k];
        class->calls++;
        class->bytes += c->bytes;
        class->seconds += seconds_of(c->ns);
        class->following += follows;
    }
    g_hash_table_destroy(ends);
    g_array_free(times, TRUE);
    return list;
}

void
run_classes(run *r)
{
    double device_s = 0;
    double memory_s = 0;
    r->read_classes = classes_of(r, WATCH_KIND_READ);
    r->write_classes = classes_of(r, WATCH_KIND_WRITE);
    double rate = COPY_RATE;
    double latency = COPY_LATENCY_S;
    for (guint i = 0; i < r->read_classes->len; i++) {
        time_class *c = r->read_classes->pdata[i];
        explain_read(c, &device_s);
        if (i == 0 && g_str_equal(c->cause, "page cache")) {
            latency = c->typical_s / 2;
            rate = COPY_RATE;
        }
    }
    for (guint i = 0; i < r->write_classes->len; i++)
        explain_write(r->write_classes->pdata[i], &memory_s);
    join_neighbours(r->read_classes);
    join_neighbours(r->write_classes);
    for (guint i = 0; i < r->read_classes->len; i++) {
        const time_class *c = r->read_classes->pdata[i];
        double cached = (double) c->calls * latency + (double) c->bytes / rate;
        r->best_s += MIN(c->seconds, cached);
    }
}
