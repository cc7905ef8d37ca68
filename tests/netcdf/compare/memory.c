/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Every put and get function: each memory type with each external type, in each way of access. */

#include "compare.h"

#include <stdlib.h>
#include <string.h>

enum { T = 3, Y = 2, X = 4, N = T * Y * X, TYPES = NC_STRING + 1 };

static const size_t start[] = {1, 0, 1};
static const size_t count[] = {2, 2, 2};
static const ptrdiff_t stride[] = {1, 1, 2};
static const ptrdiff_t map[] = {4, 1, 2};
static const size_t beyond[] = {2, 1, 4};

/* t, y, x; a variable of every type the format has. */
static int
define(const world *w, int *ret_vars)
{
    int ncid = create(w);
    int d[3] = {-1, -1, -1};
    CALL(nc_def_dim(ncid, "t", NC_UNLIMITED, &d[0]));
    CALL(nc_def_dim(ncid, "y", Y, &d[1]));
    CALL(nc_def_dim(ncid, "x", X, &d[2]));
    for (nc_type type = NC_BYTE; type <= NC_STRING; type++) {
        char name[] = "vA";
        name[1] = (char) ('A' + type);
        ret_vars[type] = -1;
        CALL(nc_def_var(ncid, name, type, 3, d, &ret_vars[type]));
    }
    CALL(nc_enddef(ncid));
    return ncid;
}

