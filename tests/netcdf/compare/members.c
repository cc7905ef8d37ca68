/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Members of user-defined types asked one by one, single elements of arrays of variable length,
 * values as text, and the helpers of netcdf_aux.h. */

#include "compare.h"

#include <netcdf_aux.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    signed char flag;
    double position[2][3];
    char *text;
    nc_vlen_t row;
} record;

typedef struct types {
    nc_type record, row, colour, raw;
} types;

static const int shape[] = {2, 3};

static void
define(int ncid, types *t)
{
    const short red = 7;
    CALL(nc_def_vlen(ncid, "row", NC_INT, &t->row));
    CALL(nc_def_compound(ncid, sizeof(record), "record", &t->record));
    CALL(nc_insert_compound(ncid, t->record, "flag", NC_COMPOUND_OFFSET(record, flag), NC_BYTE));
    CALL(nc_insert_array_compound(ncid, t->record, "position", NC_COMPOUND_OFFSET(record, position),
                                  NC_DOUBLE, 2, shape));
    CALL(nc_insert_compound(ncid, t->record, "text", NC_COMPOUND_OFFSET(record, text), NC_STRING));
    CALL(nc_insert_compound(ncid, t->record, "row", NC_COMPOUND_OFFSET(record, row), t->row));
    CALL(nc_def_enum(ncid, NC_SHORT, "colour", &t->colour));
    CALL(nc_insert_enum(ncid, t->colour, "red", &red));
    CALL(nc_def_opaque(ncid, 3, "raw", &t->raw));
}

/* Every function about the members of a compound. */
static void
note_fields(int ncid, nc_type type)
{
    char name[NC_MAX_NAME + 1] = "?";
    size_t size = 99;
    size_t count = 99;
    CALL(nc_inq_compound(ncid, type, name, &size, &count));
    note("'%s' %zu %zu", name, size, count);
    CALL(nc_inq_compound(ncid, type, NULL, NULL, NULL));
    CALL(nc_inq_compound_name(ncid, type, name));
    CALL(nc_inq_compound_size(ncid, type, &size));
    CALL(nc_inq_compound_nfields(ncid, type, &count));
    note("'%s' %zu %zu", name, size, count);
    for (int i = -1; i <= 4; i++) {
        size_t offset = 99;
        nc_type found = -1;
        int rank = -1;
        int lengths[NC_MAX_VAR_DIMS] = {0};
        CALL(nc_inq_compound_fieldname(ncid, type, i, name));
        CALL(nc_inq_compound_fieldoffset(ncid, type, i, &offset));
        CALL(nc_inq_compound_fieldtype(ncid, type, i, &found));
        CALL(nc_inq_compound_fieldndims(ncid, type, i, &rank));
        CALL(nc_inq_compound_fielddim_sizes(ncid, type, i, lengths));
        CALL(nc_inq_compound_field(ncid, type, i, NULL, NULL, NULL, NULL, NULL));
        note("'%s' at %zu type %d rank %d %d %d", name, offset, found, rank, lengths[0],
             lengths[1]);
    }
}

static void
note_others(int ncid, const types *t)
{
    char name[NC_MAX_NAME + 1] = "?";
    size_t size = 99;
    size_t count = 99;
    nc_type base = -1;
    short value = -1;
    CALL(nc_inq_enum(ncid, t->colour, name, &base, &size, &count));
    note("'%s' base %d size %zu members %zu", name, base, size, count);
    CALL(nc_inq_enum(ncid, t->colour, NULL, NULL, NULL, NULL));
    CALL(nc_inq_enum(ncid, t->row, name, &base, &size, &count));
    CALL(nc_inq_enum(ncid, 999, name, &base, &size, &count));
    CALL(nc_inq_enum_member(ncid, t->colour, 0, NULL, &value));
    note("%d", value);
    CALL(nc_inq_enum_member(ncid, t->colour, -1, name, &value));
    CALL(nc_inq_enum_member(ncid, t->record, 0, name, &value));
    CALL(nc_inq_vlen(ncid, t->row, name, &size, &base));
    note("'%s' size %zu base %d", name, size, base);
    CALL(nc_inq_vlen(ncid, t->record, name, &size, &base));
    CALL(nc_inq_opaque(ncid, t->raw, name, &size));
    note("'%s' size %zu", name, size);
    CALL(nc_inq_opaque(ncid, t->record, name, &size));
}

static void
inquiry(const world *w)
{
    types t = {0};
    int ncid = create(w);
    int other = -1;
    define(ncid, &t);
    CALL(nc_def_grp(ncid, "below", &other));
    for (int again = 0; again < 2; again++) {
        /* Of types of other classes netCDF-4 looks at members that are not there. */
        const nc_type all[] = {t.record, NC_INT, 0, 999};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            note_fields(ncid, all[i]);
        note_fields(other, t.record); /* types are seen from groups below */
        note_others(ncid, &t);
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
        CALL(nc_inq_grp_ncid(ncid, "below", &other));
    }
    CALL(nc_close(ncid));
}

