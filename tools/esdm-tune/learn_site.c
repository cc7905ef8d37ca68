/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * esdm-tune --learn --apply: requests to targets in traces of "monitor" teach the site how long
 * they take, beyond what a calibration measures.
 */
#include <stdio.h>
#include <string.h>

#include "esdm-tune/esdm-tune.h"

/* A request, in wall clock time: clocks of nodes begin apart. */
typedef struct request {
    gint64 start_ns;
    gint64 end_ns;
    double bytes;
    double beside_ns; /* sum over others that were under way meanwhile */
} request;

/* The requests of one kind to one target. */
typedef struct way {
    char *target;
    bool reading;
    GArray *requests;
} way;

/* ---- traces -----------------------------------------------------------------------------------
 */

static void
free_way(gpointer data)
{
    way *w = data;
    g_array_unref(w->requests);
    g_free(w->target);
    g_free(w);
}

static way *
way_of(GPtrArray *ways, const char *target, bool reading)
{
    for (guint i = 0; i < ways->len; i++) {
        way *w = g_ptr_array_index(ways, i);
        if (w->reading == reading && g_str_equal(w->target, target))
            return w;
    }
    way *w = g_new0(way, 1);
    *w = (way){g_strdup(target), reading, g_array_new(FALSE, TRUE, sizeof(request))};
    g_ptr_array_add(ways, w);
    return w;
}

static void
add_line(GPtrArray *ways, const json_t *line, gint64 *offset_ns)
{
    const char *what = json_string_value(json_object_get(line, "what"));
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const char *target = json_string_value(json_object_get(line, "target"));
    if (what != NULL && g_str_equal(what, "process"))
        *offset_ns = json_integer_value(json_object_get(line, "realtime_ns")) -
                     json_integer_value(json_object_get(line, "monotonic_ns"));
    if (kind == NULL || target == NULL || json_integer_value(json_object_get(line, "status")) != 0)
        return;
    bool reading = g_str_equal(kind, "fetch");
    json_int_t ns = json_integer_value(json_object_get(line, "ns"));
    json_int_t bytes = json_integer_value(json_object_get(line, "bytes"));
    if ((!reading && !g_str_equal(kind, "append")) || ns <= 0 || bytes <= 0)
        return;
    gint64 start = json_integer_value(json_object_get(line, "start_ns")) + *offset_ns;
    const request r = {start, start + ns, (double) bytes, 0};
    g_array_append_val(way_of(ways, target, reading)->requests, r);
}

static tool_exit
load_file(GPtrArray *ways, const char *path)
{
    tool_exit result = TOOL_OK;
    gint64 offset_ns = 0;
    g_autofree char *text = tool_records_text(path, &result);
    if (text == NULL)
        return result;
    for (char *at = text; at != NULL && *at != '\0';) {
        char *end = strchr(at, '\n');
        json_t *line = tool_json_read(at, end != NULL ? end - at : -1, 0, NULL);
        if (line != NULL) /* the last one of a killed run is cut */
            add_line(ways, line, &offset_ns);
        json_decref(line);
        at = end != NULL ? end + 1 : NULL;
    }
    return TOOL_OK;
}

static tool_exit
load(GPtrArray *ways, const char *path)
{
    tool_exit result = TOOL_OK;
    if (!g_file_test(path, G_FILE_TEST_IS_DIR))
        return load_file(ways, path);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = tool_folder_names(path, &error);
    if (names == NULL) {
        tool_error("%s", error->message);
        return TOOL_NOT_FOUND;
    }
    for (guint i = 0; i < names->len && result == TOOL_OK; i++) {
        g_autofree char *file = g_build_filename(path, g_ptr_array_index(names, i), NULL);
        if (g_str_has_suffix(file, ".jsonl"))
            result = load_file(ways, file);
    }
    return result;
}

/* ---- how many were under way ------------------------------------------------------------------
 */

static gint
by_start(gconstpointer a, gconstpointer b)
{
    gint64 x = ((const request *) a)->start_ns;
    gint64 y = ((const request *) b)->start_ns;
    return x < y ? -1 : x > y;
}

