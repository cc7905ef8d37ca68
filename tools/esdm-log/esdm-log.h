/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TOOLS_ESDM_LOG_H
#define TOOLS_ESDM_LOG_H

/** @file What a snapshot contains, as far as esdm-log tells of it. */

#include <glib.h>

#include "esdm/esdm.h"

/** Objects, lengths, attributes and fragments of one snapshot. */
typedef struct log_contents log_contents;

/** @param ret_contents owned; log_contents_free(). */
esdm_status log_contents_load(esdm_session *session, const char *name, guint64 snapshot,
                              log_contents **ret_contents, esdm_error *err);
void log_contents_free(log_contents *contents); /* NULL is accepted */

/**
 * What changed, one text a line.
 * @param older NULL: there is nothing to compare with. @param unknown whether what was before is
 * not kept, else the container was made then.
 * @return texts, owned.
 */
GPtrArray *log_contents_compare(const log_contents *older, const log_contents *newer, bool unknown);

#endif
