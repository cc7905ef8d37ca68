/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/ranks/meeting.h"

#include <stdlib.h>
#include <string.h>

#include "layout/claims.h"

/* Comparisons of boxes that rank 0 makes at most, some 50 ms; then ranks count as meeting. */
#define MOST_TESTS UINT64_C(16000000)
/* Meetings after one whose territories overlapped that do not compare them again. */
#define PAUSE 15u
/* So many claims are compared on the way to rank 0. */
#define FEW_CLAIMS 64u

enum { BOX_END, BOX_BEFORE, HULL_END, HULL_BEFORE }; /* of an axis; "before": ~lo */

static uint64_t
end_of(const esdm__box *box, uint32_t axis)
{
    return box->lo[axis] + box->n[axis];
}

/* Whether this rank has left its territory, or never had one. */
static bool
strays(const esdm__meeting *m)
{
    const esdm__box *own = &m->territory->box;
    bool has = own->rank == m->rank && !esdm__box_is_empty(own);
    return (m->box != NULL && !(has && esdm__box_contains(own, m->box))) ||
           (m->hull != NULL && !(has && esdm__box_contains(own, m->hull)));
}

void
esdm__meeting_tell(const esdm__meeting *m, uint64_t *numbers)
{
    memset(numbers, 0, esdm__meeting_numbers(m->rank) * sizeof *numbers);
    numbers[ESDM__MEETING_HAS_BOX] = m->box != NULL;
    numbers[ESDM__MEETING_HAS_HULL] = m->hull != NULL;
    numbers[ESDM__MEETING_STRAYS] = strays(m);
    for (uint32_t d = 0; d < m->rank; d++) {
        uint64_t *axis = numbers + ESDM__MEETING_AXES + (size_t) ESDM__MEETING_AXIS_NUMBERS * d;
        if (m->box != NULL) {
            axis[BOX_END] = end_of(m->box, d);
            axis[BOX_BEFORE] = ~m->box->lo[d];
        }
        if (m->hull != NULL) {
            axis[HULL_END] = end_of(m->hull, d);
            axis[HULL_BEFORE] = ~m->hull->lo[d];
        }
    }
}

/* Whether all boxes lie beside all hulls. */
static bool
lie_apart(uint32_t rank, const uint64_t *numbers)
{
    if (numbers[ESDM__MEETING_HAS_BOX] == 0 || numbers[ESDM__MEETING_HAS_HULL] == 0)
        return true;
    for (uint32_t d = 0; d < rank; d++) {
        const uint64_t *axis =
            numbers + ESDM__MEETING_AXES + (size_t) ESDM__MEETING_AXIS_NUMBERS * d;
        if (~axis[BOX_BEFORE] >= axis[HULL_END] || ~axis[HULL_BEFORE] >= axis[BOX_END])
            return true;
    }
    return false;
}

/* ---- territories -------------------------------------------------------------------------- */

/* What this rank touches, along unlimited axes at all times. False: nothing. */
static bool
claim_territory(const esdm__meeting *m, esdm__box *ret_box)
{
    if (m->box == NULL && m->hull == NULL)
        return false;
    esdm__box_copy(ret_box, m->box != NULL ? m->box : m->hull);
    if (m->box != NULL && m->hull != NULL)
        esdm__box_hull(ret_box, m->hull);
    for (uint32_t d = 0; d < m->rank; d++) {
        if ((m->unlimited >> d & 1) != 0) {
            ret_box->lo[d] = 0;
            ret_box->n[d] = UINT64_MAX;
        }
    }
    return true;
}

static void
put_claim(esdm__buffer *buffer, const esdm__box *box, int owner, unsigned kind)
{
    esdm__buffer_put_u64(buffer, esdm__claim_head((uint64_t) owner, kind));
    esdm__buffer_put(buffer, box->lo, box->rank * sizeof *box->lo);
    for (uint32_t d = 0; d < box->rank; d++)
        esdm__buffer_put_u64(buffer, end_of(box, d));
}

static size_t
claims_in(const esdm__buffer *buffer, uint32_t rank)
{
    return buffer->bytes / (esdm__claim_numbers(rank) * sizeof(uint64_t));
}

static uint64_t *
claims_of(const esdm__buffer *buffer)
{
    return (uint64_t *) (void *) buffer->data;
}

/* Looks at few claims in a copy, as what is sent on stays in order of ranks. */
static bool
few_meet(uint32_t rank, const esdm__buffer *claims)
{
    uint64_t *copy = malloc(claims->bytes);
    if (copy == NULL)
        return true;
    memcpy(copy, claims->data, claims->bytes);
    bool meet = esdm__claims_meet(rank, copy, claims_in(claims, rank), MOST_TESTS);
    free(copy);
    return meet;
}

