/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The one place that says where ESDM and stock netCDF differ and what is not compared, and why.
 * A difference that is not listed fails its test; an entry that nothing meets fails the report.
 */

#include "compare.h"

#include <stdio.h>
#include <string.h>

const difference known_differences[] = {{0}};

#define PURE        "works without a data set: libnetcdf's own"
#define USER_FORMAT "says which plug-ins libnetcdf has, and ESDM is one"
#define PRINTS      "prints libnetcdf's own structures"

const omission functions_left_out[] = {{"nc_inq_libvers", PURE},
                                       {"nc_strerror", PURE},
                                       {"nctypelen", PURE},
                                       {"nc_set_log_level", PURE},
                                       {"nc_initialize", PURE},
                                       {"nc_finalize", PURE},
                                       {"nc_advise", PURE},
                                       {"nc_set_alignment", PURE},
                                       {"nc_get_alignment", PURE},
                                       {"ncaux_class_alignment", PURE},
                                       {"ncaux_h5filterspec_fix8", PURE},
                                       {"ncaux_h5filterspec_free", PURE},
                                       {"ncaux_h5filterspec_parse", PURE},
                                       {"ncaux_h5filterspec_parse_parameter", PURE},
                                       {"ncaux_h5filterspec_parselist", PURE},
                                       {"ncaux_readfile", PURE},
                                       {"ncaux_writefile", PURE},
                                       {"nc_def_user_format", USER_FORMAT},
                                       {"nc_inq_user_format", USER_FORMAT},
                                       {"nc_show_metadata", PRINTS},
                                       {0}};

const omission behaviours_left_out[] = {
    {"abort-of-replacement",
     "nc_abort() of what nc_create() was to replace: the old container is replaced when the new "
     "one is committed first, so it is still there; the old file is gone."},
    {"abort-of-unseen",
     "nc_abort() after nc_redef() of a container that was neither closed nor synchronised since it "
     "was created: nothing of it was published, and it is gone; a file keeps what it had before "
     "nc_redef()."},
    {"large-dimensions",
     "Dimensions of 2^63 and more, which netCDF-4 takes and cannot use: NC_EDIMSIZE."},
    {"netcdf4-dim-after-var",
     "A dimension called like a variable or group that was there before: netCDF-4 ends in HDF5 "
     "errors."},
    {"netcdf4-group-names", "A group called like a dimension: netCDF-4 ends in HDF5 errors."},
    {"netcdf4-longest-names",
     "Names of NC_MAX_NAME bytes: netCDF-4 writes them, and reads the file again wrongly or not at "
     "all."},
    {"netcdf4-past-the-extent",
     "Reading past what was written of a variable with an unlimited dimension that is not the "
     "first, or with strides along it: netCDF-4 mixes data and fill values. Such elements are "
     "compared one by one."},
    {"netcdf4-dims-of-other-groups",
     "A variable over a dimension of a group that is none of those above: netCDF-4 takes it, and "
     "does not find the dimension when it opens the file again. NC_EBADDIM."},
    {"netcdf4-abort", "nc_abort() in define mode that netCDF-4 entered by itself: the file keeps "
                      "the data of before, "
                      "ESDM drops all since the last commit."},
    {"netcdf4-order-of-attributes",
     "The order of attributes that are written after the first define mode, or again with another "
     "type or length, is another one when a netCDF-4 file is opened again; in a container they "
     "stay "
     "in their order."},
    {"netcdf4-quantized-reads",
     "Values of a quantized variable that are read in another type: netCDF-4 rounds them again, in "
     "that type, without knowing the fill value, and writes past the end of integers. ESDM gives "
     "what is stored."},
    {"netcdf4-quantized-classic-model",
     "Quantized variables in the classic model of netCDF-4: nc_enddef() and nc_close() end in "
     "NC_ENOTINDEFINE, because the attribute that tells is new. ESDM adds it."},
    {"netcdf4-settings-unseen", "nc_set_var_chunk_cache() as the first call for a variable of an "
                                "opened file: netCDF-4 forgets "
                                "it when it looks at the variable for the first time."},
    {"netcdf4-failed-creation",
     "What goes on after settings that HDF5 refuses when nc_enddef() or nc_close() creates the "
     "variable (NC_EFILTER, NC_EHDFERR)."},
    {"netcdf4-large-unsigned", "Floating-point numbers from 2^63 on that are written as NC_UINT64: "
                               "netCDF-4 stores 2^63, ESDM "
                               "and CDF-5 the number."},
    {"netcdf4-default-chunks", "The default chunks of a variable over an unlimited dimension that "
                               "has a length already depend "
                               "on when the length was asked for last."},
    {"netcdf4-late-fill-value",
     "A fill value that is set after the first define mode: netCDF-4 makes the variable anew, so "
     "that it is the last one when the file is opened again; in a container it keeps its place."},
    {"netcdf4-order-of-unlimited",
     "With several unlimited dimensions, which of them nc_inq_unlimdim() gives and the order of "
     "nc_inq_unlimdims() change when a netCDF-4 file is opened again; in a container they stay."},
    {"netcdf4-odd-coordinates",
     "A variable that is called like a dimension, but is not a coordinate variable of one "
     "dimension: "
     "netCDF-4 ends in HDF5 errors when it is given a fill value, and mixes its attributes up."},
    {"netcdf4-renames", "Renaming of what lies in the file already, of dimensions and variables "
                        "that share a name with "
                        "each other, or to the name of a group: netCDF-4 ends in HDF5 errors, or "
                        "has variables, groups "
                        "or attributes in another order when it opens the file again."},
    {"netcdf4-failed-attributes",
     "A `_FillValue`, or an attribute of an unknown type, that netCDF-4 refuses is there "
     "afterwards, without a value; the old one is "
     "lost. In a container nothing changes."},
    {"netcdf4-names-not-normalised",
     "netCDF-4 normalises names (NFC) when something is made and found, not when it is renamed and "
     "when attributes are removed; ESDM always does."},
    {"netcdf4-rename-dim-elsewhere",
     "nc_rename_dim() with the id of a group below that of the dimension: netCDF-4 ends in an HDF5 "
     "error when the file was opened, ESDM renames."},
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
