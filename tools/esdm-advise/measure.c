/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a candidate makes of a block: stored through the public API in a site in memory. */

#include "esdm-advise/esdm-advise.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define TURNS 2 /* that a block is stored */

struct advise_lab {
    char *folder; /* owned; of the catalogue */
    char *config; /* owned */
    esdm_session *session;
};

/* ---- the site ----------------------------------------------------------------------------- */

esdm_status
advise_lab_open(advise_lab **ret_lab, esdm_error *err)
{
    g_autoptr(GError) problem = NULL;
    advise_lab *lab = g_new0(advise_lab, 1);
    lab->folder = g_dir_make_tmp("esdm-advise.XXXXXX", &problem);
    if (lab->folder == NULL) {
        advise_lab_close(lab);
        return tool_error_set(err, ESDM_EIO, "cannot make a temporary folder: %s",
                              problem->message);
    }
    json_t *config =
        json_pack("{s:{s:s}, s:[{s:s, s:s}], s:{s:s, s:s}, s:{s:i, s:i}}", "site", "name",
                  "esdm-advise", "targets", "name", "memory", "plugin", "mem", "metadata", "plugin",
                  "sqlite", "directory", lab->folder, "engine", "threads", 1, "inline", 0);
    lab->config = config != NULL ? json_dumps(config, 0) : NULL;
    json_decref(config);
    esdm_site_options made = {.config_json = lab->config};
    esdm_session_options options = {.config_json = lab->config};
    esdm_status status = lab->config != NULL ? esdm_site_create(&made, err)
                                             : tool_error_set(err, ESDM_ENOMEM, "out of memory");
    if (status == ESDM_OK)
        status = esdm_session_open(&options, &lab->session, err);
    if (status != ESDM_OK) {
        advise_lab_close(lab);
        return status;
    }
    *ret_lab = lab;
    return ESDM_OK;
}

void
advise_lab_close(advise_lab *lab)
{
    esdm_error ignored;
    if (lab == NULL)
        return;
    esdm_session_close(lab->session);
    if (lab->config != NULL) {
        esdm_site_options options = {.config_json = lab->config, .remove_data = true};
        (void) !esdm_site_remove(&options, &ignored);
        free(lab->config);
    }
    if (lab->folder != NULL)
        (void) g_rmdir(lab->folder);
    g_free(lab->folder);
    g_free(lab);
}

/* ---- what describes others ---------------------------------------------------------------- */

esdm_status
advise_find_auxiliary(advise_lab *lab, cp_model *model, esdm_error *err)
{
    cp_end end = {
        .is_container = true, .name = (char *) "model", .ncid = -1, .session = lab->session};
    esdm_status status = cp_container_create(&end, model, err);
    for (guint i = 0; i < model->datasets->len; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        dataset->auxiliary =
            status == ESDM_OK && esdm_dataset_is_auxiliary(dataset->to.dataset, NULL);
        dataset->to.dataset = NULL;
    }
    cp_close(&end);
    return status;
}

bool
advise_spares(const advise_candidate *candidate)
{
    esdm_accuracy accuracy;
    esdm_error ignored;
    esdm_accuracy_init(&accuracy);
    /* What needs units that are not known here is a tolerance. */
    return candidate->text != NULL && !esdm_accuracy_pattern_is_literal(candidate->pattern) &&
           (esdm_accuracy_parse(&accuracy, candidate->text, NULL, &ignored) != ESDM_OK ||
            esdm_accuracy_is_lossy(&accuracy));
}

/* ---- a block as a dataset ----------------------------------------------------------------- */

static const char *
units_of(const cp_dataset *dataset, char *buffer, size_t bytes)
{
    const cp_attribute *units = cp_attribute_find(dataset->attributes, "units");
    if (units == NULL || units->type != cp_type_atomic(ESDM_TYPE_CHAR))
        return NULL;
    size_t length = MIN((size_t) units->count, bytes - 1);
    memcpy(buffer, units->values, length);
    buffer[length] = '\0';
    return buffer;
}

