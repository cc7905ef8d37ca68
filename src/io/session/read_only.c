/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether a session may write, and what is said when it may not. */

#include "base/error.h"
#include "io/session/session.h"

bool
esdm__session_writes(const esdm_session *session)
{
    return !session->read_only && session->meta->is_writable(session->store);
}

esdm_status
esdm__session_read_only(const esdm_session *session, esdm_error *err)
{
    char why[400] = "";
    if (session->read_only)
        return esdm__error_set(err, ESDM_EACCES,
                               "the metadata store of site '%s' is read-only for this process: the "
                               "session was opened for reading",
                               session->site->name);
    if (session->meta->why_read_only != NULL)
        session->meta->why_read_only(session->store, why, sizeof why);
    return esdm__error_set(err, ESDM_EACCES,
                           "the metadata store of site '%.40s' is read-only for this process: %s",
                           session->site->name,
                           why[0] != '\0' ? why
                                          : "ask who runs it for the right to write, or make a "
                                            "site of your own (esdm-mkfs) and name it in "
                                            "$ESDM_CONFIG");
}
