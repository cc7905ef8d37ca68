/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Models and measurements as SVG: a panel for each target and direction; seconds of a request over
 * its bytes, both logarithmic; a colour for each concurrency. */
#include <math.h>
#include <string.h>

#include "esdm-mkfs/esdm-mkfs.h"

#define PANEL_WIDTH  460.0
#define PANEL_HEIGHT 300.0
#define LEFT         62.0
#define TOP          46.0
#define PLOT_WIDTH   300.0
#define PLOT_HEIGHT  200.0
#define GREY         "#dddddd"
#define BLACK        "#000000"

/* Okabe and Ito's colours, which everybody can tell apart. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999999"};

typedef struct panel {
    const esdm_model_info *model;
    double x, y; /* of its corner */
    double log_bytes[2];
    double log_seconds[2];
} panel;

static double
at_x(const panel *p, double bytes)
{
    double share = (log10(bytes) - p->log_bytes[0]) / (p->log_bytes[1] - p->log_bytes[0]);
    return p->x + LEFT + share * PLOT_WIDTH;
}

static double
at_y(const panel *p, double seconds)
{
    double share = (log10(seconds) - p->log_seconds[0]) / (p->log_seconds[1] - p->log_seconds[0]);
    return p->y + TOP + (1 - share) * PLOT_HEIGHT;
}

/* A coordinate, with a point whatever the locale says. */
static void
put(GString *svg, const char *before, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(svg, before);
    g_string_append(svg, g_ascii_formatd(text, sizeof text, "%.1f", value));
}

static void
put_text(GString *svg, double x, double y, const char *anchor, int size, const char *text)
{
    g_autofree char *escaped = g_markup_escape_text(text, -1);
    put(svg, "<text x=\"", x);
    put(svg, "\" y=\"", y);
    g_string_append_printf(svg, "\" text-anchor=\"%s\" font-size=\"%d\">%s</text>\n", anchor, size,
                           escaped);
}

static void
put_line(GString *svg, double x1, double y1, double x2, double y2, const char *colour)
{
    put(svg, "<line x1=\"", x1);
    put(svg, "\" y1=\"", y1);
    put(svg, "\" x2=\"", x2);
    put(svg, "\" y2=\"", y2);
    g_string_append_printf(svg, "\" stroke=\"%s\"/>\n", colour);
}

static char *
seconds_text(double seconds)
{
    return seconds < 0.9e-3 ? g_strdup_printf("%g µs", round(seconds * 1e9) / 1e3)
           : seconds < 0.9  ? g_strdup_printf("%g ms", seconds * 1e3)
                            : g_strdup_printf("%g s", seconds);
}

static void
draw_axes(GString *svg, const panel *p)
{
    double bottom = p->y + TOP + PLOT_HEIGHT;
    double left = p->x + LEFT;
    for (double e = p->log_seconds[0]; e <= p->log_seconds[1] + 1e-9; e++) {
        double y = at_y(p, pow(10, e));
        g_autofree char *label = seconds_text(pow(10, e));
        put_line(svg, left, y, left + PLOT_WIDTH, y, GREY);
        put_text(svg, left - 5, y + 4, "end", 11, label);
    }
    for (double bytes = 4096; log10(bytes) <= p->log_bytes[1] + 1e-9; bytes *= 16) {
        g_autofree char *label = g_format_size_full((guint64) bytes, G_FORMAT_SIZE_IEC_UNITS);
        put_line(svg, at_x(p, bytes), p->y + TOP, at_x(p, bytes), bottom, GREY);
        put_text(svg, at_x(p, bytes), bottom + 15, "middle", 11, label);
    }
    put_line(svg, left, bottom, left + PLOT_WIDTH, bottom, BLACK);
    put_line(svg, left, p->y + TOP, left, bottom, BLACK);
}

