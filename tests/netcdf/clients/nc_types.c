/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* nc_types PATH: writes data of user-defined types of every class, nested in each other, in
 * variables, attributes and fill values. Knows nothing of ESDM. */

#include <netcdf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int rc = (call);                                                                           \
        if (rc != NC_NOERR) {                                                                      \
            (void) fprintf(stderr, "%d: %s: %s\n", __LINE__, #call, nc_strerror(rc));              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct point {
    signed char n;
    double y;
    short s[2][3];
} point;

typedef struct observation {
    signed char day;
    point where[2];
    unsigned char sky;
    char *station;
    nc_vlen_t samples; /* of float */
    unsigned char bits[11];
    nc_vlen_t words; /* of strings */
} observation;

typedef struct types {
    nc_type cloud, wide, raw, row, words, point, observation, many, pair;
} types;

static types
define_types(int ncid, int group)
{
    types t;
    const unsigned char clouds[3] = {0, 1, 255};
    const long long wide[2] = {-5, 9000000000};
    CHECK(nc_def_enum(ncid, NC_UBYTE, "cloud", &t.cloud));
    CHECK(nc_insert_enum(ncid, t.cloud, "clear", &clouds[0]));
    CHECK(nc_insert_enum(ncid, t.cloud, "cumulus", &clouds[1]));
    CHECK(nc_insert_enum(ncid, t.cloud, "missing", &clouds[2]));
    CHECK(nc_def_enum(group, NC_INT64, "wide", &t.wide));
    CHECK(nc_insert_enum(group, t.wide, "low", &wide[0]));
    CHECK(nc_insert_enum(group, t.wide, "high", &wide[1]));
    CHECK(nc_def_opaque(ncid, 11, "raw", &t.raw));
    CHECK(nc_def_vlen(ncid, "row", NC_FLOAT, &t.row));
    CHECK(nc_def_vlen(ncid, "words", NC_STRING, &t.words));
    CHECK(nc_def_compound(ncid, sizeof(point), "point", &t.point));
    CHECK(nc_insert_compound(ncid, t.point, "n", offsetof(point, n), NC_BYTE));
    CHECK(nc_insert_compound(ncid, t.point, "y", offsetof(point, y), NC_DOUBLE));
    CHECK(nc_insert_array_compound(ncid, t.point, "s", offsetof(point, s), NC_SHORT, 2,
                                   (int[]){2, 3}));
    CHECK(nc_def_compound(ncid, sizeof(observation), "observation", &t.observation));
    CHECK(nc_insert_compound(ncid, t.observation, "day", offsetof(observation, day), NC_BYTE));
    CHECK(nc_insert_array_compound(ncid, t.observation, "where", offsetof(observation, where),
                                   t.point, 1, (int[]){2}));
    CHECK(nc_insert_compound(ncid, t.observation, "sky", offsetof(observation, sky), t.cloud));
    CHECK(nc_insert_compound(ncid, t.observation, "station", offsetof(observation, station),
                             NC_STRING));
    CHECK(
        nc_insert_compound(ncid, t.observation, "samples", offsetof(observation, samples), t.row));
    CHECK(nc_insert_compound(ncid, t.observation, "bits", offsetof(observation, bits), t.raw));
    CHECK(nc_insert_compound(ncid, t.observation, "words", offsetof(observation, words), t.words));
    CHECK(nc_def_vlen(group, "many", t.observation, &t.many));
    CHECK(nc_def_compound(group, 2 * sizeof(double), "pair", &t.pair));
    CHECK(nc_insert_compound(group, t.pair, "kind", 0, t.wide));
    CHECK(nc_insert_compound(group, t.pair, "value", sizeof(double), NC_DOUBLE));
    return t;
}

static observation
example(int day)
{
    static float numbers[3] = {1, 2.5F, -3};
    static char *words[2] = {"erstes", "zweites \xc3\xbc"};
    observation o = {.day = (signed char) day,
                     .sky = 1,
                     .station = day % 2 == 0 ? "Hamburg" : "",
                     .samples = {(size_t) day % 4, numbers},
                     .words = {(size_t) day % 3, words}};
    for (int i = 0; i < 2; i++) {
        o.where[i].n = (signed char) (day + i);
        o.where[i].y = day / 8.0;
        for (int k = 0; k < 6; k++)
            o.where[i].s[k / 3][k % 3] = (short) (100 * day + k);
    }
    for (int i = 0; i < 11; i++)
        o.bits[i] = (unsigned char) (day * 16 + i);
    return o;
}

int
main(int argc, char **argv)
{
    int ncid, group, time, n, var;
    if (argc != 2) {
        (void) fprintf(stderr, "usage: nc_types PATH\n");
        return 2;
    }
    CHECK(nc_create(argv[1], NC_NETCDF4 | NC_CLOBBER, &ncid));
    CHECK(nc_def_grp(ncid, "group", &group));
    types t = define_types(ncid, group);
    CHECK(nc_def_dim(ncid, "time", NC_UNLIMITED, &time));
    CHECK(nc_def_dim(ncid, "n", 3, &n));

    const unsigned char missing = 255;
    const unsigned char skies[3] = {0, 1, 0};
    CHECK(nc_def_var(ncid, "sky", t.cloud, 1, &time, &var));
    CHECK(nc_put_att(ncid, var, "_FillValue", t.cloud, 1, &missing));
    CHECK(nc_put_att(ncid, var, "flags", t.cloud, 3, skies));
    CHECK(nc_put_vara(ncid, var, (size_t[]){1}, (size_t[]){3}, skies));

    observation days[3] = {example(1), example(2), example(3)};
    CHECK(nc_def_var(ncid, "bits", t.raw, 1, &n, &var));
    CHECK(nc_put_var(ncid, var, (unsigned char[3][11]){{1, 2, 3}, {255, 254}, {0}}));
    CHECK(nc_def_var(ncid, "ragged", t.row, 1, &n, &var));
    CHECK(nc_put_var(ncid, var, (nc_vlen_t[]){days[0].samples, days[1].samples, days[2].samples}));
    CHECK(nc_def_var(ncid, "text", t.words, 1, &n, &var));
    CHECK(nc_put_var(ncid, var, (nc_vlen_t[]){days[0].words, days[1].words, days[2].words}));
    point places[3] = {days[0].where[0], days[1].where[0], days[2].where[1]};
    CHECK(nc_def_var(ncid, "place", t.point, 1, &n, &var));
    CHECK(nc_def_var_chunking(ncid, var, NC_CHUNKED, (size_t[]){2}));
    CHECK(nc_def_var_deflate(ncid, var, 1, 1, 4));
    CHECK(nc_put_att(ncid, var, "_FillValue", t.point, 1, &places[2]));
    CHECK(nc_put_vara(ncid, var, (size_t[]){0}, (size_t[]){2}, places));
    CHECK(nc_def_var(ncid, "day", t.observation, 1, &n, &var));
    CHECK(nc_put_att(ncid, var, "example", t.observation, 2, days));
    CHECK(nc_put_var(ncid, var, days));
    CHECK(nc_def_var(group, "campaign", t.many, 1, &time, &var));
    CHECK(nc_put_vara(group, var, (size_t[]){0}, (size_t[]){2},
                      (nc_vlen_t[]){{3, days}, {1, days + 1}}));
    CHECK(nc_def_var(group, "pairs", t.pair, 0, NULL, &var));
    struct {
        long long kind;
        double value;
    } pair = {9000000000, 0.5};
    CHECK(nc_put_var(group, var, &pair));
    CHECK(nc_put_att(group, NC_GLOBAL, "pair", t.pair, 1, &pair));
    CHECK(nc_put_att(group, NC_GLOBAL, "rows", t.row, 2,
                     (nc_vlen_t[]){days[0].samples, days[2].samples}));
    CHECK(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "types"));
    CHECK(nc_def_var(ncid, "names", NC_STRING, 1, &n, &var));
    CHECK(nc_put_var_string(ncid, var, (const char *[]){"a", NULL, ""}));
    CHECK(nc_close(ncid));
    return 0;
}
