/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_SERVE_DAP_H
#define ESDM_TOOLS_SERVE_DAP_H

/**
 * @file
 * Containers as data sets of OPeNDAP, version 2 (ESE-RFC-004.1.1): what the files of it share.
 *
 * The format has no groups: a variable of a group is called "group_name".
 * Each type is the smallest one that every client has: libnetcdf makes signed numbers of unsigned
 * ones, and others know no signed bytes. Integers of 64 bits are Float64; a variable with values
 * that this cannot hold is left out, and so is one of a user-defined type or without any value
 * (`left_out`). Characters are Strings along their last dimension, whose length the attributes tell
 * as the netCDF libraries know it (DODS: strlen, dimName).
 */

#include "esdm-serve/esdm-serve.h"

/** Numbers along a dimension. */
typedef struct dap_slice {
    uint64_t start, stride, count;
} dap_slice;

typedef struct dap_variable dap_variable;
struct dap_variable {
    const cp_dataset *dataset; /* borrowed */
    char *name;                /* escaped */
    const char *type;          /* "Float32" */
    esdm_type taken;           /* what readers take its values for: see dap_taken() */
    uint32_t rank;             /* without the dimension of the characters of a String */
    bool is_grid;              /* each dimension has a variable of its own: a Grid */
    const dap_variable *maps[ESDM_MAX_RANK]; /* of a Grid; borrowed */
    /* What is asked for. */
    bool whole;                          /* the variable, as it is */
    bool array;                          /* of a Grid: its array alone */
    bool map[ESDM_MAX_RANK];             /* of a Grid: maps alone */
    dap_slice slices[ESDM_MAX_RANK];     /* of the array */
    dap_slice map_slices[ESDM_MAX_RANK]; /* of the maps */
};

typedef struct dap_set {
    const serve_model *model; /* borrowed */
    GPtrArray *variables;     /* dap_variable, owned, in order */
    GHashTable *dimensions;   /* cp_dimension → name, owned */
    GString *left_out;        /* names of variables, with blanks between them */
} dap_set;

/** All variables; nothing is asked for yet. */
dap_set *dap_set_new(const serve_model *model);
void dap_set_free(dap_set *set); /* NULL is accepted */
/** "Float32"; NULL: the format has no such type. */
const char *dap_type_name(esdm_type type);
/** What readers take values of a dataset for, by its attribute _Unsigned: as other types have other
 *  widths here, these values are sent, and the attribute is not. */
esdm_type dap_taken(const cp_dataset *dataset);
/** A name as the format allows it; owned. @param also characters that need no escape here. */
char *dap_escape(const char *name, const char *also);
/** The same of "group/name": "group_name". */
char *dap_path_name(const char *path);
/** Of a dimension, escaped; borrowed. */
const char *dap_dimension_name(const dap_set *set, const cp_dimension *dimension);

/**
 * Marks what a constraint expression asks for, "v[0:2:8][3],g.time"; all for "" and NULL.
 * @return NULL, else what is wrong with it; owned. (dap-constraint.c)
 */
char *dap_constrain(dap_set *set, const char *expression);

/** Of what is asked for: the structure (DDS), and the attributes of all (DAS). (dap-text.c) */
void dap_put_dds(const dap_set *set, GString *text);
void dap_put_das(const dap_set *set, GString *text);

/** An array that is asked for, in the order in which they are sent. */
typedef struct dap_part {
    const dap_variable *variable;
    const dap_slice *slices;
} dap_part;
/** Owned: dap_part. */
GArray *dap_parts(const dap_set *set);

/** The values, encoded as XDR has them, piece by piece. (dap-data.c) */
typedef struct dap_data dap_data;
/** @param parts taken over. @param head what comes before the values; taken over. */
dap_data *dap_data_new(GArray *parts, GString *head);
void dap_data_free(dap_data *data); /* NULL is accepted */
/** The next bytes. @param ret_bytes 0: there are no more. */
esdm_status dap_data_next(dap_data *data, void *buffer, size_t most, size_t *ret_bytes,
                          esdm_error *err);

#endif
