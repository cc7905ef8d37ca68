/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/asked.h"

#include "base/error.h"

typedef struct asked {
    bool (*passes)(const char *name);
    esdm_meta_container_visitor visit;
    void *user;
    bool any; /* that the name at hand finds */
    bool failed;
} asked;

static bool
tell(const char *name, const esdm_meta_container *record, void *user)
{
    asked *a = user;
    if (a->passes != NULL && a->passes(name))
        return true;
    a->any = true;
    a->failed = !a->visit(name, record, a->user);
    return !a->failed;
}

esdm_status
esdm__asked_visit(const esdm_session *session, const char *const *names, size_t count,
                  bool (*passes)(const char *name), esdm_meta_container_visitor visit, void *user,
                  esdm_error *err)
{
    asked a = {.passes = passes, .visit = visit, .user = user};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < (names != NULL ? count : 1) && status == ESDM_OK; i++) {
        const char *name = names != NULL ? names[i] : NULL;
        a.any = false;
        status = session->meta->container_list(session->store, name, tell, &a, err);
        if (status == ESDM_OK && a.failed)
            status = esdm__error_nomem(err, sizeof(esdm_meta_container), "containers");
        if (status == ESDM_OK && name != NULL && !a.any)
            status = esdm__error_set(err, ESDM_ENOENT,
                                     "there is no container '%.300s' and none below it", name);
    }
    return status;
}
