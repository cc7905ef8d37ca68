/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The page: the sentences of the report and pictures (SVG), in one file that refers to no other. */
#include "esdm-explain/esdm-explain.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH  860
#define HEIGHT 220
#define LEFT   70
#define BINS   120
#define DOTS   6000 /* calls in the picture of times; of more, an even choice */

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:920px;padding:0 "
    "1em;color:#1c2430}"
    "h1{font-size:1.3em}h2{font-size:1.05em;margin-top:2em}code{background:#eef1f5;padding:.1em "
    ".3em}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:right;padding:.2em "
    ".6em;border-bottom:1px "
    "solid #dde3ea}td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}"
    "td:not(:first-child):not(:last-child){white-space:nowrap}.s td:last-child{width:40%}"
    ".s div{background:#8a97a5;height:.9em}"
    "li{margin:.6em 0}svg{width:100%;height:auto}svg text{font:12px "
    "system-ui,sans-serif;fill:#51606f}"
    ".r{fill:#2f74b5}.w{fill:#c8642b}.o{fill:#8a97a5}.n{color:#51606f}";

static void
put_text(FILE *out, const char *before, const char *text, const char *after)
{
    char *safe = tool_html(text);
    (void) fprintf(out, "%s%s%s", before, safe, after);
    g_free(safe);
}

static bool
is_read(const call *c)
{
    return c->kind == WATCH_KIND_READ;
}

static bool
is_data(const call *c)
{
    return (c->kind == WATCH_KIND_READ || c->kind == WATCH_KIND_WRITE) && c->bytes > 0;
}

/* ---- bytes over time ---------------------------------------------------------------------------
 */

static void
put_rates(FILE *out, const run *r)
{
    double bins[2][BINS] = {{0}};
    double most = 0;
    double length = MAX(seconds_of(r->end_ns - r->start_ns), 1e-9);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (!is_data(c) || c->start_ns < r->start_ns)
            continue;
        int bin = (int) (seconds_of(c->start_ns - r->start_ns) / length * BINS);
        double *sum = &bins[is_read(c) ? 0 : 1][CLAMP(bin, 0, BINS - 1)];
        *sum += (double) c->bytes;
        most = MAX(most, *sum);
    }
    char *top = bytes_text(most / (length / BINS));
    char *end = time_text(length);
    (void) fprintf(
        out,
        "<h2>Bytes over time</h2><p class=n>Blue: read, orange: written; the highest bar is %s a "
        "second.</p><svg viewBox=\"0 0 %d %d\" role=img>",
        top, WIDTH, HEIGHT);
    double step = (double) (WIDTH - LEFT) / BINS;
    for (int b = 0; b < BINS && most > 0; b++) {
        for (int w = 0; w < 2; w++) {
            double height = bins[w][b] / most * (HEIGHT - 40);
            if (height > 0)
                (void) fprintf(out, "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f></rect>",
                               w ? "w" : "r", LEFT + b * step + w * step / 2, HEIGHT - 25 - height,
                               step / 2, height);
        }
    }
    (void) fprintf(out,
                   "<text x=%d y=%d>0 s</text><text x=%d y=%d text-anchor=end>%s</text></svg>\n",
                   LEFT, HEIGHT - 8, WIDTH, HEIGHT - 8, end);
    g_free(end);
    g_free(top);
}

/* ---- times of calls ----------------------------------------------------------------------------
 */

static void
put_decades(FILE *out, double low, double high)
{
    for (int d = (int) ceil(low); d <= (int) floor(high); d++) {
        double y = HEIGHT - 25 - (d - low) / (high - low) * (HEIGHT - 40);
        char *text = time_text(pow(10, d));
        (void) fprintf(
            out,
            "<line x1=%d x2=%d y1=%.1f y2=%.1f stroke=\"#dde3ea\"></line><text x=%d y=%.1f "
            "text-anchor=end>%s</text>",
            LEFT, WIDTH, y, y, LEFT - 6, y + 4, text);
        g_free(text);
    }
}

