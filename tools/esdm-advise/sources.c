/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What there is to store, and drawing samples of it. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* Of NetCDF files in folders. */
static const char *const suffixes[] = {".nc", ".nc4", ".cdf", ".netcdf", ".hdf5", ".h5"};
#define FOLDER_DEPTH_MAX 64

/* ---- sources ------------------------------------------------------------------------------ */

static void
add(advise_study *study, const char *name, bool is_container, uint64_t bytes)
{
    if (bytes == 0)
        return;
    advise_source *source = g_new0(advise_source, 1);
    source->name = g_strdup(name);
    source->is_container = is_container;
    source->bytes = bytes;
    study->total_bytes += bytes;
    g_ptr_array_add(study->sources, source);
}

static bool
has_suffix(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (g_str_has_suffix(name, suffixes[i]))
            return true;
    }
    return false;
}

static bool
add_listed(const esdm_container_info *info, void *user)
{
    add(user, info->name, true, info->stored_bytes);
    return true;
}

static tool_exit
add_containers(advise_study *study, esdm_session **session, const char *argument)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1] = "";
    esdm_error err = {0};
    tool_exit result = *session == NULL ? tool_session(true, session) : TOOL_OK;
    if (result != TOOL_OK)
        return result;
    const char *below = tool_container(argument);
    bool everything = g_str_equal(below, "") || g_str_equal(below, "esdm://");
    esdm_status status = everything ? ESDM_OK : esdm_container_normalise(below, name, &err);
    guint before = study->sources->len;
    if (status == ESDM_OK)
        status = esdm_container_list(*session, everything ? NULL : name, add_listed, study, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return study->sources->len > before ? TOOL_OK : tool_absent(*session, name);
}

/* A file, or the container that it stands for. */
static tool_exit
add_file(advise_study *study, esdm_session **session, const char *path, uint64_t bytes)
{
    g_autofree char *stub = bytes <= TOOL_STUB_BYTES ? tool_stub(path) : NULL;
    if (stub == NULL) {
        add(study, path, false, bytes);
        return TOOL_OK;
    }
    g_autofree char *copied = tool_stub_copy(path);
    if (copied != NULL) { /* it may mean a former one */
        g_autofree char *meant = NULL;
        esdm_error err = {0};
        tool_exit opened = *session == NULL ? tool_session(true, session) : TOOL_OK;
        esdm_status status =
            opened == TOOL_OK ? tool_stub_container(*session, path, &meant, &err) : ESDM_OK;
        if (status != ESDM_OK)
            opened = tool_fail(status, &err);
        if (opened != TOOL_OK) {
            study->unreadable++;
            return opened;
        }
        esdm_container_info info;
        if (!g_str_equal(meant, copied)) {
            if (esdm_container_stat(*session, meant, &info, &err) == ESDM_OK)
                add(study, meant, true, info.stored_bytes);
            return TOOL_OK;
        }
    }
    g_autofree char *container = g_strconcat("esdm://", stub, NULL);
    tool_exit result = add_containers(study, session, container);
    study->unreadable += result != TOOL_OK;
    return result;
}

/* Links to folders are not followed. */
static void
add_folder(advise_study *study, esdm_session **session, const char *folder, int depth)
{
    g_autoptr(GError) problem = NULL;
    g_autoptr(GPtrArray) names = tool_folder_names(folder, &problem);
    if (names == NULL) {
        tool_error("%s", problem->message);
        study->unreadable++;
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(folder, g_ptr_array_index(names, i), NULL);
        struct stat facts;
        if (lstat(path, &facts) != 0)
            continue;
        if (S_ISDIR(facts.st_mode) && depth < FOLDER_DEPTH_MAX)
            add_folder(study, session, path, depth + 1);
        else if (has_suffix(path) && stat(path, &facts) == 0 && S_ISREG(facts.st_mode))
            (void) add_file(study, session, path, (uint64_t) facts.st_size);
    }
}

