/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_STORAGE_H
#define ESDMNC_STORAGE_H

/**
 * @file
 * What a variable was told about its storage. ESDM stores it in its own way; all of it is kept to
 * be told, as hints of the dataset, and reported as netCDF-4 does, in the session that set it and
 * later. Threads: as structure calls, one at a time.
 */

#include "internal.h"
#include "quantize.h"

/* The hints. Their values are part of stored containers. */
#define ESDMNC_HINT_STORAGE                                                                        \
    "netcdf.storage"                        /* "contiguous", "chunked", "compact": the last call   \
                                             */
#define ESDMNC_HINT_CHUNKS  "netcdf.chunks" /* "L,L,…" when the default shape is another by now */
#define ESDMNC_HINT_FILTERS "netcdf.filters" /* "ID,PARAMETER,…;ID…" in their order */
#define ESDMNC_HINT_ENDIAN  "netcdf.endian"  /* "little", "big" */
#define ESDMNC_HINT_NOFILL  "netcdf.nofill"  /* "1" */
/* Read only: what containers of version 0.1 have in place of the filters. */
#define ESDMNC_HINT_DEFLATE "netcdf.deflate"    /* "<shuffle 0|1> <level 0…9>" */
#define ESDMNC_HINT_CHECK   "netcdf.fletcher32" /* "1" */

/* ---- var_storage.c -------------------------------------------------------------------------- */

/** What all settings need: a variable of a netCDF-4 format that define mode has not been left
 *  with. NC_ENOTNC4, NC_EPERM, NC_ENOTVAR, NC_ELATEDEF. */
int esdmnc_find_changeable(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_var **ret_var);
/** NC_CONTIGUOUS, NC_CHUNKED or NC_COMPACT. */
int esdmnc_storage_kind(const esdmnc_file *file, const esdmnc_var *var);
int esdmnc_storage_set_kind(const esdmnc_file *file, esdmnc_var *var, int kind);
/** NC_ENDIAN_… */
int esdmnc_endian(const esdmnc_file *file, const esdmnc_var *var);
bool esdmnc_nofill(const esdmnc_file *file, const esdmnc_var *var);
int esdmnc_set_nofill(const esdmnc_file *file, esdmnc_var *var, bool nofill);
int esdmnc_set_hint(const esdmnc_file *file, esdmnc_var *var, const char *key, const char *value);
bool esdmnc_has_unlimited(const esdmnc_var *var);
/** What happens to a new variable when define mode is left: NC_EFILTER or NC_EHDFERR for settings
 *  that HDF5 refuses only then. */
int esdmnc_storage_create(esdmnc_file *file, esdmnc_var *var);

/* ---- filters.c ------------------------------------------------------------------------------ */

/* HDF5's filter numbers. */
enum {
    ESDMNC_FILTER_DEFLATE = 1,
    ESDMNC_FILTER_SHUFFLE = 2,
    ESDMNC_FILTER_FLETCHER32 = 3,
    ESDMNC_FILTER_SZIP = 4,
    ESDMNC_FILTER_BLOSC = 32001
};

bool esdmnc_has_filters(const esdmnc_var *var);
bool esdmnc_has_filter(const esdmnc_var *var, unsigned filter);
/** Whether HDF5 creates a dataset with these filters: NC_EFILTER, NC_EHDFERR. */
int esdmnc_filters_check(const esdmnc_var *var);

/* ---- chunks.c ------------------------------------------------------------------------------- */

/** The chunk shape netCDF-4 has for the variable, chunked or not. `rank` values. */
void esdmnc_chunks_get(const esdmnc_var *var, size_t *ret_shape);
/** NC_EBADCHUNK for a chunk of 4 GiB or more, or larger than the variable. */
int esdmnc_chunks_check(const esdmnc_var *var, const size_t *shape);
/** What the user stated; a first length of 0 asks for netCDF-4's default. */
int esdmnc_chunks_set(const esdmnc_file *file, esdmnc_var *var, const size_t *shape);
/** The default shape of a new variable, which depends on the records that were told of. */
int esdmnc_chunks_start(const esdmnc_file *file, esdmnc_var *var);
/** Makes room for the lengths of dimensions that were opened or defined. */
int esdmnc_chunks_room(esdmnc_file *file);
/** Notes that somebody was told the length of an unlimited dimension: only so netCDF-4 learns it.
 *  Any thread. */