/* The puts and gets of one memory type. Numbers are small enough for every type. */
#define PUT_AND_GET(type, suffix)                                                                  \
    static void put_##suffix(int ncid, int v)                                                      \
    {                                                                                              \
        type data[N];                                                                              \
        for (size_t i = 0; i < N; i++)                                                             \
            data[i] = (type) (i + 10);                                                             \
        CALL(nc_put_vara_##suffix(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){T, Y, X}, data));       \
        CALL(nc_put_var1_##suffix(ncid, v, start, data + 20));                                     \
        CALL(nc_put_var1_##suffix(ncid, v, beyond, data + 20));                                    \
        CALL(nc_put_vars_##suffix(ncid, v, start, count, stride, data + 3));                       \
        CALL(nc_put_vars_##suffix(ncid, v, start, count, NULL, data + 3));                         \
        CALL(nc_put_varm_##suffix(ncid, v, start, count, stride, map, data + 5));                  \
        CALL(nc_put_varm_##suffix(ncid, v, start, count, NULL, map, data + 5));                    \
        CALL(nc_put_vara_##suffix(ncid, v, start, (size_t[]){1, 0, 2}, data));                     \
        CALL(nc_put_vara_##suffix(ncid, v, start, (size_t[]){1, 3, 2}, data));                     \
    }                                                                                              \
    static void whole_##suffix(int ncid, int v)                                                    \
    {                                                                                              \
        type data[N];                                                                              \
        for (size_t i = 0; i < N; i++)                                                             \
            data[i] = (type) (2 * i);                                                              \
        CALL(nc_put_var_##suffix(ncid, v, data));                                                  \
    }                                                                                              \
    static void get_##suffix(int ncid, int v)                                                      \
    {                                                                                              \
        type got[N];                                                                               \
        memset(got, 0x33, sizeof got);                                                             \
        if (CALL(nc_get_var_##suffix(ncid, v, got)) == NC_NOERR)                                   \
            note_bytes("var", got, sizeof got);                                                    \
        if (CALL(nc_get_var1_##suffix(ncid, v, start, got)) == NC_NOERR)                           \
            note_bytes("var1", got, sizeof got[0]);                                                \
        CALL(nc_get_var1_##suffix(ncid, v, beyond, got));                                          \
        if (CALL(nc_get_vara_##suffix(ncid, v, start, count, got)) == NC_NOERR)                    \
            note_bytes("vara", got, 8 * sizeof got[0]);                                            \
        if (CALL(nc_get_vars_##suffix(ncid, v, start, count, stride, got)) == NC_NOERR)            \
            note_bytes("vars", got, 8 * sizeof got[0]);                                            \
        if (CALL(nc_get_varm_##suffix(ncid, v, start, count, stride, map, got)) == NC_NOERR)       \
            note_bytes("varm", got, 8 * sizeof got[0]);                                            \
        if (CALL(nc_get_varm_##suffix(ncid, v, start, count, stride, NULL, got)) == NC_NOERR)      \
            note_bytes("no map", got, 8 * sizeof got[0]);                                          \
    }

PUT_AND_GET(char, text)
PUT_AND_GET(signed char, schar)
PUT_AND_GET(unsigned char, uchar)
PUT_AND_GET(unsigned char, ubyte)
PUT_AND_GET(short, short)
PUT_AND_GET(unsigned short, ushort)
PUT_AND_GET(int, int)
PUT_AND_GET(unsigned, uint)
PUT_AND_GET(long, long)
PUT_AND_GET(long long, longlong)
PUT_AND_GET(unsigned long long, ulonglong)
PUT_AND_GET(float, float)
PUT_AND_GET(double, double)

typedef void (*call_fn)(int ncid, int v);

/* `MEMORY(text)` … for all of them. */
#define EVERY(MEMORY)                                                                              \
    MEMORY(text), MEMORY(schar), MEMORY(uchar), MEMORY(ubyte), MEMORY(short), MEMORY(ushort),      \
        MEMORY(int), MEMORY(uint), MEMORY(long), MEMORY(longlong), MEMORY(ulonglong),              \
        MEMORY(float), MEMORY(double)
#define PUT(suffix)   put_##suffix
#define WHOLE(suffix) whole_##suffix
#define GET(suffix)   get_##suffix
static const call_fn putters[] = {EVERY(PUT)};
static const call_fn wholes[] = {EVERY(WHOLE)};
static const call_fn getters[] = {EVERY(GET)};
enum { MEMORIES = sizeof putters / sizeof putters[0] };

/* Every memory type into every external type, the numbers read back in their own. */
static void
numbers(const world *w)
{
    int v[TYPES];
    int ncid = define(w, v);
    for (size_t m = 0; m < MEMORIES; m++) {
        for (nc_type type = NC_BYTE; type < NC_STRING; type++)
            putters[m](ncid, v[type]);
        note_file(ncid);
        for (nc_type type = NC_BYTE; type < NC_STRING; type++)
            wholes[m](ncid, v[type]);
        for (nc_type type = NC_BYTE; type < NC_STRING; type++)
            getters[m](ncid, v[type]);
    }
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    for (size_t m = 0; m < MEMORIES; m++)
        for (nc_type type = NC_BYTE; type < NC_STRING; type++)
            getters[m](ncid, v[type]);
    wholes[5](ncid, v[NC_INT]);
    putters[5](ncid, v[NC_INT]);
    CALL(nc_close(ncid));
}

static void
note_texts(const char *what, char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        note("%s[%zu] = '%s'", what, i, texts[i] == NULL ? "(null)" : texts[i]);
    CALL(nc_free_string(n, texts));
}

static void
put_strings(int ncid, int v)
{
    const char *data[N];
    static const char *const words[] = {"", "one", "zwei \xc3\xa4", "drei", "a longer text"};
    for (size_t i = 0; i < N; i++)
        data[i] = words[i % 5];
    CALL(nc_put_vara_string(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){T, Y, X}, data));
    CALL(nc_put_var1_string(ncid, v, start, data + 4));
    CALL(nc_put_var1_string(ncid, v, beyond, data));
    CALL(nc_put_vars_string(ncid, v, start, count, stride, data + 3));
    CALL(nc_put_varm_string(ncid, v, start, count, stride, map, data + 2));
    CALL(nc_put_var_string(ncid, v, data));
    CALL(nc_put_varm_string(ncid, v, start, count, stride, map, data + 2));
}

static void
get_strings(int ncid, int v)
{
    char *got[N] = {NULL};
    if (CALL(nc_get_var_string(ncid, v, got)) == NC_NOERR)
        note_texts("var", got, N);
    if (CALL(nc_get_var1_string(ncid, v, start, got)) == NC_NOERR)
        note_texts("var1", got, 1);
    CALL(nc_get_var1_string(ncid, v, beyond, got));
    if (CALL(nc_get_vara_string(ncid, v, start, count, got)) == NC_NOERR)
        note_texts("vara", got, 8);
    if (CALL(nc_get_vars_string(ncid, v, start, count, stride, got)) == NC_NOERR)
        note_texts("vars", got, 8);
    if (CALL(nc_get_varm_string(ncid, v, start, count, stride, map, got)) == NC_NOERR)
        note_texts("varm", got, 8);
}

static void
strings(const world *w)
{
    int v[TYPES];
    int ncid = define(w, v);
    put_strings(ncid, v[NC_STRING]);
    get_strings(ncid, v[NC_STRING]);
    for (size_t m = 0; m < MEMORIES; m++) {
        putters[m](ncid, v[NC_STRING]);
        wholes[m](ncid, v[NC_STRING]);
        getters[m](ncid, v[NC_STRING]);
    }
    put_strings(ncid, v[NC_INT]);
    get_strings(ncid, v[NC_INT]);
    put_strings(ncid, v[NC_CHAR]);
    get_strings(ncid, v[NC_CHAR]);
    note_file(ncid);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    get_strings(ncid, v[NC_STRING]);
    CALL(nc_close(ncid));
}

/* The functions without a memory type move what is in the file. */
static void
untyped_of(int ncid, int v)
{
    double data[N];
    double got[N];
    for (size_t i = 0; i < sizeof data; i++)
        ((unsigned char *) data)[i] = (unsigned char) (i % 120);
    memset(got, 0x11, sizeof got);
    CALL(nc_put_vara(ncid, v, (size_t[]){0, 0, 0}, (size_t[]){T, Y, X}, data));
    CALL(nc_put_var(ncid, v, data));
    CALL(nc_put_var1(ncid, v, start, data));
    CALL(nc_put_var1(ncid, v, beyond, data));
    CALL(nc_put_vars(ncid, v, start, count, stride, data + 1));
    CALL(nc_put_varm(ncid, v, start, count, stride, map, data + 2));
    CALL(nc_get_var(ncid, v, got));
    note_bytes("var", got, sizeof got);
    CALL(nc_get_vara(ncid, v, start, count, got));
    note_bytes("vara", got, sizeof got);
    CALL(nc_get_var1(ncid, v, start, got));
    CALL(nc_get_var1(ncid, v, beyond, got));
    note_bytes("var1", got, sizeof got);
    CALL(nc_get_vars(ncid, v, start, count, stride, got));
    note_bytes("vars", got, sizeof got);
    CALL(nc_get_varm(ncid, v, start, count, stride, map, got));
    note_bytes("varm", got, sizeof got);
}

static void
untyped(const world *w)
{
    int v[TYPES];
    int ncid = define(w, v);
    for (nc_type type = NC_BYTE; type < NC_STRING; type++)
        if (v[type] >= 0)
            untyped_of(ncid, v[type]);
    untyped_of(ncid, 77);
    CALL(nc_close(ncid));
    ncid = reopen(w, NC_NOWRITE);
    note_file(ncid);
    CALL(nc_close(ncid));
}

const scenario scenarios_memory[] = {{"memory", "numbers", IN_ALL, numbers},
                                     {"memory", "strings", IN_ALL, strings},
                                     {"memory", "untyped", IN_ALL, untyped},
                                     {0}};
