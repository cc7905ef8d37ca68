/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a candidate makes of a block: stored through the public API in a site in memory. */

#include "esdm-advise/apart.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

/* What a site has where nothing is stated, of which each thread has a part. */
#define MEMORY_BYTES (UINT64_C(256) << 20)
#define THREADS_MOST 32u
#define DEFAULT_FILL 9.9692099683868690e+36 /* NC_FILL_FLOAT, NC_FILL_DOUBLE */

struct advise_lab {
    char *folder; /* owned; of the catalogue */
    char *config; /* owned */
    esdm_session *session;
    GHashTable *stands; /* cp_dataset, borrowed -> stand */
};

/* A dataset of the source, with each candidate. */
typedef struct stand {
    esdm_container *containers[ADVISE_CANDIDATES_MAX];
    esdm_dataset *datasets[ADVISE_CANDIDATES_MAX];
    uint64_t latest[ADVISE_CANDIDATES_MAX]; /* sequence of a fragment */
    bool refused[ADVISE_CANDIDATES_MAX];
} stand;

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
    /* One thread, for its speed, with the memory that it has beside others: fragments depend on it.
     */
    uint64_t memory = MEMORY_BYTES / CLAMP(g_get_num_processors(), 1, THREADS_MOST);
    lab->stands = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    json_t *config = json_pack("{s:{s:s}, s:[{s:s, s:s}], s:{s:s, s:s}, s:{s:i, s:i, s:I}}", "site",
                               "name", "esdm-advise", "targets", "name", "memory", "plugin", "mem",
                               "metadata", "plugin", "sqlite", "directory", lab->folder, "engine",
                               "threads", 1, "inline", 0, "memory", (json_int_t) memory);
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
    if (lab->stands != NULL) {
        advise_lab_leave(lab);
        g_hash_table_unref(lab->stands);
    }
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

static void
name_of(guint candidate, const void *dataset, char name[64])
{
    (void) g_snprintf(name, 64, "sample-%u-%p", candidate, dataset);
}

/* A container with a dataset of the whole shape. @param ret_container owned. */
static esdm_status
define(advise_lab *lab, guint candidate, const cp_dataset *from, esdm_container **ret_container,
       esdm_dataset **ret_dataset, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    char container[64];
    name_of(candidate, from, container);
    esdm_status status =
        esdm_container_create(lab->session, container, ESDM_CREATE_REPLACE, ret_container, err);
    if (status != ESDM_OK)
        return status;
    esdm_group *root = esdm_container_root(*ret_container);
    for (uint32_t i = 0; i < from->rank && status == ESDM_OK; i++) {
        char name[16];
        (void) g_snprintf(name, sizeof name, "d%u", i);
        status =
            esdm_dimension_create(root, name, from->dimensions[i]->length, &dimensions[i], err);
    }
    if (status == ESDM_OK)
        status = esdm_dataset_create(root, from->name, from->type->atomic, from->rank, dimensions,
                                     ret_dataset, err);
    if (status == ESDM_OK && from->chunk != NULL && from->rank > 0)
        status = esdm_dataset_set_chunk(*ret_dataset, from->chunk, err);
    return status == ESDM_OK ? copy_meaning(from, *ret_dataset, err) : status;
}

/* What lies in the box of a slab and came after others: the first block is written twice. */
typedef struct stored {
    const cp_slab *slab;
    uint64_t before; /* sequence of the latest fragment then */
    uint64_t latest;
    uint64_t bytes;
} stored;

static bool
add_stored(const esdm_fragment_info *info, void *user)
{
    stored *sum = user;
    sum->latest = MAX(sum->latest, info->sequence);
    if (info->sequence <= sum->before)
        return true;
    for (uint32_t i = 0; i < sum->slab->rank; i++)
        if (info->offset[i] < sum->slab->offset[i] ||
            info->offset[i] >= sum->slab->offset[i] + sum->slab->size[i])
            return true;
    sum->bytes += info->stored_bytes;
    return true;
}

/* ---- comparing ---------------------------------------------------------------------------- */

