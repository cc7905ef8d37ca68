/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/write_behind.h"

#include <stdlib.h>

#include "base/error.h"
#include "io/container/behind.h"
#include "io/write/write.h"

/* What is shorter is stored at once, when nothing is before it. */
#define SMALL_BYTES (UINT64_C(64) << 10)

typedef struct box_job {
    esdm__job job;
    esdm__behind_box what;
    esdm__dataset_io *io;
    uint64_t cause;       /* span of the put */
    esdm_dataspace space; /* the selection of a strided one */
    void *data;           /* owned; dense, in the engine's form */
} box_job;

static esdm_status
run(esdm__job *job, esdm_error *err)
{
    box_job *j = (box_job *) job;
    int64_t stride[ESDM_MAX_RANK];
    esdm__dense_strides(j->what.box.rank, j->what.box.n, stride);
    const esdm__elements *e = &j->io->elements;
    const esdm__transfer t = {.dataset = j->what.dataset,
                              .io = j->io,
                              .elements = e,
                              .space = &j->space,
                              .memory = {e->type, j->data, stride}};
    uint64_t cause = esdm__span_adopt(j->cause);
    esdm_status status = esdm__write_fragments(&t, &j->what.box, j->what.strided != NULL, err);
    (void) esdm__span_adopt(cause);
    return status;
}

static void
free_job(esdm__job *job)
{
    box_job *j = (box_job *) job;
    free(j->data);
    free(j);
}

/* A copy of the box, `bytes` with all that it takes. NULL: no memory. */
static box_job *
copy_box(const esdm__transfer *t, const esdm__box *box, bool strided, uint64_t bytes)
{
    box_job *j = calloc(1, sizeof *j);
    void *data = malloc((size_t) bytes - sizeof *j);
    if (j == NULL || data == NULL) {
        free(j);
        free(data);
        return NULL;
    }
    int64_t stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, box->n, stride);
    const esdm__memory to = {t->elements->type, data, stride};
    esdm__elements_copy(t->elements, box->rank, box->n, &t->memory, &to, t->out_of_range);
    j->job = (esdm__job){.bytes = bytes, .run = run, .free = free_job};
    j->what.dataset = t->dataset;
    j->what.box = *box;
    if (strided) {
        j->space = *t->space;
        j->what.strided = &j->space;
    }
    j->io = t->io;
    j->cause = esdm__span_current();
    j->data = data;
    return j;
}

/* Here and now, after what came before. */
static esdm_status
write_now(const esdm__transfer *t, const esdm__box *box, bool strided, esdm_error *err)
{
    esdm_status status = esdm__dataset_settle(t->dataset, t->io, err);
    return status == ESDM_OK ? esdm__write_fragments(t, box, strided, err) : status;
}

esdm_status
esdm__write_behind(const esdm__transfer *t, const esdm__box *box, bool strided, esdm_error *err)
{
    esdm__behind *behind = t->dataset->group->container->session->behind;
    if (behind == NULL)
        return esdm__write_fragments(t, box, strided, err);
    uint64_t raw = esdm__box_elements(box) * t->elements->bytes;
    uint64_t bytes = raw + sizeof(box_job); /* small boxes take more than their data */
    bool idle = atomic_load(&t->io->lane.count) == 0;
    if (esdm__elements_vary(t->elements) || bytes > esdm__behind_limit(behind) ||
        (raw < SMALL_BYTES && idle))
        return write_now(t, box, strided, err);
    esdm_status status = esdm__behind_enter(behind, bytes, err);
    if (status != ESDM_OK)
        return status;
    box_job *j = copy_box(t, box, strided, bytes);
    if (j == NULL) {
        esdm__behind_leave(behind, bytes);
        return write_now(t, box, strided, err);
    }
    esdm__behind_put(behind, &t->io->lane, &j->job);
    return ESDM_OK;
}
