/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on statistics and reductions, and on values part by part. */

#include "esdm/statistics.h"

#include "api/transfer.h"
#include "base/arguments.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "io/read/histogram.h"
#include "io/read/reduce.h"
#include "io/read/statistics.h"
#include "io/read/stream.h"
#include "io/read/weighted.h"

static esdm_status
box_of(const esdm_dataset *dataset, const esdm_dataspace *space, esdm__box *ret, esdm_error *err)
{
    if (space == NULL) {
        ret->rank = dataset->rank;
        for (uint32_t d = 0; d < dataset->rank; d++) {
            ret->lo[d] = 0;
            ret->n[d] = esdm_dimension_length(dataset->dimensions[d]);
        }
        return ESDM_OK;
    }
    if (space->has_stride)
        return esdm__error_set(err, ESDM_EINVAL, "statistics of a selection with strides");
    esdm_status status = esdm__space_check(dataset, space, false, err);
    if (status == ESDM_OK)
        esdm__box_of_space(ret, space);
    return status;
}

esdm_status
esdm_dataset_statistics(esdm_dataset *dataset, const esdm_dataspace *space, bool read,
                        esdm_statistics *ret_statistics, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    esdm__box box;
    esdm__box_statistics found;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_statistics);
    esdm_status status = box_of(dataset, space, &box, err);
    if (status == ESDM_OK)
        status = esdm__io_statistics(dataset, &box, true, read, &found, err);
    if (status != ESDM_OK)
        return status;
    const esdm__statistics *s = &found.values;
    *ret_statistics = (esdm_statistics){.elements = found.elements,
                                        .valid = s->valid,
                                        .min = esdm__number_double(s->class, s->min),
                                        .max = esdm__number_double(s->class, s->max),
                                        .min_value = {.u = s->min.u},
                                        .max_value = {.u = s->max.u},
                                        .sum = s->sum,
                                        .read_elements = found.read_elements};
    if (found.bounds)
        ret_statistics->flags |= ESDM_STATISTICS_BOUNDS;
    if (found.exact)
        ret_statistics->flags |= ESDM_STATISTICS_EXACT;
    return ESDM_OK;
}

esdm_status
esdm_reduce(esdm_dataset *dataset, const esdm_dataspace *space, const bool *over,
            esdm_reduction what, double *ret_values, uint64_t *ret_valid, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    static const bool none[1] = {false};
    esdm__box box;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_values);
    if (over == NULL && dataset->rank > 0)
        return esdm__error_set(err, ESDM_EINVAL, "argument 'over' is NULL");
    if (what < ESDM_REDUCE_SUM || what > ESDM_REDUCE_VARIANCE)
        return esdm__error_set(err, ESDM_EINVAL, "there is no reduction %d", (int) what);
    esdm_status status = box_of(dataset, space, &box, err);
    return status == ESDM_OK ? esdm__io_reduce(dataset, &box, over != NULL ? over : none, what,
                                               ret_values, ret_valid, err)
                             : status;
}

esdm_status
esdm_reduce_weighted(esdm_dataset *dataset, const esdm_dataspace *space, const bool *over,
                     esdm_reduction what, const bool *weighted, const double *weights,
                     double *ret_values, double *ret_weights, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    esdm__box box;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, over);
    ESDM__NEED(err, weighted);
    ESDM__NEED(err, weights);
    ESDM__NEED(err, ret_values);
    if (what != ESDM_REDUCE_SUM && what != ESDM_REDUCE_MEAN)
        return esdm__error_set(err, ESDM_EINVAL, "only sums and means are weighted");
    esdm_status status = box_of(dataset, space, &box, err);
    return status == ESDM_OK ? esdm__io_reduce_weighted(dataset, &box, over, what, weighted,
                                                        weights, ret_values, ret_weights, err)
                             : status;
}

esdm_status
esdm_histogram(esdm_dataset *dataset, const esdm_dataspace *space, const double *edges,
               size_t nedges, uint64_t *ret_counts, esdm_histogram_rest *ret_rest, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    esdm__box box;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, edges);
    ESDM__NEED(err, ret_counts);
    if (nedges < 2)
        return esdm__error_set(err, ESDM_EINVAL, "a histogram needs two edges or more");
    for (size_t i = 1; i < nedges; i++) {
        if (!(edges[i - 1] < edges[i]))
            return esdm__error_set(err, ESDM_EINVAL, "edge %zu, %g, is not more than %g", i,
                                   edges[i], edges[i - 1]);
    }
    esdm_status status = box_of(dataset, space, &box, err);
    return status == ESDM_OK
               ? esdm__io_histogram(dataset, &box, edges, nedges, ret_counts, ret_rest, err)
               : status;
}

esdm_status
esdm_read_stream(esdm_dataset *dataset, const esdm_dataspace *space, const esdm_stream *stream,
                 esdm_error *err)
{
    esdm__box box;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, stream);
    if (stream->work == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "there is no function to work on parts");
    if (space != NULL && space->has_stride)
        return esdm__error_set(err, ESDM_EINVAL,
                               "a selection with strides cannot be read part by part");
    esdm_status status = box_of(dataset, space, &box, err);
    esdm_dataspace whole;
    if (status == ESDM_OK)
        status = esdm_dataspace_init(&whole, box.rank, box.lo, box.n, err);
    if (status == ESDM_OK) /* of the buffer each part has its own */
        status = esdm__check_transfer(dataset, &whole,
                                      stream->type != ESDM_TYPE_NONE ? stream->type : dataset->type,
                                      stream, err);
    return status == ESDM_OK ? esdm__io_read_stream(dataset, &box, stream, err) : status;
}
