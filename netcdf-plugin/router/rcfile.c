/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Without preloading: netCDF-C 4.10 and newer load this library when an RC file says so (`esdm-run
 * --print-rc`), and then recognise stub files by their magic number. `esdm:` paths, routed folders
 * and whatever else needs calls to be taken over does not work that way. Neither do the calls that
 * reach past the dispatch table (overrides.c): they would crash. Hence containers are opened for
 * reading only, and those with user-defined types, whose values every reader frees by such calls,
 * not at all.
 */
#include "router/router.h"

#include <dlfcn.h>
#include <stdlib.h>

/** Called by libnetcdf; the name stands in RC files. */
ESDMNC_EXPORT NC_Dispatch *esdmnc_init(void);

/** Whether our definitions come first in the process. */
static bool
is_preloaded(void)
{
    /* Not RTLD_DEFAULT, which looks into this library itself as well. */
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    bool found = program && dlsym(program, "esdmnc_init") == (void *) esdmnc_init;
    if (program) {
        dlclose(program);
    }
    return found;
}

NC_Dispatch *
esdmnc_init(void)
{
    esdmnc__library *library = esdmnc__library_for(__builtin_return_address(0));
    if (!library) {
        esdmnc_debug("no libnetcdf called for the plug-in: load it with netCDF-C 4.10 or newer");
        return NULL;
    }
    library->by_rc_file = !is_preloaded();
    return esdmnc__library_serve(library) == NC_NOERR ? &library->table : NULL;
}

/** Whether a group or one below it defines types. */
static bool
has_types(const NC_Dispatch *table, int ncid)
{
    int ntypes = 0;
    int ngroups = 0;
    if (table->inq_typeids(ncid, &ntypes, NULL) == NC_NOERR && ntypes > 0) {
        return true;
    }
    if (table->inq_grps(ncid, &ngroups, NULL) != NC_NOERR || ngroups <= 0) {
        return false;
    }
    int *groups = calloc((size_t) ngroups, sizeof(*groups));
    bool found = !groups || table->inq_grps(ncid, &ngroups, groups) != NC_NOERR;
    for (int i = 0; i < ngroups && !found; i++) {
        found = has_types(table, groups[i]);
    }
    free(groups);
    return found;
}

int
esdmnc__rc_mode_check(const esdmnc__library *library, const char *path, int mode)
{
    if (!library->by_rc_file || !(mode & NC_WRITE)) {
        return NC_NOERR;
    }
    esdmnc__tell("'%s': for reading only, because an RC file loaded ESDM; to write, start the "
                 "program with esdm-run",
                 path);
    return NC_EPERM;
}

int
esdmnc__rc_types_check(const esdmnc__library *library, const char *path, int ncid)
{
    if (!library->by_rc_file || !has_types(library->core_table, ncid)) {
        return NC_NOERR;
    }
    esdmnc__tell("'%s' has user-defined types: to read it, start the program with esdm-run", path);
    return NC_ENOTBUILT;
}
