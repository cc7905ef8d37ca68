/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What would help most: rules, each with the seconds that it may gain, and the reasons in numbers.
 */
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <string.h>

#define SMALL_BYTES  65536.0
#define GOOD_BYTES   1048576.0
#define WORTH_S      0.02  /* what gains less is not worth a sentence … */
#define WORTH_SHARE  0.02  /* … nor what gains less of the run */
#define DEFLATE_RATE 250e6 /* bytes a second that a core inflates, about */
#define BETTER_RATE  900e6 /* converted and copied alone */
#define CHUNK_RATE   4e9   /* chunks that are read whole for a few values */
#define LIBRARY_CALL 10e-6 /* seconds of a NetCDF call that decodes nothing */
#define MANY_LOOKUPS 200
#define MANY_OPENS   100
#define AMPLE                                                                                      \
    4.0 /* so many times the values: much of a file is fill values                                 \
         */

static double
wall(const run *r)
{
    return seconds_of(r->end_ns - r->start_ns);
}

void
advise(run *r, double gain_s, const char *format, ...)
{
    if (gain_s < WORTH_S || gain_s < WORTH_SHARE * wall(r))
        return;
    advice *a = g_new0(advice, 1);
    va_list arguments;
    va_start(arguments, format);
    a->gain_s = gain_s;
    a->text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_ptr_array_add(r->advice, a);
}

/* The variable of a file that took most time to read; NULL: none was. */
static const object *
slowest_variable(const run *r, const char *file, bool writes)
{
    const object *found = NULL;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind != WATCH_VARIABLE || (file != NULL && !g_str_equal(o->name, file)))
            continue;
        guint64 ns = writes ? o->entry.write.ns : o->entry.read.ns;
        guint64 most = found == NULL ? 0 : writes ? found->entry.write.ns : found->entry.read.ns;
        if (ns > most)
            found = o;
    }
    return found;
}

/* ---- rules -------------------------------------------------------------------------------------
 */

/* Small reads and writes of each file, and how many of its calls were seen. */
typedef struct small_sums {
    watch_counts small[2]; /* reads, writes */
    guint64 seen[2];
} small_sums;

/* By object, of all calls in one pass; owned. */
static GHashTable *
sum_small(const run *r)
{
    GHashTable *sums = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->kind != WATCH_KIND_READ && c->kind != WATCH_KIND_WRITE)
            continue;
        small_sums *s = g_hash_table_lookup(sums, c->object);
        if (s == NULL) {
            s = g_new0(small_sums, 1);
            g_hash_table_insert(sums, c->object, s);
        }
        gsize way = c->kind == WATCH_KIND_WRITE;
        s->seen[way]++;
        if ((double) c->bytes < SMALL_BYTES) {
            s->small[way].calls++;
            s->small[way].bytes += c->bytes;
            s->small[way].ns += c->ns;
        }
    }
    return sums;
}

/* Those of a file that are small; of all its calls, where these are only counted. */
static watch_counts
small_ones(GHashTable *sums, const object *o, bool writes)
{
    const watch_counts *all = writes ? &o->entry.write : &o->entry.read;
    const small_sums *s = g_hash_table_lookup(sums, o);
    if (s == NULL)
        return all->calls == 0 ? (watch_counts){0} : *all;
    return 2 * s->seen[writes] >= all->calls ? s->small[writes] : *all;
}

