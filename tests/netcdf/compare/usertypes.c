/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* User-defined types: definition and its errors, inquiry, equality, data, attributes, memory. */

#include "compare.h"

#include <stdlib.h>
#include <string.h>

typedef struct point {
    char a;
    double b;
    short c[2];
} point;

typedef struct mixed {
    int number;
    char *text;
    nc_vlen_t row;
} mixed;

typedef struct types {
    nc_type point, mixed, row, flag, raw, unknown;
} types;

static void
define(int ncid, types *t)
{
    const int two = 2;
    const unsigned char off = 0, on = 200;
    CALL(nc_def_compound(ncid, sizeof(point), "point", &t->point));
    CALL(nc_insert_compound(ncid, t->point, "a", NC_COMPOUND_OFFSET(point, a), NC_BYTE));
    CALL(nc_insert_compound(ncid, t->point, "b", NC_COMPOUND_OFFSET(point, b), NC_DOUBLE));
    CALL(nc_insert_array_compound(ncid, t->point, "c", NC_COMPOUND_OFFSET(point, c), NC_SHORT, 1,
                                  &two));
    CALL(nc_def_vlen(ncid, "row", NC_FLOAT, &t->row));
    CALL(nc_def_compound(ncid, sizeof(mixed), "mixed", &t->mixed));
    CALL(nc_insert_compound(ncid, t->mixed, "number", NC_COMPOUND_OFFSET(mixed, number), NC_INT));
    CALL(nc_insert_compound(ncid, t->mixed, "text", NC_COMPOUND_OFFSET(mixed, text), NC_STRING));
    CALL(nc_insert_compound(ncid, t->mixed, "row", NC_COMPOUND_OFFSET(mixed, row), t->row));
    CALL(nc_def_enum(ncid, NC_UBYTE, "flag", &t->flag));
    CALL(nc_insert_enum(ncid, t->flag, "off", &off));
    CALL(nc_insert_enum(ncid, t->flag, "on", &on));
    CALL(nc_def_opaque(ncid, 5, "raw", &t->raw));
    t->unknown = 999;
}

static void
note_type(int ncid, nc_type type)
{
    char name[NC_MAX_NAME + 1] = "?";
    size_t size = 0, members = 0;
    nc_type base = -1;
    int class = -1;
    CALL(nc_inq_user_type(ncid, type, name, &size, &base, &members, &class));
    note("type %d '%s' size %zu base %d members %zu class %d", type, name, size, base, members,
         class);
    CALL(nc_inq_type(ncid, type, name, &size));
    note("'%s' %zu", name, size);
    for (int i = 0; class == NC_COMPOUND && i <= (int) members; i++) {
        int rank = -1, index = -1, shape[NC_MAX_VAR_DIMS] = {0};
        size_t offset = 0;
        CALL(nc_inq_compound_field(ncid, type, i, name, &offset, &base, &rank, shape));
        note("member '%s' at %zu type %d rank %d shape %d", name, offset, base, rank, shape[0]);
        CALL(nc_inq_compound_fieldindex(ncid, type, name, &index));
        note("index %d", index);
    }
    for (int i = 0; class == NC_ENUM && i <= (int) members; i++) {
        unsigned char value = 1;
        CALL(nc_inq_enum_member(ncid, type, i, name, &value));
        note("member '%s' = %d", name, value);
        CALL(nc_inq_enum_ident(ncid, type, value, name));
        note("'%s'", name);
    }
}

static void
note_types(int ncid, const types *t)
{
    int count = -1, ids[20], equal = -1;
    nc_type found = -1;
    CALL(nc_inq_typeids(ncid, &count, ids));
    note_ints("typeid", ids, count > 0 ? (size_t) count : 0);
    const nc_type all[] = {t->point, t->mixed, t->row, t->flag, t->raw, t->unknown};
    for (int i = 0; i < 6; i++) {
        note_type(ncid, all[i]);
        for (int k = 0; k < 6; k++) {
            CALL(nc_inq_type_equal(ncid, all[i], ncid, all[k], &equal));
            note("equal %d", equal);
        }
    }
    CALL(nc_inq_typeid(ncid, "mixed", &found));
    note("found %d", found);
    CALL(nc_inq_typeid(ncid, "nothing", &found));
    CALL(nc_inq_typeid(ncid, "a/b", &found));
    CALL(nc_inq_compound(ncid, t->flag, NULL, NULL, NULL));
    CALL(nc_inq_vlen(ncid, t->flag, NULL, NULL, NULL));
    CALL(nc_inq_opaque(ncid, t->raw, NULL, NULL));
    CALL(nc_inq_compound_fieldindex(ncid, t->point, "nothing", &count));
    CALL(nc_inq_compound_fieldindex(ncid, t->flag, "off", &count));
    CALL(nc_inq_compound_fieldindex(ncid, NC_INT, "off", &count));
    CALL(nc_inq_enum_ident(ncid, t->flag, 77, NULL));
    CALL(nc_inq_enum_ident(ncid, t->row, 77, NULL));
}