tool_exit
advise_add_source(advise_study *study, esdm_session **session, const char *argument)
{
    struct stat facts;
    if (g_str_has_prefix(argument, "esdm:"))
        return add_containers(study, session, argument);
    if (stat(argument, &facts) != 0) {
        tool_error("there is no file '%s'; a container is written esdm://%s", argument, argument);
        return TOOL_NOT_FOUND;
    }
    if (S_ISDIR(facts.st_mode))
        add_folder(study, session, argument, 0);
    else
        return add_file(study, session, argument, (uint64_t) facts.st_size);
    return TOOL_OK;
}

/* ---- statistics --------------------------------------------------------------------------- */

guint
advise_sample_count(const advise_study *study)
{
    double z = advise_quantile(study->confidence);
    double wanted = z * z * 0.25 / (study->error * study->error);
    wanted /= 1 + (wanted - 1) / MAX(study->blocks, 1);
    return (guint) CLAMP(ceil(wanted), 1, 1e6);
}

/* ---- drawing ------------------------------------------------------------------------------ */

typedef struct drawing {
    advise_study *study;
    esdm_session *session;
    advise_lab *lab;
    uint64_t state;
    guint done, count;
    tool_progress progress;
    GHashTable *measured; /* "source variable block" -> advise_sample, borrowed */
} drawing;

static double
chance(drawing *d)
{
    d->state = tool_scramble(d->state);
    return tool_unit(d->state);
}

static bool
is_numeric(const cp_dataset *dataset)
{
    esdm_type type = dataset->type->atomic;
    return type != ESDM_TYPE_NONE && type != ESDM_TYPE_CHAR && type != ESDM_TYPE_STRING;
}

static double
raw_bytes_of(const cp_dataset *dataset)
{
    return is_numeric(dataset)
               ? (double) cp_dataset_elements(dataset) * (double) dataset->type->bytes
               : 0;
}

/* By raw bytes; NULL when there are no numbers. @param ret_total raw bytes of all. */
static const cp_dataset *
draw_dataset(drawing *d, const cp_model *model, double *ret_total)
{
    double total = 0;
    for (guint i = 0; i < model->datasets->len; i++)
        total += raw_bytes_of(g_ptr_array_index(model->datasets, i));
    *ret_total = total;
    if (total <= 0)
        return NULL;
    double at = chance(d) * total;
    const cp_dataset *last = NULL;
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if (raw_bytes_of(dataset) <= 0)
            continue;
        last = dataset;
        at -= raw_bytes_of(dataset);
        if (at < 0)
            break;
    }
    return last;
}

/* Blocks are cut as esdm-cp cuts what it writes at once: along chunks, and whole in the fastest
 * axes. */
static void
first_block(const advise_study *study, const cp_dataset *dataset, cp_slab *slab)
{
    cp_slab_init_of(slab, dataset, study->block_bytes);
    (void) cp_slab_next(slab);
}

/* One of them, by its elements. */
static void
draw_block(drawing *d, const cp_dataset *dataset, cp_slab *slab)
{
    first_block(d->study, dataset, slab);
    slab->elements = 1;
    for (uint32_t i = 0; i < slab->rank; i++) {
        uint64_t at = MIN((uint64_t) (chance(d) * (double) slab->shape[i]), slab->shape[i] - 1);
        slab->offset[i] = at / slab->step[i] * slab->step[i];
        slab->size[i] = MIN(slab->step[i], slab->shape[i] - slab->offset[i]);
        slab->elements *= slab->size[i];
    }
}

static double
block_count(const advise_study *study, const cp_dataset *dataset)
{
    cp_slab slab;
    double count = 1;
    first_block(study, dataset, &slab);
    for (uint32_t i = 0; i < slab.rank; i++)
        count *= ceil((double) slab.shape[i] / (double) slab.step[i]);
    return count;
}

static void
add_raw_bytes(const advise_study *study, const cp_dataset *dataset)
{
    double *bytes = g_hash_table_lookup(study->raw_bytes, dataset->name);
    if (bytes == NULL) {
        bytes = g_new0(double, 1);
        (void) g_hash_table_insert(study->raw_bytes, g_strdup(dataset->name), bytes);
    }
    *bytes += raw_bytes_of(dataset);
}

