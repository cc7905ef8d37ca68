/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/dedup_wish.h"

#include <stdlib.h>
#include <string.h>

#include "io/container/container_io.h"
#include "layout/places.h"

esdm_status
esdm__dedup_model(esdm_session *session, const char *container, uint64_t record,
                  esdm_container **ret, esdm_error *err)
{
    esdm_error why = {0};
    *ret = NULL;
    esdm_status status =
        session->site->npolicies == 0
            ? ESDM_OK
            : esdm__io_open(session, container, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, ret, &why);
    if (*ret != NULL && esdm__io_of(*ret)->record != record) {
        esdm__container_drop(*ret); /* another one has the name by now */
        *ret = NULL;
    }
    if (status == ESDM_ENOMEM && err != NULL)
        *err = why;
    return status == ESDM_ENOMEM ? status : ESDM_OK;
}

void
esdm__dedup_wish_of(const esdm_session *session, const char *container, const esdm_container *model,
                    uint32_t dataset, esdm__dedup_wish *ret)
{
    const esdm_dataset *known = model != NULL ? esdm__container_dataset(model, dataset) : NULL;
    char *path = known != NULL ? esdm__dataset_path(known) : NULL;
    const char *of = path != NULL ? path : "";
    *ret = (esdm__dedup_wish){.copies = esdm__site_copies(session->site, container, of),
                              .allowed = esdm__site_allowed(session->site, container, of),
                              .differs = session->site->npolicies > 0 && path == NULL};
    free(path);
}

void
esdm__dedup_wish_add(esdm__dedup_wish *wish, const esdm__dedup_wish *other)
{
    wish->copies = wish->copies > other->copies ? wish->copies : other->copies;
    wish->differs |= other->differs || wish->allowed != other->allowed;
}

bool
esdm__dedup_wish_takes(esdm_session *session, const esdm__dedup_wish *wish,
                       const esdm__pack_name *now, const esdm__pack_name *then)
{
    if (strcmp(now->target, then->target) == 0)
        return true;
    if (wish->differs)
        return false;
    const char *places = then->target;
    esdm__pack_place place;
    size_t copies = 0;
    for (; esdm__places_next(&places, &place); copies++) {
        const esdm__target *target = esdm__session_target(session, place.target);
        if (target == NULL || place.node[0] != '\0' ||
            (wish->allowed != NULL && !wish->allowed[target - session->targets]))
            return false;
    }
    return copies >= wish->copies || copies >= esdm__places_count(now->target);
}
