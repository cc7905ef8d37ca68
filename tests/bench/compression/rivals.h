/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_BENCH_RIVALS_H
#define ESDM_TESTS_BENCH_RIVALS_H

/** @file What compare.py calls: compressors of other people, and ESDM's own. Values are float. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIVALS_API __attribute__((visibility("default")))

typedef enum rivals_kind {
    RIVALS_LOSSLESS = 0,
    RIVALS_ABSOLUTE = 1,
    RIVALS_RELATIVE = 2
} rivals_kind;

/** Numbers and their shape, slowest axis first. */
typedef struct rivals_block {
    uint64_t elements;
    uint32_t rank; /* 1 to 4 */
    uint64_t shape[4];
    double bound; /* 0: lossless */
    float fill;   /* keeps its bits; 0: none */
} rivals_block;

/** Number 0 and on; NULL: no more. */
RIVALS_API const char *rivals_name(size_t which);
RIVALS_API rivals_kind rivals_kind_of(size_t which);
/** Whether another grouping of the axes gives another result. */
RIVALS_API bool rivals_is_shaped(size_t which);
/** Bytes written to `out`; 0: failed. */
RIVALS_API size_t rivals_encode(size_t which, const rivals_block *block, const void *values,
                                void *out, size_t room);
RIVALS_API bool rivals_decode(size_t which, const rivals_block *block, const void *encoded,
                              size_t bytes, void *values);

/** A field of a netCDF file. */
typedef struct rivals_field {
    rivals_block block;
    float *values; /* owned by the library */
    double range;
    char name[64];
} rivals_field;

/** 0, or a status of netCDF. */
RIVALS_API int rivals_load(const char *path, rivals_field *ret_field);
RIVALS_API void rivals_free(rivals_field *field);

/** What is stored in a site in memory, through the public API on one thread. NULL: failed; then
 *  own_error() tells why. `folder` is for its catalogue. */
typedef struct own own;
RIVALS_API own *own_open(const char *folder);
RIVALS_API void own_close(own *o);
RIVALS_API const char *own_error(const own *o);
/** A coordinate or a mask: doubles of one or two dimensions of the field, side by side, from number
 *  `first` on. A name "d1" makes it the coordinate variable of dimension 1. */
typedef struct own_variable {
    const char *name;
    const char *units; /* "": none */
    uint32_t first, rank;
    const double *values;
} own_variable;

/** What own_prepare() is to store beside the field, before its numbers; borrowed until the next
 *  call. `coordinates` is that attribute of the field; NULL: it has none. */
RIVALS_API void own_beside(own *o, size_t count, const own_variable *variables,
                           const char *coordinates);
/** Why regions hold everywhere; NULL: they do not. */
RIVALS_API const char *own_doubt(const own *o);
/** Makes a container with the field as a dataset; `quantities` as in esdm_accuracy_parse(). The
 *  codecs are chosen by a first turn, which does not count. */
RIVALS_API bool own_prepare(own *o, const rivals_field *field, const char *quantities);
/** Stores the field once more. */
RIVALS_API bool own_write(own *o);
/** Opens the container anew and reads what was stored last. */
RIVALS_API bool own_read(own *o, float *values);
/** Bytes of the last turn; 0: failed. */
RIVALS_API uint64_t own_stored(own *o);
/** Codecs of the last turn. */
RIVALS_API const char *own_chain(const own *o);

#endif
