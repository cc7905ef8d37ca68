/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What there is to store, and drawing samples of it. */

#include "esdm-advise/apart.h"

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

bool
advise_has_containers(const advise_study *study)
{
    for (guint i = 0; i < study->sources->len; i++)
        if (((const advise_source *) g_ptr_array_index(study->sources, i))->is_container)
            return true;
    return false;
}

void
advise_leave_out(advise_study *study, guint i)
{
    const advise_source *source = g_ptr_array_index(study->sources, i);
    study->unreadable++;
    study->total_bytes -= source->bytes;
    g_ptr_array_remove_index(study->sources, i); /* the others stay in order */
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
    const guint *draws;   /* of each source; NULL: every block once */
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

/* Adds to the sum of a name. */
static void
add_to(GHashTable *sums, const char *name, double x)
{
    double *sum = g_hash_table_lookup(sums, name);
    if (sum == NULL) {
        sum = g_new0(double, 1);
        (void) g_hash_table_insert(sums, g_strdup(name), sum);
    }
    *sum += x;
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

/* ---- what there is ------------------------------------------------------------------------ */

typedef struct surveying {
    advise_study *study;
    esdm_session *session;
    tool_progress progress;
    guint done;
    bool *unreadable; /* of each source */
} surveying;

static esdm_status
begin_survey(void *user, esdm_session *session, esdm_error *err)
{
    (void) err;
    ((surveying *) user)->session = session;
    return ESDM_OK;
}

/* An error's text, or an empty one, then blocks, bytes and name of each variable with numbers. */
static void
read_structure(void *user, guint i, GByteArray *found)
{
    const surveying *s = user;
    cp_end end;
    g_autoptr(cp_model) model = NULL;
    esdm_error err = {0};
    esdm_status status =
        advise_open_source(g_ptr_array_index(s->study->sources, i), s->session, &end, &model, &err);
    advise_put_text(found, status == ESDM_OK ? "" : err.message);
    for (guint k = 0; status == ESDM_OK && k < model->datasets->len; k++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, k);
        double raw_bytes = raw_bytes_of(dataset);
        if (raw_bytes <= 0)
            continue;
        double blocks = block_count(s->study, dataset);
        advise_put(found, &blocks, sizeof blocks);
        advise_put(found, &raw_bytes, sizeof raw_bytes);
        advise_put_text(found, dataset->name);
    }
    cp_close(&end);
}

static void
show_survey(surveying *s, guint i)
{
    const advise_source *source = g_ptr_array_index(s->study->sources, i);
    tool_progress_show(&s->progress, (double) ++s->done / s->study->sources->len, source->name);
}

static void
take_structure(void *user, guint i, const uint8_t *found, size_t bytes)
{
    surveying *s = user;
    const uint8_t *at = found;
    const char *problem = advise_get_text(&at);
    s->unreadable[i] = *problem != '\0';
    if (s->unreadable[i])
        tool_error("%s", problem);
    while (at < found + bytes) {
        double blocks, raw_bytes;
        advise_get(&at, &blocks, sizeof blocks);
        advise_get(&at, &raw_bytes, sizeof raw_bytes);
        const char *name = advise_get_text(&at);
        s->study->blocks += blocks;
        add_to(s->study->blocks_of, name, blocks);
        add_to(s->study->raw_bytes, name, raw_bytes);
    }
    show_survey(s, i);
}

static void
lose_structure(void *user, guint i)
{
    surveying *s = user;
    s->unreadable[i] = true;
    show_survey(s, i);
}

void
advise_survey(advise_study *study, bool show)
{
    g_autofree bool *unreadable = g_new0(bool, study->sources->len);
    surveying s = {.study = study, .unreadable = unreadable};
    advise_turn turn = {.sources = study->sources,
                        .user = &s,
                        .with_session = advise_has_containers(study),
                        .begin = begin_survey,
                        .read = read_structure,
                        .take = take_structure,
                        .lost = lose_structure};
    tool_progress_start(&s.progress, show);
    advise_apart(&turn);
    tool_progress_end(&s.progress);
    for (guint i = study->sources->len; i-- > 0;)
        if (unreadable[i])
            advise_leave_out(study, i);
}

/* ---- drawing blocks ----------------------------------------------------------------------- */

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
        advise_apart_block();
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
            advise_apart_block();
        }
    }
    if (status != ESDM_OK) {
        d->study->missed++;
        tool_error("%s", err.message);
    }
    advise_lab_leave(d->lab);
    cp_close(&end);
}