static void
small_requests(run *r, GHashTable *sums, const object *o, bool writes)
{
    const watch_counts small = small_ones(sums, o, writes), *c = &small;
    const pattern *p = writes ? &o->writes : &o->reads;
    double calls = (double) c->calls;
    double mean = calls > 0 ? (double) c->bytes / calls : 0;
    if (calls < 200 || mean > SMALL_BYTES || ranks_are_alone(r, o->name, writes) ||
        of_esdm(o->name) != NULL)
        return;
    double seconds = seconds_of(c->ns);
    double fewer = (double) c->bytes / GOOD_BYTES + 1;
    double gain = seconds * (1 - fewer / calls) * 0.8;
    char *name = short_name(o->name);
    char *size = bytes_text(mean);
    char *each = time_text(seconds / calls);
    char *sum = time_text(seconds);
    char *how = pattern_text(p);
    const object *v = slowest_variable(r, o->name, writes);
    const watch_counts *asked = v == NULL ? NULL : (writes ? &v->entry.write : &v->entry.read);
    bool many = asked != NULL && asked->calls > 100 &&
                (double) asked->bytes < SMALL_BYTES * (double) asked->calls;
    char *why = !many ? g_strdup("")
                      : g_strdup_printf(" The program asks for %s in pieces of %" G_GUINT64_FORMAT
                                        " bytes (%" G_GUINT64_FORMAT " NetCDF calls).",
                                        v->variable, asked->bytes / asked->calls, asked->calls);
    advise(
        r, gain,
        "%s %s in small pieces: %" G_GUINT64_FORMAT " calls of %s on average (%s), %s each, %s "
        "together.%s Larger pieces - whole fields or several time steps in one call - would need "
        "about %.0f calls.",
        name, writes ? "is written" : "is read", c->calls, size, how, each, sum, why, fewer);
    g_free(why);
    g_free(how);
    g_free(sum);
    g_free(each);
    g_free(size);
    g_free(name);
}

/* The calls of a variable, when they are many and tiny; else NULL. */
static const watch_counts *
tiny_calls(const object *o, const char *file, bool writes)
{
    const watch_counts *c = writes ? &o->entry.write : &o->entry.read;
    bool tiny = o->kind == WATCH_VARIABLE && g_str_equal(o->name, file) && c->calls >= 1000 &&
                c->bytes <= 4096 * c->calls;
    return tiny ? c : NULL;
}

static bool
is_first_of_file(const run *r, const object *o, bool writes)
{
    for (guint i = 0; i < r->objects->len && r->objects->pdata[i] != o; i++) {
        if (tiny_calls(r->objects->pdata[i], o->name, writes) != NULL)
            return false;
    }
    return true;
}

/* Many tiny NetCDF calls cost time in the library, even where the file is in memory. Told once a
 * file. */
static void
small_calls(run *r, const object *o, bool writes)
{
    GString *variables = g_string_new(NULL);
    bool compressed = false;
    watch_counts sum = {0};
    if (tiny_calls(o, o->name, writes) == NULL || !is_first_of_file(r, o, writes)) {
        g_string_free(variables, TRUE);
        return;
    }
    for (guint i = 0; i < r->objects->len; i++) {
        const object *other = r->objects->pdata[i];
        const watch_counts *c = tiny_calls(other, o->name, writes);
        if (c == NULL)
            continue;
        sum.calls += c->calls;
        sum.bytes += c->bytes;
        sum.ns += c->ns;
        compressed = compressed || other->entry.deflate >= 0;
        g_string_append_printf(variables, "%s%s", variables->len > 0 ? ", " : "", other->variable);
    }
    char *name = short_name(o->name);
    char *size = bytes_text((double) sum.bytes / (double) sum.calls);
    char *time = time_text(seconds_of(sum.ns));
    char *each = time_text(seconds_of(sum.ns) / (double) sum.calls);
    advise(r, seconds_of(sum.ns) * 0.9,
           "The program %s %s in %s with %" G_GUINT64_FORMAT
           " NetCDF calls of %s on average, %s each, "
           "%s together: %s. %s whole fields or many steps in one call (nc_%s_vara, in Python a "
           "slice, in R "
           "count), or use a tool that does.",
           writes ? "writes" : "reads", variables->str, name, sum.calls, size, each, time,
           compressed ? "the cost of calls, and of compression" : "mostly the cost of calls",
           writes ? "Write" : "Read", writes ? "put" : "get");
    g_free(each);
    g_free(time);
    g_free(size);
    g_free(name);
    g_string_free(variables, TRUE);
}

