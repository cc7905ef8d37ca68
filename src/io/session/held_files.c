/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/held_files.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

const char *
esdm__held_name(const char *location)
{
    const char *slash = esdm__held_is(location) ? strrchr(location + 1, '/') : NULL;
    return slash != NULL ? slash + 1 : "";
}

bool
esdm__held_is_on(const char *location, const char *target)
{
    const char *name = esdm__held_name(location);
    const char *from = location + sizeof ESDM__HELD_PREFIX - 1;
    size_t bytes = strlen(target);
    return name[0] != '\0' && (size_t) (name - 1 - from) == bytes &&
           memcmp(from, target, bytes) == 0;
}

esdm_status
esdm__held_make(esdm_session *session, const char *name, int fd, const bool *allowed,
                char *ret_location, esdm_error *err)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        if (target->plugin->file_hold == NULL || target->local || target->retiring ||
            (allowed != NULL && !allowed[i]) ||
            esdm__target_need(session, target, NULL) != ESDM_OK ||
            snprintf(ret_location, ESDM__HELD_BYTES, ESDM__HELD_PREFIX "%s/%s", target->name,
                     name) >= ESDM__HELD_BYTES)
            continue;
        esdm_error why = {0};
        esdm_status status = target->plugin->file_hold(target->handle, name, fd, &why);
        if (status == ESDM_ENOTSUP || status == ESDM_ENOSPC || status == ESDM_EACCES)
            continue;
        if (status != ESDM_OK && err != NULL)
            *err = why;
        return status;
    }
    return esdm__error_set(err, ESDM_ENOTSUP, "no target can share the blocks of the file");
}

esdm_status
esdm__held_open(esdm_session *session, const char *location, int *ret_fd, esdm_error *err)
{
    const char *name = esdm__held_name(location);
    esdm_status status = esdm__error_set(
        err, ESDM_ENOENT, "file '%s', which the site holds: no target has such files", location);
    /* The target may have another name now. */
    for (int other = 0; other < 2 && status == ESDM_ENOENT; other++) {
        for (size_t i = 0; i < session->ntargets && status != ESDM_OK; i++) {
            esdm__target *target = &session->targets[i];
            if (target->plugin->file_open == NULL ||
                esdm__held_is_on(location, target->name) == (other != 0))
                continue;
            esdm_error why = {0};
            esdm_status one = esdm__target_need(session, target, &why);
            if (one == ESDM_OK)
                one = target->plugin->file_open(target->handle, name, ret_fd, &why);
            if (one == ESDM_OK)
                return ESDM_OK;
            if (other == 0) {
                status = one;
                if (err != NULL)
                    *err = why;
            }
        }
    }
    return status;
}

void
esdm__held_remove(esdm_session *session, const char *location)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        const esdm__target *target = &session->targets[i];
        if (target->plugin->file_remove != NULL && esdm__held_is_on(location, target->name))
            (void) !target->plugin->file_remove(target->handle, esdm__held_name(location), NULL);
    }
}
