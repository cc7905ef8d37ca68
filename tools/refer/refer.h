/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_H
#define ESDM_TOOLS_REFER_H

/**
 * @file
 * Where the values of NetCDF files lie: netCDF classic (CDF-1, 2, 5) and netCDF-4 (HDF5). One
 * process looks at one file at a time.
 */

#include <esdm/reference.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct remote_object; /* refer/remote.h */

/* ---- netCDF classic (refer/classic.c) ----------------------------------------------------- */

typedef struct classic_variable {
    uint64_t begin;
    uint64_t bytes; /* of one record, or of all; not padded */
    bool record;
} classic_variable;

typedef struct classic_header {
    uint64_t records;
    uint64_t record_bytes; /* from one record to the next */
    size_t nvariables;
    classic_variable *variables; /* in the order of their numbers; free() */
} classic_header;

typedef enum classic_result {
    CLASSIC_OK,
    CLASSIC_SHORT, /* the header is longer than that */
    CLASSIC_WRONG  /* no header, or damaged */
} classic_result;

/** Parses a header. @param file_bytes size of the file: of records that are being streamed.
 *  @param ret_header untouched unless CLASSIC_OK. */
classic_result classic_parse(const uint8_t *data, size_t bytes, uint64_t file_bytes,
                             classic_header *ret_header);

/** Reads the beginning of a file. @param ret_bytes as many as are there, at most `bytes`. */
typedef bool (*classic_reader)(void *file, void *data, size_t bytes, size_t *ret_bytes);

/** Reads a header in one or two steps, more only where it is longer than 4 MiB.
 *  @param ret_data,ret_bytes owned, free(): the beginning of the file, with all of its header; may
 *  be NULL. false: it cannot be read, or is damaged. */
bool classic_read(classic_reader read, void *file, uint64_t file_bytes, classic_header *ret_header,
                  uint8_t **ret_data, size_t *ret_bytes);

/* ---- HDF5 (refer/hdf5.c) ------------------------------------------------------------------ */

typedef struct hdf5_file hdf5_file;

/** What was found out about one dataset. */
typedef struct hdf5_values {
    esdm_file_layout layout; /* without location and times; borrows what follows */
    esdm_file_filter *filters;
    uint64_t *chunk;
    esdm_file_part *parts;
    size_t nparts;
    bool complete; /* no value is missing */
    void *fill;    /* of the file: one element, in its byte order of this machine; NULL: none */
    const char *why_not; /* NULL, or why it cannot be referred to; static */
} hdf5_values;

/** NULL: it is no HDF5 file that can be read. @param fd stays open and the caller's. */
hdf5_file *hdf5_open(const char *path, int fd);
/** The same of an object on a server; borrowed while it is open. */
hdf5_file *hdf5_open_remote(struct remote_object *object);
/** When HDF5 is to open that path, it opens the object. NULL: no more. */
void hdf5_stand_for(const char *path, struct remote_object *object);
void hdf5_close(hdf5_file *file); /* NULL is accepted */
/** @param group "/" or "/a/b"; @param element_bytes of the dataset in ESDM.
 *  @param ret zeroed; hdf5_values_clear(). false: it cannot be read. */
bool hdf5_look(hdf5_file *file, const char *group, const char *name, uint32_t rank,
               size_t element_bytes, hdf5_values *ret);
void hdf5_values_clear(hdf5_values *values);

#endif