/* Enters the blocks of a dataset. */
static void
count_blocks(advise_study *study, const cp_dataset *dataset)
{
    if (raw_bytes_of(dataset) <= 0)
        return;
    double blocks = block_count(study, dataset),
           *all = g_hash_table_lookup(study->blocks_of, dataset->name);
    study->blocks += blocks;
    if (all == NULL) {
        all = g_new0(double, 1);
        g_hash_table_insert(study->blocks_of, g_strdup(dataset->name), all);
    }
    *all += blocks;
    add_raw_bytes(study, dataset);
}

static char *
block_name(const char *source, const cp_dataset *dataset, const cp_slab *slab)
{
    GString *name = g_string_new(source);
    g_string_append_printf(name, "\n%s", dataset->path);
    for (uint32_t i = 0; i < slab->rank; i++)
        g_string_append_printf(name, " %" G_GUINT64_FORMAT, slab->offset[i]);
    return g_string_free(name, FALSE);
}

/* Drawn with replacement: what was measured before counts once more. */
static esdm_status
sample_block(drawing *d, const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
             const advise_source *source, double raw_bytes, esdm_error *err)
{
    g_autofree char *name = block_name(end->name, dataset, slab);
    const advise_sample *before = g_hash_table_lookup(d->measured, name);
    advise_sample *sample = g_new0(advise_sample, 1);
    if (before != NULL) {
        *sample = *before;
        sample->again = true;
        sample->variable = g_strdup(before->variable);
        g_ptr_array_add(d->study->samples, sample);
        return ESDM_OK;
    }
    cp_slab first;
    first_block(d->study, dataset, &first);
    sample->variable = g_strdup(dataset->name);
    sample->raw_share = raw_bytes / (double) source->bytes;
    sample->chance = (double) source->bytes / (double) d->study->total_bytes *
                     (double) (slab->elements * dataset->type->bytes) / raw_bytes;
    esdm_status status =
        advise_measure(d->lab, d->study->candidates, end, dataset, &first, slab, sample, err);
    if (status != ESDM_OK) {
        g_free(sample->variable);
        g_free(sample);
        return status;
    }
    g_ptr_array_add(d->study->samples, sample);
    g_hash_table_insert(d->measured, g_steal_pointer(&name), sample);
    return ESDM_OK;
}

esdm_status
advise_open_source(const advise_source *source, esdm_session *session, cp_end *ret_end,
                   cp_model **ret_model, esdm_error *err)
{
    *ret_end = (cp_end){
        .is_container = source->is_container, .name = source->name, .ncid = -1, .session = session};
    return source->is_container ? cp_container_open(ret_end, ret_model, err)
                                : cp_netcdf_open(ret_end, ret_model, err);
}

void
advise_survey(advise_study *study, esdm_session *session, bool show)
{
    tool_progress progress;
    guint count = study->sources->len, done = 0;
    tool_progress_start(&progress, show);
    for (guint i = 0; i < study->sources->len; done++) {
        const advise_source *source = g_ptr_array_index(study->sources, i);
        cp_end end;
        g_autoptr(cp_model) model = NULL;
        esdm_error err = {0};
        esdm_status status = advise_open_source(source, session, &end, &model, &err);
        for (guint k = 0; status == ESDM_OK && k < model->datasets->len; k++)
            count_blocks(study, g_ptr_array_index(model->datasets, k));
        cp_close(&end);
        tool_progress_show(&progress, (double) (done + 1) / count, source->name);
        if (status == ESDM_OK) {
            i++;
            continue;
        }
        tool_error("%s", err.message);
        study->unreadable++;
        study->total_bytes -= source->bytes;
        g_ptr_array_remove_index(study->sources, i); /* the others stay in order */
    }
    tool_progress_end(&progress);
}