/* The attributes that say what numbers mean. */
static esdm_status
copy_meaning(const cp_dataset *from, esdm_dataset *to, esdm_error *err)
{
    static const char *const names[] = {"_FillValue", "missing_value", "scale_factor",
                                        "add_offset", "units",         "standard_name"};
    esdm_status status = ESDM_OK;
    if (from->fill != NULL)
        status = esdm_dataset_set_fill(to, from->fill, err);
    for (size_t i = 0; i < G_N_ELEMENTS(names) && status == ESDM_OK; i++) {
        const cp_attribute *attribute = cp_attribute_find(from->attributes, names[i]);
        if (attribute != NULL && attribute->type->atomic != ESDM_TYPE_NONE)
            status =
                esdm_attribute_set(esdm_dataset_attributes(to), names[i], attribute->type->atomic,
                                   attribute->count, attribute->values, err);
    }
    return status;
}

/* @return ESDM_EINVAL: the quantity means nothing for this variable. */
static esdm_status
state_accuracy(const cp_dataset *from, esdm_dataset *to, const char *text, esdm_error *err)
{
    char buffer[128];
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    esdm_status status =
        esdm_accuracy_parse(&accuracy, text, units_of(from, buffer, sizeof buffer), err);
    return status == ESDM_OK ? esdm_dataset_set_accuracy(to, &accuracy, err) : status;
}

/* A container with a dataset that holds the block twice: the first one makes ESDM choose codecs,
 * the second one is measured. @param ret_container owned. */
static esdm_status
define(advise_lab *lab, const cp_dataset *from, const uint64_t *size,
       esdm_container **ret_container, esdm_dataset **ret_dataset, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    if (from->rank == ESDM_MAX_RANK)
        return tool_error_set(err, ESDM_ENOTSUP, "variable '%s' has too many dimensions",
                              from->name);
    esdm_status status =
        esdm_container_create(lab->session, "sample", ESDM_CREATE_REPLACE, ret_container, err);
    if (status != ESDM_OK)
        return status;
    esdm_group *root = esdm_container_root(*ret_container);
    if (status == ESDM_OK)
        status = esdm_dimension_create(root, "turn", TURNS, &dimensions[0], err);
    for (uint32_t i = 0; i < from->rank && status == ESDM_OK; i++) {
        char name[16];
        (void) g_snprintf(name, sizeof name, "d%u", i);
        status = esdm_dimension_create(root, name, size[i], &dimensions[i + 1], err);
    }
    if (status == ESDM_OK)
        status = esdm_dataset_create(root, from->name, from->type->atomic, from->rank + 1,
                                     dimensions, ret_dataset, err);
    return status == ESDM_OK ? copy_meaning(from, *ret_dataset, err) : status;
}

static bool
add_stored(const esdm_fragment_info *info, void *user)
{
    if (info->offset[0] == TURNS - 1)
        *(uint64_t *) user += info->stored_bytes;
    return true;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* Numbers as double; owned. */
static double *
doubles_of(esdm_type type, const void *values, uint64_t count)
{
    esdm_error ignored;
    double *numbers = g_new(double, count);
    if (esdm_convert(type, values, ESDM_TYPE_FLOAT64, numbers, count, NULL, &ignored) != ESDM_OK)
        memset(numbers, 0, count * sizeof *numbers);
    return numbers;
}

static void
compare(esdm_type type, const void *before, const void *after, uint64_t count,
        advise_result *result)
{
    result->exact = memcmp(before, after, count * esdm_type_size(type)) == 0;
    result->largest_error = 0;
    if (result->exact)
        return;
    g_autofree double *a = doubles_of(type, before, count);
    g_autofree double *b = doubles_of(type, after, count);
    for (uint64_t i = 0; i < count; i++) {
        double error = fabs(a[i] - b[i]);
        if (isfinite(a[i]) && error > result->largest_error)
            result->largest_error = error;
    }
}

static double
range_of(esdm_type type, const void *values, uint64_t count, const void *fill)
{
    double lowest = INFINITY, highest = -INFINITY;
    size_t bytes = esdm_type_size(type);
    g_autofree double *numbers = doubles_of(type, values, count);
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i]) ||
            (fill != NULL && memcmp((const char *) values + i * bytes, fill, bytes) == 0))
            continue;
        lowest = fmin(lowest, numbers[i]);
        highest = fmax(highest, numbers[i]);
    }
    return highest > lowest ? highest - lowest : 0;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static double
