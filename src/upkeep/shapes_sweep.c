/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Second shapes whose container is gone, renamed or replaced. */

#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/read/second_shape.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "io/session/session.h"
#include "upkeep/shapes.h"

/* Whose they are. false: it is none of second shapes, or that cannot be told. */
static bool
uuid_of(esdm_session *session, const char *name, char ret_uuid[ESDM__UUID_BYTES])
{
    esdm_container *shapes = NULL;
    esdm_error ignored;
    if (esdm__shapes_open(session, name, ESDM_OPEN_READ, &shapes, &ignored) != ESDM_OK)
        return false;
    const char *of = esdm_container_hint(shapes, ESDM__HINT_SHAPES_OF);
    bool known = strlen(of) == ESDM__UUID_BYTES - 1;
    if (known)
        memcpy(ret_uuid, of, ESDM__UUID_BYTES);
    esdm__container_drop(shapes);
    return known;
}

static bool
note(const char *name, const esdm_meta_container *record, void *user)
{
    esdm__buffer *names = user;
    if (!esdm__name_is_own(name) && esdm__name_is_shapes(name, NULL)) {
        esdm__buffer_put_u64(names, record->stored_bytes);
        esdm__buffer_put(names, name, strlen(name) + 1);
    }
    return true;
}

/* Whether there is nothing that it is the second shape of. */
static bool
is_left(esdm_session *session, const char *name)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    char uuid[ESDM__UUID_BYTES];
    size_t bytes = 0;
    esdm_meta_container record;
    esdm_error ignored;
    if (!esdm__name_is_shapes(name, &bytes) || bytes >= sizeof base ||
        !uuid_of(session, name, uuid))
        return false;
    memcpy(base, name, bytes);
    base[bytes] = '\0';
    esdm_status status = session->meta->container_find(session->store, base, &record, &ignored);
    return status == ESDM_ENOENT || (status == ESDM_OK && strcmp(record.uuid, uuid) != 0);
}

esdm_status
esdm__shapes_sweep(esdm_session *session, bool dry_run, uint64_t *ret_count, uint64_t *ret_bytes,
                   uint64_t *ret_failed, esdm_error *err)
{
    esdm__buffer names;
    esdm__cursor cursor;
    esdm__buffer_init(&names);
    esdm_status status = session->meta->container_list(session->store, NULL, note, &names, err);
    if (status == ESDM_OK && names.failed)
        status = esdm__error_nomem(err, names.bytes, "names");
    esdm__cursor_init(&cursor, names.data, names.bytes);
    while (status == ESDM_OK && esdm__cursor_left(&cursor) > 0) {
        uint64_t stored = esdm__cursor_u64(&cursor);
        const char *name = (const char *) cursor.data + cursor.position;
        uint64_t removed = 0;
        (void) esdm__cursor_take(&cursor, strlen(name) + 1);
        if (!is_left(session, name))
            continue;
        if (!dry_run)
            status = esdm__named_remove(session, name, &removed, err);
        if (status != ESDM_OK) { /* somebody was faster, or it cannot be done now */
            *ret_failed += status != ESDM_ENOENT;
            status = ESDM_OK;
            continue;
        }
        ++*ret_count;
        *ret_bytes += stored;
    }
    esdm__buffer_clear(&names);
    return status;
}

void
esdm__shapes_follow(esdm_session *session, const char *from, const char *to)
{
    char shapes[ESDM_CONTAINER_NAME_MAX + 1];
    char renamed[ESDM_CONTAINER_NAME_MAX + 1];
    char uuid[ESDM__UUID_BYTES];
    esdm_meta_container record;
    esdm_error ignored;
    uint64_t gone = 0;
    if (esdm__name_is_shapes(from, NULL) || esdm__shapes_name(from, shapes, NULL) != ESDM_OK ||
        session->meta->container_find(session->store, shapes, &record, &ignored) != ESDM_OK ||
        !uuid_of(session, shapes, uuid))
        return;
    /* What somebody has called so stays. */
    if (to != NULL && esdm__shapes_name(to, renamed, NULL) == ESDM_OK &&
        (session->meta->container_find(session->store, renamed, &record, &ignored) == ESDM_ENOENT ||
         uuid_of(session, renamed, uuid)))
        (void) !esdm__named_move(session, shapes, renamed, true, NULL, NULL, &gone, &ignored);
    else
        (void) !esdm__named_remove(session, shapes, &gone, &ignored);
}
