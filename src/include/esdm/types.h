/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TYPES_H
#define ESDM_TYPES_H

/**
 * @file
 * Element types and dataspaces.
 */

#include <stdbool.h>
#include <stdint.h>

#include "esdm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Element type. The atomic types carry the numbers of NetCDF's `nc_type` (netcdf.h), which are
 * also what is stored. Numbers from 64 up are kept for user-defined types of a container.
 */
typedef int32_t esdm_type;

enum {
    ESDM_TYPE_NONE = 0,
    ESDM_TYPE_INT8 = 1,
    ESDM_TYPE_CHAR = 2, /**< text; converts to no other type */
    ESDM_TYPE_INT16 = 3,
    ESDM_TYPE_INT32 = 4,
    ESDM_TYPE_FLOAT32 = 5,
    ESDM_TYPE_FLOAT64 = 6,
    ESDM_TYPE_UINT8 = 7,
    ESDM_TYPE_UINT16 = 8,
    ESDM_TYPE_UINT32 = 9,
    ESDM_TYPE_INT64 = 10,
    ESDM_TYPE_UINT64 = 11,
    ESDM_TYPE_STRING = 12 /**< in memory `char *`, NUL-terminated; NULL is no "" */
};

/** Bytes of one element in memory (`sizeof(char *)` for strings); 0 for an unknown type. */
ESDM_API size_t esdm_type_size(esdm_type type);

/** "int8", "char", … "string" as in the container document; NULL for an unknown type. */
ESDM_API const char *esdm_type_name(esdm_type type);

/** The default fill value of `type` (NetCDF's NC_FILL_*): esdm_type_size() bytes, static.
 *  NULL for an unknown type. For strings it points at a `char *` to "". */
ESDM_API const void *esdm_type_default_fill(esdm_type type);

/** Highest number of dimensions of a dataset (HDF5's limit, which netCDF-4 shares). */
#define ESDM_MAX_RANK 32

/**
 * An N-d hyperslab of a dataset and how it lies in the caller's memory.
 *
 * Fill it with esdm_dataspace_init() and, when needed, the two setters; the fields are public so
 * that it can live on the stack. Only the first `rank` entries of an array mean anything.
 */
typedef struct esdm_dataspace {
    uint32_t rank;
    bool has_stride;                      /**< some stride is not 1 */
    bool has_memory_stride;               /**< memory is not dense C order of `size` */
    uint64_t offset[ESDM_MAX_RANK];       /**< index of the first selected element */
    uint64_t size[ESDM_MAX_RANK];         /**< selected elements along the dimension */
    uint64_t stride[ESDM_MAX_RANK];       /**< step between selected elements, ≥ 1 */
    int64_t memory_stride[ESDM_MAX_RANK]; /**< step in the buffer, in elements; may be < 0 */
} esdm_dataspace;

/**
 * Sets a dense hyperslab: stride 1, C order in memory.
 * @param rank 0 … ESDM_MAX_RANK; rank 0 selects the one element of a scalar.
 * @param offset,size `rank` values each; NULL offset means zeros. A size of 0 selects nothing.
 * @return ESDM_EINVAL when rank is too large, or offset+size or the number of elements overflows.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataspace_init(esdm_dataspace *space, uint32_t rank,
                                                         const uint64_t *offset,
                                                         const uint64_t *size, esdm_error *err);

/** Sets the step in the dataset; each must be ≥ 1. ESDM_EINVAL if zero or the extent overflows. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataspace_set_stride(esdm_dataspace *space,
                                                               const uint64_t *stride,
                                                               esdm_error *err);

/** Sets the step in memory in elements (NetCDF's imap). The buffer passed to esdm_read() and
 *  esdm_write() points at the element of index (0, …, 0). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataspace_set_memory_stride(esdm_dataspace *space,
                                                                      const int64_t *stride,
                                                                      esdm_error *err);

/** Number of selected elements. Cannot overflow after a successful init. */
ESDM_API uint64_t esdm_dataspace_elements(const esdm_dataspace *space);

#ifdef __cplusplus
}
#endif
#endif
