/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The one place that says where ESDM and stock netCDF differ and what is not compared, and why.
 * A difference that is not listed fails its test; an entry that nothing meets fails the report.
 */

#include "compare.h"

#include <stdio.h>
#include <string.h>

#define OF_MPI   "libnetcdf hands on a number of MPI's in place of a code"
#define FILTERED "stock writes variables with filters collectively only"
#define PNETCDF  "PnetCDF's code differs from netCDF-3's"

/* Areas par_* are those of ../parallel. */
const difference known_differences[] = {
    {"par_files", IN_ALL, "nc_open_par* -> 9", "nc_open_par* -> 2", OF_MPI},
    {"par_files", IN_HDF5, "nc_abort(ncid) -> -91", "nc_abort(ncid) -> 0",
     "every rank of stock removes the new file, and all but the first fail"},
    {"par_files", IN_CDF, "nc_abort(ncid) -> -220", "nc_abort(ncid) -> 0",
     "every rank of stock removes the new file, and all but the first fail"},
    {"par_settings", IN_CDF, "old 256", "old 0",
     "what nobody wrote has no defined value in PnetCDF, unless nc_set_fill() asks for it"},
    {"par_settings", IN_HDF5, "nc_var_par_access(ncid, varid, NC_INDEPENDENT) -> -36",
     "nc_var_par_access(ncid, varid, NC_INDEPENDENT) -> 0", FILTERED},
    {"par_access", IN_CDF, "nc_get_vara_int(* -> -40", "nc_get_vara_int(* -> -57", PNETCDF},
    {"par_access", IN_CDF, "nc_var_par_access(ncid, varid, NC_COLLECTIVE) -> 0",
     "nc_var_par_access(ncid, varid, NC_COLLECTIVE) -> -114",
     "a classic file that one process has opened: stock takes any access"},
    {0}};

#define PURE        "works without a data set: libnetcdf's own"
#define USER_FORMAT "says which plug-ins libnetcdf has, and ESDM is one"
/* report.py knows the beginning of this reason: such a function may be recorded or not. */
#define ON_RANKS "compared on ranks, by the tests of parallel access (label mpi)"
#define NO_FIELDS                                                                                  \
    "crashes in 4.9.0, where ncaux_add_field() adds nothing; made of calls that are compared"

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
                                       {"nc_create_par", ON_RANKS},
                                       {"nc_open_par", ON_RANKS},
                                       {"nc_create_par_fortran", ON_RANKS},
                                       {"nc_open_par_fortran", ON_RANKS},
                                       {"ncaux_end_compound", NO_FIELDS},
                                       {0}};

const omission behaviours_left_out[] = {
    {"large-dimensions",
     "Dimensions of 2^63 and more, which netCDF-4 takes and cannot use: NC_EDIMSIZE."},
    {"parallel-in-memory",
     "nc_open_par() with NC_DISKLESS or NC_INMEMORY: libnetcdf crashes; NC_EINVAL."},
    {"pnetcdf-out-of-range", "Values that do not fit their type, in classic formats in parallel: "
                             "PnetCDF stores the fill value, ESDM what netCDF-3 does."},
    {"netcdf4-dim-after-var",
     "A dimension called like a variable or group that was there before: netCDF-4 ends in HDF5 "
     "errors."},
    {"netcdf4-group-names",
     "A group or a user-defined type called like a dimension: netCDF-4 ends in HDF5 errors."},
    {"netcdf4-types-of-readers",
     "User-defined types that are defined in a file opened for reading: netCDF-4 takes them, and "
     "they are nowhere. NC_EPERM."},
    {"netcdf4-longest-names",
     "Names of NC_MAX_NAME bytes: netCDF-4 writes them, and reads the file again wrongly or not at "
     "all."},
    {"netcdf4-past-the-extent",
     "Reading past what was written of a variable with an unlimited dimension that is not the "
     "first, or with strides along it: netCDF-4 mixes data and fill values. Such elements are "
     "compared one by one."},
    {"netcdf4-dims-of-other-groups",
     "A variable over a dimension of a group that is none of those above: netCDF-4 takes it, but "
     "cannot write it when the dimension's group comes later, does not find the dimension again, "
     "and unlimited ones do not grow. In a container all of that works."},
    {"netcdf4-abort",
     "nc_abort() does not bring back attributes that were renamed or removed, and dimensions that "
     "got a coordinate variable: netCDF-4 takes them out of the file at once. In a container they "
     "are back."},
    {"netcdf4-types-of-other-groups",
     "A variable of a type that is defined in a group that is none of those above: netCDF-4 does "
     "not find the type, and so the variable, when it opens the file again."},
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
    {"netcdf4-large-unsigned",
     "Floating-point numbers from 2^63 on that are written or read as NC_UINT64: netCDF-4 makes "
     "2^63 of them, ESDM and CDF-5 give the number."},
    {"netcdf4-default-chunks", "The default chunks of a variable over an unlimited dimension that "
                               "has a length already depend "
                               "on when the length was asked for last."},
    {"netcdf4-late-fill-value",
     "A fill value that is set after the first define mode: netCDF-4 makes the variable anew, so "
     "that it is the last one when the file is opened again; in a container it keeps its place."},
    {"netcdf4-order-of-unlimited",
     "With several unlimited dimensions, which of them nc_inq_unlimdim() gives and the order of "
     "nc_inq_unlimdims() change when a netCDF-4 file is opened again; in a container they stay."},
    {"netcdf4-emptied-attributes",
     "An attribute in the file that gets a value without elements, or had none: netCDF-4 does not "
     "write that, so that the old value is there when the file is opened again."},
    {"netcdf4-rewritten-attributes",
     "An attribute in the file that is written again and, before that is synchronised, removed or "
     "renamed: netCDF-4 leaves the old one in the file."},
    {"netcdf4-padded-attributes",
     "Attributes of compounds that are written to an opened file: netCDF-4 takes the values to lie "
     "as in the file, with the padding that the type was defined with."},
    {"netcdf4-equal-types",
     "Of two user-defined types that are alike but for their names, netCDF-4 finds the first one "
     "when it opens the file again, whichever a variable or an attribute has."},
    {"netcdf4-failed-types",
     "Compounds and enumerations without members, and types of types that do not exist: netCDF-4 "
     "takes them, and cannot write the file."},
    {"netcdf4-big-endian", "Data that are written to a big-endian variable of an opened file: "
                           "netCDF-4 stores their bytes the wrong way round."},
    {"netcdf4-late-coordinates",
     "A coordinate variable that is defined when the file has a variable already that has the "
     "dimension more than once: netCDF-4 ends in HDF5 errors."},
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
     "netCDF-4 normalises names (NFC) when something is made and found, not when a variable is "
     "renamed and when attributes are removed. So does ESDM; but netCDF-4 does not find again in "
     "files what was given such a name."},
    {"netcdf4-rename-dim-elsewhere",
     "nc_rename_dim() with the id of a group below that of the dimension: netCDF-4 ends in an HDF5 "
     "error when the file was opened, ESDM renames."},
    {"netcdf3-abort-forgets",
     "nc_abort() in define mode after records were added: netCDF-3 forgets those since nc_sync(), "
     "unless the file is opened with NC_SHARE; ESDM keeps them."},
    {"netcdf3-no-strings",
     "No elements as strings, asked of a netCDF-3 file: NC_EBADTYPE or NC_NOERR, by how the "
     "request lies in the file."},
    {"netcdf3-room-of-names",
     "In a netCDF-3 file the room of a name stays what it was when define mode ended, so that a "
     "shortened name can be made longer in data mode; in a container until it is closed."},
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