/* Each pair that overlaps counts for both. */
static void
count_beside(GArray *requests)
{
    g_autoptr(GArray) running = g_array_new(FALSE, FALSE, sizeof(guint));
    g_array_sort(requests, by_start);
    for (guint i = 0; i < requests->len; i++) {
        request *r = &g_array_index(requests, request, i);
        for (guint k = running->len; k-- > 0;) {
            request *o = &g_array_index(requests, request, g_array_index(running, guint, k));
            if (o->end_ns <= r->start_ns) {
                (void) g_array_remove_index_fast(running, k);
                continue;
            }
            double both = (double) (MIN(o->end_ns, r->end_ns) - r->start_ns);
            o->beside_ns += both;
            r->beside_ns += both;
        }
        g_array_append_val(running, i);
    }
}

/* ---- the site ---------------------------------------------------------------------------------
 */

static void
tell(const way *w, const esdm_learn_result *r, json_t *list)
{
    if (tool.json) {
        tool_json_append(list,
                         json_pack("{s:s,s:s,s:I,s:f,s:f,s:b}", "target", w->target, "direction",
                                   w->reading ? "read" : "write", "requests",
                                   (json_int_t) r->requests, "error", r->error, "measured_error",
                                   r->calibrated_error, "learned", (int) r->better));
        return;
    }
    g_autofree char *name = tool_printable(w->target);
    (void) printf("%s %s: %" G_GUINT64_FORMAT
                  " %s. What was learned is off by %.0f %% for those that were held out, the "
                  "measured model by %.0f %%: placement goes by %s.\n",
                  w->reading ? "reads from" : "writes to", name, r->requests,
                  r->requests == 1 ? "request" : "requests", 100 * r->error,
                  100 * r->calibrated_error, r->better ? "what was learned" : "the measured one");
}

static tool_exit
learn_way(esdm_session *session, way *w, json_t *list)
{
    esdm_error err = {0};
    esdm_learn_result result;
    count_beside(w->requests);
    esdm_model_sample *samples = g_new0(esdm_model_sample, w->requests->len);
    for (guint i = 0; i < w->requests->len; i++) {
        const request *r = &g_array_index(w->requests, request, i);
        double ns = (double) (r->end_ns - r->start_ns);
        samples[i] = (esdm_model_sample){r->bytes, 1 + r->beside_ns / ns, ns / 1e9};
    }
    esdm_status status = esdm_session_learn(session, w->target, w->reading, samples,
                                            w->requests->len, true, &result, &err);
    g_free(samples);
    if (status == ESDM_OK)
        tell(w, &result, list);
    else if (status == ESDM_EINVAL || status == ESDM_ENOENT) /* others may have enough */
        tool_error("%s %s: %s", w->reading ? "reads from" : "writes to", w->target, err.message);
    else
        return tool_fail(status, &err);
    return status == ESDM_OK ? TOOL_OK : TOOL_FAILED;
}

tool_exit
tune_learn_site(char **paths)
{
    g_autoptr(GPtrArray) ways = g_ptr_array_new_with_free_func(free_way);
    esdm_session *session = NULL;
    esdm_error err = {0};
    tool_exit result = TOOL_OK;
    for (char **path = paths; *path != NULL && result == TOOL_OK; path++)
        result = load(ways, *path);
    if (result == TOOL_OK && ways->len == 0) {
        tool_error("there are no requests to targets in these records: it takes traces (.jsonl, "
                   ".sqlite, postgresql://…) of "
                   "programs that used the site, by ESDM_MONITOR=trace:FILE or esdm-run --records");
        return TOOL_FAILED;
    }
    if (result != TOOL_OK)
        return result;
    const esdm_session_options options = {.config_path = tool.config};
    esdm_status status = esdm_session_open(&options, &session, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    json_t *list = json_array();
    guint done = 0;
    for (guint i = 0; i < ways->len; i++)
        done += learn_way(session, g_ptr_array_index(ways, i), list) == TOOL_OK;
    esdm_session_close(session);
    if (tool.json)
        tool_json_print_list("targets", list);
    else
        json_decref(list);
    return done > 0 ? TOOL_OK : TOOL_FAILED;
}
