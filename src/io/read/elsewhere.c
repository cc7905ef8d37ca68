/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/elsewhere.h"

#include <stdio.h>

#include "base/error.h"
#include "io/read/foreign.h"

/* One for each kind that lies elsewhere. */
static const esdm__source_ops *const table[ESDM__SOURCE_KINDS] = {
    [ESDM__KIND_FOREIGN] = &esdm__foreign_ops,
    [ESDM__KIND_LINK] = NULL,
};

const esdm__source_ops *
esdm__source_ops_of(uint8_t kind)
{
    return kind < ESDM__SOURCE_KINDS ? table[kind] : NULL;
}

void
esdm__source_describe(const esdm__fragment *fragment, char *text, size_t room)
{
    static const char *const names[] = {"in the index page", "one value", "part of a file",
                                        "part of another container"};
    const esdm__source_ops *ops = esdm__source_ops_of(fragment->kind);
    if (ops != NULL && ops->describe != NULL)
        ops->describe(fragment, text, room);
    else if (fragment->pack != NULL)
        (void) snprintf(text, room, "pack '%s' on target '%s'", fragment->pack->pack,
                        fragment->pack->target);
    else if (fragment->kind < sizeof names / sizeof *names)
        (void) snprintf(text, room, "%s", names[fragment->kind]);
    else
        (void) snprintf(text, room, "a source of kind %u", fragment->kind);
}

esdm_status
esdm__source_read(const esdm__source_request *request, esdm_error *err)
{
    const esdm__fragment *fragment = request->fragment;
    const esdm__source_ops *ops = esdm__source_ops_of(fragment->kind);
    if (ops == NULL || fragment->strided)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "its values come from a source of kind %u, which this ESDM cannot "
                               "read; use a newer ESDM",
                               fragment->kind);
    return ops->read(request->dataset->group->container->session, request, err);
}