static void
strided_reads(run *r, const object *o)
{
    const watch_counts *c = &o->entry.read;
    const pattern *p = &o->reads;
    if (p->calls < 50 || (double) p->strided < 0.5 * (double) p->calls || p->stride == 0)
        return;
    double seconds = seconds_of(c->ns);
    double device = 0;
    for (guint i = 0; i < r->read_classes->len; i++) {
        const time_class *t = r->read_classes->pdata[i];
        if (!g_str_equal(t->cause, "page cache"))
            device += t->seconds;
    }
    device = MIN(device, seconds);
    char *name = short_name(o->name);
    char *how = pattern_text(p);
    char *time = time_text(device);
    if (o->entry.ahead_calls == 0)
        advise(
            r, 0.5 * device,
            "%s is read with gaps (%s), which the system does not read ahead; %s were spent "
            "waiting "
            "for the device. 'esdm-run --read-ahead PROGRAM' asks for the next pieces early. For "
            "good, store what is read together side by side: nccopy -c with chunks along the "
            "dimension that is read, or a copy in ESDM (esdm-cp).",
            name, how, time);
    g_free(time);
    g_free(how);
    g_free(name);
}

/* A file that gets much more than the values that are put into it: chunks that
 * are hardly filled. */
static void
large_chunks(run *r, const object *o)
{
    double written = (double) o->entry.write.bytes;
    double values = 0, put_s = 0;
    const object *most = NULL;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *v = r->objects->pdata[i];
        if (v->kind != WATCH_VARIABLE || !g_str_equal(v->name, o->name))
            continue;
        values += (double) v->entry.write.bytes;
        put_s += seconds_of(v->entry.write.ns);
        if (v->entry.chunked == 1 && v->entry.write.bytes > 0 &&
            (most == NULL || v->entry.write.ns > most->entry.write.ns))
            most = v;
    }
    if (most == NULL || values <= 0 || written < 1e6 || written < AMPLE * values)
        return; /* nobody need look at all calls */
    double size = MIN(written, (double) file_extent(r, o));
    if (size < 1e6 || size < AMPLE * values || !is_new_file(r, o->name))
        return;
    g_autofree char *name = short_name(o->name);
    g_autofree char *chunk = shape_text(most->entry.chunk, most->entry.rank);
    g_autofree char *got = bytes_text(size);
    g_autofree char *wanted = bytes_text(values);
    advise(r, (put_s + seconds_of(o->entry.write.ns)) * (1 - values / size),
           "%s has %s for %s of values: its variable %s is stored in chunks of %s, "
           "which the program "
           "hardly fills, and the rest is fill values. Smaller chunks "
           "(nc_def_var_chunking; ncks "
           "--cnk_dmn DIMENSION,1; nccopy -c) make the file as large as its values.",
           name, got, wanted, most->variable, chunk);
}

/* Each opening has the chunks to decode again. @param gain_s of reading it once */
static void
opened_again(run *r, const object *o, double gain_s)
{
    g_autofree char *name = short_name(o->name);
    g_autofree char *all = bytes_text((double) o->entry.read.bytes);
    g_autofree char *each = bytes_text((double) o->entry.read.bytes / (double) o->openings);
    g_autofree char *has = bytes_text((double) o->entry.file_bytes);
    g_autofree char *times = o->opening_processes > 1
                                 ? g_strdup_printf(" by %u processes", o->opening_processes)
                                 : g_strdup("");
    advise(r, gain_s,
           "%s was opened and read %" G_GUINT64_FORMAT
           " times%s, about %s each time: %s from a file of %s. %s",
           name, o->openings, times, each, all, has,
           o->opening_processes > 1
               ? "Let one of them read what all need and hand it on, or let each read its part."
               : "Open it once, and take all that is needed of it before it is closed; a tool that "
                 "is given a file twice reads it twice.");
}

/* Bytes of a variable's values, as they are in memory. */
static double
raw_bytes(const object *v)
{
    double bytes = v->entry.element_bytes;
    for (guint i = 0; i < MIN(v->entry.rank, WATCH_DIMS); i++)
        bytes *= (double) v->entry.size[i];
    return bytes;
}

/* A chunk cache in which the variable finds room, up to so much; "": there is none. Owned. */
#define CACHE_MOST (UINT64_C(4) << 30)

