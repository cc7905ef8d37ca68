/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Tags that are given and taken, noted in the journal. */

#include <string.h>

#include "io/session/journaling.h"

/* The tag as it was. */
typedef struct before {
    const char *name;
    uint64_t created_ns; /* 0: there was none */
} before;

static bool
look(const esdm_meta_tag *tag, void *user)
{
    before *b = user;
    if (strcmp(tag->name, b->name) != 0)
        return true;
    b->created_ns = tag->created_ns;
    return false;
}

/* Now, but behind what was said of that name before: clocks of nodes differ. */
static uint64_t
time_of(const esdm_session *session, uint64_t container, const char *name)
{
    before b = {.name = name};
    uint64_t now_ns = esdm__now_ns();
    (void) !session->meta->tag_list(session->store, container, look, &b, NULL);
    return now_ns > b.created_ns ? now_ns : b.created_ns + 1;
}

esdm_status
esdm__noted_tag(esdm_session *session, const char *stored, uint64_t container,
                const esdm_meta_tag *tag, bool replace, esdm_error *err)
{
    esdm_meta_tag given = *tag;
    if (given.created_ns == 0)
        given.created_ns = time_of(session, container, tag->name);
    esdm_status status = session->meta->tag_set(session->store, container, &given, replace, err);
    if (status == ESDM_OK)
        esdm__note_tag(session, stored, container, &given);
    return status;
}

esdm_status
esdm__noted_untag(esdm_session *session, const char *stored, uint64_t container, const char *name,
                  esdm_error *err)
{
    const esdm_meta_tag gone = {.name = name, .created_ns = time_of(session, container, name)};
    esdm_status status = session->meta->tag_remove(session->store, container, name, err);
    if (status == ESDM_OK)
        esdm__note_tag(session, stored, container, &gone);
    return status;
}
