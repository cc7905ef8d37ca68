/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions about objects on servers that containers may refer to. */

#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "esdm/reference.h"
#include "io/io.h"
#include "io/read/foreign_urls.h"
#include "io/session/references.h"

_Static_assert(sizeof(((esdm_remote_state *) 0)->identity) ==
                   sizeof(((esdm_source_state *) 0)->identity),
               "identities are as long");

static void
tell(const esdm_source_state *from, esdm_remote_state *to)
{
    to->bytes = from->bytes;
    to->modified_ns = from->modified_ns;
    memcpy(to->identity, from->identity, sizeof to->identity);
}

bool
esdm_location_is_remote(const char *location)
{
    return esdm__site_is_url(location);
}

esdm_status
esdm_remote_stat(esdm_session *session, const char *url, esdm_remote_state *ret_state,
                 esdm_error *err)
{
    esdm_source_state state;
    ESDM__NEED(err, session);
    ESDM__NEED(err, url);
    ESDM__NEED(err, ret_state);
    esdm_status status = esdm__url_stat(session, url, &state, err);
    if (status == ESDM_OK)
        tell(&state, ret_state);
    return status;
}

esdm_status
esdm_remote_read(esdm_session *session, const char *url, const esdm_remote_state *was,
                 uint64_t position, void *buffer, size_t bytes, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, url);
    ESDM__NEED(err, was);
    ESDM__NEED(err, buffer);
    esdm_source_state state = {.bytes = was->bytes, .modified_ns = was->modified_ns};
    memcpy(state.identity, was->identity, sizeof state.identity);
    state.identity[sizeof state.identity - 1] = '\0';
    return esdm__url_read(session, url, &state, position, buffer, bytes, err);
}

esdm_status
esdm_remote_load(esdm_session *session, const char *url, size_t most, esdm_remote_state *ret_state,
                 void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    esdm_source_state state;
    ESDM__NEED(err, session);
    ESDM__NEED(err, url);
    ESDM__NEED(err, ret_state);
    ESDM__NEED(err, ret_data);
    ESDM__NEED(err, ret_bytes);
    esdm_status status = esdm__url_load(session, url, most, &state, ret_data, ret_bytes, err);
    if (status == ESDM_OK)
        tell(&state, ret_state);
    return status;
}
