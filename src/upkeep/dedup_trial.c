/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file What de-duplication while programs write would save: values of containers that are there
 * are read, cut and encoded as if each container was written now, one after the other from the
 * oldest on, and counted (io/write/trial.h). Nothing is stored.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/packs/equals.h"
#include "io/session/former.h"
#include "io/write/trial.h"
#include "model/copy.h"
#include "upkeep/asked.h"
#include "upkeep/boxes.h"
#include "upkeep/upkeep.h"

typedef struct member {
    char *name; /* owned */
    size_t folder_bytes;
    uint64_t modified_ns;
} member;

typedef struct rehearsal {
    esdm_session *session;
    const esdm_dedup_options *options;
    esdm_dedup_forecast *forecast;
    bool content;
    member *members; /* owned; by folder, then the oldest first */
    size_t count;
} rehearsal;

/* ---- containers ------------------------------------------------------------------------------ */

static bool
note_member(const char *name, const esdm_meta_container *record, void *user)
{
    rehearsal *r = user;
    for (size_t i = 0; i < r->count; i++) {
        if (r->options->ncontainers > 1 && strcmp(r->members[i].name, name) == 0)
            return true;
    }
    const char *slash = strrchr(name, '/');
    char *copy = strdup(name);
    if (copy == NULL || !esdm__array_grow(&r->members, r->count, sizeof *r->members)) {
        free(copy);
        return false;
    }
    r->members[r->count++] = (member){.name = copy,
                                      .folder_bytes = slash != NULL ? (size_t) (slash - name) : 0,
                                      .modified_ns = record->modified_ns};
    r->forecast->now_bytes += record->stored_bytes;
    return true;
}

static bool
same_folder(const member *a, const member *b)
{
    return a->folder_bytes == b->folder_bytes && memcmp(a->name, b->name, a->folder_bytes) == 0;
}

