/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* --fit SIZE: the accuracy with which all data take no more than that. Each variable may be off by
 * the same share of its own range, which costs none of them more than the others; what is not
 * rounded (coordinates, flags) and what is smaller without loss is kept without loss. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Shares that are measured; what lies between is interpolated. */
static const char *const shares[] = {"1e-06", "3e-06", "1e-05", "3e-05", "1e-04", "3e-04",
                                     "1e-03", "3e-03", "1e-02", "3e-02", "1e-01"};
#define STEPS ((guint) G_N_ELEMENTS(shares))
/* What blocks that were not drawn may need more than those that were. */
#define CAREFUL  1.02
#define HALVINGS 50

/* What a variable takes, by the share that it may be off. */
typedef struct curve {
    const char *variable;     /* borrowed */
    double raw_bytes;         /* of all sources */
    double stored[STEPS + 1]; /* by its raw bytes; the first is without loss */
    double range;             /* the largest of a sample */
    guint samples;
    bool exact; /* it is not rounded */
} curve;

void
advise_fit_candidates(advise_study *study)
{
    advise_candidate exact = {.label = g_strdup("lossless"), .text = g_strdup("mode=archive")};
    g_array_append_val(study->candidates, exact);
    for (guint i = 0; i < STEPS; i++) {
        advise_candidate one = {.label = g_strdup_printf("range=%s", shares[i]),
                                .text = g_strdup_printf("range=%s; mode=archive", shares[i])};
        g_array_append_val(study->candidates, one);
    }
}

/* ---- curves ------------------------------------------------------------------------------- */

static void
add_samples(const advise_study *study, curve *c)
{
    double raw = 0, stored[STEPS + 1] = {0};
    for (guint i = 0; i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        if (!g_str_equal(sample->variable, c->variable))
            continue;
        raw += (double) sample->raw_bytes;
        c->samples++;
        c->exact = c->exact || sample->auxiliary;
        c->range = fmax(c->range, sample->range);
        for (guint k = 0; k <= STEPS; k++)
            stored[k] += (double) sample->results[k].stored_bytes;
    }
    for (guint k = 0; k <= STEPS; k++) {
        c->stored[k] = raw > 0 ? stored[k] / raw : 1;
        /* Looser never costs more: the tighter one is allowed, too. */
        c->stored[k] = k > 0 ? fmin(c->stored[k], c->stored[k - 1]) : c->stored[k];
    }
}

static gint
by_bytes(gconstpointer a, gconstpointer b)
{
    const curve *left = a, *right = b;
    if (left->raw_bytes != right->raw_bytes)
        return left->raw_bytes < right->raw_bytes ? 1 : -1;
    return strcmp(left->variable, right->variable);
}

static GArray *
make_curves(const advise_study *study)
{
    GHashTableIter all;
    gpointer name, bytes;
    GArray *curves = g_array_new(FALSE, TRUE, sizeof(curve));
    g_hash_table_iter_init(&all, study->raw_bytes);
    while (g_hash_table_iter_next(&all, &name, &bytes)) {
        curve c = {.variable = name, .raw_bytes = *(const double *) bytes};
        add_samples(study, &c);
        g_array_append_val(curves, c);
    }
    g_array_sort(curves, by_bytes);
    return curves;
}

/* ---- the share ---------------------------------------------------------------------------- */

/* @param share 0: without loss. */
static double
bytes_at(const curve *c, double share)
{
    double first = g_ascii_strtod(shares[0], NULL);
    if (c->exact || c->samples == 0 || share < first)
        return c->raw_bytes * c->stored[0];
    for (guint k = 1; k < STEPS; k++) {
        double low = g_ascii_strtod(shares[k - 1], NULL), high = g_ascii_strtod(shares[k], NULL);
        if (share > high)
            continue;
        double part = log(share / low) / log(high / low);
        return c->raw_bytes * c->stored[k] * pow(c->stored[k + 1] / c->stored[k], part);
    }
    return c->raw_bytes * c->stored[STEPS];
}

static double
total_at(const GArray *curves, double share)
{
    double sum = 0;
    for (guint i = 0; i < curves->len; i++)
        sum += bytes_at(&g_array_index(curves, curve, i), share);
    return sum;
}

