/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/append.h"

#include "io/packs/equals.h"

esdm_status
esdm__write_append(struct esdm__equals *equals, esdm__pack_set *packs, const esdm__pack_hint *hint,
                   const esdm__blob *blob, esdm__appended *ret_appended, esdm_error *err)
{
    const esdm_iov iov[2] = {{blob->head, blob->head_bytes}, {blob->payload, blob->payload_bytes}};
    const esdm__equals_wish wish = {blob, hint->copies, hint->allowed};
    esdm__appended *to = ret_appended;
    to->equal = NULL;
    if (equals != NULL && esdm__equals_find(equals, &wish, &to->equal, &to->position))
        return ESDM_OK;
    esdm_status status = esdm__pack_set_append(packs, hint, iov, 2, &to->place, err);
    if (status == ESDM_OK)
        to->position = to->place.position;
    return status;
}

const esdm__pack_name *
esdm__appended_pack(const esdm__appended *appended, esdm__index *index)
{
    return appended->equal != NULL
               ? esdm__index_pack(index, appended->equal->target, appended->equal->pack)
               : esdm__index_pack(index, esdm__place_target_name(&appended->place),
                                  esdm__place_pack_name(&appended->place));
}