seconds_since(gint64 start_us)
{
    return (double) MAX(g_get_monotonic_time() - start_us, 1) / 1e6;
}

/* The block in the dataset. @param turn which one of the two. */
static esdm_status
space_of(const cp_dataset *from, const uint64_t *block, uint64_t turn, esdm_dataspace *ret_space,
         esdm_error *err)
{
    uint64_t offset[ESDM_MAX_RANK] = {turn}, size[ESDM_MAX_RANK] = {1};
    for (uint32_t i = 0; i < from->rank; i++)
        size[i + 1] = block[i];
    return esdm_dataspace_init(ret_space, from->rank + 1, offset, size, err);
}

static esdm_status
store_and_read(esdm_container *container, esdm_dataset *dataset, const cp_dataset *from,
               const uint64_t *size, const void *values, advise_result *result, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = ESDM_OK;
    gint64 start_us = 0;
    for (uint64_t turn = 0; turn < TURNS && status == ESDM_OK; turn++) {
        status = space_of(from, size, turn, &space, err);
        start_us = g_get_monotonic_time();
        if (status == ESDM_OK)
            status = esdm_write(dataset, &space, from->type->atomic, values, NULL, err);
        if (status == ESDM_OK)
            status = esdm_container_commit(container, NULL, err);
    }
    result->write_s = seconds_since(start_us);
    result->stored_bytes = 0;
    if (status == ESDM_OK)
        status = esdm_dataset_fragments(dataset, add_stored, &result->stored_bytes, err);
    if (status != ESDM_OK)
        return status;
    uint64_t count = esdm_dataspace_elements(&space);
    g_autofree void *after = g_malloc0(count * from->type->bytes);
    start_us = g_get_monotonic_time();
    status = esdm_read(dataset, &space, from->type->atomic, after, NULL, err);
    result->read_s = seconds_since(start_us);
    if (status == ESDM_OK)
        compare(from->type->atomic, values, after, count, result);
    return status;
}

static esdm_status
measure_one(advise_lab *lab, const cp_dataset *from, const uint64_t *size, const void *values,
            const advise_candidate *candidate, const char *otherwise, advise_result *result,
            esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_dataset *dataset = NULL;
    esdm_error ignored;
    esdm_status status = define(lab, from, size, &container, &dataset, err);
    if (status == ESDM_OK) {
        bool fits = candidate->pattern == NULL ||
                    g_pattern_match_simple(candidate->pattern, from->name) ||
                    g_pattern_match_simple(candidate->pattern, from->path);
        fits = fits && !(from->auxiliary && advise_spares(candidate));
        if (fits && candidate->text != NULL)
            status = state_accuracy(from, dataset, candidate->text, err);
        result->refused = !fits || status == ESDM_EINVAL || status == ESDM_ENOTSUP;
        if (result->refused && otherwise == NULL)
            status = ESDM_OK;
        else if (result->refused)
            status = state_accuracy(from, dataset, otherwise, err);
    }
    if (status == ESDM_OK)
        status = store_and_read(container, dataset, from, size, values, result, err);
    esdm_container_discard(container);
    (void) !esdm_container_erase(lab->session, "sample", &ignored);
    return status;
}

esdm_status
advise_measure(advise_lab *lab, const GArray *candidates, const cp_dataset *dataset,
               const uint64_t *size, const void *values, advise_sample *sample, esdm_error *err)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < dataset->rank; i++)
        count *= size[i];
    sample->raw_bytes = count * dataset->type->bytes;
    sample->auxiliary = dataset->auxiliary;
    sample->range = range_of(dataset->type->atomic, values, count, dataset->fill);
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < candidates->len && status == ESDM_OK; i++)
        status = measure_one(
            lab, dataset, size, values, &g_array_index(candidates, advise_candidate, i),
            g_array_index(candidates, advise_candidate, 0).text, &sample->results[i], err);
    return status;
}
