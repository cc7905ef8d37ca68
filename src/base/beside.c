/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/beside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool
esdm__beside_library(const char *name, char ret_path[PATH_MAX])
{
    static const char here = 0;
    Dl_info found;
    if (dladdr(&here, &found) == 0 || found.dli_fname == NULL)
        return false;
    const char *slash = strrchr(found.dli_fname, '/');
    if (slash == NULL || found.dli_fname[0] != '/')
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%.*s/esdm%s%s", (int) (slash - found.dli_fname),
                     found.dli_fname, *name != '\0' ? "/" : "", name);
    return n > 0 && n < PATH_MAX;
}