static char *
cache_text(const object *v)
{
    guint64 size = UINT64_C(32) << 20;
    while (size <= CACHE_MOST && (double) size < 1.05 * raw_bytes(v))
        size *= 2;
    if (size > CACHE_MOST || g_str_has_prefix(v->name, "esdm:"))
        return g_strdup("");
    return g_strdup_printf(" A cache in which all of %s finds room needs no change of the program: "
                           "ESDM_NC_CHUNK_CACHE=%" G_GUINT64_FORMAT "M esdm-run PROGRAM.",
                           v->variable, size >> 20);
}

static void
read_again(run *r, const object *o)
{
    double bytes = (double) o->entry.read.bytes;
    double size = (double) o->entry.file_bytes;
    if (size < 1e6 || bytes < 1.5 * size)
        return;
    const object *v = slowest_variable(r, o->name, false);
    double seconds = seconds_of(o->entry.read.ns);
    double library = seconds_of(r->library_read_ns);
    double share = 1 - size / bytes;
    if (o->openings > 1 && (double) o->opening_bytes < 1.5 * size) {
        bool deflated = v != NULL && v->entry.deflate >= 0;
        opened_again(r, o, share * (seconds + (deflated ? 0.7 * library : 0)));
        return;
    }
    char *name = short_name(o->name);
    char *read = bytes_text(bytes);
    char *has = bytes_text(size);
    if (v != NULL && v->entry.chunked == 1) {
        char *chunk = shape_text(v->entry.chunk, v->entry.rank);
        char *shape = shape_text(v->entry.size, v->entry.rank);
        g_autofree char *cache = cache_text(v);
        advise(
            r, share * (seconds + (v->entry.deflate >= 0 ? 0.7 * library : 0)),
            "%s was read %.1f times over: %s from a file of %s. Its variable %s (%s) is stored in "
            "chunks of %s, and each is read%s again when the program comes back to it. Read along "
            "whole chunks, make the chunk cache larger (nc_set_chunk_cache, in Python "
            "set_var_chunk_cache), or store it with chunks as it is read: nccopy -c.%s",
            name, bytes / size, read, has, v->variable, shape, chunk,
            v->entry.deflate >= 0 ? " and decompressed" : "", cache);
        g_free(chunk);
        g_free(shape);
    } else {
        advise(
            r, share * seconds,
            "%s was read %.1f times over: %s from a file of %s. Keep what was read once in memory, "
            "or read several variables or statistics in one pass.",
            name, bytes / size, read, has);
    }
    g_free(has);
    g_free(read);
    g_free(name);
}

/* So many times the processors' time: calls were held up by others. */
#define WAITED 1.5

/* Of what calls of the library took, what was work: beyond the processors' time others had these,
 * and reading and writing share that. */
static double
work_of(const run *r, double seconds)
{
    double library = MAX(seconds_of(r->library_ns), seconds);
    return seconds * MIN(1, r->cpu_most_s / MAX(library, 1e-9));
}

/* Behind the time of work: that the calls took longer. Owned. */
static char *
waited_text(double seconds, double work)
{
    g_autofree char *spent = time_text(seconds);
    if (seconds <= WAITED * work)
        return g_strdup("");
    return g_strdup_printf(" at most (calls took %s: the rest they waited for processors)", spent);
}

static const object *
file_of(const run *r, const object *v)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_FILE && g_str_equal(o->name, v->name))
            return o;
    }
    return NULL;
}

/* Bytes that came out of decompression, at least: chunks that are read again give all of their
 * values again. */
static double
decoded_bytes(const run *r, const object *v)
{
    const object *file = file_of(r, v);
    double values = (double) v->entry.read.bytes;
    if (file == NULL || file->entry.file_bytes == 0)
        return values;
    return MAX(values,
               raw_bytes(v) * (double) file->entry.read.bytes / (double) file->entry.file_bytes);
}

/* Where chunks come again: what was decompressed for the values. Owned. */
static char *
decoded_text(double decoded, double values)
{
    g_autofree char *all = bytes_text(decoded);
    return decoded > 1.5 * values
               ? g_strdup_printf(", for which whole chunks of %s were decompressed", all)
               : g_strdup("");
}

/* So many times what the program wanted was decompressed: the chunks' shape is not its own. */
#define FAR_MORE 4

