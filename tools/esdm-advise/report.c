/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Estimates from samples: tables, JSON and a plot. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the samples of a variable, or of all, say of a candidate. */
typedef struct summary {
    guint samples, refused;
    advise_estimate share; /* stored bytes by raw bytes */
    double write_mib_s, read_mib_s;
    double largest_error;
    double largest_relative; /* of the sample's range */
    bool exact;
} summary;

/* ---- sums ----------------------------------------------------------------------------------- */

/* @param variable NULL: all. */
static summary
summarise(const advise_study *study, const char *variable, guint candidate)
{
    summary sum = {.exact = true};
    double raw = 0, write_s = 0, read_s = 0;
    for (guint i = 0; i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        const advise_result *result = &sample->results[candidate];
        if (variable != NULL && !g_str_equal(variable, sample->variable))
            continue;
        sum.samples++;
        sum.refused += result->refused;
        sum.exact = sum.exact && result->exact;
        sum.largest_error = fmax(sum.largest_error, result->largest_error);
        if (sample->range > 0)
            sum.largest_relative =
                fmax(sum.largest_relative, result->largest_error / sample->range);
        raw += (double) sample->raw_bytes;
        write_s += result->write_s;
        read_s += result->read_s;
    }
    sum.share = advise_share(study, variable, candidate);
    sum.write_mib_s = raw / write_s / 0x1p20;
    sum.read_mib_s = raw / read_s / 0x1p20;
    return sum;
}

/* Names of the variables that were sampled, in order; borrowed. */
static GPtrArray *
variables_of(const advise_study *study)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        if (!g_ptr_array_find_with_equal_func(names, sample->variable, g_str_equal, NULL))
            g_ptr_array_add(names, sample->variable);
    }
    g_ptr_array_sort(names, tool_by_text);
    return names;
}

static const advise_candidate *
candidate_at(const advise_study *study, guint i)
{
    return &g_array_index(study->candidates, advise_candidate, i);
}

/* Per year and in all, of so many bytes. */
static double
cost_of(const advise_price *price, double bytes)
{
    return bytes / 1e12 * price->per_tb_year * price->years;
}

/* ---- tables ------------------------------------------------------------------------------- */

static char *
ratio_text(advise_estimate share)
{
    if (!(share.mean > 0))
        return g_strdup("-");
    if (!isfinite(share.half))
        return g_strdup_printf("%.2f (one sample)", 1 / share.mean);
    double low = 1 / (share.mean + share.half);
    if (share.half >= share.mean)
        return g_strdup_printf("%.2f (%.2f or more)", 1 / share.mean, low);
    return g_strdup_printf("%.2f (%.2f to %.2f)", 1 / share.mean, low,
                           1 / (share.mean - share.half));
}

static void
print_row(const char *name, const summary *sum, const char *label)
{
    g_autofree char *printable = tool_printable(name);
    g_autofree char *ratio = ratio_text(sum->share);
    g_autofree char *error =
        sum->exact
            ? g_strdup("none")
            : g_strdup_printf("%.3g (%.2g of range)", sum->largest_error, sum->largest_relative);
    (void) printf("%-20s %7u  %-22s %-24s %7.0f %7.0f  %s%s\n", printable, sum->samples, label,
                  ratio, sum->write_mib_s, sum->read_mib_s, error,
                  sum->refused > 0 ? "; not for this variable: kept without loss" : "");
}

/* Whether a block was drawn more than once. */
static bool
has_repeats(const advise_study *study)
{
    for (guint i = 0; i < study->samples->len; i++)
        if (((const advise_sample *) g_ptr_array_index(study->samples, i))->again)
            return true;
    return false;
}