/* Joins neighbours: the parts of a regular decomposition become few boxes on the way. Where two
 * overlap nothing more is sent. */
static void
condense_territories(void *user, esdm__buffer *buffer)
{
    const esdm__meeting *m = user;
    size_t count = esdm__claims_join(m->rank, claims_of(buffer), claims_in(buffer, m->rank));
    buffer->bytes = count * esdm__claim_numbers(m->rank) * sizeof(uint64_t);
    buffer->failed = count > 1 && count <= FEW_CLAIMS && few_meet(m->rank, buffer);
}

/* Rank 0 tells what it found. */
static esdm_status
share(esdm_comm *comm, bool *found, esdm_error *err)
{
    uint64_t told = *found;
    esdm_status status = comm->ops->broadcast(comm, &told, sizeof told, 0, err);
    *found = told != 0;
    return status;
}

/* Collects claims at rank 0, which looks whether some meet. */
static esdm_status
compare(esdm_comm *comm, const esdm__tree *tree, esdm__meeting *m, esdm__buffer *claims,
        esdm__tree_condense condense, bool *ret_meets, esdm_error *err)
{
    esdm_status status = esdm__tree_collect(comm, tree, claims, condense, m, err);
    esdm_error lost = {0};
    bool found = comm->rank == 0 &&
                 (claims->failed || esdm__claims_meet(m->rank, claims_of(claims),
                                                      claims_in(claims, m->rank), MOST_TESTS));
    lost.status = share(comm, &found, &lost);
    *ret_meets = found;
    if (status == ESDM_OK && lost.status != ESDM_OK && err != NULL)
        *err = lost;
    return status == ESDM_OK ? lost.status : status;
}

/* *ret_apart: no two ranks' territories share an element, and each has its new one. */
static esdm_status
settle_territories(esdm_comm *comm, const esdm__tree *tree, esdm__meeting *m, bool *ret_apart,
                   esdm_error *err)
{
    esdm__box mine = {.rank = m->rank};
    esdm__buffer claims;
    bool meet = true;
    bool some = claim_territory(m, &mine);
    esdm__buffer_init(&claims);
    if (some)
        put_claim(&claims, &mine, comm->rank, ESDM__CLAIM_WANTS | ESDM__CLAIM_HAS);
    esdm_status status = compare(comm, tree, m, &claims, condense_territories, &meet, err);
    esdm__buffer_clear(&claims);
    *ret_apart = status == ESDM_OK && !meet;
    if (*ret_apart)
        m->territory->box = some ? mine : (esdm__box){.rank = m->rank};
    else
        m->territory->pause = PAUSE;
    return status;
}

/* ---- boxes beside hulls ------------------------------------------------------------------- */

/* Whether a box meets the hull of all boxes, or of all hulls. */
static bool
may_meet(const esdm__box *box, const uint64_t *numbers, int end, int before)
{
    for (uint32_t d = 0; d < box->rank; d++) {
        const uint64_t *axis =
            numbers + ESDM__MEETING_AXES + (size_t) ESDM__MEETING_AXIS_NUMBERS * d;
        if (box->lo[d] >= axis[end] || end_of(box, d) <= ~axis[before])
            return false;
    }
    return true;
}

static esdm_status
compare_boxes(esdm_comm *comm, const esdm__tree *tree, esdm__meeting *m, const uint64_t *numbers,
              bool *ret_meets, esdm_error *err)
{
    esdm__buffer claims;
    esdm__buffer_init(&claims);
    if (m->box != NULL && may_meet(m->box, numbers, HULL_END, HULL_BEFORE))
        put_claim(&claims, m->box, comm->rank, ESDM__CLAIM_WANTS);
    if (m->hull != NULL && may_meet(m->hull, numbers, BOX_END, BOX_BEFORE))
        put_claim(&claims, m->hull, comm->rank, ESDM__CLAIM_HAS);
    esdm_status status = compare(comm, tree, m, &claims, NULL, ret_meets, err);
    esdm__buffer_clear(&claims);
    return status;
}

esdm_status
esdm__meeting_decide(esdm_comm *comm, const esdm__tree *tree, esdm__meeting *m,
                     const uint64_t *numbers, bool *ret_meets, esdm_error *err)
{
    bool apart = comm->size == 1 || lie_apart(m->rank, numbers) ||
                 (numbers[ESDM__MEETING_STRAYS] == 0 && m->rank > 0);
    *ret_meets = false;
    if (apart)
        return ESDM_OK;
    if (m->territory->pause > 0) {
        m->territory->pause--;
    } else if (m->rank > 0) {
        esdm_status status = settle_territories(comm, tree, m, &apart, err);
        if (status != ESDM_OK || apart)
            return status;
    }
    return compare_boxes(comm, tree, m, numbers, ret_meets, err);
}