static void
library_time(run *r)
{
    double seconds = seconds_of(r->library_read_ns);
    double decoded = 0;
    guint64 deflated = 0;
    guint64 calls = 0;
    const object *most = NULL;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_VARIABLE && o->entry.deflate >= 0 && o->entry.read.bytes > 0 &&
            !g_str_has_prefix(o->name, "esdm:")) {
            deflated += o->entry.read.bytes;
            decoded += decoded_bytes(r, o);
            calls += o->entry.read.calls;
            most = most == NULL || o->entry.read.ns > most->entry.read.ns ? o : most;
        } else if (o->kind == WATCH_VARIABLE && g_str_has_prefix(o->name, "esdm:")) {
            seconds -= seconds_of(o->entry.read.ns);
        }
    }
    if (most == NULL || seconds <= 0)
        return;
    double work = work_of(r, seconds);
    double better = (double) deflated / BETTER_RATE + (decoded - (double) deflated) / CHUNK_RATE +
                    (double) calls * LIBRARY_CALL;
    char *time = time_text(work);
    char *bytes = bytes_text((double) deflated);
    char *rate = bytes_text((double) deflated / MAX(work, 1e-6));
    char *name = short_name(most->name);
    char *less = time_text(MIN(better, work));
    g_autofree char *waited = waited_text(seconds, work);
    g_autofree char *whole = decoded_text(decoded, (double) deflated);
    g_autofree char *shape =
        decoded > FAR_MORE * (double) deflated ? chunks_taken_text(most) : g_strdup("");
    advise(
        r, MAX(work - better, 0),
        "Reading was held up by decompression: %s of work%s in the NetCDF library for %s (%s/s)%s, "
        "most "
        "for %s in %s, which is compressed with deflate %d.%s A file without deflate, which is "
        "larger "
        "(nccopy -d0), would take about %s; a container of ESDM (esdm-cp) stays small, and is "
        "decoded faster and on all cores.",
        time, waited, bytes, rate, whole, most->variable, name, most->entry.deflate, shape, less);
    g_free(less);
    g_free(name);
    g_free(rate);
    g_free(bytes);
    g_free(time);
}

/* Deflate 1 takes less than a level: of 4 by 4 to 41 % for temperature, precipitation, humidity and
 * relief, of 6 by 33 to 70 %, of 9 by 68 to 93 %. */
#define HIGH_LEVEL 6
static double
saved_by_deflate_1(int level)
{
    return level >= 9 ? 0.7 : level >= 7 ? 0.45 : 0.33;
}

/* Chunks are compressed when the library's cache of them is full, or when the file is closed: the
 * calls that write have a part of it alone. */
static void
compression_time(run *r)
{
    double seconds = 0;
    guint64 bytes = 0;
    guint64 others = 0; /* bytes that are not compressed */
    bool own = false;   /* containers were written, too: the library's time is theirs */
    const object *most = NULL;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind != WATCH_VARIABLE || o->entry.write.bytes == 0)
            continue;
        if (g_str_has_prefix(o->name, "esdm:")) {
            own = true;
            continue;
        }
        if (o->entry.deflate < 0) {
            others += o->entry.write.bytes;
            continue;
        }
        seconds += seconds_of(o->entry.write.ns);
        bytes += o->entry.write.bytes;
        most = most == NULL || o->entry.write.ns > most->entry.write.ns ? o : most;
    }
    if (bytes > others && !own)
        seconds = MAX(seconds, seconds_of(r->library_ns - MIN(r->library_read_ns, r->library_ns)));
    if (most == NULL)
        return;
    double work = work_of(r, seconds);
    double filled = chunks_filled_share(r, most);
    char *time = time_text(work);
    char *text = bytes_text((double) bytes);
    char *name = short_name(most->name);
    g_autofree char *waited = waited_text(seconds, work);
    int level = most->entry.deflate;
    bool hardly = filled * FAR_MORE < 1;
    double share = hardly ? 1 - filled : level >= HIGH_LEVEL ? saved_by_deflate_1(level) : 0.5;
    g_autofree char *chunks = hardly ? chunks_filled_text(most) : NULL;
    advise(
        r, share * work,
        "Writing was held up by compression: %s of work%s for %s in compressed variables, most for "
        "%s in %s with deflate %d. %s",
        time, waited, text, most->variable, name, level,
        hardly ? chunks
        : level >= HIGH_LEVEL
            ? "Deflate 1 with shuffle takes two thirds of that at most, and gives files that "
              "are a few percent larger."
        : level > 1
            ? "Deflate 1 would take little less; a container of ESDM (esdm://NAME in place of the "
              "file's name, with esdm-run before the program) is compressed faster, and on all "
              "cores."
            : "That is the fastest deflate; a container of ESDM (esdm://NAME in place of the "
              "file's name, with esdm-run before the program) is compressed faster, and on all "
              "cores.");
    g_free(name);
    g_free(text);
    g_free(time);
}