void esdmnc_chunks_told(esdmnc_file *file, const esdm_dimension *dimension, uint64_t length);
/** Makes the shape ESDM's as far as it was stated and the variable is chunked. */
int esdmnc_chunks_apply(const esdmnc_file *file, esdmnc_var *var);
/** Replaces what was stated as 0. */
int esdmnc_chunks_create(const esdmnc_file *file, esdmnc_var *var);

/* ---- chunk_cache.c -------------------------------------------------------------------------- */

/** The numbers of nc_get_chunk_cache() become those of a file at its opening and of a variable at
 *  its definition. */
void esdmnc_cache_global(const esdmnc_file *file, esdmnc_cache *ret);
/** Makes the cache of a chunked variable larger when a chunk does not fit, as most calls do. */
void esdmnc_cache_adjust(const esdmnc_file *file, esdmnc_var *var);

/* ---- fill.c --------------------------------------------------------------------------------- */

/** Makes `values` (one element) the fill value of a variable; NC_EBADTYPE, NC_ELATEFILL. */
int esdmnc_fill_from_att(esdmnc_file *file, esdmnc_var *var, nc_type type, const void *values);

/* ---- accuracy.c ----------------------------------------------------------------------------- */

/** Whether an attribute of that name states an accuracy, or tells readers of one. */
bool esdmnc_accuracy_is_named(const char *attribute);
/** Such an attribute was set, or another one was renamed to it. */
void esdmnc_accuracy_put(const esdmnc_file *file, esdmnc_var *var, const char *attribute);
/** Before an attribute is set: tells once when it is a limit (valid_range) that comes too late. */
void esdmnc_accuracy_limits(const esdmnc_file *file, const esdmnc_var *var, const char *attribute,
                            size_t bytes, const void *values);
/** One was removed or renamed: what was stated before is taken back. */
void esdmnc_accuracy_removed(esdmnc_var *var, const char *attribute);
/** Makes what the attributes of a variable state its accuracy, and removes them. What makes no
 *  sense is told on stderr, naming attribute and variable: NC_EINVAL. */
int esdmnc_accuracy_settle(esdmnc_file *file, esdmnc_var *var);
/** Tells once, after a commit, where numbers are more accurate than was stated, as it was not known
 * where the regions of an accuracy lie; and once, when what was stated of a variable is in other
 * units than those that it has. */
void esdmnc_accuracy_tell(const esdmnc_file *file);
/** A filter asks for compression: the mode of the accuracy follows the last level of deflate,
 * unless it was stated otherwise. @param level 0: another filter. */
int esdmnc_accuracy_compress(const esdmnc_file *file, esdmnc_var *var, unsigned level);

/* ---- doubt.c -------------------------------------------------------------------------------- */

/** Keeps a statement until numbers are written that it can have been made for. NC_ENOMEM. */
int esdmnc_doubt_begin(esdmnc_var *var, const esdm_accuracy *accuracy);
/** Forgets it. Nothing when there is none. */
void esdmnc_doubt_drop(esdmnc_var *var);
/** Before `count` values are written: makes it the variable's when they show that it is meant for
 *  them. Any thread. */
int esdmnc_doubt_written(const esdmnc_file *file, esdmnc_var *var, nc_type type, const void *values,
                         uint64_t count);
/** When a file is closed: tells what was not taken. */
int esdmnc_doubt_end(const esdmnc_file *file);

/* ---- copying.c ------------------------------------------------------------------------------ */

/** Whether this process is a program that hands numbers on as they are (nccopy, ncks, cdo copy).
 *  Any thread. */
bool esdmnc_program_copies(void);

/* ---- quantize.c ----------------------------------------------------------------------------- */

/** Whether what is written to the variable is rounded. Locked inside. */
bool esdmnc_quantized(const esdmnc_file *file, esdmnc_var *var);
/** false: it is not, and that is known already. */
bool esdmnc_may_be_quantized(const esdmnc_var *var);
/** Gives a variable that define mode is left with the attribute that tells. */
int esdmnc_quantize_create(esdmnc_file *file, esdmnc_var *var);
/**
 * Writes rounded values.
 * @param space     as for esdm_write(). @param piecewise  netCDF-C writes it row by row, or value
 * by value, and begins anew each time.
 */
int esdmnc_put_quantized(const esdmnc_file *file, esdmnc_var *var, const esdm_dataspace *space,
                         bool piecewise, nc_type memory_type, const void *data,
                         uint64_t *ret_out_of_range);

#endif
