/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * First routing layer. libnetcdf asks NC_infermodel which implementation serves a path. It is
 * internal, but exported and called through the PLT, with the same signature from 4.8.1 on; so the
 * preloaded definition here is the one that runs, whatever way the program reached nc_open().
 */
#include "router/router.h"

/** As in libnetcdf's ncmodel.h. */
typedef struct NCmodel {
    int impl;
    int format;
} NCmodel;

ESDMNC_EXPORT int NC_infermodel(const char *path, int *omodep, int iscreate, int useparallel,
                                void *params, NCmodel *model, char **newpathp);

typedef int (*infermodel)(const char *, int *, int, int, void *, NCmodel *, char **);

static int
format_of_mode(int mode)
{
    if (mode & NC_64BIT_OFFSET) {
        return NC_FORMAT_64BIT_OFFSET;
    }
    if (mode & NC_64BIT_DATA) {
        return NC_FORMAT_64BIT_DATA;
    }
    if (mode & NC_NETCDF4) {
        return (mode & NC_CLASSIC_MODEL) ? NC_FORMAT_NETCDF4_CLASSIC : NC_FORMAT_NETCDF4;
    }
    return NC_FORMAT_CLASSIC;
}

int
NC_infermodel(const char *path, int *omodep, int iscreate, int useparallel, void *params,
              NCmodel *model, char **newpathp)
{
    if (esdmnc__pending_call.probing) {
        esdmnc__pending_call.reached = true;
        return NC_ENOTNC;
    }
    esdmnc__library *library = esdmnc__library_for(__builtin_return_address(0));
    esdmnc__initialised();
    /* In memory the path is a mere label, which libnetcdf must not take for a URL. */
    bool in_memory = (*omodep & NC_INMEMORY) != 0;
    if (in_memory && path && esdmnc__path_prefixed(path)) {
        path = "memory";
    }
    bool parallel = esdmnc__pending_call.ranks != NULL; /* rank 0 has found out */
    bool ours = parallel || (in_memory ? !iscreate && esdmnc__memory_stub(params, NULL)
                                       : path && esdmnc__path_is_ours(path, iscreate != 0));
    if (!ours) {
        infermodel real = (infermodel) esdmnc__real(library, ESDMNC_FN_NC_infermodel);
        return real ? real(path, omodep, iscreate, useparallel, params, model, newpathp)
                    : NC_ENOTNC;
    }
    int status = esdmnc__library_serve(library);
    if (status != NC_NOERR) {
        return status;
    }
    model->impl = library->table.model;
    model->format = format_of_mode(*omodep);
    if (newpathp) {
        *newpathp = NULL;
    }
    return NC_NOERR;
}
