/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_NETCDF_H
#define ESDM_TOOLS_CP_NETCDF_H

/** @file What the files about NetCDF ends share. */

#include "esdm-cp.h"

/** Reads all user-defined types, those that others are made of first. Groups are there.
 *  @param types nc_type → cp_type (borrowed from the model), to be filled. */
esdm_status cp_netcdf_load_types(const cp_end *end, cp_model *model, GHashTable *types,
                                 esdm_error *err);
/** The type of that number, atomic ones included; NULL: none. */
const cp_type *cp_netcdf_type(GHashTable *types, int number);
/** Defines the model's types. Groups are there. */
esdm_status cp_netcdf_put_types(const cp_end *end, const cp_model *model, esdm_error *err);

#endif
