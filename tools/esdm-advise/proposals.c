/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What is proposed, as text and as JSON. */

#include "esdm-advise/propose.h"

#include <math.h>
#include <stdio.h>

static const char *const reasons[] = {"lossless", "information", "ensemble"};

static double
ratio_of(const propose_result *result)
{
    return result->stored_bytes > 0 ? (double) result->raw_bytes / (double) result->stored_bytes
                                    : (double) NAN;
}

/* ---- text --------------------------------------------------------------------------------- */

static void
print_evidence(const propose_evidence *e)
{
    double span = e->most[0] - e->least[0];
    double mean = propose_mean(e, 0);
    (void) printf("    mean       %.7g, changes by %.2g of the range\n", mean,
                  span > 0 ? (propose_mean(e, 1) - mean) / span : 0);
    (void) printf("    deviation  %.6g, then %.6g\n", propose_deviation(e, 0),
                  propose_deviation(e, 1));
    (void) printf(
        "    extremes   %.7g to %.7g, then %.7g to %.7g; a number is off by at most %.3g\n",
        e->least[0], e->most[0], e->least[1], e->most[1], e->largest_error);
    if (isfinite(propose_slope_ratio(e)))
        (void) printf("    gradients  %.4f times what they were (root mean square)\n",
                      propose_slope_ratio(e));
    if (isfinite(propose_spectral_change(e)))
        (void) printf("    spectrum   a wavenumber's power changes by at most %.2g\n",
                      propose_spectral_change(e));
    if (isfinite(propose_dssim(e)))
        (void) printf("    DSSIM      %.6f (1: no difference)\n", propose_dssim(e));
}

static void
print_variable(const propose_study *study, const propose_variable *v)
{
    const propose_result *exact = &v->results[PROPOSE_NOTHING];
    g_autofree char *name = tool_printable(v->name);
    g_autofree char *units = v->units != NULL ? tool_printable(v->units) : NULL;
    (void) printf("%s%s%s%s\n", name, units != NULL ? " (" : "", units != NULL ? units : "",
                  units != NULL ? ")" : "");
    if (v->chosen == PROPOSE_NOTHING) {
        g_autofree char *why = propose_why(study, v, PROPOSE_NOTHING);
        (void) printf("    keep it without loss (%.2f times smaller): %s\n", ratio_of(exact), why);
    }
    for (int i = PROPOSE_REASONS - 1; i > 0; i--) {
        const propose_result *result = &v->results[i];
        if (result->accuracy == NULL)
            continue;
        g_autofree char *why = propose_why(study, v, (propose_reason) i);
        (void) printf("  %s %s, %.2f times smaller (%.2f without loss): %s\n",
                      v->chosen == (propose_reason) i ? "proposed:" : "or:", result->accuracy,
                      ratio_of(result), ratio_of(exact), why);
        print_evidence(&result->evidence);
    }
}

void
propose_print(const propose_study *study)
{
    g_autoptr(GString) wishes = g_string_new(NULL);
    for (guint i = 0; i < study->variables->len; i++) {
        const propose_variable *v = g_ptr_array_index(study->variables, i);
        print_variable(study, v);
        if (v->chosen != PROPOSE_NOTHING) {
            g_autofree char *wish =
                g_strdup_printf("%s: %s", v->name, v->results[v->chosen].accuracy);
            g_autofree char *quoted = g_shell_quote(wish);
            g_string_append_printf(wishes, " --accuracy %s", quoted);
        }
    }
    if (wishes->len > 0)
        (void) printf("\nTo store it so: esdm-cp%s SOURCE esdm:NAME\n", wishes->str);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
both(double before, double after)
{
    json_t *pair = json_array();
    tool_json_append(pair, number(before));
    tool_json_append(pair, number(after));
    return pair;
}

static json_t *
evidence_json(const propose_evidence *e)
{
    json_t *object = json_object(), *power = json_array();
    tool_json_set(object, "mean", both(propose_mean(e, 0), propose_mean(e, 1)));
    tool_json_set(object, "deviation", both(propose_deviation(e, 0), propose_deviation(e, 1)));
    tool_json_set(object, "least", both(e->least[0], e->least[1]));
    tool_json_set(object, "most", both(e->most[0], e->most[1]));
    tool_json_set(object, "largest_error", number(e->largest_error));
    tool_json_set(object, "gradients", number(propose_slope_ratio(e)));
    tool_json_set(object, "spectral_change", number(propose_spectral_change(e)));
    tool_json_set(object, "dssim", number(propose_dssim(e)));
    for (uint64_t k = 0; k < e->waves; k++)
        tool_json_append(power, both(e->power[0][k], e->power[1][k]));
    tool_json_set(object, "spectrum", power);
    return object;
}

static json_t *
information_json(const propose_study *study, const propose_variable *v)
{
    json_t *object = json_object(), *bits = json_array();
    for (uint32_t i = 0; i < v->pairs.bits; i++)
        tool_json_append(bits, json_real(v->information.of[i]));
    tool_json_set(object, "pairs", tool_json_u64(v->pairs.count));
    tool_json_set(object, "bits", bits);
    tool_json_set(object, "total", json_real(v->information.total));
    tool_json_set(object, "chance", json_real(v->information.chance));
    tool_json_set(object, "share", json_real(study->options.share));
    tool_json_set(object, "kept_mantissa_bits", tool_json_u64(v->information.kept));
    return object;
}

static json_t *
variable_json(const propose_study *study, const propose_variable *v)
{
    json_t *object = json_object(), *results = json_array(), *ensemble = json_object();
    tool_json_set(object, "name", tool_json_text(v->name));
    tool_json_set(object, "accuracy",
                  v->chosen != PROPOSE_NOTHING ? tool_json_text(v->results[v->chosen].accuracy)
                                               : json_null());
    tool_json_set(object, "from", tool_json_text(reasons[v->chosen]));
    tool_json_set(object, "information", information_json(study, v));
    tool_json_set(ensemble, "members", tool_json_u64(v->members));
    tool_json_set(ensemble, "spread", v->spread > 0 ? json_real(v->spread) : json_null());
    tool_json_set(object, "ensemble", ensemble);
    for (int i = 0; i < PROPOSE_REASONS; i++) {
        const propose_result *result = &v->results[i];
        json_t *one = json_object();
        if (result->accuracy == NULL) {
            json_decref(one);
            continue;
        }
        tool_json_set(one, "from", tool_json_text(reasons[i]));
        tool_json_set(one, "accuracy", tool_json_text(result->accuracy));
        tool_json_set(one, "raw_bytes", tool_json_u64(result->raw_bytes));
        tool_json_set(one, "stored_bytes", tool_json_u64(result->stored_bytes));
        tool_json_set(one, "evidence", evidence_json(&result->evidence));
        tool_json_append(results, one);
    }
    tool_json_set(object, "results", results);
    return object;
}

void
propose_print_json(const propose_study *study)
{
    json_t *root = json_object(), *list = json_array();
    for (guint i = 0; i < study->variables->len; i++)
        tool_json_append(list, variable_json(study, g_ptr_array_index(study->variables, i)));
    tool_json_set(root, "sources", tool_json_u64(study->advise->sources->len));
    tool_json_set(root, "proposals", list);
    tool_json_print(root);
}