static void
put_times(FILE *out, const run *r)
{
    double low = 9;
    double high = -9;
    guint count = 0;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (!is_data(c) || c->ns == 0)
            continue;
        double y = log10(seconds_of(c->ns));
        low = MIN(low, y);
        high = MAX(high, y);
        count++;
    }
    if (count == 0)
        return;
    low = floor(low);
    high = MAX(ceil(high), low + 1);
    (void) fprintf(out,
                   "<h2>How long calls took</h2><p class=n>Each dot is a call; upwards it takes "
                   "longer (each line "
                   "ten times as long).</p><svg viewBox=\"0 0 %d %d\" role=img>",
                   WIDTH, HEIGHT);
    put_decades(out, low, high);
    double length = MAX(seconds_of(r->end_ns - r->start_ns), 1e-9);
    guint each = count / DOTS + 1;
    guint n = 0;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (!is_data(c) || c->ns == 0 || c->start_ns < r->start_ns || n++ % each != 0)
            continue;
        double x = LEFT + seconds_of(c->start_ns - r->start_ns) / length * (WIDTH - LEFT - 4);
        double y = HEIGHT - 25 - (log10(seconds_of(c->ns)) - low) / (high - low) * (HEIGHT - 40);
        (void) fprintf(out, "<circle class=%s cx=%.1f cy=%.1f r=1.6 fill-opacity=.6></circle>",
                       is_read(c) ? "r" : "w", x, y);
    }
    (void) fputs("</svg>\n", out);
}

/* ---- where in the file -------------------------------------------------------------------------
 */

static const object *
busiest(const run *r)
{
    const object *found = NULL;
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind == WATCH_FILE && o->reads.calls + o->writes.calls > 1 &&
            (found == NULL ||
             o->entry.read.ns + o->entry.write.ns > found->entry.read.ns + found->entry.write.ns))
            found = o;
    }
    return found;
}

static void
put_places(FILE *out, const run *r)
{
    const object *o = busiest(r);
    guint64 size = 0;
    guint count = 0;
    for (guint i = 0; i < r->calls->len && o != NULL; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object != o || !is_data(c) || c->position == WATCH_NOWHERE)
            continue;
        size = MAX(size, c->position + c->bytes);
        count++;
    }
    if (count == 0)
        return;
    char *name = short_name(o->name);
    char *end = bytes_text((double) size);
    put_text(out, "<h2>Where in ", name, "</h2>");
    (void) fprintf(
        out,
        "<p class=n>Upwards: position in the file. A line that rises evenly is read or written in "
        "order; a cloud is random.</p><svg viewBox=\"0 0 %d %d\" role=img><text x=%d y=14 "
        "text-anchor=end>%s</text>",
        WIDTH, HEIGHT, LEFT - 6, end);
    double length = MAX(seconds_of(r->end_ns - r->start_ns), 1e-9);
    guint each = count / DOTS + 1;
    guint n = 0;
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object != o || !is_data(c) || c->position == WATCH_NOWHERE ||
            c->start_ns < r->start_ns || n++ % each != 0)
            continue;
        double x = LEFT + seconds_of(c->start_ns - r->start_ns) / length * (WIDTH - LEFT - 4);
        double height = MAX((double) c->bytes / (double) size * (HEIGHT - 40), 1.5);
        double y = HEIGHT - 25 - (double) c->position / (double) size * (HEIGHT - 40) - height;
        (void) fprintf(out, "<rect class=%s x=%.1f y=%.1f width=2 height=%.1f></rect>",
                       is_read(c) ? "r" : "w", x, y, height);
    }
    (void) fputs("</svg>\n", out);
    g_free(end);
    g_free(name);
}

/* ---- words and tables --------------------------------------------------------------------------
 */

static void
put_advice(FILE *out, const run *r)
{
    (void) fputs("<h2>What would help most</h2><ol>", out);
    for (guint i = 0; i < r->advice->len && i < 3; i++) {
        const advice *a = r->advice->pdata[i];
        char *gain = time_text(a->gain_s);
        put_text(out, "<li>", a->text, "");
        (void) fprintf(out, " <b>Could save up to %s.</b></li>", gain);
        g_free(gain);
    }
    (void) fputs(r->advice->len > 0 ? "</ol>\n" : "</ol><p>Nothing that is worth it.</p>\n", out);
}

static void
put_row(FILE *out, const char *name, const char *a, const char *b, const char *c, const char *d)
{
    put_text(out, "<tr><td>", name, "</td>");
    put_text(out, "<td>", a, "</td>");
    put_text(out, "<td>", b, "</td>");
    put_text(out, "<td>", c, "</td>");
    put_text(out, "<td>", d, "</td></tr>\n");
}

/* Each with a bar as long as its share. */
static void
put_shares(FILE *out, const run *r)
{
    time_share shares[TIME_SHARES];
    guint count = time_shares(r, shares);
    g_autofree char *waited = waiting_text(r);
    g_autofree char *closing = closing_text(r);
    (void) fprintf(out, "<h2>Where the time went%s</h2><table class=s>\n", time_shares_of_all(r));
    for (guint i = 0; i < count; i++) {
        double share = shares[i].seconds / MAX(time_of_shares(r), 1e-9);
        g_autofree char *time = time_text(shares[i].seconds);
        put_text(out, "<tr><td>", shares[i].what, "</td>");
        put_text(out, "<td>", time, "</td>");
        (void) fprintf(out, "<td>%.0f %%</td><td><div style=\"width:%.1f%%\"></div></td></tr>\n",
                       100 * share, 100 * MIN(share, 1));
    }
    (void) fputs("</table>\n", out);
    if (count == 0)
        (void) fputs("<p>Input and output took next to nothing of it.</p>\n", out);
    if (closing != NULL)
        put_text(out, "<p>", closing, "</p>\n");
    if (waited != NULL)
        put_text(out, "<p>", waited, "</p>\n");
}

