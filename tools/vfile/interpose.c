/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The program's own H5Dcreate2(), which libnetcdf finds before HDF5's: datasets of a sparse file
 * get their room when they are made, and no byte is written there. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <hdf5.h>

#include "vfile/inner.h"

bool vf_interposing;

/* Whether values hold texts or arrays, which lie elsewhere in the file. */
static bool
varies(hid_t type)
{
    bool found = false;
    hid_t part = H5I_INVALID_HID;
    switch (H5Tget_class(type)) {
    case H5T_STRING:
        return H5Tis_variable_str(type) > 0;
    case H5T_VLEN:
    case H5T_REFERENCE:
        return true;
    case H5T_ARRAY:
        part = H5Tget_super(type);
        found = varies(part);
        (void) H5Tclose(part);
        return found;
    case H5T_COMPOUND:
        for (int i = 0; i < H5Tget_nmembers(type) && !found; i++) {
            part = H5Tget_member_type(type, (unsigned) i);
            found = varies(part);
            (void) H5Tclose(part);
        }
        return found;
    default:
        return false;
    }
}

/* netCDF stands for a dimension without variable by such a dataset. It holds nothing. */
static bool
is_dimension(hid_t type)
{
    return H5Tequal(type, H5T_IEEE_F32BE) > 0;
}

typedef hid_t (*create_function)(hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t);

#pragma GCC visibility push(default)
hid_t
H5Dcreate2(hid_t loc_id, const char *name, hid_t type_id, hid_t space_id, hid_t lcpl_id,
           hid_t dcpl_id, hid_t dapl_id)
{
    create_function real = NULL;
    *(void **) &real = dlsym(RTLD_NEXT, "H5Dcreate2");
    if (real == NULL)
        return H5I_INVALID_HID;
    if (!vf_interposing || is_dimension(type_id) || varies(type_id))
        return real(loc_id, name, type_id, space_id, lcpl_id, dcpl_id, dapl_id);
    hid_t wanted = dcpl_id == H5P_DEFAULT ? H5Pcreate(H5P_DATASET_CREATE) : H5Pcopy(dcpl_id);
    hid_t made = H5I_INVALID_HID;
    if (wanted >= 0 && H5Pset_alloc_time(wanted, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(wanted, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_obj_track_times(wanted, false) >= 0)
        made = real(loc_id, name, type_id, space_id, lcpl_id, wanted, dapl_id);
    if (wanted >= 0)
        (void) H5Pclose(wanted);
    return made;
}

/* A type would have the time when it was made, and each header other bytes. */
herr_t
H5Tcommit1(hid_t loc_id, const char *name, hid_t type_id)
{
    hid_t wanted = H5Pcreate(H5P_DATATYPE_CREATE);
    herr_t done = -1;
    if (wanted >= 0 && (!vf_interposing || H5Pset_obj_track_times(wanted, false) >= 0))
        done = H5Tcommit2(loc_id, name, type_id, H5P_DEFAULT, wanted, H5P_DEFAULT);
    if (wanted >= 0)
        (void) H5Pclose(wanted);
    return done;
}
#pragma GCC visibility pop