static int
in_order(const void *a, const void *b)
{
    const member *x = a;
    const member *y = b;
    if (x->folder_bytes != y->folder_bytes)
        return x->folder_bytes < y->folder_bytes ? -1 : 1;
    int order = memcmp(x->name, y->name, x->folder_bytes);
    if (order != 0)
        return order;
    if (x->modified_ns != y->modified_ns)
        return x->modified_ns < y->modified_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static esdm_status
list_members(rehearsal *r, esdm_error *err)
{
    esdm_status status =
        esdm__asked_visit(r->session, r->options->containers, r->options->ncontainers,
                          esdm__name_is_hidden, note_member, r, err);
    if (r->count > 1)
        qsort(r->members, r->count, sizeof *r->members, in_order);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Whether a program that made the container has written there: not to what is the fill value, or
 * in files that it refers to. */
static esdm_status
is_written(const esdm__boxes *s, const esdm__box *box, bool *ret_written, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm_status status = esdm__boxes_plan(s, box, &plan, err);
    *ret_written = plan.npieces > 0;
    for (size_t i = 0; i < plan.npieces; i++)
        *ret_written = *ret_written && plan.pieces[i].fragment->kind <= ESDM__KIND_CONSTANT;
    esdm__plan_clear(&plan);
    return status;
}

static esdm_status
write_box(esdm_dataset *dataset, const esdm__box *box, void *buffer, esdm_error *err)
{
    int64_t stride[ESDM_MAX_RANK];
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    esdm__dense_strides(box->rank, box->n, stride);
    const esdm__transfer t = {
        .dataset = dataset,
        .io = io,
        .elements = &io->elements,
        .memory = {esdm__elements_form(&io->elements, dataset->type), buffer, stride}};
    (void) pthread_mutex_lock(&io->write_lock);
    status = esdm__write_fragments(&t, box, false, err);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    return status;
}

static esdm_status
rehearse_box(const esdm__boxes *s, const esdm__box *box, void *buffer, esdm_error *err)
{
    bool written = false;
    esdm_dataspace space;
    esdm_status status = is_written(s, box, &written, err);
    if (status != ESDM_OK || !written)
        return status;
    status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
    if (status == ESDM_OK)
        status = esdm__io_read(s->dataset, &space, s->dataset->type, buffer, NULL, err);
    if (status != ESDM_OK)
        return status;
    status = write_box(s->dataset, box, buffer, err);
    if (esdm__typeref_is_variable(s->type))
        esdm__values_clear(s->type, esdm__box_elements(box), buffer);
    return status;
}

static esdm_status
rehearse_dataset(esdm_dataset *dataset, esdm_error *err)
{
    esdm__boxes s;
    bool any;
    esdm__box box;
    esdm_status status = esdm__boxes_begin(dataset, &s, &any, err);
    if (status != ESDM_OK || !any)
        return status;
    esdm__boxes_first(&s, &box);
    void *buffer = calloc(esdm__box_elements(&box), esdm__typeref_bytes(s.type));
    if (buffer == NULL)
        return esdm__error_nomem(err, ESDM__BOX_BYTES, "values");
    do
        status = rehearse_box(&s, &box, buffer, err);
    while (status == ESDM_OK && esdm__boxes_next(&s, &box));
    free(buffer);
    return status == ESDM_OK ? status : esdm__dataset_prefix(dataset, status, err);
}

/* What was removed meanwhile is passed by. */
static esdm_status
rehearse_container(rehearsal *r, const member *one, esdm__trial *trial, esdm_error *err)
{
    esdm_container *model = NULL;
    esdm_error why = {0};
    esdm_status status =
        esdm__io_open(r->session, one->name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &model, &why);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status == ESDM_OK) {
        esdm__io_of(model)->trial = trial;
        esdm__io_of(model)->by_content = r->content;
        status = esdm__trial_begin(trial, &why);
        for (size_t i = 0; i < model->datasets.count && status == ESDM_OK; i++)
            status = rehearse_dataset(model->datasets.items[i], &why);
        esdm__container_drop(model);
    }
    r->forecast->containers += status == ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void
add_counts(esdm_dedup_forecast *forecast, const esdm__trial *trial)
{
    const esdm__trial_counts *counts = esdm__trial_counted(trial);
    uint64_t table = esdm__equals_bytes(counts->looked_at);
    forecast->fragments += counts->fragments;
    forecast->bytes += counts->bytes;
    forecast->equals += counts->equals;
    forecast->equal_bytes += counts->equal_bytes;
    forecast->head_bytes += counts->head_bytes;
    if (counts->looked_at > 0 && table > forecast->table_bytes)
        forecast->table_bytes = table;
}

static esdm_status
rehearse_folder(rehearsal *r, size_t first, size_t end, esdm_error *err)
{
    esdm__trial *trial = esdm__trial_new();
    esdm_status status =
        trial != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof(void *), "fragments");
    for (size_t i = first; i < end && status == ESDM_OK; i++) {
        status = rehearse_container(r, &r->members[i], trial, err);
        if (status == ESDM_OK && r->options->progress != NULL)
            r->options->progress((double) (i + 1) / (double) r->count, r->members[i].name,
                                 r->options->user);
    }
    if (status == ESDM_OK)
        add_counts(r->forecast, trial);
    esdm__trial_free(trial);
    return status;
}

esdm_status
esdm__upkeep_dedup_forecast(esdm_session *session, const esdm_dedup_options *options, bool content,
                            esdm_dedup_forecast *forecast, esdm_error *err)
{
    rehearsal r = {
        .session = session, .options = options, .forecast = forecast, .content = content};
    *forecast = (esdm_dedup_forecast){0};
    esdm_status status = list_members(&r, err);
    for (size_t first = 0, end; first < r.count && status == ESDM_OK; first = end) {
        end = first + 1;
        while (end < r.count && same_folder(&r.members[first], &r.members[end]))
            end++;
        status = rehearse_folder(&r, first, end, err);
    }
    for (size_t i = 0; i < r.count; i++)
        free(r.members[i].name);
    free(r.members);
    return status;
}
