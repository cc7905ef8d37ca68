/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file In place of refer/grib.c where ecCodes is not installed: says so. */

#include "common/common.h"
#include "refer/grib.h"

esdm_status
gribs_index_new(gribs_file *file, gribs_index **ret, esdm_error *err)
{
    (void) ret;
    return tool_error_set(err, ESDM_ENOTSUP,
                          "%s: this ESDM was built without ecCodes (libeccodes-dev), and cannot "
                          "read GRIB",
                          file->path);
}

void
gribs_index_free(gribs_index *index)
{
    (void) index;
}
