/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which names are allowed, their lengths and normal forms. */
#include "compare.h"

#include <string.h>

static const char *const candidates[] = {"a",
                                         "_a",
                                         "1a",
                                         "a b",
                                         "a ",
                                         " a",
                                         "-a",
                                         "a-b",
                                         "a.b",
                                         "a+b",
                                         "a@b",
                                         "a(b)",
                                         "a/b",
                                         "/",
                                         "",
                                         "a\tb",
                                         "a\nb",
                                         "a\x7f",
                                         "\xc3\xa4",
                                         "a\xcc\x88",
                                         "\xce\xb1\xce\xb2",
                                         "a\xff",
                                         "\xc3",
                                         "\xe6\xb8\xa9\xe5\xba\xa6",
                                         "\xf0\x9f\x98\x80",
                                         "a!",
                                         "a\"b",
                                         "a'b",
                                         "a\\b",
                                         "a:b",
                                         "a,b",
                                         "a=b",
                                         "a%b",
                                         "a#b",
                                         "a*b",
                                         "a?b",
                                         "a[b]",
                                         "a{b}",
                                         "a|b",
                                         "a~b",
                                         "a<b>",
                                         "a&b",
                                         "a;b",
                                         "$a",
                                         "%a",
                                         ".a",
                                         "a..b",
                                         "\xc3\xa4 x",
                                         "NaN",
                                         "nan",
                                         "_",
                                         "__",
                                         "0",
                                         "#1"};
enum { CANDIDATES = sizeof candidates / sizeof candidates[0] };

static void
allowed(const world *w)
{
    int ncid = create(w);
    int v = -1;
    CALL(nc_def_var(ncid, "host", NC_INT, 0, NULL, &v));
    for (int i = 0; i < CANDIDATES; i++) {
        note("%d '%s'", i, candidates[i]);
        CALL(nc_def_dim(ncid, candidates[i], 2, NULL));
        CALL(nc_def_var(ncid, candidates[i], NC_INT, 0, NULL, NULL));
        CALL(nc_put_att_text(ncid, v, candidates[i], 1, "x"));
        CALL(nc_put_att_text(ncid, NC_GLOBAL, candidates[i], 1, "x"));
        int id = -1;
        CALL(nc_inq_varid(ncid, candidates[i], &id));
        CALL(nc_inq_dimid(ncid, candidates[i], &id));
    }
    CALL(nc_enddef(ncid));
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

static void
lengths(const world *w)
{
    int ncid = create(w);
    char name[400];
    for (size_t bytes = 253; bytes < 259; bytes++) {
        memset(name, 'n', sizeof name);
        name[bytes] = '\0';
        note("%zu", bytes);
        CALL(nc_def_dim(ncid, name, 1, NULL));
        name[0] = 'v'; /* netCDF-4 has less room for a name that a dimension has too */
        CALL(nc_def_var(ncid, name, NC_INT, 0, NULL, NULL));
        CALL(nc_put_att_text(ncid, NC_GLOBAL, name, 1, "x"));
        CALL(nc_rename_att(ncid, NC_GLOBAL, "a", name));
    }
    CALL(nc_close(ncid));
}

static void
normal_forms(const world *w)
{
    int ncid = create(w);
    const char *composed = "gr\xc3\xb6\xc3\x9f"
                           "e";
    const char *decomposed = "gro\xcc\x88\xc3\x9f"
                             "e";
    int id = -1;
    CALL(nc_def_dim(ncid, decomposed, 3, &id));
    CALL(nc_def_dim(ncid, composed, 3, &id));
    CALL(nc_inq_dimid(ncid, composed, &id));
    CALL(nc_inq_dimid(ncid, decomposed, &id));
    CALL(nc_def_var(ncid, decomposed, NC_INT, 0, NULL, &id));
    CALL(nc_def_var(ncid, composed, NC_INT, 0, NULL, &id));
    CALL(nc_inq_varid(ncid, composed, &id));
    CALL(nc_put_att_text(ncid, 0, decomposed, 1, "x"));
    CALL(nc_put_att_text(ncid, 0, composed, 1, "y"));
    CALL(nc_inq_attid(ncid, 0, decomposed, &id));
    CALL(nc_rename_var(ncid, 0, "e\xcc\x81t\xc3\xa9"));
    CALL(nc_inq_varid(ncid, "e\xcc\x81t\xc3\xa9", &id));
    CALL(nc_inq_varid(ncid, "\xc3\xa9t\xc3\xa9", &id));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, decomposed, 1, "x"));
    CALL(nc_del_att(ncid, NC_GLOBAL, decomposed));
    CALL(nc_del_att(ncid, NC_GLOBAL, composed));
    CALL(nc_rename_att(ncid, 0, composed, "e\xcc\x81t\xc3\xa9"));
    CALL(nc_rename_dim(ncid, 0, "e\xcc\x81t\xc3\xa9"));
    CALL(nc_enddef(ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
}

/* Shorter and longer in data mode. (netCDF-4 crashes on a scalar that is called like a dimension.)
 */
static void
room(const world *w)
{
    int ncid = create(w);
    CALL(nc_def_dim(ncid, "dimension", 3, NULL));
    CALL(nc_def_var(ncid, "variable", NC_INT, 0, NULL, NULL));
    CALL(nc_put_att_text(ncid, 0, "attribute", 1, "x"));
    CALL(nc_put_att_text(ncid, NC_GLOBAL, "attribute", 1, "x"));
    CALL(nc_enddef(ncid));
    static const char *const names[] = {"d", "dime", "dimension", "dimensions", "dim"};
    static const char *const atts[] = {"attribute", "d", "dime", "dimension", "dim"};
    for (size_t i = 0; i < 5; i++) {
        CALL(nc_rename_dim(ncid, 0, names[i]));
        CALL(nc_rename_var(ncid, 0, names[i]));
        if (i < 4)
            CALL(nc_rename_att(ncid, i % 2 == 0 ? 0 : NC_GLOBAL, atts[i], names[i]));
        CALL(nc_rename_att(ncid, NC_GLOBAL, i == 0 ? "attribute" : names[i - 1], names[i]));
    }
    CALL(nc_redef(ncid));
    CALL(nc_rename_dim(ncid, 0, "x"));
    CALL(nc_enddef(ncid));
    CALL(nc_rename_dim(ncid, 0, "xx"));
    CALL(nc_rename_var(ncid, 0, "variable"));
    CALL(nc_rename_var(ncid, 0, "variables"));
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_names[] = {{"names", "allowed", IN_ALL, allowed},
                                    {"names", "lengths", IN_ALL, lengths},
                                    {"names", "normal_forms", IN_ALL, normal_forms},
                                    {"names", "room", IN_CDF, room},
                                    {0}};
