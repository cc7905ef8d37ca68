/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Counts which functions were called. The record is text, one line a fact:
 *
 *   area AREA CALLS EQUAL DIFFERENT
 *   function NAME FORMATS CALLS SUCCEEDED    FORMATS: the IN_… bits
 *   difference INDEX CALLS
 *   left-out ID
 *   version NETCDF
 */

#include "compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FUNCTIONS_MAX = 600, DIFFERENCES_MAX = 200, LEFT_OUT_MAX = 100, NAME_BYTES = 64 };

typedef struct function_count {
    char name[NAME_BYTES];
    int formats;
    size_t calls;
    size_t succeeded;
} function_count;

static function_count functions[FUNCTIONS_MAX];
static size_t function_number;
static size_t differences[DIFFERENCES_MAX];
static const char *left_out_ids[LEFT_OUT_MAX];
static size_t calls;
static size_t different;

static function_count *
find_function(const char *text)
{
    char name[NAME_BYTES] = "";
    size_t bytes = strcspn(text, "( ");
    if (bytes >= sizeof name || strncmp(text, "nc", 2) != 0)
        return NULL;
    memcpy(name, text, bytes);
    for (size_t i = 0; i < function_number; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    assert_true(function_number < FUNCTIONS_MAX);
    memcpy(functions[function_number].name, name, sizeof name);
    return &functions[function_number++];
}

void
record_call(const char *text, int format_bit, int rc, int listed)
{
    calls++;
    if (listed >= 0) {
        assert_true(listed < DIFFERENCES_MAX);
        differences[listed]++;
        different++;
    }
    function_count *f = find_function(text);
    if (f == NULL)
        return;
    f->calls++;
    f->succeeded += rc == NC_NOERR;
    f->formats |= format_bit;
}

bool
left_out(const char *id)
{
    const omission *o = behaviours_left_out;
    while (o->what != NULL && strcmp(o->what, id) != 0)
        o++;
    if (o->what == NULL)
        fail_msg("differences.c does not list '%s'", id);
    size_t i = 0;
    while (i < LEFT_OUT_MAX && left_out_ids[i] != NULL && left_out_ids[i] != o->what)
        i++;
    assert_true(i < LEFT_OUT_MAX);
    left_out_ids[i] = o->what;
    return true;
}

int
record_write(const char *area)
{
    const char *path = getenv("NC_COMPARE_RECORD");
    if (path == NULL)
        return 0;
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "cannot write '%s'\n", path);
        return 1;
    }
    const char *version = nc_inq_libvers();
    fprintf(out, "version %.*s\n", (int) strcspn(version, " "), version);
    fprintf(out, "area %s %zu %zu %zu\n", area, calls, calls - different, different);
    for (size_t i = 0; i < function_number; i++)
        fprintf(out, "function %s %d %zu %zu\n", functions[i].name, functions[i].formats,
                functions[i].calls, functions[i].succeeded);
    for (size_t i = 0; i < DIFFERENCES_MAX; i++)
        if (differences[i] > 0)
            fprintf(out, "difference %zu %zu\n", i, differences[i]);
    for (size_t i = 0; i < LEFT_OUT_MAX && left_out_ids[i] != NULL; i++)
        fprintf(out, "left-out %s\n", left_out_ids[i]);
    return fclose(out) == 0 ? 0 : 1;
}
