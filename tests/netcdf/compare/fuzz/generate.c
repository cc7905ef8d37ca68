/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Random choices. */

#include "../compare.h"

#include "fuzz.h"

#include <string.h>

unsigned
pick(generator *g, unsigned below)
{
    g->seed += 0x9e3779b97f4a7c15u;
    uint64_t z = g->seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return below == 0 ? 0 : (unsigned) ((z ^ (z >> 31)) % below);
}

bool
one_in(generator *g, unsigned n)
{
    return pick(g, n) == 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

#define SIXTY     "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
#define TWO_FORTY SIXTY SIXTY SIXTY SIXTY

enum { GOOD_NAMES = 16, NAMES = 32 };
static const char *const names[NAMES] = {"a", "b", "c", "lat", "lon", "time", "x", "y", "v1", "v2",
                                         "long_name_of_a_thing", "ab", "z", "t_2", "u.v", "sp ace",
                                         /* odd ones */
                                         "\xc3\xa4", "a\xcc\x88", "", "a/b", "/", "0digit",
                                         "_under", "-minus", "end ", " begin", "tab\tchar",
                                         "\xff\xfe", TWO_FORTY "0123456789012345",
                                         TWO_FORTY "01234567890123456", "_FillValue", "units"};

/* The same as C. */
static const char *const odd_texts[NAMES - GOOD_NAMES] = {
    "\"\\xc3\\xa4\"", "\"a\\xcc\\x88\"", "\"\"",           "\"a/b\"",
    "\"/\"",          "\"0digit\"",      "\"_under\"",     "\"-minus\"",
    "\"end \"",       "\" begin\"",      "\"tab\\tchar\"", "\"\\xff\\xfe\"",
    "NAME_256",       "NAME_257",        "\"_FillValue\"", "\"units\""};

short
pick_name(generator *g)
{
    short odd = (short) (GOOD_NAMES + pick(g, NAMES - GOOD_NAMES));
    if (one_in(g, 12) && (is_netcdf3(g->state) || strlen(names[odd]) != NC_MAX_NAME ||
                          !left_out("netcdf4-longest-names")))
        return odd;
    return (short) pick(g, one_in(g, 2) ? 5 : GOOD_NAMES);
}

const char *
fuzz_name(short index)
{
    return names[(unsigned) index % NAMES];
}

const char *
fuzz_name_text(short index)
{
    static char text[300];
    unsigned i = (unsigned) index % NAMES;
    if (i >= GOOD_NAMES)
        return odd_texts[i - GOOD_NAMES];
    snprintf(text, sizeof text, "\"%s\"", names[i]);
    return text;
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* Mostly one of `count`. */
static int
pick_id(generator *g, int count)
{
    if (count > 0 && !one_in(g, 25))
        return (int) pick(g, (unsigned) count);
    static const int odd[] = {-1, 0, 1, -2, 99, 5};
    return one_in(g, 2) ? count : odd[pick(g, 6)];
}

int
pick_var(generator *g)
{
    return pick_id(g, g->vars);
}

int
pick_dim(generator *g)
{
    int ids[200];
    int count = 0;
    if (one_in(g, 25))
        return pick_id(g, g->dims);
    if (nc_inq_dimids(g->ncid, &count, NULL, 1) != NC_NOERR || count == 0 || count > 200 ||
        nc_inq_dimids(g->ncid, &count, ids, 1) != NC_NOERR)
        return pick_id(g, g->dims);
    return ids[pick(g, (unsigned) count)];
}

nc_type
pick_type(generator *g)
{
    if (one_in(g, 30))
        return (nc_type) pick(g, 20) - 2;
    if (g->state->format == NC_FORMAT_NETCDF4 && one_in(g, 6))
        return NC_FIRSTUSERTYPEID + (nc_type) pick(g, 6);
    bool classic = g->state->format != NC_FORMAT_NETCDF4 &&
                   g->state->format != NC_FORMAT_64BIT_DATA && !one_in(g, 15);
    nc_type last =
        classic ? NC_DOUBLE : (g->state->format == NC_FORMAT_NETCDF4 ? NC_STRING : NC_UINT64);
    return 1 + (nc_type) pick(g, (unsigned) last);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static const kind *const lists[] = {kinds_files,    kinds_dims, kinds_groups, kinds_vars,
                                    kinds_settings, kinds_atts, kinds_data,   kinds_types};
enum { LISTS = sizeof lists / sizeof lists[0] };

const kind *
fuzz_kind(int index)
{
    for (int i = 0; i < LISTS; i++)
        for (const kind *k = lists[i]; k->name != NULL; k++)
            if (index-- == 0)
                return k;
    return NULL;
}

int
fuzz_kind_count(void)
{
    int count = 0;
    while (fuzz_kind(count) != NULL)
        count++;
    return count;
}

int
fuzz_kind_pick(generator *g, bool enhanced)
{
    static int total;
    if (total == 0)
        for (int i = 0, count = fuzz_kind_count(); i < count; i++)
            total += fuzz_kind(i)->weight;
    for (;;) {
        int at = (int) pick(g, (unsigned) total);
        int i = 0;
        while (at >= fuzz_kind(i)->weight)
            at -= fuzz_kind(i++)->weight;
        if (enhanced || !fuzz_kind(i)->enhanced || one_in(g, 10))
            return i;
    }
}
