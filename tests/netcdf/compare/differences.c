/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The one place that says where ESDM and stock netCDF differ and what is not compared, and why.
 * A difference that is not listed fails its test; an entry that nothing meets fails the report.
 */

#include "compare.h"

#include <stdio.h>
#include <string.h>

const difference known_differences[] = {{0}};

const omission functions_left_out[] = {{0}};

const omission behaviours_left_out[] = {
    {"abort-of-replacement",
     "nc_abort() of what nc_create() was to replace: the old container is replaced when the new "
     "one is committed first, so it is still there; the old file is gone."},
    {"netcdf3-abort-forgets",
     "nc_abort() in define mode after renames or attributes that were written in data mode: "
     "netCDF-3 forgets those since nc_sync(), ESDM commits them at nc_redef()."},
    {"netcdf3-no-strings",
     "No elements as strings, asked of a netCDF-3 file: NC_EBADTYPE or NC_NOERR, by how the "
     "request lies in the file."},
    {"netcdf3-room-of-names",
     "In a netCDF-3 file the room of a name stays what it was when define mode ended, so that a "
     "shortened name can be made longer in data mode; a container has no such room."},
    {0}};

/* '*' in the pattern stands for any text. */
static bool
matches(const char *pattern, const char *text)
{
    for (; *pattern != '\0' && *pattern != '*'; pattern++, text++)
        if (*pattern != *text)
            return false;
    if (*pattern == '\0')
        return *text == '\0';
    do
        if (matches(pattern + 1, text))
            return true;
    while (*text++ != '\0');
    return false;
}

int
difference_find(const char *area, int format_bit, const char *stock, const char *esdm)
{
    for (int i = 0; known_differences[i].area != NULL; i++) {
        const difference *d = &known_differences[i];
        if (matches(d->area, area) && (d->formats & format_bit) != 0 && matches(d->stock, stock) &&
            matches(d->esdm, esdm))
            return i;
    }
    return -1;
}

void
differences_list(void)
{
    for (const difference *d = known_differences; d->area != NULL; d++)
        printf("difference\t%s\t%d\t%s\t%s\t%s\n", d->area, d->formats, d->stock, d->esdm,
               d->reason);
    for (const omission *o = functions_left_out; o->what != NULL; o++)
        printf("function\t%s\t%s\n", o->what, o->reason);
    for (const omission *o = behaviours_left_out; o->what != NULL; o++)
        printf("behaviour\t%s\t%s\n", o->what, o->reason);
}
