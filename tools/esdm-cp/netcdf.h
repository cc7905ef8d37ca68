/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_NETCDF_H
#define ESDM_TOOLS_CP_NETCDF_H

/** @file What the files about NetCDF ends share. */

#include "esdm-cp/esdm-cp.h"

/** Reads all user-defined types, those that others are made of first. Groups are there.
 *  @param types nc_type → cp_type (borrowed from the model), to be filled. */
esdm_status cp_netcdf_load_types(const cp_end *end, cp_model *model, GHashTable *types,
                                 esdm_error *err);
/** The type of that number, atomic ones included; NULL: none. */
const cp_type *cp_netcdf_type(GHashTable *types, int number);
/** Defines the model's types. Groups are there. */
esdm_status cp_netcdf_put_types(const cp_end *end, const cp_model *model, esdm_error *err);

/** Whether compression was asked for (--deflate, --zstd). */
bool cp_filters_asked(void);
/** Puts what was asked for in place of the filters of the model's datasets. The file is open. */
esdm_status cp_filters_choose(const cp_end *end, cp_model *model, esdm_error *err);
/** Sets the filters of a dataset that was defined. One that libnetcdf does not have, or that the
 *  format does not have (not HDF5), is left out and counted: the values are the same without it.
 *  @return of libnetcdf. */
int cp_filters_put(const cp_dataset *dataset, bool is_hdf5, cp_left_out *left_out);

#endif
