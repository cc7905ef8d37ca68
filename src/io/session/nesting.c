/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/nesting.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static esdm_status
check_above(esdm_session *session, const char *name, esdm_error *err)
{
    char above[ESDM_CONTAINER_NAME_MAX + 1];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t) (slash - name);
        if (length >= sizeof above)
            break;
        memcpy(above, name, length);
        above[length] = '\0';
        esdm_meta_container record;
        esdm_error error = {0};
        esdm_status status = session->meta->container_find(session->store, above, &record, &error);
        if (status == ESDM_OK)
            return esdm__error_set(err, ESDM_EEXIST,
                                   "'%s' is a container: nothing can lie below it; choose another "
                                   "name than '%s'",
                                   above, name);
        if (status != ESDM_ENOENT) {
            if (err != NULL)
                *err = error;
            return status;
        }
    }
    return ESDM_OK;
}

typedef struct below {
    const char *name;
    char found[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t record; /* of the name itself; 0: none */
} below;

static bool
note_below(const char *name, const esdm_meta_container *record, void *user)
{
    below *b = user;
    if (strcmp(name, b->name) == 0) {
        b->record = record->container;
        return true;
    }
    (void) snprintf(b->found, sizeof b->found, "%s", name);
    return false;
}

esdm_status
esdm__nesting_check(esdm_session *session, const char *name, esdm_error *err)
{
    uint64_t record;
    return esdm__nesting_find(session, name, &record, err);
}

esdm_status
esdm__nesting_find(esdm_session *session, const char *name, uint64_t *ret_record, esdm_error *err)
{
    esdm_status status = check_above(session, name, err);
    if (status != ESDM_OK)
        return status;
    below b = {.name = name};
    status = session->meta->container_list(session->store, name, note_below, &b, err);
    if (status == ESDM_OK && b.found[0] != '\0')
        return esdm__error_set(err, ESDM_EEXIST,
                               "'%s' is a folder of containers ('%s'); choose another name", name,
                               b.found);
    *ret_record = b.record;
    return status;
}
