/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-mkfs --plan: asks the library where the output of
 * a model with that header would go, and how long it would take to store it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "esdm-mkfs/plan.h"

typedef struct plan_share {
    char *target;
    guint64 fragments;
    guint64 bytes;
    double seconds;
} plan_share;

static void
free_share(gpointer data)
{
    plan_share *s = data;
    g_free(s->target);
    g_free(s);
}

/* One line for all: what an unlimited dimension without steps means. */
static void
tell_empty(const plan_header *r)
{
    guint count = 0;
    const char *name = NULL;
    for (guint i = 0; i < r->variables->len; i++) {
        const plan_variable *v = g_ptr_array_index(r->variables, i);
        name = name == NULL ? v->empty : name;
        count += v->empty != NULL;
    }
    if (count > 0)
        tool_error("the unlimited dimension '%s' has length 0 in the header, so that %u of the "
                   "variables take nothing; say how many steps there will be with --steps NUMBER",
                   name, count);
}

/* ---- forecasts ---------------------------------------------------------------------------- */

static void
add_share(GPtrArray *shares, const char *target, guint64 fragments, guint64 bytes, double seconds)
{
    plan_share *s = NULL;
    for (guint i = 0; i < shares->len && s == NULL; i++) {
        plan_share *one = g_ptr_array_index(shares, i);
        s = g_str_equal(one->target, target) ? one : NULL;
    }
    if (s == NULL) {
        s = g_new0(plan_share, 1);
        s->target = g_strdup(target);
        g_ptr_array_add(shares, s);
    }
    s->fragments += fragments;
    s->bytes += bytes;
    s->seconds += seconds;
}

static bool
take_share(const esdm_forecast_share *share, void *user)
{
    if (share->fragments > 0)
        add_share(user, share->target, share->fragments, share->bytes, share->busy_s);
    return true;
}

static json_t *
shares_json(const GPtrArray *shares)
{
    json_t *list = json_array();
    for (guint i = 0; i < shares->len; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        json_t *entry = json_object();
        tool_json_set(entry, "target", tool_json_text(s->target));
        tool_json_set(entry, "fragments", tool_json_u64(s->fragments));
        tool_json_set(entry, "bytes", tool_json_u64(s->bytes));
        tool_json_set(entry, "busy_s", json_real(s->seconds));
        tool_json_append(list, entry);
    }
    return list;
}

static char *
shares_text(const GPtrArray *shares, guint64 bytes)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < shares->len; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        g_autofree char *target = tool_printable(s->target);
        g_string_append_printf(text, "%s%s %.0f %%", i > 0 ? ", " : "", target,
                               bytes > 0 ? 100.0 * (double) s->bytes / (double) bytes : 0);
    }
    return g_string_free(text, FALSE);
}

static void
show_line(const char *name, guint64 bytes, guint64 fragments, double seconds, guint64 copies,
          const GPtrArray *shares)
{
    g_autofree char *printable = tool_printable(name);
    g_autofree char *size = tool_bytes(bytes);
    g_autofree char *where = shares_text(shares, bytes);
    g_autofree char *time =
        isnan(seconds) ? g_strdup("not known") : g_strdup_printf("%.3g s", seconds);
    (void) printf("%-24s %10s  %8" G_GUINT64_FORMAT " fragments  %9s  %s", printable, size,
                  (guint64) fragments, time, where);
    if (copies > 1)
        (void) printf("  (%" G_GUINT64_FORMAT " copies)", (guint64) copies);
    (void) printf("\n");
}

/* How often the bytes of a variable are stored; what is gathered may be rounded. */
static guint64
copies_of(const plan_variable *v, guint64 bytes)
{
    double once = (double) v->element_bytes * (double) v->steps;
    for (guint i = 0; i < v->rank; i++)
        once *= (double) v->shape[i];
    return once > 0 ? (guint64) llround((double) bytes / once) : 1;
}

/* Sums over all variables. */
typedef struct plan_sums {
    guint64 bytes;
    guint64 fragments;
    double seconds;
    GPtrArray *shares;
    json_t *list;
} plan_sums;

