/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A short record of what changed, for those who used the data before. */

#include <stdio.h>
#include <string.h>

#include "esdm-diff/esdm-diff.h"

/* The coordinate variable of an axis: in the group of the dimension or of one above. */
static const cp_dataset *
coordinate_of(const cp_model *model, const cp_dataset *dataset, uint32_t axis)
{
    const char *name = dataset->dimensions[axis]->name;
    g_autofree char *group = g_strdup(dataset->path);
    for (;;) {
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return NULL;
        *slash = '\0';
        g_autofree char *path = g_strconcat(group, "/", name, NULL);
        for (guint i = 0; i < model->datasets->len; i++) {
            const cp_dataset *one = g_ptr_array_index(model->datasets, i);
            if (g_str_equal(one->path, path))
                return one->rank == 1 && one->dimensions[0] == dataset->dimensions[axis] &&
                               one->type->path == NULL && one->type->atomic != ESDM_TYPE_CHAR &&
                               one->type->atomic != ESDM_TYPE_STRING
                           ? one
                           : NULL;
        }
    }
}

static bool
coordinate_at(const cp_end *end, const cp_dataset *coordinate, guint64 index, double *ret)
{
    const cp_slab slab = {.rank = 1,
                          .shape = {coordinate->dimensions[0]->length},
                          .step = {1},
                          .offset = {index},
                          .size = {1},
                          .elements = 1};
    union {
        guchar bytes[16];
        double aligned;
    } value;
    uint64_t ignored;
    esdm_error err;
    return cp_read(end, coordinate, &slab, value.bytes, &err) == ESDM_OK &&
           esdm_convert(coordinate->type->atomic, value.bytes, ESDM_TYPE_FLOAT64, ret, 1, &ignored,
                        &err) == ESDM_OK;
}

char *
diff_where(const cp_end *end, const cp_model *model, const cp_dataset *dataset,
           const diff_values *v)
{
    GString *text = g_string_new(NULL);
    for (uint32_t d = 0; d < dataset->rank; d++) {
        const cp_dataset *coordinate = coordinate_of(model, dataset, d);
        double first, last;
        g_string_append_printf(text, "%s%s", d > 0 ? ", " : "", dataset->dimensions[d]->name);
        if (coordinate == NULL || !coordinate_at(end, coordinate, v->first[d], &first) ||
            !coordinate_at(end, coordinate, v->last[d], &last)) {
            g_string_append_printf(text, " index %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                                   v->first[d], v->last[d]);
            continue;
        }
        g_autofree char *units = diff_units(coordinate);
        g_string_append_printf(text, " %.15g to %.15g%s", first, last, units);
    }
    return g_string_free(text, FALSE);
}

static void
append_end(GString *text, const char *label, const char *argument, const cp_end *end)
{
    g_autofree char *said = tool_printable(argument);
    g_autofree char *name = tool_printable(end->name);
    if (end->container != NULL && esdm_container_snapshot(end->container) > 0)
        g_string_append_printf(text, "%s: esdm://%s, snapshot %" G_GUINT64_FORMAT " of %s\n", label,
                               name, (guint64) esdm_container_snapshot(end->container),
                               esdm_container_uuid(end->container));
    else
        g_string_append_printf(text, "%s: %s\n", label, said);
}

esdm_status
diff_erratum_write(const char *file, const cp_end ends[2], char **arguments, const GString *body,
                   esdm_error *err)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "Erratum, %s, by esdm-diff %s\n", time, esdm_version());
    append_end(text, "before", arguments[0], &ends[0]);
    append_end(text, "after", arguments[1], &ends[1]);
    g_string_append_printf(text, "\n%s", body->len > 0 ? body->str : "No difference.\n");
    g_autoptr(GError) failure = NULL;
    if (g_str_equal(file, "-")) {
        (void) fputs(text->str, stdout);
        return ESDM_OK;
    }
    if (g_file_set_contents(file, text->str, (gssize) text->len, &failure))
        return ESDM_OK;
    err->status = ESDM_EIO;
    (void) g_snprintf(err->message, sizeof err->message, "%s", failure->message);
    return ESDM_EIO;
}