static bool
has_kind(const run *r, guint32 kind)
{
    for (guint i = 0; i < r->objects->len; i++) {
        if (((const object *) r->objects->pdata[i])->kind == kind)
            return true;
    }
    return false;
}

static void
put_objects(FILE *out, const run *r, guint32 kind, const char *title)
{
    guint rows = 0;
    if (kind == WATCH_MPI_FILE && !has_kind(r, kind))
        return;
    (void) fprintf(out, "<h2>%s</h2><table><tr><th>name<th>read<th>written<th>time<th>how</tr>\n",
                   title);
    for (guint i = 0; i < r->objects->len && rows < 40; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind != kind || o->entry.read.calls + o->entry.write.calls == 0)
            continue;
        char *name = o->variable != NULL ? g_strdup_printf("%s in %s", o->variable, o->name)
                                         : g_strdup(o->name);
        char *a = bytes_text((double) o->entry.read.bytes);
        char *b = bytes_text((double) o->entry.write.bytes);
        char *c = time_text(seconds_of(o->entry.read.ns + o->entry.write.ns));
        char *d =
            o->variable != NULL ? g_strdup_printf("%" G_GUINT64_FORMAT " calls",
                                                  o->entry.read.calls + o->entry.write.calls)
            : kind == WATCH_MPI_FILE
                ? ranks_text(o)
                : pattern_text(o->entry.read.ns >= o->entry.write.ns ? &o->reads : &o->writes);
        put_row(out, name, a, b, c, d);
        g_free(d);
        g_free(c);
        g_free(b);
        g_free(a);
        g_free(name);
        rows++;
    }
    (void) fputs("</table>\n", out);
}

static void
put_classes(FILE *out, const char *title, const GPtrArray *classes)
{
    if (classes->len == 0)
        return;
    (void) fprintf(
        out, "<h2>%s</h2><table><tr><th>likely cause<th>calls<th>moved<th>time<th>because</tr>\n",
        title);
    for (guint i = 0; i < classes->len; i++) {
        const time_class *c = classes->pdata[i];
        char *calls = g_strdup_printf("%" G_GUINT64_FORMAT, c->calls);
        char *bytes = bytes_text((double) c->bytes);
        char *time = time_text(c->seconds);
        put_row(out, c->cause, calls, bytes, time, c->because);
        g_free(time);
        g_free(bytes);
        g_free(calls);
    }
    (void) fputs("</table>\n", out);
}

static void
put_page(FILE *out, const run *r)
{
    char *time = time_text(seconds_of(r->end_ns - r->start_ns));
    char *in = bytes_text((double) r->read_bytes);
    char *to = bytes_text((double) r->write_bytes);
    (void) fprintf(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><title>Input and output</title><style>%s"
        "</style>\n",
        style);
    put_text(out, "<h1><code>", r->command, "</code></h1>");
    (void) fprintf(out,
                   "<p>%u process%s in %s read %s in %" G_GUINT64_FORMAT
                   " calls and wrote %s in %" G_GUINT64_FORMAT ".</p>\n",
                   r->processes->len, r->processes->len > 1 ? "es" : "", time, in, r->read_calls,
                   to, r->write_calls);
    put_advice(out, r);
    put_shares(out, r);
    put_rates(out, r);
    put_times(out, r);
    put_places(out, r);
    put_classes(out, "Why reads took as long as they did", r->read_classes);
    put_classes(out, "Why writes took as long as they did", r->write_classes);
    put_objects(out, r, WATCH_FILE, r->engine ? "Targets" : "Files");
    put_objects(out, r, WATCH_MPI_FILE, "Files by MPI");
    put_objects(out, r, WATCH_VARIABLE, "Variables");
    g_free(to);
    g_free(in);
    g_free(time);
}

tool_exit
write_page(const run *r, const char *file)
{
    FILE *out = fopen(file, "we");
    if (out != NULL)
        put_page(out, r);
    bool failed = out == NULL || ferror(out) != 0;
    if (out != NULL && fclose(out) != 0)
        failed = true;
    if (failed)
        tool_error("%s: %s", file, g_strerror(errno));
    return failed ? TOOL_FAILED : TOOL_OK;
}
