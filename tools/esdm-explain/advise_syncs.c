/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What waiting for stored data costs, and what of it is saved when it is done seldom. */
#include "esdm-explain/esdm-explain.h"

#include <math.h>

#define MUCH_AGAIN 0.2 /* of what is written: chunks that are not full, and not tables alone */

guint64
file_extent(const run *r, const object *o)
{
    guint64 end = o->entry.file_bytes;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object == o && c->kind == WATCH_KIND_WRITE && c->position != WATCH_NOWHERE)
            end = MAX(end, c->position + c->bytes);
    }
    return end;
}

/* The part of what was written to a file that it holds no more: it was written again. */
static double
rewritten(const run *r, const char *file)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        double written = (double) o->entry.write.bytes;
        if (o->kind == WATCH_FILE && g_str_equal(o->name, file) && written > 0)
            return MAX(0, 1 - (double) file_extent(r, o) / written);
    }
    return 0;
}

static bool
is_compressed(const run *r, const char *file)
{
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_VARIABLE && g_str_equal(o->name, file) && o->entry.deflate >= 0 &&
            o->entry.write.bytes > 0)
            return true;
    }
    return false;
}

/* Transactions of the catalogue, which is what a commit costs beside storing data. */
static double
catalogue_s(const run *r)
{
    double seconds = 0;
    for (guint i = 0; i < r->spans->len; i++) {
        const span_total *s = r->spans->pdata[i];
        seconds += g_str_equal(s->kind, "catalog") ? s->seconds : 0;
    }
    return seconds;
}

typedef struct netcdf_sync {
    guint64 count;
    double seconds;
    double inside; /* of that, in calls of files */
    const object *last;
} netcdf_sync;

static netcdf_sync
sum_netcdf_syncs(const run *r)
{
    netcdf_sync s = {0};
    guint64 end = 0;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->op == WATCH_OP_nc_sync) {
            s.seconds += seconds_of(c->ns);
            end = c->start_ns + c->ns;
            s.last = c->object;
            s.count++;
        } else if (c->nested && c->start_ns < end) {
            s.inside += seconds_of(c->ns);
        }
    }
    s.inside = MIN(s.inside, s.seconds);
    return s;
}

/* nc_sync() stores what was not stored yet, which has to be done once in any
 * case; only the rest is saved when it is called seldom: chunks that are not
 * full and come again, and the work around, which is compression where there is
 * some, and has to be done once, too. In ESDM each one is a commit. */
static void
netcdf_syncs(run *r)
{
    const netcdf_sync s = sum_netcdf_syncs(r);
    if (s.count < 3 || s.last == NULL)
        return;
    double again = rewritten(r, s.last->name);
    double seldom = 1 - 1 / fmax((double) s.count / 10, 1);
    bool compressed = is_compressed(r, s.last->name);
    double around = (compressed ? again : 1) * (s.seconds - s.inside);
    double gain = seldom * (around + again * s.inside);
    g_autofree char *time = time_text(s.seconds);
    g_autofree char *files = time_text(s.inside);
    g_autofree char *each = time_text(s.seconds / (double) s.count);
    g_autofree char *name = short_name(s.last->name);
    double catalogue = MIN(catalogue_s(r), s.seconds);
    g_autofree char *commits = time_text(catalogue);
    if (g_str_has_prefix(s.last->name, "esdm:"))
        advise(
            r, seldom * catalogue,
            "nc_sync (nf90_sync, sync in Python) was called %" G_GUINT64_FORMAT
            " times, last for %s: %s, %s each. In ESDM each call is a commit, which others see "
            "and which is not lost. %s of that were transactions of the catalogue; a tenth of the "
            "calls would save most of these. Data have to be stored in any case.",
            s.count, name, time, each, commits);
    else if (again < MUCH_AGAIN)
        advise(r, gain,
               "nc_sync (nf90_sync, sync in Python) was called %" G_GUINT64_FORMAT
               " times, last for %s: %s, %s each, of which the file system took %s. What was not "
               "stored yet is%s stored then, and the file's tables again. With a tenth of "
               "the calls a crash would lose little.",
               s.count, name, time, each, files, compressed ? " compressed and" : "");
    else
        advise(r, gain,
               "nc_sync (nf90_sync, sync in Python) was called %" G_GUINT64_FORMAT
               " times, last for %s: %s, %s each, of which the file system took "
               "%s. %.0f %% of what "
               "was written was written again later, as chunks had changed%s. "
               "With a tenth of the calls a crash would lose little; chunks of one time step "
               "(nc_def_var_chunking) are written%s once.",
               s.count, name, time, each, files, 100 * again,
               compressed ? ", and was compressed each time" : "",
               compressed ? " and compressed" : "");
}

static void
syncs(run *r)
{
    double seconds = 0;
    guint64 count = 0;
    const object *most = NULL;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->kind != WATCH_KIND_SYNC || c->nested)
            continue;
        seconds += seconds_of(c->ns);
        most = c->object;
        count++;
    }
    if (count < 3 || most == NULL)
        return;
    char *time = time_text(seconds);
    char *each = time_text(seconds / (double) count);
    char *name = short_name(most->name);
    advise(r, seconds * (1 - 1 / fmax((double) count / 10, 1)),
           "The program waited %" G_GUINT64_FORMAT
           " times until data were stored (%s, last for %s), %s "
           "each. A tenth as often would save most of it, and lose little in a crash.",
           count, time, name, each);
    g_free(name);
    g_free(each);
    g_free(time);
}

void
syncs_advise(run *r)
{
    syncs(r);
    netcdf_syncs(r);
}
