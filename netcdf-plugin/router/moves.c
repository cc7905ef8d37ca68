/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Renames of stubs into routed folders. NCO and others write `a.nc.pid1.tmp` and rename it to
 * `a.nc`: the container follows, so that it gets the name that people expect, and the container of
 * a stub that is replaced so is replaced too, as is one whose stub is gone: what a model wrote
 * before `rm -rf run`. One thing fails the rename: others have changed what it would replace since
 * the program had read it. Of all else, a stub that keeps the old name is right all the same.
 */
#include "router/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
esdmnc__move_begin(const char *from, const char *to, esdmnc__move *ret)
{
    esdmnc__stub stub;
    *ret = (esdmnc__move){0};
    /* Renames are frequent and stubs are rare: a look at the file spares most of them the rest. */
    if (!from || !to || esdmnc__stub_read(from, &stub) != NC_NOERR || !stub.is_original ||
        esdmnc__route(to, ret->wanted, sizeof(ret->wanted), ret->folder) != NC_NOERR) {
        return 0;
    }
    char own[ESDMNC_NAME_MAX + 1];
    char source[ESDMNC_NAME_MAX + 1];
    esdmnc__text_copy(source, stub.container);
    ret->active = true;
    ret->at_home = esdmnc__route_container(from, own, sizeof(own)) == NC_NOERR &&
                   strcmp(own, stub.container) == 0;
    if (esdmnc__stub_read(to, &stub) == NC_NOERR && stub.is_original) {
        ret->replaces = true;
        ret->number = stub.number;
        ret->version = stub.version;
        esdmnc__text_copy(ret->site, stub.site);
        esdmnc__text_copy(ret->wanted, stub.container);
    }
    int saved = errno;
    const esdmnc__core *core = ret->replaces ? esdmnc__core_get() : NULL;
    int status = core ? core->may_rename(source, ret->wanted) : NC_NOERR;
    errno = saved;
    return status > 0 ? status : 0;
}

/** Whether the container may have the name; one that is taken without a stub here may belong to a
 *  stub elsewhere. */
static bool
settle_name(const char *to, esdmnc__move *move)
{
    const esdmnc__core *core = esdmnc__core_get();
    esdmnc_stat st;
    if (!core) {
        return false;
    }
    if (move->replaces || core->exists(move->wanted, &st) == ENOENT) {
        return true;
    }
    return move->at_home &&
           esdmnc__path_free_name(to, move->folder, move->wanted, sizeof(move->wanted)) == NC_NOERR;
}

int
esdmnc__move_end(const char *to, esdmnc__move *move)
{
    esdmnc__stub stub;
    if (!move->active || esdmnc__stub_read(to, &stub) != NC_NOERR || !stub.is_original ||
        strcmp(stub.container, move->wanted) == 0) {
        return 0;
    }
    const esdmnc__core *core = esdmnc__core_get();
    int saved = errno;
    int status = settle_name(to, move) ? core->rename(stub.container, move->wanted) : NC_ENOTBUILT;
    if (status == NC_NOERR) {
        esdmnc_debug("%s: '%s' is now '%s'", to, stub.container, move->wanted);
        if (esdmnc__stub_write(to, move->wanted, stub.number, stub.version, stub.site) != 0) {
            (void) core->rename(move->wanted, stub.container);
        }
    }
    errno = saved;
    return status == ESTALE ? ESTALE : 0;
}

void
esdmnc__move_undo(const char *to, const esdmnc__move *move)
{
    int saved = errno;
    if (move->replaces &&
        esdmnc__stub_write(to, move->wanted, move->number, move->version, move->site) != 0) {
        esdmnc_debug("%s: cannot write the stub of '%s' again", to, move->wanted);
    }
    errno = saved;
}