static void
print_totals(const advise_study *study, const advise_price *price)
{
    g_autofree char *now = tool_bytes(study->total_bytes);
    (void) printf(study->sources->len == 1 ? "\n%u source takes %s now"
                                           : "\nAll %u sources take %s now",
                  study->sources->len, now);
    if (price->per_tb_year > 0)
        (void) printf(", %.2f %s in %g years", cost_of(price, (double) study->total_bytes),
                      price->currency, price->years);
    (void) printf(". With\n");
    for (guint i = 0; i < study->candidates->len; i++) {
        advise_estimate total = advise_total(study, i);
        double bytes = total.mean * (double) study->total_bytes;
        double half = total.half * (double) study->total_bytes;
        g_autofree char *middle = tool_bytes((uint64_t) bytes);
        g_autofree char *low = tool_bytes((uint64_t) fmax(bytes - half, 0));
        g_autofree char *high = isfinite(half) ? tool_bytes((uint64_t) (bytes + half)) : NULL;
        (void) printf("  %-22s %s", candidate_at(study, i)->label, middle);
        if (isfinite(half))
            (void) printf(" (%s to %s)", low, high);
        else
            (void) printf(" (one sample tells no interval)");
        if (price->per_tb_year > 0)
            (void) printf(", %.2f %s", cost_of(price, bytes), price->currency);
        (void) printf("\n");
    }
    if (study->samples->len >= study->blocks && study->missed == 0 && !has_repeats(study)) {
        (void) printf("All %u blocks of up to %g MiB were measured; intervals are for what depends "
                      "on how data are cut.\n",
                      study->samples->len, (double) study->block_bytes / 0x1p20);
        return;
    }
    (void) printf("Intervals hold with a probability of %g %%, from %u samples of up to %g MiB.\n",
                  study->confidence * 100, study->samples->len,
                  (double) study->block_bytes / 0x1p20);
}