static void
definition(const world *w)
{
    types t = {0};
    int ncid = create(w);
    nc_type other;
    int varid, number = 0;
    define(ncid, &t);
    note_types(ncid, &t); /* nothing is equal before the types are committed */
    CALL(nc_def_opaque(ncid, 5, "raw", &other));
    CALL(nc_def_opaque(ncid, 0, "zero", &other));
    CALL(nc_def_compound(ncid, 0, "zero", &other));
    CALL(nc_def_opaque(ncid, 5, "a/b", &other));
    CALL(nc_def_vlen(ncid, NULL, NC_INT, &other));
    CALL(nc_def_var(ncid, "raw", NC_INT, 0, NULL, &varid));
    CALL(nc_def_grp(ncid, "raw", &varid));
    CALL(nc_insert_compound(ncid, t.flag, "x", 0, NC_INT));
    CALL(nc_insert_compound(ncid, t.unknown, "x", 0, NC_INT));
    CALL(nc_insert_compound(ncid, NC_INT, "x", 0, NC_INT));
    CALL(nc_insert_compound(ncid, t.point, "a/b", 0, NC_INT));
    CALL(nc_insert_enum(ncid, t.point, "x", &number));
    CALL(nc_insert_enum(ncid, t.unknown, "x", &number));
    CALL(nc_def_var(ncid, "v", t.unknown, 0, NULL, &varid));
    CALL(nc_def_var(ncid, "v", t.point, 0, NULL, &varid));
    CALL(nc_enddef(ncid));
    CALL(nc_insert_compound(ncid, t.point, "x", 0, NC_INT));
    CALL(nc_insert_enum(ncid, t.flag, "x", &number));
    note_types(ncid, &t);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_types(ncid, &t);
    CALL(nc_close(ncid));
}

static void
refused(const world *w)
{
    int ncid = create(w);
    nc_type type = -1;
    CALL(nc_def_compound(ncid, 8, "a", &type));
    CALL(nc_def_vlen(ncid, "a", NC_INT, &type));
    CALL(nc_def_enum(ncid, NC_INT, "a", &type));
    CALL(nc_def_opaque(ncid, 8, "a", &type));
    CALL(nc_inq_user_type(ncid, 32, NULL, NULL, NULL, NULL, NULL));
    CALL(nc_close(ncid));
}

static void
data(const world *w)
{
    types t = {0};
    int ncid = create(w), dimid, p, f, r, varid;
    const size_t start = 1, count = 2, last = 4;
    const ptrdiff_t stride = 2;
    point points[4] = {{1, 2.5, {3, 4}}, {5, 6.5, {7, 8}}}, read[6];
    unsigned char flags[6] = {0, 200, 0, 200, 0, 200}, got[6] = {0};
    float numbers[] = {1, 2, 3};
    nc_vlen_t rows[2] = {{3, numbers}, {0, NULL}}, back[6];
    int ints[6] = {0};
    define(ncid, &t);
    CALL(nc_def_dim(ncid, "n", NC_UNLIMITED, &dimid));
    CALL(nc_def_var(ncid, "points", t.point, 1, &dimid, &p));
    CALL(nc_def_var(ncid, "flags", t.flag, 1, &dimid, &f));
    CALL(nc_def_var(ncid, "rows", t.row, 1, &dimid, &r));
    CALL(nc_def_var(ncid, "number", NC_INT, 1, &dimid, &varid));
    CALL(nc_put_att(ncid, p, _FillValue, t.point, 1, &points[1]));
    CALL(nc_put_att(ncid, f, _FillValue, NC_UBYTE, 1, flags));
    CALL(nc_put_att(ncid, f, _FillValue, t.flag, 2, flags));
    CALL(nc_put_vara(ncid, p, &start, &count, points));
    CALL(nc_put_vars(ncid, f, &start, &count, &stride, flags));
    CALL(nc_put_varm(ncid, f, &start, &count, &stride, &stride, flags));
    CALL(nc_put_vara_int(ncid, f, &start, &count, ints));
    CALL(nc_put_vara_uchar(ncid, f, &start, &count, flags));
    CALL(nc_put_vara_text(ncid, f, &start, &count, "ab"));
    CALL(nc_put_vara(ncid, r, &start, &count, rows));
    CALL(nc_put_var1(ncid, p, &last, points));
    for (int again = 0; again < 2; again++) {
        memset(read, 0, sizeof read);
        CALL(nc_get_var(ncid, p, read));
        for (int i = 0; i < 5; i++)
            note("point %d %g %d %d", read[i].a, read[i].b, read[i].c[0], read[i].c[1]);
        CALL(nc_get_var(ncid, f, got));
        note_bytes("flags", got, 5);
        CALL(nc_get_var_int(ncid, f, ints));
        CALL(nc_get_var_uchar(ncid, f, got));
        memset(back, 0, sizeof back);
        CALL(nc_get_var(ncid, r, back));
        for (int i = 0; i < 5; i++) {
            note("row of %zu", back[i].len);
            for (size_t k = 0; k < back[i].len; k++)
                note("%g", ((float *) back[i].p)[k]);
        }
        CALL(nc_reclaim_data(ncid, t.row, back, 5));
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
    }
    CALL(nc_close(ncid));
}

