/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_GRIB_H
#define ESDM_TOOLS_REFER_GRIB_H

/** @file Messages of GRIB files, version 1 and 2: where they lie, and what ecCodes says of them. */

#include <esdm/reference.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- where they lie (refer/grib_walk.c): pure but the last
 * ---------------------------------------------- */

/** A message, and its section that describes the grid. */
typedef struct gribs_place {
    uint64_t position; /* in the file */
    uint64_t bytes;
    unsigned edition;
} gribs_place;

/** Bytes of a message that its head tells. */
#define GRIB_HEAD_BYTES 16u

/** Parses the head of a message. @param ret->position untouched. */
bool gribs_head(const uint8_t head[GRIB_HEAD_BYTES], gribs_place *ret);
/** The section of a whole message that describes its grid.
 *  @param ret_fields how many fields the message has. false: the message is damaged. */
bool gribs_grid_section(const uint8_t *message, uint64_t bytes, const uint8_t **ret_section,
                        size_t *ret_bytes, unsigned *ret_fields);

/** Whether a file begins with a message. */
bool gribs_is_file(const char *path);

/* ---- what they are (refer/grib.c) ----------------------------------------------------------- */

/** What fields have in common that differ in time and level only. */
typedef struct gribs_parameter {
    char *name; /* cfVarName */
    char *short_name, *long_name, *standard_name, *units, *step_type, *level_type;
    long id;
} gribs_parameter;

/** Where values lie on the earth. */
typedef struct gribs_grid {
    char *digest;  /* of its section */
    char *type;    /* gridType */
    uint32_t rank; /* 1: points; 2: rows */
    uint64_t shape[2];
    bool regular;                   /* latitude for each row, longitude for each column */
    double *latitudes, *longitudes; /* of rows and columns, else of all points */
} gribs_grid;

typedef struct gribs_message {
    gribs_place place;
    const gribs_parameter *parameter;
    const gribs_grid *grid;
    double level;   /* in the unit of its axis */
    long member;    /* of an ensemble; -1: none */
    int64_t time_s; /* valid time, since 1970 */
    int64_t reference_s;
    uint64_t checksum; /* XXH3 of its bytes */
} gribs_message;

typedef struct gribs_index {
    GPtrArray *parameters; /* gribs_parameter, owned */
    GPtrArray *grids;      /* gribs_grid, owned */
    GArray *messages;      /* gribs_message, as they lie in the file */
    char *centre;
} gribs_index;

/** Looks at all messages. @param fd of the file, for `bytes`; stays open.
 *  @return ESDM_ENOTSUP: without ecCodes, or of a kind that is not known; the message is named. */
esdm_status gribs_index_new(int fd, const char *path, uint64_t bytes, gribs_index **ret,
                            esdm_error *err);
void gribs_index_free(gribs_index *index); /* NULL is accepted */

#endif