void
advise_print(const advise_study *study, const advise_price *price)
{
    g_autoptr(GPtrArray) names = variables_of(study);
    (void) printf("%-20s %7s  %-22s %-24s %7s %7s  %s\n", "variable", "samples", "accuracy",
                  "ratio to raw", "write", "read", "largest error");
    (void) printf("%-20s %7s  %-22s %-24s %7s %7s\n", "", "", "", "", "MiB/s", "MiB/s");
    for (guint v = 0; v < names->len; v++) {
        for (guint i = 0; i < study->candidates->len; i++) {
            summary sum = summarise(study, g_ptr_array_index(names, v), i);
            print_row(i == 0 ? g_ptr_array_index(names, v) : "", &sum,
                      candidate_at(study, i)->label);
        }
    }
    print_totals(study, price);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
estimate_json(advise_estimate value)
{
    json_t *object = json_object();
    tool_json_set(object, "estimate", number(value.mean));
    tool_json_set(object, "low", number(fmax(value.mean - value.half, 0)));
    tool_json_set(object, "high", number(value.mean + value.half));
    return object;
}

static json_t *
summary_json(const advise_study *study, const char *variable, guint i)
{
    summary sum = summarise(study, variable, i);
    json_t *object = json_object();
    tool_json_set(object, "accuracy", tool_json_text(candidate_at(study, i)->label));
    tool_json_set(object, "samples", tool_json_u64(sum.samples));
    tool_json_set(object, "not_applicable", tool_json_u64(sum.refused));
    tool_json_set(object, "share_of_raw", estimate_json(sum.share));
    tool_json_set(object, "ratio", number(1 / sum.share.mean));
    tool_json_set(object, "write_mib_per_s", number(sum.write_mib_s));
    tool_json_set(object, "read_mib_per_s", number(sum.read_mib_s));
    tool_json_set(object, "exact", json_boolean(sum.exact));
    tool_json_set(object, "largest_error", number(sum.largest_error));
    tool_json_set(object, "largest_error_of_range", number(sum.largest_relative));
    return object;
}

static json_t *
total_json(const advise_study *study, const advise_price *price, guint i)
{
    json_t *object = json_object();
    advise_estimate total = advise_total(study, i);
    advise_estimate bytes = {.mean = total.mean * (double) study->total_bytes,
                             .half = total.half * (double) study->total_bytes};
    tool_json_set(object, "accuracy", tool_json_text(candidate_at(study, i)->label));
    tool_json_set(object, "share_of_now", estimate_json(total));
    tool_json_set(object, "bytes", estimate_json(bytes));
    if (price->per_tb_year > 0)
        tool_json_set(object, "cost",
                      estimate_json((advise_estimate){.mean = cost_of(price, bytes.mean),
                                                      .half = cost_of(price, bytes.half)}));
    return object;
}

void
advise_print_json(const advise_study *study, const advise_price *price)
{
    g_autoptr(GPtrArray) names = variables_of(study);
    json_t *root = json_object(), *variables = json_array(), *totals = json_array();
    tool_json_set(root, "sources", tool_json_u64(study->sources->len));
    tool_json_set(root, "bytes", tool_json_u64(study->total_bytes));
    tool_json_set(root, "samples", tool_json_u64(study->samples->len));
    tool_json_set(root, "unreadable", tool_json_u64(study->unreadable));
    tool_json_set(root, "missed", tool_json_u64(study->missed));
    tool_json_set(root, "confidence", json_real(study->confidence));
    tool_json_set(root, "cut_share", json_real(advise_cut_share(study)));
    if (price->per_tb_year > 0)
        tool_json_set(root, "cost_now", number(cost_of(price, (double) study->total_bytes)));
    for (guint v = 0; v < names->len; v++) {
        json_t *variable = json_object(), *results = json_array();
        const char *name = g_ptr_array_index(names, v);
        tool_json_set(variable, "name", tool_json_text(name));
        for (guint i = 0; i < study->candidates->len; i++)
            tool_json_append(results, summary_json(study, name, i));
        tool_json_set(variable, "results", results);
        tool_json_append(variables, variable);
    }
    for (guint i = 0; i < study->candidates->len; i++)
        tool_json_append(totals, total_json(study, price, i));
    tool_json_set(root, "variables", variables);
    tool_json_set(root, "totals", totals);
    tool_json_print(root);
}

/* ---- plot --------------------------------------------------------------------------------- */

#define BAR_HEIGHT 22
#define BAR_LEFT   180
#define BAR_WIDTH  420.0

static void
put_bar(GString *svg, const char *label, double share, double half, double widest, int row)
{
    g_autofree char *escaped = g_markup_escape_text(label, -1);
    int y = 40 + row * (BAR_HEIGHT + 8);
    int width = (int) (BAR_WIDTH * fmin(share / widest, 1));
    g_string_append_printf(
        svg,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#0072b2\"/>\n",
        BAR_LEFT - 8, y + 16, escaped, BAR_LEFT, y, width, BAR_HEIGHT);
    if (isfinite(half) && half > 0) {
        int low = BAR_LEFT + (int) (BAR_WIDTH * fmax(share - half, 0) / widest);
        int high = BAR_LEFT + (int) (BAR_WIDTH * fmin((share + half) / widest, 1));
        g_string_append_printf(
            svg, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#000000\"/>\n", low,
            y + BAR_HEIGHT / 2, high, y + BAR_HEIGHT / 2);
    }
    g_string_append_printf(svg, "<text x=\"%d\" y=\"%d\">%.1f %%</text>\n", BAR_LEFT + width + 8,
                           y + 16, 100 * share);
}

esdm_status
advise_plot(const advise_study *study, const char *file, esdm_error *err)
{
    g_autoptr(GError) problem = NULL;
    GString *svg = g_string_new(NULL);
    int rows = (int) study->candidates->len + 1;
    double widest = 1;
    for (guint i = 0; i < study->candidates->len; i++)
        widest = fmax(widest, advise_total(study, i).mean);
    g_string_append_printf(svg,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%d\" "
                           "font-family=\"sans-serif\" font-size=\"13\">\n"
                           "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                           "<text x=\"%d\" y=\"22\">Bytes stored, of those stored now</text>\n",
                           60 + rows * (BAR_HEIGHT + 8), BAR_LEFT);
    put_bar(svg, "now", 1, 0, widest, 0);
    for (guint i = 0; i < study->candidates->len; i++) {
        advise_estimate total = advise_total(study, i);
        put_bar(svg, candidate_at(study, i)->label, total.mean, total.half, widest, (int) i + 1);
    }
    g_string_append(svg, "</svg>\n");
    esdm_status status = ESDM_OK;
    if (!g_file_set_contents(file, svg->str, (gssize) svg->len, &problem))
        status = tool_error_set(err, ESDM_EIO, "%s", problem->message);
    (void) g_string_free(svg, TRUE);
    return status;
}
