/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Every way to create, open and end, and what holds for the whole library. */

#include "compare.h"

#include <string.h>

static void
with_hints(const world *w)
{
    int ncid = -1;
    size_t hint = NC_SIZEHINT_DEFAULT;
    int v = -1;
    CALL(nc__create(w->path, w->mode, 4096, &hint, &ncid));
    CALL(nc_def_var(ncid, "v", NC_INT, 0, NULL, &v));
    CALL(nc__enddef(ncid, 100, 4, 100, 4));
    CALL(nc_put_var_int(ncid, v, (int[]){7}));
    CALL(nc_close(ncid));
    hint = NC_SIZEHINT_DEFAULT;
    CALL(nc__open(w->path, NC_NOWRITE, &hint, &ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc__open(w->other, NC_NOWRITE, &hint, &ncid));
    CALL(nc__create(w->path, w->mode | NC_NOCLOBBER, 0, &hint, &ncid));
    CALL(nc__create_mp(w->other, w->mode, 0, 0, &hint, &ncid));
    CALL(nc_close(ncid));
    CALL(nc__open_mp(w->other, NC_NOWRITE, 0, &hint, &ncid));
    note_file(ncid);
    CALL(nc_close(ncid));
    CALL(nc_delete_mp(w->other, 0));
    CALL(nc_open(w->other, NC_NOWRITE, &ncid));
}

static void
default_format(const world *w)
{
    int ncid = -1;
    int old = -1;
    int before = -1;
    int format = -1;
    CALL(nc_set_default_format(w->format, &before));
    note("%d", before);
    CALL(nc_create(w->path, 0, &ncid));
    CALL(nc_inq_format(ncid, &format));
    note("%d", format);
    CALL(nc_close(ncid));
    CALL(nc_set_default_format(before, &old));
    CALL(nc_set_default_format(77, &old));
    note("%d", old);
}

static void
of_the_library(const world *w)
{
    size_t bytes = 0;
    size_t slots = 0;
    float preemption = 0;
    int ncid = create(w);
    CALL(nc_get_chunk_cache(&bytes, &slots, &preemption));
    CALL(nc_set_chunk_cache(1000000, 101, 0.5f));
    CALL(nc_get_chunk_cache(&bytes, &slots, &preemption));
    note("%zu %zu %g", bytes, slots, (double) preemption);
    CALL(nc_set_chunk_cache(4194304, 1009, 0.75f));
    char path[2000] = "";
    size_t length = 0;
    CALL(nc_inq_path(ncid, &length, path));
    note("%d %d", length == strlen(w->path), strcmp(path, w->path));
    CALL(nc_close(ncid));
}

const scenario scenarios_opening[] = {{"opening", "with_hints", IN_ALL, with_hints},
                                      {"opening", "default_format", IN_ALL, default_format},
                                      {"opening", "of_the_library", IN_ALL, of_the_library},
                                      {0}};
