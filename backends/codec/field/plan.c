/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which coder a block gets: a part of it is tried with each. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "encode.h"

/* Points of the box that choices are tried on: a part of the block, within limits. */
#define BOX_PART   8
#define BOX_LEAST  16384
#define BOX_MOST   131072
#define BOX_PLANES 17 /* two runs of eight planes, and the one that ends them */
#define SAMPLES    6000
/* Bytes of levels by those of rows between which a part says too little about the whole. */
#define CLOSE_LEAST 0.7
#define CLOSE_MOST  1.05

typedef struct box {
    field__axes axes;
    uint64_t z, y, x; /* its first point */
    uint64_t b;
} box;

static uint64_t
at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* In the middle of the block, about as wide as high. */
static box
choose_box(const field__axes *axes, size_t elements)
{
    uint64_t points = elements / BOX_PART;
    points = points < BOX_LEAST ? BOX_LEAST : points > BOX_MOST ? BOX_MOST : points;
    box b = {.axes = {1, at_most(axes->nz, BOX_PLANES), 1, 1}};
    uint64_t plane = points / b.axes.nz + 1;
    uint64_t side = 1;
    while (side * side < plane)
        side++;
    b.axes.ny = at_most(axes->ny, side);
    b.axes.nx = at_most(axes->nx, plane / b.axes.ny + 16);
    b.axes.ny = at_most(axes->ny, plane / b.axes.nx + 1);
    b.b = axes->nb / 2;
    b.z = (axes->nz - b.axes.nz) / 2;
    b.y = (axes->ny - b.axes.ny) / 2;
    b.x = (axes->nx - b.axes.nx) / 2;
    return b;
}

/* The box's codes and mask. */
static esdm_status
cut_box(const field__job *job, const box *b, field__map *map, field__volume *ret_volume,
        esdm_error *err)
{
    size_t nx = (size_t) b->axes.nx;
    esdm_status st = field__volume_init(ret_volume, &b->axes, false, err);
    double *values = malloc(nx * sizeof *values);
    int64_t *codes = malloc(nx * sizeof *codes);
    ret_volume->mask = st == ESDM_OK ? esdm__scratch_new(ret_volume->elements) : NULL;
    if (values == NULL || codes == NULL || ret_volume->mask == NULL) {
        field__volume_clear(ret_volume);
        free(values);
        free(codes);
        return st != ESDM_OK ? st : esdm__error_nomem(err, nx * 16, "a sample of a block");
    }
    for (size_t r = 0; r < ret_volume->rows; r++) {
        uint64_t plane = b->b * job->axes.nz + b->z + r / b->axes.ny;
        uint64_t row = plane * job->axes.ny + b->y + r % b->axes.ny;
        size_t first = (size_t) (row * job->axes.nx + b->x);
        memcpy(ret_volume->mask + r * nx, job->mask + first, nx);
        field__load(job->kind, job->raw, first, nx, values);
        field__map_codes(map, values, nx, codes);
        for (size_t x = 0; x < nx; x++)
            field__row32(ret_volume, r)[x] =
                (int32_t) (uint32_t) ((uint64_t) codes[x] - (uint64_t) map->origin);
    }
    free(values);
    free(codes);
    return ESDM_OK;
}

/* Bytes that the block would take, estimated from the box. */
typedef struct trial {
    const field__job *job;
    box box;
    field__map *map, *refined;
} trial;

static esdm_status
try_choice(const trial *t, const field__plan *plan, double *ret_bytes, esdm_error *err)
{
    field__volume volume = {0};
    bool levels = plan->coder == FIELD__CODER_LEVELS;
    size_t head = 0;
    esdm__buffer out;
    esdm__buffer_init(&out);
    esdm_status st = cut_box(t->job, &t->box, levels ? t->refined : t->map, &volume, err);
    if (st == ESDM_OK)
        st = levels ? field__levels_encode(&volume, &plan->levels, SAMPLES, &out, &head, err)
                    : field__rows_encode(&volume, SAMPLES, &out, &head, err);
    double part = st == ESDM_OK ? (double) t->job->block->elements / (double) volume.elements : 0;
    *ret_bytes = (double) head + (double) (out.bytes - head) * part;
    esdm__buffer_clear(&out);
    field__volume_clear(&volume);
    return st;
}

static esdm_status
keep_better(const trial *t, const field__plan *plan, field__plan *best, double *best_bytes,
            esdm_error *err)
{
    double bytes;
    esdm_status st = try_choice(t, plan, &bytes, err);
    if (st == ESDM_OK && bytes < *best_bytes) {
        *best = *plan;
        *best_bytes = bytes;
    }
    return st;
}

esdm_status
field__plan_make(const field__job *job, field__map *map, field__map *refined, uint32_t width,
                 field__plan *ret_plan, esdm_error *err)
{
    const field__levels widths[] = {{width, 4, 4, 0}, {width, 6, 12, 0}, {width, 8, 16, 0}};
    trial t = {.job = job,
               .box = choose_box(&job->axes, job->block->elements),
               .map = map,
               .refined = refined};
    uint32_t deepest = 0;
    while (deepest < 3 && (UINT64_C(2) << deepest) < job->axes.nz)
        deepest++;
    double bytes = INFINITY;
    field__plan plan = {.coder = FIELD__CODER_ROWS};
    esdm_status st = keep_better(&t, &plan, ret_plan, &bytes, err);
    double rows_bytes = bytes;
    plan.coder = FIELD__CODER_LEVELS;
    plan.levels = (field__levels){width, 5, 8, 0};
    double levels_bytes = INFINITY;
    field__plan levels = plan;
    if (st == ESDM_OK)
        st = keep_better(&t, &plan, &levels, &levels_bytes, err);
    plan.levels.depth = deepest;
    if (st == ESDM_OK && deepest > 0)
        st = keep_better(&t, &plan, &levels, &levels_bytes, err);
    /* Other widths win some hundredths at best. */
    for (size_t i = 0; i < sizeof widths / sizeof widths[0] && st == ESDM_OK; i++) {
        if (levels_bytes > 1.1 * rows_bytes)
            break;
        plan.levels = widths[i];
        plan.levels.depth = levels.levels.depth;
        st = keep_better(&t, &plan, &levels, &levels_bytes, err);
    }
    if (levels_bytes < CLOSE_MOST * rows_bytes)
        *ret_plan = levels;
    ret_plan->close = levels_bytes > CLOSE_LEAST * rows_bytes;
    return st;
}