static void
draw_curve(GString *svg, const panel *p, double concurrency, const char *colour)
{
    g_string_append_printf(svg, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
    for (int i = 0; i <= 60; i++) {
        double bytes = pow(10, p->log_bytes[0] + (p->log_bytes[1] - p->log_bytes[0]) * i / 60);
        double y = at_y(p, esdm_model_seconds(p->model, bytes, concurrency));
        put(svg, "", at_x(p, bytes));
        put(svg, ",", CLAMP(y, p->y + TOP, p->y + TOP + PLOT_HEIGHT));
        g_string_append_c(svg, ' ');
    }
    g_string_append(svg, "\"/>\n");
}

static void
draw_concurrency(GString *svg, const panel *p, double concurrency, size_t number)
{
    const char *colour = colours[number % G_N_ELEMENTS(colours)];
    double x = p->x + LEFT + PLOT_WIDTH + 12;
    double y = p->y + TOP + 12 + 16 * (double) number;
    g_autofree char *label = g_strdup_printf("%g at once", concurrency);
    draw_curve(svg, p, concurrency, colour);
    put_line(svg, x, y - 4, x + 14, y - 4, colour);
    put_text(svg, x + 18, y, "start", 11, label);
    for (size_t i = 0; i < p->model->nsamples; i++) {
        const esdm_model_sample *s = &p->model->samples[i];
        if (s->concurrency != concurrency || !(s->bytes > 0) || !(s->seconds > 0))
            continue;
        put(svg, "<circle cx=\"", at_x(p, s->bytes));
        put(svg, "\" cy=\"", at_y(p, s->seconds));
        g_string_append_printf(svg, "\" r=\"2.5\" fill=\"%s\" fill-opacity=\"0.6\"/>\n", colour);
    }
}

static void
scale(panel *p)
{
    const esdm_model_info *m = p->model;
    double bytes[2] = {4096, 65536};
    double seconds[2] = {HUGE_VAL, 0};
    for (size_t i = 0; i < m->nsamples; i++) {
        const esdm_model_sample *s = &m->samples[i];
        bytes[0] = fmin(bytes[0], fmax(s->bytes, 1));
        bytes[1] = fmax(bytes[1], s->bytes);
        seconds[0] = fmin(seconds[0], s->seconds);
        seconds[1] = fmax(seconds[1], s->seconds);
    }
    seconds[0] = fmin(seconds[0], esdm_model_seconds(m, bytes[0], 1));
    seconds[1] = fmax(seconds[1], esdm_model_seconds(m, bytes[1], 1));
    for (int i = 0; i < 2; i++)
        p->log_bytes[i] = log10(bytes[i]);
    p->log_seconds[0] = floor(log10(fmax(seconds[0], 1e-9)));
    p->log_seconds[1] = fmax(ceil(log10(fmax(seconds[1], 1e-9))), p->log_seconds[0] + 1);
}

/* The next larger concurrency that was measured; infinite after the last one. */
static double
next_concurrency(const esdm_model_info *m, double last)
{
    double next = HUGE_VAL;
    for (size_t i = 0; i < m->nsamples; i++) {
        if (m->samples[i].concurrency > last)
            next = fmin(next, m->samples[i].concurrency);
    }
    return next;
}

static void
draw_panel(GString *svg, panel *p)
{
    const esdm_model_info *m = p->model;
    g_autofree char *title = g_strdup_printf("%s: %s", m->target, m->reading ? "read" : "write");
    g_autofree char *subtitle =
        g_strdup_printf("latency %.3g ms, %.4g MB/s alone, %.4g MB/s together; wrong by %.0f %%",
                        m->latency_s * 1e3, m->stream_bytes_per_s / 1e6,
                        m->shared_bytes_per_s / 1e6, m->error * 100);
    scale(p);
    put_text(svg, p->x + LEFT, p->y + 20, "start", 14, title);
    put_text(svg, p->x + LEFT, p->y + 37, "start", 11, subtitle);
    draw_axes(svg, p);
    size_t number = 0;
    for (double c = next_concurrency(m, 0); isfinite(c) && number < 12; c = next_concurrency(m, c))
        draw_concurrency(svg, p, c, number++);
}

esdm_status
mkfs_plot(const GPtrArray *models, const char *file, esdm_error *err)
{
    g_autoptr(GString) svg = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    guint rows = (models->len + 1) / 2;
    g_string_append_printf(svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                           "font-family=\"sans-serif\">\n<title>Seconds of a request over its "
                           "bytes: measurements (dots) and model (lines)</title>\n"
                           "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                           (int) (2 * PANEL_WIDTH), (int) (rows * PANEL_HEIGHT));
    for (guint i = 0; i < models->len; i++) {
        guint column = i % 2;
        guint row = i / 2;
        panel p = {.model = g_ptr_array_index(models, i),
                   .x = column * PANEL_WIDTH,
                   .y = row * PANEL_HEIGHT};
        draw_panel(svg, &p);
    }
    g_string_append(svg, "</svg>\n");
    if (!g_file_set_contents(file, svg->str, (gssize) svg->len, &error))
        return tool_error_set(err, ESDM_EIO, "%s", error->message);
    return ESDM_OK;
}