static esdm_status
begin_drawing(void *user, esdm_session *session, esdm_error *err)
{
    drawing *d = user;
    d->session = session;
    d->measured = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return advise_lab_open(&d->lab, err);
}

/* The state of chance, what was missed, and the samples. */
static void
read_samples(void *user, guint i, GByteArray *found)
{
    drawing *d = user;
    const advise_source *source = g_ptr_array_index(d->study->sources, i);
    guint before = d->study->samples->len, missed = d->study->missed;
    if (d->draws == NULL)
        measure_source(d, source);
    else if (d->draws[i] > 0)
        sample_source(d, source, d->draws[i]);
    missed = d->study->missed - missed;
    advise_put(found, &d->state, sizeof d->state);
    advise_put(found, &missed, sizeof missed);
    for (guint k = before; k < d->study->samples->len; k++) {
        const advise_sample *sample = g_ptr_array_index(d->study->samples, k);
        advise_put(found, sample, sizeof *sample);
        advise_put_text(found, sample->variable);
    }
}

static void
take_samples(void *user, guint i, const uint8_t *found, size_t bytes)
{
    drawing *d = user;
    const uint8_t *at = found;
    guint missed;
    (void) i;
    advise_get(&at, &d->state, sizeof d->state);
    advise_get(&at, &missed, sizeof missed);
    d->study->missed += missed;
    while (at < found + bytes) {
        advise_sample *sample = g_new(advise_sample, 1);
        advise_get(&at, sample, sizeof *sample);
        sample->variable = g_strdup(advise_get_text(&at));
        g_ptr_array_add(d->study->samples, sample);
    }
}

static void
show_block(void *user)
{
    drawing *d = user;
    g_autofree char *text = g_strdup_printf("%u of %u blocks", ++d->done, d->count);
    tool_progress_show(&d->progress, (double) d->done / d->count, text);
}

static void
lose_samples(void *user, guint i)
{
    const drawing *d = user;
    d->study->missed += d->draws != NULL ? d->draws[i] : 1;
}

static void
draw_blocks(drawing *d, bool progress)
{
    advise_turn turn = {.sources = d->study->sources,
                        .user = d,
                        .with_session = advise_has_containers(d->study),
                        .begin = begin_drawing,
                        .read = read_samples,
                        .take = take_samples,
                        .block = show_block,
                        .lost = lose_samples};
    tool_progress_start(&d->progress, progress);
    advise_apart(&turn);
    tool_progress_end(&d->progress);
}

void
advise_measure_all(advise_study *study, bool progress)
{
    drawing d = {.study = study, .count = (guint) MAX(study->blocks, 1)};
    draw_blocks(&d, progress);
}

void
advise_draw(advise_study *study, guint count, bool progress)
{
    drawing d = {.study = study, .state = study->seed, .count = count};
    /* Points on the line of all bytes, in order, so that every source is opened once. */
    g_autofree double *points = g_new(double, count);
    g_autofree guint *draws = g_new0(guint, study->sources->len);
    for (guint i = 0; i < count; i++)
        points[i] = chance(&d) * (double) study->total_bytes;
    qsort(points, count, sizeof *points, tool_by_number);
    double end = 0;
    guint at = 0;
    for (guint i = 0; i < study->sources->len && at < count; i++) {
        bool last = i + 1 == study->sources->len;
        end += (double) ((const advise_source *) g_ptr_array_index(study->sources, i))->bytes;
        guint first = at;
        while (at < count && (points[at] < end || last))
            at++;
        draws[i] = at - first;
    }
    d.draws = draws;
    draw_blocks(&d, progress);
}