static void
attributes(const world *w)
{
    types t = {0};
    int ncid = create(w), number = 3;
    float numbers[] = {1, 2, 3};
    mixed values[2] = {{1, (char *) "one", {2, numbers}}, {2, (char *) "", {0, NULL}}}, read[2];
    unsigned char flags[2] = {0, 200}, got[2];
    void *copy = NULL;
    define(ncid, &t);
    CALL(nc_put_att(ncid, NC_GLOBAL, "mixed", t.mixed, 2, values));
    CALL(nc_put_att(ncid, NC_GLOBAL, "flags", t.flag, 2, flags));
    for (int again = 0; again < 2; again++) {
        nc_type type = -1;
        size_t length = 99;
        CALL(nc_inq_att(ncid, NC_GLOBAL, "mixed", &type, &length));
        note("type %d length %zu", type, length);
        memset(read, 0, sizeof read);
        CALL(nc_get_att(ncid, NC_GLOBAL, "mixed", read));
        for (int i = 0; i < 2; i++)
            note("%d '%s' %zu", read[i].number, read[i].text, read[i].row.len);
        CALL(nc_copy_data_all(ncid, t.mixed, read, 2, &copy));
        note("copy '%s'", ((mixed *) copy)[0].text);
        CALL(nc_reclaim_data_all(ncid, t.mixed, copy, 2));
        CALL(nc_reclaim_data(ncid, t.mixed, read, 2));
        CALL(nc_get_att(ncid, NC_GLOBAL, "flags", got));
        note_bytes("flags", got, 2);
        CALL(nc_get_att_int(ncid, NC_GLOBAL, "flags", &number));
        CALL(nc_get_att_text(ncid, NC_GLOBAL, "flags", (char *) got));
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
    }
    CALL(nc_close(ncid));
}

/* Default chunks stay what they were for the size that the program gave, padding included. */
static void
padding(const world *w)
{
    int ncid = create(w);
    int dims[3] = {-1, -1, -1};
    int kind = -1;
    nc_type type = -1;
    size_t shape[2] = {0};
    CALL(nc_def_compound(ncid, 32, "padded", &type));
    CALL(nc_insert_compound(ncid, type, "a", 0, NC_INT));
    CALL(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    CALL(nc_def_dim(ncid, "y", 3000, &dims[1]));
    CALL(nc_def_dim(ncid, "x", 3000, &dims[2]));
    CALL(nc_def_var(ncid, "series", type, 1, dims, NULL));
    CALL(nc_def_var(ncid, "step", type, 2, dims, NULL));
    CALL(nc_def_var(ncid, "map", type, 2, dims + 1, NULL));
    CALL(nc_def_var_deflate(ncid, 2, 0, 1, 1));
    for (int again = 0; again < 2; again++) {
        for (int v = 0; v < 3; v++) {
            CALL(nc_inq_var_chunking(ncid, v, &kind, shape));
            note("kind %d", kind);
            note_sizes("chunk", shape, v == 0 ? 1 : 2);
        }
        CALL(nc_close(ncid));
        ncid = reopen(w, NC_NOWRITE);
    }
    CALL(nc_close(ncid));
}

const scenario scenarios_usertypes[] = {{"usertypes", "definition", IN_NC4, definition},
                                        {"usertypes", "refused", IN_CDF | IN_NC4C, refused},
                                        {"usertypes", "data", IN_NC4, data},
                                        {"usertypes", "attributes", IN_NC4, attributes},
                                        {"usertypes", "padding", IN_NC4, padding},
                                        {0}};