static void
metadata(run *r)
{
    double seconds = seconds_of(r->meta_ns);
    char *time = time_text(seconds);
    if (r->failed_lookups > MANY_LOOKUPS)
        advise(r, 0.7 * seconds,
               "Files were looked for %" G_GUINT64_FORMAT " times, %" G_GUINT64_FORMAT
               " times where "
               "none was (search paths of Python or of libraries), and %" G_GUINT64_FORMAT
               " were opened: %s. On a shared file system this is what all nodes wait for at once: "
               "put "
               "the environment on a local disk or in a container image.",
               r->lookups, r->failed_lookups, r->opens, time);
    else if (r->engine)
        advise(r, 0.7 * seconds,
               "Containers were opened %" G_GUINT64_FORMAT
               " times; that, and closing them, took %s. Open each once and keep it open.",
               r->opens, time);
    else if (r->opens + r->lookups >= MANY_OPENS) /* a few that take long are not too many */
        advise(
            r, 0.7 * seconds,
            "%" G_GUINT64_FORMAT " files were opened and %" G_GUINT64_FORMAT
            " looked for; that took %s. Open each file once and keep it open, and put many small "
            "files together (ncrcat, cdo mergetime, esdm-cp).",
            r->opens, r->lookups, time);
    g_free(time);
}

/* What one rank does longer than the others is time of all. */
static void
imbalance(run *r)
{
    guint64 most = 0;
    guint64 sum = 0;
    gint worst = -1;
    if (r->ranks < 2 || ranks_share_files(r))
        return;
    for (guint i = 0; i < r->processes->len; i++) {
        const process *p = r->processes->pdata[i];
        if (p->head.rank < 0)
            continue;
        sum += p->calls_ns;
        if (p->calls_ns > most) {
            most = p->calls_ns;
            worst = p->head.rank;
        }
    }
    double mean = seconds_of(sum) / r->ranks;
    char *time = time_text(seconds_of(most));
    char *others = time_text((seconds_of(sum) - seconds_of(most)) / (r->ranks - 1));
    advise(
        r, seconds_of(most) - mean,
        "Rank %d spent %s in input and output, the others %s on average: they wait for it. Let all "
        "ranks read and write their part (nc_open_par, nc_create_par), or several of them.",
        worst, time, others);
    g_free(others);
    g_free(time);
}

static gint
by_gain(gconstpointer a, gconstpointer b)
{
    const advice *x = *(const advice *const *) a;
    const advice *y = *(const advice *const *) b;
    return x->gain_s < y->gain_s ? 1 : x->gain_s > y->gain_s ? -1 : 0;
}

void
run_advise(run *r)
{
    g_autoptr(GHashTable) sums = sum_small(r);
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_VARIABLE) {
            small_calls(r, o, false);
            small_calls(r, o, true);
        }
        if (o->kind != WATCH_FILE)
            continue;
        small_requests(r, sums, o, false);
        small_requests(r, sums, o, true);
        if (of_esdm(o->name) != NULL)
            continue;
        large_chunks(r, o);
        strided_reads(r, o);
        read_again(r, o);
    }
    library_time(r);
    compression_time(r);
    metadata(r);
    syncs_advise(r);
    imbalance(r);
    ranks_advise(r);
    g_ptr_array_sort(r->advice, by_gain);
}