double *
advise_doubles(esdm_type type, const void *values, uint64_t count)
{
    esdm_error ignored;
    double *numbers = g_new(double, count);
    if (esdm_convert(type, values, ESDM_TYPE_FLOAT64, numbers, count, NULL, &ignored) != ESDM_OK)
        memset(numbers, 0, count * sizeof *numbers);
    return numbers;
}

uint8_t *
advise_is_data(const cp_dataset *dataset, const void *values, const double *numbers, uint64_t count)
{
    const cp_attribute *missing = cp_attribute_find(dataset->attributes, "missing_value");
    size_t bytes = dataset->type->bytes;
    uint8_t *is_data = g_new(uint8_t, count);
    if (missing != NULL && (missing->type != dataset->type || missing->count != 1))
        missing = NULL;
    for (uint64_t i = 0; i < count; i++) {
        const char *element = (const char *) values + i * bytes;
        is_data[i] = fabs(numbers[i]) < DEFAULT_FILL &&
                     (dataset->fill == NULL || memcmp(element, dataset->fill, bytes) != 0) &&
                     (missing == NULL || memcmp(element, missing->values, bytes) != 0);
    }
    return is_data;
}

static void
compare(esdm_type type, const void *before, const void *after, uint64_t count,
        advise_result *result)
{
    result->exact = memcmp(before, after, count * esdm_type_size(type)) == 0;
    result->largest_error = 0;
    if (result->exact)
        return;
    g_autofree double *a = advise_doubles(type, before, count);
    g_autofree double *b = advise_doubles(type, after, count);
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
    g_autofree double *numbers = advise_doubles(type, values, count);
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

static esdm_status
store(esdm_container *container, esdm_dataset *dataset, const cp_dataset *from, const cp_slab *slab,
      const void *values, esdm_dataspace *ret_space, esdm_error *err)
{
    esdm_status status = esdm_dataspace_init(ret_space, slab->rank, slab->offset, slab->size, err);
    if (status == ESDM_OK)
        status = esdm_write(dataset, ret_space, from->type->atomic, values, NULL, err);
    return status == ESDM_OK ? esdm_container_commit(container, NULL, err) : status;
}

static esdm_status
store_and_read(stand *s, guint i, const cp_dataset *from, const cp_slab *slab, const void *values,
               advise_result *result, esdm_error *err)
{
    esdm_dataspace space;
    esdm_dataset *dataset = s->datasets[i];
    stored sum = {.slab = slab, .before = s->latest[i]};
    gint64 start_us = g_get_monotonic_time();
    esdm_status status = store(s->containers[i], dataset, from, slab, values, &space, err);
    result->write_s = seconds_since(start_us);
    if (status == ESDM_OK)
        status = esdm_dataset_fragments(dataset, add_stored, &sum, err);
    result->stored_bytes = sum.bytes;
    s->latest[i] = sum.latest;
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

esdm_status
advise_store_block(advise_lab *lab, const char *text, const cp_dataset *from, const cp_slab *slab,
                   const void *values, void *after, uint64_t *ret_stored, esdm_error *err)
{
    char name[64];
    stand s = {0};
    esdm_dataspace space;
    esdm_error ignored;
    stored sum = {.slab = slab};
    esdm_status status = define(lab, 0, from, &s.containers[0], &s.datasets[0], err);
    if (status == ESDM_OK)
        status = state_accuracy(from, s.datasets[0], text, err);
    if (status == ESDM_OK)
        status = store(s.containers[0], s.datasets[0], from, slab, values, &space, err);
    if (status == ESDM_OK)
        status = esdm_dataset_fragments(s.datasets[0], add_stored, &sum, err);
    if (status == ESDM_OK)
        status = esdm_read(s.datasets[0], &space, from->type->atomic, after, NULL, err);
    *ret_stored = sum.bytes;
    if (s.containers[0] != NULL) {
        name_of(0, from, name);
        esdm_container_discard(s.containers[0]);
        (void) !esdm_container_erase(lab->session, name, &ignored);
    }
    return status;
}

/* A dataset that is stored with a candidate. */
static esdm_status
prepare(advise_lab *lab, const GArray *candidates, guint i, const cp_dataset *from, stand *s,
        esdm_error *err)
{
    const advise_candidate *candidate = &g_array_index(candidates, advise_candidate, i);
    const char *otherwise = g_array_index(candidates, advise_candidate, 0).text;
    esdm_status status = define(lab, i, from, &s->containers[i], &s->datasets[i], err);
    if (status != ESDM_OK)
        return status;
    bool fits = candidate->pattern == NULL ||
                g_pattern_match_simple(candidate->pattern, from->name) ||
                g_pattern_match_simple(candidate->pattern, from->path);
    fits = fits && !(from->auxiliary && advise_spares(candidate));
    if (fits && candidate->text != NULL)
        status = state_accuracy(from, s->datasets[i], candidate->text, err);
    s->refused[i] = !fits || status == ESDM_EINVAL || status == ESDM_ENOTSUP;
    if (!s->refused[i])
        return status;
    return otherwise != NULL ? state_accuracy(from, s->datasets[i], otherwise, err) : ESDM_OK;
}

/* All candidates of a dataset, for whose first block codecs are chosen. */
static esdm_status
stand_of(advise_lab *lab, const GArray *candidates, const cp_end *end, const cp_dataset *from,
         const cp_slab *first, stand **ret_stand, esdm_error *err)
{
    esdm_dataspace space;
    stand *s = g_hash_table_lookup(lab->stands, from);
    esdm_status status = ESDM_OK;
    *ret_stand = s;
    if (s != NULL)
        return ESDM_OK;
    s = *ret_stand = g_new0(stand, 1);
    g_hash_table_insert(lab->stands, (gpointer) from, s);
    g_autofree void *values = g_malloc0(first->elements * from->type->bytes);
    status = cp_read(end, from, first, values, err);
    for (guint i = 0; i < candidates->len && status == ESDM_OK; i++) {
        status = prepare(lab, candidates, i, from, s, err);
        if (status == ESDM_OK)
            status = store(s->containers[i], s->datasets[i], from, first, values, &space, err);
        stored sum = {.slab = first};
        if (status == ESDM_OK)
            status = esdm_dataset_fragments(s->datasets[i], add_stored, &sum, err);
        s->latest[i] = sum.latest;
    }
    return status;
}

void
advise_lab_leave(advise_lab *lab)
{
    GHashTableIter iter;
    gpointer dataset, value;
    esdm_error ignored;
    char name[64];
    g_hash_table_iter_init(&iter, lab->stands);
    while (g_hash_table_iter_next(&iter, &dataset, &value)) {
        stand *s = value;
        for (guint i = 0; i < ADVISE_CANDIDATES_MAX && s->containers[i] != NULL; i++) {
            name_of(i, dataset, name);
            esdm_container_discard(s->containers[i]);
            (void) !esdm_container_erase(lab->session, name, &ignored);
        }
    }
    g_hash_table_remove_all(lab->stands);
}

esdm_status
advise_measure(advise_lab *lab, const GArray *candidates, const cp_end *end,
               const cp_dataset *dataset, const cp_slab *first, const cp_slab *slab,
               advise_sample *sample, esdm_error *err)
{
    stand *s = NULL;
    g_autofree void *values = g_malloc0(slab->elements * dataset->type->bytes);
    esdm_status status = stand_of(lab, candidates, end, dataset, first, &s, err);
    if (status == ESDM_OK)
        status = cp_read(end, dataset, slab, values, err);
    if (status != ESDM_OK)
        return status;
    sample->raw_bytes = slab->elements * dataset->type->bytes;
    sample->auxiliary = dataset->auxiliary;
    sample->range = range_of(dataset->type->atomic, values, slab->elements, dataset->fill);
    for (guint i = 0; i < candidates->len && status == ESDM_OK; i++) {
        advise_apart_alive();
        sample->results[i].refused = s->refused[i];
        status = store_and_read(s, i, dataset, slab, values, &sample->results[i], err);
    }
    return status;
}
