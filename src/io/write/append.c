/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/append.h"

#include <string.h>

#include "io/packs/equals.h"
#include "io/write/trial.h"

esdm_status
esdm__write_append(esdm_container *container, struct esdm__equals *equals,
                   const esdm__pack_hint *hint, const esdm__blob *blob,
                   esdm__appended *ret_appended, esdm_error *err)
{
    const esdm_iov iov[2] = {{blob->head, blob->head_bytes}, {blob->payload, blob->payload_bytes}};
    const esdm__equals_wish wish = {blob, hint->copies, hint->allowed};
    struct esdm__trial *trial = esdm__io_of(container)->trial;
    esdm__pack_set *packs = NULL;
    esdm__appended *to = ret_appended;
    to->equal = NULL;
    if (trial != NULL)
        return esdm__trial_note(trial, blob, err);
    if (equals != NULL && esdm__equals_find(equals, &wish, &to->equal, &to->position))
        return ESDM_OK;
    esdm_status status = esdm__container_packs(container, &packs, err);
    if (status == ESDM_OK)
        status = esdm__pack_set_append(packs, hint, iov, 2, &to->place, err);
    if (status == ESDM_OK)
        to->position = to->place.position;
    return status;
}

const esdm__pack_name *
esdm__appended_pack(const esdm__appended *appended, const esdm__pack_name *before,
                    esdm__index *index)
{
    const esdm__pack_name *equal = appended->equal;
    const char *target = equal != NULL ? equal->target : esdm__place_target_name(&appended->place);
    const char *pack = equal != NULL ? equal->pack : esdm__place_pack_name(&appended->place);
    if (before != NULL && strcmp(before->pack, pack) == 0 && strcmp(before->target, target) == 0)
        return before;
    return esdm__index_pack(index, target, pack);
}