/* The least share of three digits with which all fits; 0: without loss; < 0: none. */
static double
find_share(const GArray *curves, double bytes)
{
    double low = g_ascii_strtod(shares[0], NULL), high = g_ascii_strtod(shares[STEPS - 1], NULL);
    char text[32];
    bytes /= CAREFUL;
    if (total_at(curves, 0) <= bytes)
        return 0;
    if (total_at(curves, high) > bytes)
        return -1;
    if (total_at(curves, low) <= bytes)
        return low;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = sqrt(low * high);
        if (total_at(curves, middle) <= bytes)
            high = middle;
        else
            low = middle;
    }
    /* Rounded upwards, as a looser one fits, too. */
    return g_ascii_strtod(g_ascii_formatd(text, sizeof text, "%.2e", high * 1.005), NULL);
}

/* ---- telling ------------------------------------------------------------------------------ */

static bool
is_rounded(const curve *c, double share)
{
    return share > 0 && !c->exact && c->samples > 0;
}

/* For esdm-cp --accuracy, without the name; owned. */
static char *
accuracy_of(const curve *c, double share)
{
    char text[32];
    if (!is_rounded(c, share))
        return g_strdup("mode=archive");
    (void) g_ascii_formatd(text, sizeof text, "%.3g", share);
    return g_strdup_printf("range=%s; mode=archive", text);
}

static void
print_json(const GArray *curves, double share, uint64_t wanted)
{
    json_t *root = json_object(), *fit = json_object(), *list = json_array();
    for (guint i = 0; i < curves->len; i++) {
        const curve *c = &g_array_index(curves, curve, i);
        json_t *one = json_object();
        g_autofree char *accuracy = accuracy_of(c, share);
        tool_json_set(one, "name", tool_json_text(c->variable));
        tool_json_set(one, "accuracy", tool_json_text(accuracy));
        tool_json_set(one, "rounded", json_boolean(is_rounded(c, share)));
        tool_json_set(one, "raw_bytes", tool_json_u64((uint64_t) c->raw_bytes));
        tool_json_set(one, "bytes", tool_json_u64((uint64_t) bytes_at(c, share)));
        tool_json_set(one, "samples", tool_json_u64(c->samples));
        tool_json_set(one, "largest_error", json_real(is_rounded(c, share) ? share * c->range : 0));
        tool_json_append(list, one);
    }
    tool_json_set(fit, "wanted_bytes", tool_json_u64(wanted));
    tool_json_set(fit, "bytes", tool_json_u64((uint64_t) total_at(curves, share)));
    tool_json_set(fit, "share_of_range", json_real(share));
    tool_json_set(fit, "variables", list);
    tool_json_set(root, "fit", fit);
    tool_json_print(root);
}

static void
print_text(const GArray *curves, double share, uint64_t wanted)
{
    g_autofree char *size = tool_bytes(wanted);
    g_autofree char *all = tool_bytes((uint64_t) total_at(curves, share));
    (void) printf("%-20s %10s %10s  %-32s %s\n", "variable", "raw", "stored", "accuracy",
                  "largest error");
    for (guint i = 0; i < curves->len; i++) {
        const curve *c = &g_array_index(curves, curve, i);
        g_autofree char *name = tool_printable(c->variable);
        g_autofree char *raw = tool_bytes((uint64_t) c->raw_bytes);
        g_autofree char *stored = tool_bytes((uint64_t) bytes_at(c, share));
        g_autofree char *accuracy = accuracy_of(c, share);
        g_autofree char *error =
            is_rounded(c, share) ? g_strdup_printf("%.3g", share * c->range) : g_strdup("none");
        (void) printf("%-20s %10s %10s  %-32s %s%s\n", name, raw, stored, accuracy, error,
                      c->samples == 0 ? "; not drawn" : "");
    }
    (void) printf(
        "\nTo fit %s: about %s. esdm-cp --fit copies like that, and tells what came out.\n", size,
        all);
}

tool_exit
advise_fit_report(const advise_study *study, uint64_t wanted)
{
    g_autoptr(GArray) curves = make_curves(study);
    double share = find_share(curves, (double) wanted);
    if (share < 0) {
        g_autofree char *size = tool_bytes(wanted);
        g_autofree char *least =
            tool_bytes((uint64_t) (total_at(curves, g_ascii_strtod(shares[STEPS - 1], NULL))));
        tool_error("it does not fit %s: also when numbers are off by a tenth of their range it "
                   "takes about %s",
                   size, least);
        return TOOL_FAILED;
    }
    if (tool.json)
        print_json(curves, share, wanted);
    else
        print_text(curves, share, wanted);
    return TOOL_OK;
}
