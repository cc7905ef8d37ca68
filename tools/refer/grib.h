/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_GRIB_H
#define ESDM_TOOLS_REFER_GRIB_H

/** @file Messages of GRIB files, version 1 and 2: where they lie, and what ecCodes says of them. */

#include <esdm/reference.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- where they lie (refer/grib_walk.c): pure but the last -------------------------------- */

/** A message. */
typedef struct gribs_place {
    uint64_t position; /* in the file */
    uint64_t bytes;
    unsigned edition;
    bool is_long; /* of edition 1 and 8 MiB or more: gribs_long() knows its bytes */
} gribs_place;

/** Bytes of a message that its head tells. */
#define GRIB_HEAD_BYTES 16u

/** Parses the head of a message. @param ret->position untouched. */
bool gribs_head(const uint8_t head[GRIB_HEAD_BYTES], gribs_place *ret);

/** Reads bytes of a message, counted from its first one. false: it cannot. */
typedef bool (*gribs_reader)(void *message, uint64_t position, void *to, size_t bytes);

/** The length of a message of edition 1 whose head has the sign of long ones. Where its section of
 *  data says that it has less than 120 bytes, the head counts in units of 120 bytes, and the
 *  section tells what is too much (ECMWF's convention; ecCodes has it, too).
 *  @param place->bytes as gribs_head() left it. @return false: not read, or damaged. */
bool gribs_long(gribs_place *place, gribs_reader read, void *message);

/** Sections are numbered as in edition 2; of edition 1 there are 1 and 3. */
#define GRIB_SECTIONS 8u

/** What a field is made of: of several in one message some sections may be those of an earlier one.
 */
typedef struct gribs_field {
    uint64_t at[GRIB_SECTIONS]; /* 0: it has none */
    uint64_t bytes[GRIB_SECTIONS];
} gribs_field;

/** A walk from field to field. Zeroed but the first three. */
typedef struct gribs_walk {
    const gribs_place *place;
    gribs_reader read;
    void *message;
    uint64_t at; /* 0: not begun */
    gribs_field field;
    unsigned fields; /* so far */
} gribs_walk;

typedef enum gribs_step {
    GRIBS_FIELD, /* walk->field */
    GRIBS_END,
    GRIBS_DAMAGED,
    GRIBS_UNREAD /* the reader failed */
} gribs_step;

/** Only heads of sections are read. After the last field GRIBS_END. */
gribs_step gribs_next(gribs_walk *walk);

/** A message that says of the field what its own says, but whose values are all 0: without the
 *  data, which may be long. @param ret owned, g_free(). false: not read, or too long. */
bool gribs_empty_message(const gribs_walk *walk, uint8_t **ret, size_t *ret_bytes);

/** Whether a file begins with a message, maybe a damaged one. */
bool gribs_is_file(const char *path);

/* ---- files and objects (refer/grib_file.c) --------------------------------------------------- */

struct remote_object; /* refer/remote.h */

/** What messages are read from. Zeroed but the first four. */
typedef struct gribs_file {
    const char *path; /* for messages; borrowed */
    uint64_t bytes;
    int fd;                       /* of a file; stays open */
    struct remote_object *remote; /* borrowed; NULL: a file */
    uint8_t *window;              /* of an object: what was read last; owned */
    uint64_t window_at;
    size_t window_bytes;
    size_t read_ahead; /* bytes that the next request asks for */
} gribs_file;

/** @param data false: heads, near which others are likely to be read next. */
bool gribs_file_read(gribs_file *file, uint64_t position, void *to, size_t bytes, bool data);
/** Tells how far away the next message is: whether to read on or to ask again. */
void gribs_file_expect(gribs_file *file, uint64_t message_bytes);
void gribs_file_clear(gribs_file *file);

/* ---- one after the other (refer/grib_find.c) ------------------------------------------------- */

typedef enum gribs_found {
    GRIBS_MESSAGE,
    GRIBS_NO_MORE,
    GRIBS_LOST,  /* what is there is no message, and more than padding */
    GRIBS_FAILED /* the file cannot be read */
} gribs_found;

/** The next message. Padding, heads of telegrams and marks of Fortran's records may lie before it,
 *  and behind the last one.
 *  @param position where the one before ends; moved to the message, or to what is none. */
gribs_found gribs_find(gribs_file *file, uint64_t *position, gribs_place *ret);
/** The first whole message behind a place that is damaged, wherever it is; of files alone.
 *  @return false: there is none, or it was not looked for. */
bool gribs_find_behind(gribs_file *file, uint64_t position, gribs_place *ret);

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

/** Coefficients of hybrid levels, at the interfaces of layers: pressure = a + b * surface's. */
typedef struct gribs_hybrid {
    size_t interfaces;
    double *a, *b; /* Pa; 1 */
} gribs_hybrid;

typedef struct gribs_message {
    gribs_place place;
    unsigned field;  /* which one of the message, from 0 */
    unsigned fields; /* of the message */
    const gribs_parameter *parameter;
    const gribs_grid *grid;
    const gribs_hybrid *hybrid; /* NULL: it has none */
    double level;               /* in the unit of its axis; of layers the first bound */
    double level_end;           /* the other bound; NAN: it is no layer */
    long member;                /* of an ensemble; -1: none */
    long members, ensemble;     /* how many there are, and of which type; -1: not said */
    int64_t time_s;             /* valid time, since 1970; of periods their end */
    int64_t begin_s;            /* of the period; time_s: an instant, or not known */
    int64_t reference_s;
    uint64_t checksum; /* XXH3 of its bytes; 0 where they were not read */
} gribs_message;

typedef struct gribs_index {
    GPtrArray *parameters; /* gribs_parameter, owned */
    GPtrArray *grids;      /* gribs_grid, owned */
    GPtrArray *hybrids;    /* gribs_hybrid, owned */
    GArray *messages;      /* gribs_message, as they lie in the file */
    char *centre;
} gribs_index;

/** Looks at all messages. Those of a file are read and summed up, of those of an object on a server
 *  no more than their heads are.
 *  @param file borrowed. @return ESDM_ENOTSUP: without ecCodes, or of a kind that is not known; the
 *  message is named. ESDM_ECORRUPT: a part of the file is no message: its bytes are named, and
 * where messages begin again. */
esdm_status gribs_index_new(gribs_file *file, gribs_index **ret, esdm_error *err);
void gribs_index_free(gribs_index *index); /* NULL is accepted */

#endif
