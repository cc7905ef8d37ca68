/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions that make boxes refer to files that stay where they are. */

#include "esdm/reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/transfer.h"
#include "base/error.h"
#include "io/io.h"
#include "io/read/foreign.h"
#include "io/session/held_files.h"
#include "io/session/references.h"
#include "io/write/refer.h"
#include "model/usertype.h"

/* References made at a time. */
#define BATCH ((size_t) 256)

static esdm__filter
filter_of(const esdm_file_filter *filter)
{
    bool grib = filter->codec != NULL &&
                (strcmp(filter->codec, "grib") == 0 || strcmp(filter->codec, "grib-field") == 0);
    const char *of = filter->codec == NULL ? "hdf5" : grib ? "grib" : "zarr";
    return (esdm__filter){.name = of,
                          .id = filter->codec != NULL ? 0 : filter->id,
                          .codec = filter->codec != NULL ? filter->codec : "",
                          .parameters = (const uint8_t *) filter->values,
                          .parameter_bytes = filter->nvalues * (uint32_t) sizeof(uint32_t)};
}

static esdm_status
check_filters(const esdm_file_filter *filters, uint32_t nfilters, esdm_error *err)
{
    if (nfilters >= ESDM__FILTERS_MAX) /* the order of axes is one, too */
        return esdm__error_set(err, ESDM_EINVAL, "%" PRIu32 " filters are too many", nfilters);
    for (uint32_t i = 0; i < nfilters; i++) {
        const esdm_file_filter *f = &filters[i];
        esdm__filter filter = filter_of(f);
        if (f->nvalues > 4096)
            return esdm__error_set(err, ESDM_EINVAL, "a filter with %" PRIu32 " parameters",
                                   f->nvalues);
        if (esdm__filter_is_known(&filter))
            continue;
        if (f->codec != NULL)
            return esdm__error_set(err, ESDM_ENOTSUP, "Zarr's codec '%s' cannot be undone by ESDM",
                                   f->codec);
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "HDF5's filter %" PRIu32 " cannot be undone by ESDM", f->id);
    }
    return ESDM_OK;
}

static esdm_status
check_layout(const esdm_dataset *dataset, const esdm_file_layout *layout, esdm_error *err)
{
    const esdm__usertype *user = esdm__usertype_at(dataset->group->container, dataset->type);
    bool remote = esdm__site_is_url(layout->location);
    if (layout->location == NULL || (layout->location[0] != '/' && !remote))
        return esdm__error_set(err, ESDM_EINVAL,
                               "the location of a file is no absolute path and no URL");
    if (esdm__held_is(layout->location))
        return esdm__error_set(err, ESDM_EINVAL, "'%s': such files are the site's own",
                               layout->location);
    if (remote && layout->identity == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "'%s' without an identity", layout->location);
    if (dataset->type == ESDM_TYPE_STRING ||
        (user != NULL && user->kind != ESDM_CLASS_ENUM && user->kind != ESDM_CLASS_OPAQUE))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "only numbers, characters, enumerations and opaque values can be "
                               "bytes of a file");
    if ((layout->nfilters > 0 || layout->order != NULL) && layout->record_bytes > 0)
        return esdm__error_set(err, ESDM_EINVAL, "records with filters");
    if (layout->order != NULL && (layout->chunk == NULL || dataset->rank == 0))
        return esdm__error_set(err, ESDM_EINVAL, "an order of axes without chunks");
    return check_filters(layout->filters, layout->nfilters, err);
}

