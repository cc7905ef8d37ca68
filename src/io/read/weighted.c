/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Each part of a stream has sums of its own, and these are added in the order of the parts. */

#include "io/read/weighted.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "codec/doubles.h"
#include "io/container/beyond.h"
#include "io/read/read.h"
#include "io/read/stream.h"

/* Such a share of `engine.memory` is the most of a part. */
#define MEMORY_SHARE 128u
/* Numbers that are converted at a time, and sums side by side of a row. */
#define RUN   512u
#define LANES 8u

typedef struct weigher {
    esdm_dataset *dataset;
    const esdm__box *box;
    const bool *over;
    const double *weights;
    uint64_t stride[ESDM_MAX_RANK];        /* of results; 0 along axes that are reduced */
    uint64_t weight_stride[ESDM_MAX_RANK]; /* of weights; 0 along axes that have none */
    size_t element_bytes;
    esdm__missing missing;
    esdm__beyond beyond;
    double *value;  /* sums of products */
    double *weight; /* sums of weights */
} weigher;

/* Sums of one part, in C order of the axes that are kept. */
typedef struct sums {
    size_t count;
    double *value;
    double *weight;
    double room[];
} sums;

/* Loops over the elements of a part, slowest axis first. */
typedef struct axes {
    uint32_t count;
    uint64_t n[ESDM_MAX_RANK + 1];
    uint64_t result[ESDM_MAX_RANK + 1]; /* strides */
    uint64_t weight[ESDM_MAX_RANK + 1];
} axes;

/* ---- rows ---------------------------------------------------------------------------------- */

/* What is missing, or has no weight, adds nothing, be it infinite. */
static void
add_to_each(const double *x, const double *w, size_t n, double *value, double *weight)
{
    for (size_t i = 0; i < n; i++) {
        bool counts = x[i] == x[i] && w[i] > 0;
        value[i] += counts ? x[i] * w[i] : 0;
        weight[i] += counts ? w[i] : 0;
    }
}