static esdm_status
plan_variable_(esdm_session *session, const plan_header *r, const plan_variable *v, plan_sums *sums,
               esdm_error *err)
{
    g_autofree char *path = g_strconcat("/", v->name, NULL);
    g_autoptr(GPtrArray) shares = g_ptr_array_new_with_free_func(free_share);
    const esdm_forecast_request request = {.container = r->container,
                                           .path = path,
                                           .element_bytes = v->element_bytes,
                                           .rank = v->rank,
                                           .shape = v->shape,
                                           .writes = v->steps,
                                           .access = v->access};
    double seconds = 0;
    guint64 bytes = 0;
    guint64 fragments = 0;
    esdm_status status = esdm_forecast_write(session, &request, take_share, shares, &seconds, err);
    for (guint i = 0; i < shares->len && status == ESDM_OK; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        bytes += s->bytes;
        fragments += s->fragments;
        add_share(sums->shares, s->target, s->fragments, s->bytes, s->seconds);
    }
    if (status != ESDM_OK)
        return status;
    sums->bytes += bytes;
    sums->fragments += fragments;
    sums->seconds += seconds;
    if (!tool.json) {
        show_line(v->name, bytes, fragments, seconds, copies_of(v, bytes), shares);
        return ESDM_OK;
    }
    json_t *entry = json_object();
    tool_json_set(entry, "path", tool_json_text(v->name));
    tool_json_set(entry, "writes", tool_json_u64(v->steps));
    tool_json_set(entry, "bytes", tool_json_u64(bytes));
    tool_json_set(entry, "copies", tool_json_u64(copies_of(v, bytes)));
    tool_json_set(entry, "seconds", isnan(seconds) ? json_null() : json_real(seconds));
    tool_json_set(entry, "targets", shares_json(shares));
    tool_json_append(sums->list, entry);
    return ESDM_OK;
}

/* Adds a target whose writes were measured with the help of memory. */
static bool
note_from_memory(const esdm_model_info *info, void *user)
{
    if (!info->reading && !info->past_memory)
        g_ptr_array_add(user, g_strdup(info->target));
    return true;
}

/* What is predicted may then be true of the first gigabytes alone. */
static void
tell_from_memory(esdm_session *session, json_t *root)
{
    g_autoptr(GPtrArray) targets = g_ptr_array_new_with_free_func(g_free);
    esdm_error err = {0};
    json_t *list = json_array();
    if (esdm_session_models(session, note_from_memory, targets, &err) != ESDM_OK)
        g_ptr_array_set_size(targets, 0);
    for (guint i = 0; i < targets->len; i++) {
        const char *target = g_ptr_array_index(targets, i);
        g_autofree char *printable = tool_printable(target);
        tool_json_append(list, tool_json_text(target));
        if (!tool.json)
            (void) printf("the memory of the machine had a part in measuring target %s: more data "
                          "than it holds will take longer (--calibrate measures again)\n",
                          printable);
    }
    if (tool.json)
        tool_json_set(root, "measured_in_memory", json_incref(list));
    json_decref(list);
    tool_models_tell(session, root);
}

static esdm_status
plan_all(esdm_session *session, const plan_header *r, json_t *root, esdm_error *err)
{
    plan_sums sums = {.shares = g_ptr_array_new_with_free_func(free_share), .list = json_array()};
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < r->variables->len && status == ESDM_OK; i++)
        status = plan_variable_(session, r, g_ptr_array_index(r->variables, i), &sums, err);
    if (status == ESDM_OK && !tool.json) {
        show_line("together", sums.bytes, sums.fragments, sums.seconds, 1, sums.shares);
        if (isnan(sums.seconds))
            (void) printf("how long that takes is not known: the site was not measured; do it with "
                          "--calibrate\n");
    }
    if (tool.json) {
        tool_json_set(root, "container", tool_json_text(r->container));
        tool_json_set(root, "variables", json_incref(sums.list));
        tool_json_set(root, "bytes", tool_json_u64(sums.bytes));
        tool_json_set(root, "seconds", isnan(sums.seconds) ? json_null() : json_real(sums.seconds));
        tool_json_set(root, "targets", shares_json(sums.shares));
    }
    if (status == ESDM_OK)
        tell_from_memory(session, root);
    json_decref(sums.list);
    g_ptr_array_unref(sums.shares);
    return status;
}

esdm_status
mkfs_plan(const esdm_site_options *options, const char *file, guint64 steps, json_t *root,
          esdm_error *err)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, &error))
        return tool_error_set(err, ESDM_ENOENT, "%s", error->message);
    plan_header r = {.file = file, .at = text, .steps = steps};
    mkfs_header_init(&r);
    esdm_status status = ESDM_OK;
    if (!mkfs_header_read(&r))
        status =
            tool_error_set(err, ESDM_EINVAL, "%s", r.error != NULL ? r.error : "this is no header");
    const esdm_session_options open = {.config_path = options->config_path, .read_only = true};
    esdm_session *session = NULL;
    if (status == ESDM_OK)
        status = esdm_session_open(&open, &session, err);
    if (status == ESDM_OK)
        tell_empty(&r);
    if (status == ESDM_OK)
        status = plan_all(session, &r, root, err);
    esdm_session_close(session);
    mkfs_header_clear(&r);
    return status;
}