static void
elements(const world *w)
{
    types t = {0};
    int ncid = create(w);
    const int numbers[] = {4, 5, 6};
    int back[3] = {0};
    size_t length = 99;
    nc_vlen_t one = {0, NULL};
    define(ncid, &t);
    CALL(nc_put_vlen_element(ncid, t.row, &one, 3, numbers));
    note("%zu %d", one.len, one.p != NULL ? ((int *) one.p)[2] : -1);
    CALL(nc_get_vlen_element(ncid, t.row, &one, &length, back));
    note("%zu %d %d", length, back[0], back[2]);
    CALL(nc_put_vlen_element(ncid, t.record, &one, 3, numbers));
    CALL(nc_get_vlen_element(ncid, t.record, &one, &length, back));
    CALL(nc_put_vlen_element(ncid, 999, &one, 3, numbers));
    CALL(nc_get_vlen_element(ncid, NC_INT, &one, &length, back));
    nc_vlen_t several[2] = {{2, malloc(2 * sizeof(int))}, {0, NULL}};
    CALL(nc_free_vlens(2, several));
    one = (nc_vlen_t){2, malloc(2 * sizeof(int))};
    CALL(nc_free_vlen(&one));
    CALL(nc_close(ncid));
}

static void
note_text(int ncid, nc_type type, void *values, size_t count)
{
    char *text = NULL;
    CALL(nc_dump_data(ncid, type, values, count, &text));
    note("%s", text == NULL ? "nothing" : text);
    free(text);
}

static void
texts(const world *w)
{
    types t = {0};
    int ncid = create(w);
    int ints[] = {1, -2, 3};
    double numbers[] = {1.5, 1e300};
    short colours[] = {7, 8};
    int row[] = {1, 2};
    char *strings[] = {(char *) "one", (char *) ""};
    unsigned char raw[6] = {1, 2, 3, 250, 251, 252};
    nc_vlen_t rows[] = {{2, row}, {1, row}};
    define(ncid, &t);
    note_text(ncid, NC_INT, ints, 3);
    note_text(ncid, NC_DOUBLE, numbers, 2);
    note_text(ncid, NC_STRING, strings, 2);
    note_text(ncid, NC_INT, NULL, 0);
    note_text(ncid, t.raw, raw, 1);
    note_text(ncid, t.colour, colours, 1);
    note_text(ncid, t.row, rows, 1);
    note_text(ncid, 999, ints, 1);
    CALL(nc_close(ncid));
}

static void
freeing(const world *w)
{
    types t = {0};
    int ncid = create(w);
    if (w->format == NC_FORMAT_NETCDF4)
        define(ncid, &t);
    char *strings[] = {strdup("one"), strdup("two")};
    CALL(ncaux_reclaim_data(ncid, NC_STRING, strings, 2));
    CALL(ncaux_reclaim_data(ncid, NC_STRING, NULL, 0));
    CALL(ncaux_reclaim_data_all(ncid, NC_INT, malloc(8), 2));
    if (w->format == NC_FORMAT_NETCDF4) {
        record values[2] = {{.text = strdup("a"), .row = {1, malloc(sizeof(int))}},
                            {.text = strdup("b"), .row = {0, NULL}}};
        nc_vlen_t *rows = calloc(1, sizeof *rows);
        *rows = (nc_vlen_t){3, malloc(3 * sizeof(int))};
        CALL(nc_enddef(ncid));
        CALL(ncaux_reclaim_data(ncid, t.record, values, 2));
        CALL(ncaux_reclaim_data_all(ncid, t.row, rows, 1));
    }
    CALL(nc_close(ncid));
}

/* netcdf_aux.h finds offsets and alignments. In 4.9.0 no field can be added (NC_ENOMEM), and
 * ending a compound without fields crashes. */
static void
alignment(const world *w)
{
    types t = {0};
    int ncid = create(w);
    void *tag = NULL;
    define(ncid, &t);
    CALL(ncaux_begin_compound(ncid, "aligned", NCAUX_ALIGN_C, &tag));
    CALL(ncaux_add_field(tag, "byte", NC_BYTE, 0, NULL));
    CALL(ncaux_add_field(tag, "wrong", NC_BYTE, -1, NULL));
    CALL(ncaux_abort_compound(tag));
    CALL(ncaux_abort_compound(NULL));
    const nc_type all[] = {NC_BYTE,  NC_CHAR,   NC_SHORT, NC_INT,   NC_FLOAT,  NC_DOUBLE,
                           NC_UBYTE, NC_USHORT, NC_UINT,  NC_INT64, NC_UINT64, NC_STRING,
                           t.record, t.row,     t.colour, t.raw};
    CALL(nc_enddef(ncid)); /* from here on the types are complete */
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t bytes = 99;
        CALL(ncaux_type_alignment(all[i], ncid, &bytes));
        note("%zu", bytes);
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_members[] = {
    {"members", "inquiry", IN_NC4, inquiry},     {"members", "elements", IN_NC4, elements},
    {"members", "texts", IN_NC4, texts},         {"members", "freeing", IN_ALL, freeing},
    {"members", "alignment", IN_NC4, alignment}, {0}};