/* `draws` samples of one source. */
static void
sample_source(drawing *d, const advise_source *source, guint draws)
{
    cp_end end;
    g_autoptr(cp_model) model = NULL;
    esdm_error err = {0};
    esdm_status status = advise_open_source(source, d->session, &end, &model, &err);
    if (status == ESDM_OK)
        status = advise_find_auxiliary(d->lab, model, &err);
    for (guint i = 0; i < draws && status == ESDM_OK; i++) {
        cp_slab slab;
        double raw_bytes = 0;
        const cp_dataset *dataset = draw_dataset(d, model, &raw_bytes);
        if (dataset == NULL) {
            d->study->missed += draws - i;
            break;
        }
        draw_block(d, dataset, &slab);
        status = sample_block(d, &end, dataset, &slab, source, raw_bytes, &err);
        d->study->missed += status != ESDM_OK ? draws - i : 0;
        tool_progress_show(&d->progress, (double) ++d->done / d->count, source->name);
    }
    if (model == NULL)
        d->study->missed += draws;
    if (status != ESDM_OK)
        tool_error("%s", err.message);
    advise_lab_leave(d->lab);
    cp_close(&end);
}

/* Every block of one source, once. */
static void
measure_source(drawing *d, const advise_source *source)
{
    cp_end end;
    g_autoptr(cp_model) model = NULL;
    esdm_error err = {0};
    double raw_bytes = 0;
    esdm_status status = advise_open_source(source, d->session, &end, &model, &err);
    if (status == ESDM_OK)
        status = advise_find_auxiliary(d->lab, model, &err);
    for (guint i = 0; status == ESDM_OK && i < model->datasets->len; i++)
        raw_bytes += raw_bytes_of(g_ptr_array_index(model->datasets, i));
    for (guint i = 0; status == ESDM_OK && i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        cp_slab slab;
        if (raw_bytes_of(dataset) <= 0)
            continue;
        cp_slab_init_of(&slab, dataset, d->study->block_bytes);
        while (status == ESDM_OK && cp_slab_next(&slab)) {
            status = sample_block(d, &end, dataset, &slab, source, raw_bytes, &err);
            tool_progress_show(&d->progress, (double) ++d->done / d->count, source->name);
        }
    }
    if (status != ESDM_OK) {
        d->study->missed++;
        tool_error("%s", err.message);
    }
    advise_lab_leave(d->lab);
    cp_close(&end);
}

tool_exit
advise_measure_all(advise_study *study, esdm_session *session, bool progress)
{
    drawing d = {.study = study, .session = session, .count = (guint) MAX(study->blocks, 1)};
    esdm_error err = {0};
    esdm_status status = advise_lab_open(&d.lab, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    d.measured = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    tool_progress_start(&d.progress, progress);
    for (guint i = 0; i < study->sources->len; i++)
        measure_source(&d, g_ptr_array_index(study->sources, i));
    tool_progress_end(&d.progress);
    g_hash_table_unref(d.measured);
    advise_lab_close(d.lab);
    return TOOL_OK;
}

tool_exit
advise_draw(advise_study *study, esdm_session *session, guint count, bool progress)
{
    drawing d = {.study = study, .session = session, .state = study->seed, .count = count};
    esdm_error err = {0};
    esdm_status status = advise_lab_open(&d.lab, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    d.measured = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    tool_progress_start(&d.progress, progress);
    /* Points on the line of all bytes, in order, so that every source is opened once. */
    g_autofree double *points = g_new(double, count);
    for (guint i = 0; i < count; i++)
        points[i] = chance(&d) * (double) study->total_bytes;
    qsort(points, count, sizeof *points, tool_by_number);
    double end = 0;
    guint at = 0;
    for (guint i = 0; i < study->sources->len && at < count; i++) {
        const advise_source *source = g_ptr_array_index(study->sources, i);
        bool last = i + 1 == study->sources->len;
        end += (double) source->bytes;
        guint first = at;
        while (at < count && (points[at] < end || last))
            at++;
        if (at > first)
            sample_source(&d, source, at - first);
    }
    tool_progress_end(&d.progress);
    g_hash_table_unref(d.measured);
    advise_lab_close(d.lab);
    return TOOL_OK;
}