/* Both descriptions, which all parts share. */
static esdm_status
describe(const esdm_dataset *dataset, const esdm_file_layout *layout, esdm__buffer *source,
         esdm__buffer *decoding, esdm_error *err)
{
    char identity[64];
    esdm__elements elements;
    esdm_status status = esdm__elements_of(dataset, &elements, err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(identity, sizeof identity, "%" PRIu64 ":%" PRId64, layout->inode,
                    layout->changed_ns);
    esdm__foreign_put(
        source,
        &(esdm__foreign){.location = layout->location,
                         .bytes = layout->bytes,
                         .mtime_ns = layout->modified_ns,
                         .identity = layout->identity != NULL ? layout->identity : identity});
    esdm__decoding how = {.flags = (layout->big_endian ? ESDM__DECODING_BIG_ENDIAN : 0u) |
                                   (layout->edges_plain ? ESDM__DECODING_EDGES_PLAIN : 0u) |
                                   (layout->chunk != NULL ? ESDM__DECODING_EDGES_WHOLE : 0u),
                          .element_bytes = (uint32_t) elements.bytes,
                          .rank = layout->chunk != NULL ? dataset->rank : 0};
    for (uint32_t d = 0; d < how.rank; d++)
        how.chunk[d] = layout->chunk[d];
    if (layout->order != NULL)
        how.filters[how.nfilters++] =
            (esdm__filter){.name = "zarr",
                           .codec = "transpose",
                           .parameters = (const uint8_t *) layout->order,
                           .parameter_bytes = dataset->rank * (uint32_t) sizeof(uint32_t)};
    for (uint32_t i = 0; i < layout->nfilters; i++)
        how.filters[how.nfilters++] = filter_of(&layout->filters[i]);
    if (layout->record_bytes > 0) {
        how.extra = (const uint8_t *) &layout->record_bytes;
        how.extra_bytes = sizeof layout->record_bytes;
    }
    esdm__decoding_put(decoding, &how);
    return source->failed || decoding->failed ? esdm__error_nomem(err, 4096, "a reference")
                                              : ESDM_OK;
}

static void
refer_to(const esdm_dataset *dataset, const esdm_file_part *part, esdm__reference *reference)
{
    reference->box.rank = dataset->rank;
    memcpy(reference->box.lo, part->offset, sizeof part->offset);
    memcpy(reference->box.n, part->size, sizeof part->size);
    reference->position = part->position;
    reference->stored_bytes = part->bytes;
    reference->filter_mask = part->filter_mask;
    reference->check_kind = part->checksum_kind;
    reference->check = part->checksum;
}

static esdm_status
refer(esdm_dataset *dataset, const esdm_file_layout *layout, const esdm_file_part *parts,
      size_t nparts, esdm_error *err)
{
    esdm__buffer source, decoding;
    esdm__buffer_init(&source);
    esdm__buffer_init(&decoding);
    esdm__reference *references = calloc(BATCH, sizeof *references);
    esdm_status status = references != NULL ? describe(dataset, layout, &source, &decoding, err)
                                            : esdm__error_nomem(err, BATCH, "references");
    for (size_t i = 0; i < nparts && status == ESDM_OK; i += BATCH) {
        size_t n = nparts - i < BATCH ? nparts - i : BATCH;
        for (size_t k = 0; k < n; k++) {
            references[k] = (esdm__reference){.kind = ESDM__KIND_FOREIGN,
                                              .source = source.data,
                                              .source_bytes = source.bytes,
                                              .decoding = decoding.data,
                                              .decoding_bytes = decoding.bytes};
            refer_to(dataset, &parts[i + k], &references[k]);
        }
        status = esdm__io_refer(dataset, references, n, err);
    }
    free(references);
    esdm__buffer_clear(&source);
    esdm__buffer_clear(&decoding);
    return status;
}

esdm_status
esdm_dataset_refer(esdm_dataset *dataset, const esdm_file_layout *layout,
                   const esdm_file_part *parts, size_t nparts, esdm_error *err)
{
    if (dataset == NULL || layout == NULL || (parts == NULL && nparts > 0) ||
        (layout->filters == NULL && layout->nfilters > 0))
        return esdm__error_set(err, ESDM_EINVAL, "dataset, layout or parts are NULL");
    esdm_status status = esdm__check_writable(dataset, err);
    if (status == ESDM_OK)
        status = check_layout(dataset, layout, err);
    if (status == ESDM_OK)
        status = esdm__reference_allowed(dataset->group->container->session, layout->location, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    return refer(dataset, layout, parts, nparts, err);
}

esdm_status
esdm_file_decode(const esdm_file_filter *filters, uint32_t nfilters, uint32_t element_bytes,
                 const void *stored, size_t stored_bytes, size_t raw_bytes, void **ret_raw,
                 size_t *ret_bytes, esdm_error *err)
{
    if ((filters == NULL && nfilters > 0) || stored == NULL || ret_raw == NULL || ret_bytes == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "filters, bytes or results are NULL");
    esdm_status status = check_filters(filters, nfilters, err);
    if (status != ESDM_OK)
        return status;
    esdm__decoding how = {.element_bytes = element_bytes, .nfilters = nfilters};
    for (uint32_t i = 0; i < nfilters; i++)
        how.filters[i] = filter_of(&filters[i]);
    uint8_t *copy = malloc(stored_bytes + 1); /* undoing changes it */
    uint8_t *raw = NULL;
    if (copy == NULL)
        return esdm__error_nomem(err, stored_bytes, "a chunk");
    memcpy(copy, stored, stored_bytes);
    if (raw_bytes == 0) {
        status = esdm__filters_undo_any(&how, copy, stored_bytes, &raw, &raw_bytes, err);
    } else if ((raw = malloc(raw_bytes)) == NULL) {
        status = esdm__error_nomem(err, raw_bytes, "a chunk");
    } else {
        status = esdm__filters_undo(&how, 0, copy, stored_bytes, raw, raw_bytes, err);
    }
    free(copy);
    if (status != ESDM_OK) {
        free(raw);
        return status;
    }
    *ret_raw = raw;
    *ret_bytes = raw_bytes;
    return ESDM_OK;
}
