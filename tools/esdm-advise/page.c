/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What is proposed as a page: one file with pictures (SVG) that refers to no other. */

#include "esdm-advise/propose.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define WIDTH  420
#define HEIGHT 200
#define LEFT   46
#define BOTTOM 24

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:920px;padding:0 1em;"
    "color:#1c2430}h1{font-size:1.3em}h2{font-size:1.05em;margin-top:2em}"
    "code{background:#eef1f5;padding:.1em .3em}table{border-collapse:collapse}"
    "td,th{text-align:right;padding:.2em .8em;border-bottom:1px solid #dde3ea}"
    "td:first-child,th:first-child{text-align:left}svg{width:440px;max-width:100%;height:auto}"
    "svg text{font:11px system-ui,sans-serif;fill:#51606f}.n{color:#51606f}";

static void
open_picture(FILE *out, const char *title)
{
    (void) fprintf(out,
                   "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">"
                   "<text x=\"%d\" y=\"12\">%s</text>"
                   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#8a97a5\"/>",
                   WIDTH, HEIGHT, title, LEFT, title, LEFT, HEIGHT - BOTTOM, WIDTH,
                   HEIGHT - BOTTOM);
}

/* ---- pictures ----------------------------------------------------------------------------- */

static const char *
colour_of(const propose_variable *v, uint32_t bit)
{
    uint32_t head = v->pairs.bits == 32 ? 9 : 12;
    return bit < head ? "#8a97a5" : bit < head + v->information.kept ? "#2f74b5" : "#c8642b";
}

static void
put_information(FILE *out, const propose_variable *v)
{
    double most = 0, step = (double) (WIDTH - LEFT) / v->pairs.bits;
    for (uint32_t i = 0; i < v->pairs.bits; i++)
        most = fmax(most, v->information.of[i]);
    open_picture(out, "information of each bit: sign and exponent, kept, not kept");
    (void) fprintf(out, "<text x=\"%d\" y=\"30\" text-anchor=\"end\">%.2g</text>", LEFT - 4, most);
    for (uint32_t i = 0; i < v->pairs.bits && most > 0; i++) {
        double height = v->information.of[i] / most * (HEIGHT - BOTTOM - 26);
        if (height > 0)
            (void) fprintf(
                out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>",
                LEFT + i * step, HEIGHT - BOTTOM - height, step * 0.8, height, colour_of(v, i));
    }
    for (uint32_t i = 0; i < v->pairs.bits; i += 8)
        (void) fprintf(out, "<text x=\"%.1f\" y=\"%d\">%u</text>", LEFT + i * step, HEIGHT - 8,
                       i + 1);
    (void) fputs("</svg>\n", out);
}

/* Lowest and highest power that is not 0, as decades. */
static bool
decades_of(const propose_evidence *e, double *ret_low, double *ret_high)
{
    double low = INFINITY, high = -INFINITY;
    for (int w = 0; w < 2; w++) {
        for (uint64_t k = 0; k < e->waves; k++) {
            if (!(e->power[w][k] > 0))
                continue;
            low = fmin(low, log10(e->power[w][k]));
            high = fmax(high, log10(e->power[w][k]));
        }
    }
    *ret_low = fmax(floor(low), ceil(high) - 12);
    *ret_high = fmax(ceil(high), *ret_low + 1);
    return e->waves > 1 && high > -INFINITY;
}

static void
put_spectra(FILE *out, const propose_evidence *e)
{
    static const char *const colours[] = {"#8a97a5", "#c8642b"};
    double low, high;
    if (!decades_of(e, &low, &high))
        return;
    open_picture(out, "power by wavenumber: before (grey, wide) and after");
    (void) fprintf(out,
                   "<text x=\"%d\" y=\"30\" text-anchor=\"end\">1e%.0f</text><text x=\"%d\" "
                   "y=\"%d\" text-anchor=\"end\">1e%.0f</text>",
                   LEFT - 4, high, LEFT - 4, HEIGHT - BOTTOM, low);
    for (int w = 0; w < 2; w++) {
        (void) fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" points=\"",
                       colours[w], w == 0 ? 4.0 : 1.2);
        for (uint64_t k = 0; k < e->waves; k++) {
            double y = fmax(log10(fmax(e->power[w][k], 1e-300)), low);
            (void) fprintf(out, "%.1f,%.1f ",
                           LEFT + log((double) k + 1) / log((double) e->waves) * (WIDTH - LEFT - 4),
                           HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - BOTTOM - 26));
        }
        (void) fputs("\"/>", out);
    }
    (void) fprintf(out,
                   "<text x=\"%d\" y=\"%d\">1</text><text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">%" G_GUINT64_FORMAT "</text></svg>\n",
                   LEFT, HEIGHT - 8, WIDTH, HEIGHT - 8, e->waves);
}

