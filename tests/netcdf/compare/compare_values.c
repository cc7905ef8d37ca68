/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Values of user-defined types: made of a number, noted, and freed, by what a file says of them. */

#include "compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MEMBERS_MAX = 20, LONGEST = 3 };

static const size_t atomic_bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};

static bool
is_atomic(nc_type type)
{
    return type >= NC_BYTE && type <= NC_STRING;
}

size_t
value_bytes(int ncid, nc_type type)
{
    size_t bytes = 0;
    if (is_atomic(type))
        return atomic_bytes[type];
    return nc_inq_user_type(ncid, type, NULL, &bytes, NULL, NULL, NULL) == NC_NOERR ? bytes : 0;
}

/* One member of a compound, with the number of its elements. */
typedef struct member {
    size_t offset;
    nc_type type;
    size_t count;
} member;

static bool
find_member(int ncid, nc_type type, int i, member *ret)
{
    int rank = 0;
    int shape[NC_MAX_VAR_DIMS];
    if (nc_inq_compound_field(ncid, type, i, NULL, &ret->offset, &ret->type, &rank, shape) !=
        NC_NOERR)
        return false;
    ret->count = 1;
    for (int k = 0; k < rank; k++)
        ret->count *= (size_t) shape[k];
    return true;
}

/* A number that is not always another one. */
static uint64_t
next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 40;
}

static void
make_atomic(nc_type type, char *at, uint64_t *seed)
{
    static const char *const texts[] = {"", "one", "two \xc3\xa4", "a somewhat longer text"};
    long long number = (long long) (next(seed) % 100);
    if (type == NC_STRING) {
        char *copy = strdup(texts[number % 4]);
        memcpy(at, &copy, sizeof copy);
    } else if (type == NC_FLOAT) {
        memcpy(at, &(float){(float) number / 4}, sizeof(float));
    } else if (type == NC_DOUBLE) {
        memcpy(at, &(double){(double) number / 4}, sizeof(double));
    } else {
        memcpy(at, &number, atomic_bytes[type]); /* little-endian */
    }
}

static void
make_vlen(int ncid, nc_type base, char *at, uint64_t *seed)
{
    nc_vlen_t row = {.len = next(seed) % (LONGEST + 1)};
    row.p = calloc(row.len + 1, value_bytes(ncid, base));
    assert_non_null(row.p);
    values_make(ncid, base, row.p, row.len, seed);
    memcpy(at, &row, sizeof row);
}

static void
make_user(int ncid, nc_type type, char *at, uint64_t *seed)
{
    size_t bytes = 0;
    size_t members = 0;
    nc_type base = NC_NAT;
    int class = 0;
    (void) nc_inq_user_type(ncid, type, NULL, &bytes, &base, &members, &class);
    if (class == NC_VLEN)
        make_vlen(ncid, base, at, seed);
    else if (class == NC_ENUM && members > 0)
        (void) nc_inq_enum_member(ncid, type, (int) (next(seed) % members), NULL, at);
    else if (class == NC_OPAQUE)
        memset(at, (int) (next(seed) % 256), bytes);
    for (int i = 0; class == NC_COMPOUND && i < (int) members; i++) {
        member m;
        if (find_member(ncid, type, i, &m))
            values_make(ncid, m.type, at + m.offset, m.count, seed);
    }
}

void
values_make(int ncid, nc_type type, void *values, size_t count, uint64_t *seed)
{
    size_t bytes = value_bytes(ncid, type);
    for (size_t i = 0; i < count; i++) {
        char *at = (char *) values + i * bytes;
        if (is_atomic(type))
            make_atomic(type, at, seed);
        else
            make_user(ncid, type, at, seed);
    }
}

/* ---- noting ---------------------------------------------------------------------------------- */

static void
note_user(int ncid, const char *what, nc_type type, const char *at)
{
    size_t bytes = 0;
    size_t members = 0;
    nc_type base = NC_NAT;
    int class = 0;
    nc_vlen_t row;
    (void) nc_inq_user_type(ncid, type, NULL, &bytes, &base, &members, &class);
    if (class == NC_VLEN) {
        memcpy(&row, at, sizeof row);
        note("%s has %zu", what, row.len);
        values_note(ncid, what, base, row.p, row.len);
    } else if (class != NC_COMPOUND) {
        note_bytes(what, at, bytes);
    }
    for (int i = 0; class == NC_COMPOUND && i < (int) members; i++) {
        member m;
        if (find_member(ncid, type, i, &m))
            values_note(ncid, what, m.type, at + m.offset, m.count);
    }
}

void
values_note(int ncid, const char *what, nc_type type, const void *values, size_t count)
{
    size_t bytes = value_bytes(ncid, type);
    if (is_atomic(type) && type != NC_STRING) {
        note_bytes(what, values, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *) values + i * bytes;
        const char *text = NULL;
        if (type == NC_STRING) {
            memcpy(&text, at, sizeof text);
            note("%s[%zu] = '%s'", what, i, text == NULL ? "(null)" : text);
        } else {
            note_user(ncid, what, type, at);
        }
    }
}
