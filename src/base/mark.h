/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_MARK_H
#define ESDM_BASE_MARK_H

/**
 * @file
 * The mark of a place that a plug-in owns: a small JSON document {"format", "plugin", "target",
 * "site"} under the name `esdm-mark.json`. Plug-ins differ in where it lies; what it says, and what
 * a wrong one is answered with, is the same. Pure.
 */

#include <stddef.h>

#include "base/ids.h"
#include "esdm/status.h"

#define ESDM__MARK_FILE   "esdm-mark.json"
#define ESDM__MARK_FORMAT 1
/** A mark is a few hundred bytes; what is longer is not ours. */
#define ESDM__MARK_MAX_BYTES 4096

/** What a mark must agree with, and how messages call it. All borrowed. */
typedef struct esdm__mark {
    const char *plugin;
    const char *target;
    const char *site_id; /**< "": not known, which no mark agrees with */
    const char *path;    /**< "site.json: targets[0]" */
    const char *where;   /**< "directory '/data/esdm'" */
    const char *file;    /**< "/data/esdm/esdm-mark.json" */
} esdm__mark;

/** ESDM_EINVAL: somebody else's; ESDM_ENOTSUP: a newer format; ESDM_ECORRUPT: damaged. */
esdm_status esdm__mark_verify(const esdm__mark *expected, const char *text, size_t bytes,
                              esdm_error *err);
/** Id of the site in the mark, whatever `expected` says of the site. Errors as above. */
esdm_status esdm__mark_site_id(const esdm__mark *expected, const char *text, size_t bytes,
                               char ret_id[ESDM__UUID_BYTES], esdm_error *err);
/** The document for a new mark; owned, free(). NULL: out of memory. */
char *esdm__mark_text(const esdm__mark *mark);

#endif