/* ---- tables ------------------------------------------------------------------------------- */

static void
put_pair(FILE *out, const char *name, double before, double after)
{
    (void) fprintf(out, "<tr><td>%s<td>%.7g<td>%.7g<td>%.2g</tr>\n", name, before, after,
                   after - before);
}

static void
put_share(FILE *out, const char *name, double value)
{
    if (isfinite(value))
        (void) fprintf(out, "<tr><td>%s<td><td>%.6g<td></tr>\n", name, value);
}

static void
put_result(FILE *out, const propose_study *study, const propose_variable *v, propose_reason reason)
{
    const propose_result *r = &v->results[reason];
    const propose_result *exact = &v->results[PROPOSE_NOTHING];
    const propose_evidence *e = &r->evidence;
    g_autofree char *why = propose_why(study, v, reason);
    (void) fprintf(
        out, "<p>%s<code>%s</code>: %.2f times smaller than raw (without loss %.2f); %s.</p>\n",
        v->chosen == reason ? "<b>Proposed</b> " : "", r->accuracy,
        (double) r->raw_bytes / (double) MAX(r->stored_bytes, 1),
        (double) exact->raw_bytes / (double) MAX(exact->stored_bytes, 1), why);
    (void) fputs("<table><tr><th><th>before<th>after<th>change</tr>\n", out);
    put_pair(out, "mean", propose_mean(e, 0), propose_mean(e, 1));
    put_pair(out, "standard deviation", propose_deviation(e, 0), propose_deviation(e, 1));
    put_pair(out, "least", e->least[0], e->least[1]);
    put_pair(out, "most", e->most[0], e->most[1]);
    put_share(out, "largest error", e->largest_error);
    put_share(out, "gradients, of what they were", propose_slope_ratio(e));
    put_share(out, "largest change of a wavenumber's power", propose_spectral_change(e));
    put_share(out, "DSSIM (1: no difference)", propose_dssim(e));
    (void) fputs("</table>\n", out);
    put_spectra(out, e);
}

static void
put_variable(FILE *out, const propose_study *study, const propose_variable *v)
{
    g_autofree char *name = tool_html(v->name);
    g_autofree char *units = tool_html(v->units != NULL ? v->units : "");
    (void) fprintf(out, "<h2>%s <span class=\"n\">%s</span></h2>\n", name, units);
    if (v->chosen == PROPOSE_NOTHING) {
        g_autofree char *why = propose_why(study, v, PROPOSE_NOTHING);
        (void) fprintf(out, "<p>Keep it without loss: %s.</p>\n", why);
    }
    put_information(out, v);
    for (int i = PROPOSE_REASONS - 1; i > 0; i--)
        if (v->results[i].accuracy != NULL)
            put_result(out, study, v, (propose_reason) i);
}

tool_exit
propose_page(const propose_study *study, const char *file)
{
    FILE *out = fopen(file, "we");
    if (out != NULL) {
        (void) fprintf(
            out,
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Proposed "
            "accuracies</title><style>%s</style>\n<h1>Proposed accuracies</h1>\n"
            "<p class=\"n\">%u source%s; of each variable up to %u blocks were looked at, "
            "stored and read again.</p>\n",
            style, study->advise->sources->len, study->advise->sources->len == 1 ? "" : "s",
            PROPOSE_BLOCKS);
        for (guint i = 0; i < study->variables->len; i++)
            put_variable(out, study, g_ptr_array_index(study->variables, i));
        (void) fputs("</html>\n", out);
    }
    bool failed = out == NULL || ferror(out) != 0;
    if (out != NULL && fclose(out) != 0)
        failed = true;
    if (failed)
        tool_error("%s: %s", file, g_strerror(errno));
    return failed ? TOOL_FAILED : TOOL_OK;
}