static void
add_to_one(const double *x, const double *w, size_t n, double *value, double *weight)
{
    double sum[LANES] = {0};
    double all[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        add_to_each(x + i, w + i, LANES, sum, all);
    add_to_each(x + i, w + i, n - i, sum, all);
    for (i = 0; i < LANES; i++) {
        *value += sum[i];
        *weight += all[i];
    }
}

/* A row of numbers with equal strides of results (0 or 1) and of weights. */
static void
add_row(const weigher *r, const uint8_t *numbers, uint64_t n, const double *weights,
        uint64_t weight_stride, double *value, double *weight, uint64_t stride)
{
    double x[RUN];
    double w[RUN];
    for (uint64_t done = 0; done < n;) {
        size_t some = n - done < RUN ? (size_t) (n - done) : RUN;
        const double *own = weights + done * weight_stride;
        esdm__doubles(r->missing.type, &r->missing, numbers + done * r->element_bytes, some, x);
        esdm__beyond_hide(&r->beyond, ESDM_TYPE_FLOAT64, x, some);
        for (size_t i = 0; i < some && weight_stride != 1; i++)
            w[i] = own[i * weight_stride];
        if (stride == 1)
            add_to_each(x, weight_stride == 1 ? own : w, some, value + done, weight + done);
        else
            add_to_one(x, weight_stride == 1 ? own : w, some, value, weight);
        done += some;
    }
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Axes longer than one; neighbours that lie in one row of everything are one axis. */
static axes
axes_of(const weigher *r, const esdm_stream_part *part, size_t *ret_count)
{
    axes a = {.count = 0, .n = {1}};
    uint64_t stride[ESDM_MAX_RANK];
    *ret_count = 1;
    for (uint32_t d = part->rank; d-- > 0;) {
        stride[d] = r->over[d] ? 0 : *ret_count;
        *ret_count *= r->over[d] ? 1 : (size_t) part->size[d];
    }
    for (uint32_t d = 0; d < part->rank; d++) {
        uint64_t n = part->size[d];
        uint32_t last = a.count - 1;
        if (n == 1)
            continue;
        if (a.count > 0 && a.result[last] == stride[d] * n &&
            a.weight[last] == r->weight_stride[d] * n) {
            a.n[last] *= n;
            a.result[last] = stride[d];
            a.weight[last] = r->weight_stride[d];
            continue;
        }
        a.n[a.count] = n;
        a.result[a.count] = stride[d];
        a.weight[a.count++] = r->weight_stride[d];
    }
    return a;
}

static void
add_values(const weigher *r, const esdm_stream_part *part, const axes *a, sums *to)
{
    uint64_t index[ESDM_MAX_RANK + 1] = {0};
    uint32_t inner = a->count > 0 ? a->count - 1 : 0;
    const uint8_t *at = part->values;
    const double *first = r->weights;
    for (uint32_t d = 0; d < part->rank; d++)
        first += (part->offset[d] - r->box->lo[d]) * r->weight_stride[d];
    for (;;) {
        uint64_t result = 0;
        uint64_t weight = 0;
        for (uint32_t d = 0; d < inner; d++) {
            result += index[d] * a->result[d];
            weight += index[d] * a->weight[d];
        }
        add_row(r, at, a->n[inner], first + weight, a->weight[inner], to->value + result,
                to->weight + result, a->result[inner]);
        at += a->n[inner] * r->element_bytes;
        uint32_t axis = inner;
        while (axis > 0 && ++index[axis - 1] == a->n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return;
    }
}

static esdm_status
work(const esdm_stream_part *part, void *user, void **ret_result, esdm_error *err)
{
    const weigher *r = user;
    size_t count;
    axes a = axes_of(r, part, &count);
    size_t bytes = sizeof(sums) + 2 * count * sizeof(double);
    sums *own = calloc(1, bytes);
    if (own == NULL)
        return esdm__error_nomem(err, bytes, "a reduction");
    own->count = count;
    own->value = own->room;
    own->weight = own->room + count;
    add_values(r, part, &a, own);
    *ret_result = own;
    return ESDM_OK;
}

/* Sums of a part to those of all; what is kept of the part is a box of results. */
static esdm_status
add_sums(const esdm_stream_part *part, void *result, void *user, esdm_error *err)
{
    const weigher *r = user;
    const sums *own = result;
    uint64_t index[ESDM_MAX_RANK] = {0};
    (void) err;
    for (size_t i = 0; i < own->count; i++) {
        uint64_t to = 0;
        for (uint32_t d = 0; d < part->rank; d++)
            to += (part->offset[d] - r->box->lo[d] + index[d]) * r->stride[d];
        r->value[to] += own->value[i];
        r->weight[to] += own->weight[i];
        for (uint32_t d = part->rank; d-- > 0;) {
            if (r->over[d])
                continue;
            if (++index[d] < part->size[d])
                break;
            index[d] = 0;
        }
    }
    free(result);
    return ESDM_OK;
}

static void
discard(void *result, void *user)
{
    (void) user;
    free(result);
}

/* ---- the call ------------------------------------------------------------------------------ */

esdm_status
esdm__reduction_part_bytes(esdm_dataset *dataset, uint64_t *ret_bytes, esdm_error *err)
{
    esdm_session *session = dataset->group->container->session;
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    *ret_bytes = esdm__part_bytes(session, io, session->site->engine.memory_bytes / MEMORY_SHARE);
    esdm__dataset_io_put(dataset);
    return ESDM_OK;
}

static esdm_status
check_weights(const double *weights, uint64_t count, esdm_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "weight %" PRIu64 " is %g; weights are finite and not negative",
                                   i, weights[i]);
    }
    return ESDM_OK;
}

static esdm_status
prepare(weigher *r, const bool *weighted, uint64_t *ret_results, esdm_error *err)
{
    uint64_t count = 1;
    uint64_t results = 1;
    esdm_status status = esdm__missing_of_reduced(r->dataset, &r->missing, err);
    if (status != ESDM_OK)
        return status;
    r->element_bytes = esdm_type_size(r->dataset->type);
    esdm__beyond_of(r->dataset, &r->missing, &r->beyond);
    for (uint32_t d = r->box->rank; d-- > 0;) {
        r->stride[d] = r->over[d] ? 0 : results;
        r->weight_stride[d] = weighted[d] ? count : 0;
        if (__builtin_mul_overflow(results, r->over[d] ? 1 : r->box->n[d], &results) ||
            __builtin_mul_overflow(count, weighted[d] ? r->box->n[d] : 1, &count))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "the reduction has too many results; reduce more dimensions");
    }
    *ret_results = results;
    return results == 0 ? ESDM_OK : check_weights(r->weights, count, err);
}

static esdm_status
stream_sums(weigher *r, esdm_error *err)
{
    esdm_stream stream = {.work = work, .reduce = add_sums, .discard = discard, .user = r};
    esdm_status status = esdm__reduction_part_bytes(r->dataset, &stream.part_bytes, err);
    return status == ESDM_OK ? esdm__io_read_stream(r->dataset, r->box, &stream, err) : status;
}

esdm_status
esdm__io_reduce_weighted(esdm_dataset *dataset, const esdm__box *box, const bool *over,
                         esdm_reduction what, const bool *weighted, const double *weights,
                         double *ret_values, double *ret_weights, esdm_error *err)
{
    weigher r = {.dataset = dataset,
                 .box = box,
                 .over = over,
                 .weights = weights,
                 .value = ret_values,
                 .weight = ret_weights};
    double *own = NULL;
    uint64_t n = 0;
    if (dataset->group->container->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers: each of these can be "
                               "reduced, not the whole",
                               dataset->group->container->name);
    esdm_status status = prepare(&r, weighted, &n, err);
    if (status == ESDM_OK && n > 0 && r.weight == NULL) {
        r.weight = own = n < SIZE_MAX / sizeof *own ? malloc((size_t) n * sizeof *own) : NULL;
        if (own == NULL)
            status = esdm__error_nomem(err, (size_t) n * sizeof *own, "a reduction");
    }
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    for (uint64_t i = 0; i < n; i++)
        r.value[i] = r.weight[i] = 0;
    status = stream_sums(&r, err); /* names the dataset */
    for (uint64_t i = 0; i < n && status == ESDM_OK; i++) {
        if (!(r.weight[i] > 0))
            r.value[i] = (double) NAN;
        else if (what == ESDM_REDUCE_MEAN)
            r.value[i] /= r.weight[i];
    }
    free(own);
    return status;
}
