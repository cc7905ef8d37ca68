/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Elements that several members have must have equal values in all of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* Where the run has the element, in its member. */
static uint64_t
index_in(const esdm__run *run, const esdm__twice *twice)
{
    return run->first + (twice->at - run->start);
}

static esdm_status
disagree(esdm__virtual *whole, const esdm_dataset *dataset, const esdm__run *run,
         const esdm__twice *twice, esdm_error *err)
{
    size_t one = run->member;
    if (one == twice->member)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' has the same value of '%s' at %" PRIu64 " and at %" PRIu64
                               ", and other values of '%s' there: it cannot be joined with others",
                               whole->members.items[one].name, whole->axis.name,
                               index_in(run, twice), twice->index, dataset->name);
    if (esdm__member_is_made_of(whole, one, twice->member) ||
        esdm__member_is_made_of(whole, twice->member, one)) {
        (void) !esdm__error_set(
            err, ESDM_EINVAL, "'%s' and '%s' overlap along '%s' and have other values of '%s'",
            whole->members.items[one].name, whole->members.items[twice->member].name,
            whole->axis.name, dataset->name);
        return esdm__odd_one_out(whole, one, twice->member, err);
    }
    return esdm__error_set(err, ESDM_EINVAL,
                           "'%s' and '%s' overlap along '%s' and have other values of '%s' at "
                           "element %" PRIu64 " of the joined container: &overlap=newest or "
                           "&overlap=first says which one wins",
                           whole->members.items[one].name, whole->members.items[twice->member].name,
                           whole->axis.name, dataset->name, twice->at);
}

/* One index along the joined axis, of both members. */
static esdm_status
check_element(esdm__virtual *whole, const esdm_dataset *dataset, uint32_t axis,
              const esdm__twice *twice, esdm_error *err)
{
    esdm_dataspace space;
    uint64_t misfits = 0;
    esdm_status status = esdm__space_of_all(dataset, &space, err);
    if (status != ESDM_OK)
        return status;
    space.size[axis] = 1;
    size_t bytes = (size_t) esdm_dataspace_elements(&space) * esdm_type_size(dataset->type);
    uint8_t *one = malloc(bytes + 1);
    uint8_t *other = malloc(bytes + 1);
    const esdm__run *run = esdm__axis_run(&whole->axis, twice->at);
    if (one == NULL || other == NULL)
        status = esdm__error_nomem(err, 2 * bytes, "an overlap");
    space.offset[axis] = index_in(run, twice);
    if (status == ESDM_OK)
        status = esdm__virtual_read_member(whole, dataset, run->member, &space, dataset->type, one,
                                           &misfits, err);
    space.offset[axis] = twice->index;
    if (status == ESDM_OK)
        status = esdm__virtual_read_member(whole, dataset, twice->member, &space, dataset->type,
                                           other, &misfits, err);
    if (status == ESDM_OK && memcmp(one, other, bytes) != 0)
        status = disagree(whole, dataset, run, twice, err);
    free(one);
    free(other);
    return status;
}

/* The coordinate itself is equal to a millisecond; its bits may differ. */
static bool
is_checked(const esdm__virtual *whole, const esdm_dataset *dataset, int axis)
{
    return axis >= 0 && dataset->type != ESDM_TYPE_STRING &&
           strcmp(dataset->name, whole->axis.name) != 0;
}

/* Of two members, or of one alone, which nobody can choose from. */
static bool
counts(const esdm__virtual *whole, const esdm__twice *twice, bool within)
{
    return !within || esdm__axis_run(&whole->axis, twice->at)->member == twice->member;
}

esdm_status
esdm__virtual_overlap(esdm__virtual *whole, bool within, esdm_container *container, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (within && whole->axis.nwithin == 0)
        return ESDM_OK;
    if (whole->axis.ntwice > 0 && whole->has_holes)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "tiles overlap along '%s' and differ along '%s' too: these are not "
                               "joined by this version",
                               whole->axis.name, whole->cross.name);
    for (size_t i = 0; i < container->datasets.count && whole->axis.ntwice > 0; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        int axis = whole->datasets[i].axis;
        if (!is_checked(whole, dataset, axis))
            continue;
        for (size_t k = 0; k < whole->axis.ntwice && status == ESDM_OK; k++)
            status =
                !counts(whole, &whole->axis.twice[k], within)
                    ? ESDM_OK
                    : check_element(whole, dataset, (uint32_t) axis, &whole->axis.twice[k], err);
        if (status != ESDM_OK)
            break;
    }
    return status;
}
