/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_VFILE_H
#define ESDM_TOOLS_VFILE_H

/**
 * @file
 * Snapshots of containers as NetCDF files whose bytes are made when they are asked for.
 *
 * The header of such a file is made by libnetcdf and HDF5: a sparse file with the whole structure,
 * attributes, and values of varying size (texts, arrays), in which all other values are holes. It
 * is kept in the cache folder, named after the container's uuid and the snapshot. What lies in the
 * holes is read from the container and laid out as the file has it. Bytes of one snapshot are the
 * same at every read. Nothing of the data is kept on disk.
 *
 * Needs a program that exports the H5Dcreate2() of interpose.c (esdm_vfile_program() in
 * tools/CMakeLists.txt).
 */

#include "esdm/esdm.h"

typedef struct esdm_vfile esdm_vfile;

typedef enum esdm_vfile_format {
    ESDM_VFILE_NETCDF4, /**< for every container; those of the classic model say so in the file */
    ESDM_VFILE_CDF1,
    ESDM_VFILE_CDF2,
    ESDM_VFILE_CDF5
} esdm_vfile_format;

/** "netcdf4", "classic", "64bit-offset" or "cdf5". false: none of them. */
bool esdm_vfile_format_of(const char *text, esdm_vfile_format *ret_format);

/**
 * Opens a snapshot as a file, and pins it. Threads: any; headers are made one at a time.
 * @param snapshot ESDM_SNAPSHOT_LATEST for the newest. @param ret_file owned; esdm_vfile_close(),
 * before the session is closed.
 * @return ESDM_ENOENT: no such container or snapshot; ESDM_EINVAL or ESDM_ENOTSUP: the format
 * cannot hold it; errors of the cache folder.
 */
ESDM_MUST_CHECK esdm_status esdm_vfile_open(esdm_session *session, const char *name,
                                            uint64_t snapshot, esdm_vfile_format format,
                                            esdm_vfile **ret_file, esdm_error *err);
/** NULL is accepted. No other call may be under way. */
void esdm_vfile_close(esdm_vfile *file);

/** In bytes. */
uint64_t esdm_vfile_size(const esdm_vfile *file);
uint64_t esdm_vfile_snapshot(const esdm_vfile *file);
/** When the snapshot was committed, in ns since 1970; 0: that of a query, or not known. */
uint64_t esdm_vfile_time(const esdm_vfile *file);
/** 32 digits, borrowed: what tells files apart, with the snapshot, its time and the format. */
const char *esdm_vfile_uuid(const esdm_vfile *file);
/** The container, for reading alone; borrowed. */
esdm_container *esdm_vfile_container(const esdm_vfile *file);

/**
 * Reads bytes of the file. Threads: any number on one file.
 * @param ret_read how many; fewer than asked for at the end of the file alone.
 */
ESDM_MUST_CHECK esdm_status esdm_vfile_pread(esdm_vfile *file, void *buffer, size_t bytes,
                                             uint64_t offset, size_t *ret_read, esdm_error *err);

/** Folder of headers, made when it is not there: $XDG_CACHE_HOME/esdm/vfile unless set before the
 *  first open. */
void esdm_vfile_set_cache(const char *folder);

#endif
