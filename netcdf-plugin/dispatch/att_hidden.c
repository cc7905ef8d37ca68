/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Attributes that netCDF-4 keeps for itself: some can be read though nobody lists them. */

#include "internal.h"

#include <string.h>

static bool
is_root_global(const esdmnc_group *group, int varid)
{
    return varid == NC_GLOBAL && esdm_group_parent(group->group) == NULL;
}

/* `_SuperblockVersion` is what files by netCDF-4 have: programs ask for it to tell what features
 * they may expect. */
bool
esdmnc_hidden_find(const esdmnc_file *file, const esdmnc_group *group, int varid, const char *name,
                   esdmnc_hidden *ret)
{
    static const int flags[2] = {0, 1};
    static const int superblock = 2;
    static const char properties[] = "version=2,esdm=1";
    if (name[0] != '_' || esdmnc_is_nc3(file) || !is_root_global(group, varid))
        return false;
    if (strcmp(name, "_IsNetcdf4") == 0) {
        /* What netCDF-4 finds out of a file: not the classic model, and some dimension. */
        bool is_netcdf4 =
            !esdmnc_is_classic(file) && esdm_container_dimension_count(file->container) > 0;
        *ret = (esdmnc_hidden){.type = NC_INT, .count = 1, .values = &flags[is_netcdf4]};
        return true;
    }
    if (strcmp(name, "_SuperblockVersion") == 0) {
        *ret = (esdmnc_hidden){.type = NC_INT, .count = 1, .values = &superblock};
        return true;
    }
    if (strcmp(name, "_NCProperties") == 0) {
        *ret =
            (esdmnc_hidden){.type = NC_CHAR, .count = sizeof properties - 1, .values = properties};
        return true;
    }
    return false;
}

int
esdmnc_hidden_check(const esdmnc_file *file, const esdmnc_group *group, int varid, const char *name)
{
    static const char *const names[] = {
        "CLASS",         "DIMENSION_LIST",     "NAME",          "REFERENCE_LIST",
        "_Format",       "_IsNetcdf4",         "_NCProperties", "_Netcdf4Coordinates",
        "_Netcdf4Dimid", "_SuperblockVersion", "_nc3_strict"};
    if (esdmnc_is_nc3(file) || (varid == NC_GLOBAL && !is_root_global(group, varid)))
        return NC_NOERR;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return NC_ENAMEINUSE;
    return NC_NOERR;
}
