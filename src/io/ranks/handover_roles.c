/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/ranks/handover_roles.h"

#include <stddef.h>

/* The group of `i` among `count` that are cut into `groups`, and where it begins and ends. */
static void
group_of(uint64_t i, uint64_t count, uint64_t groups, uint64_t *ret_first, uint64_t *ret_end)
{
    uint64_t group = ((i + 1) * groups - 1) / count;
    *ret_first = group * count / groups;
    *ret_end = (group + 1) * count / groups;
}

/* Which of `sorted` the number is; it is there. */
static size_t
place_of(const int *sorted, size_t count, int number)
{
    size_t i = 0;
    while (i + 1 < count && sorted[i] < number)
        i++;
    return i;
}

esdm__handover_role
esdm__handover_role_of(const esdm_comm *comm, uint32_t io)
{
    const esdm_comm_nodes *nodes = comm->nodes;
    uint64_t here = nodes != NULL ? nodes->nhere : (uint64_t) comm->size;
    uint64_t of_nodes = nodes != NULL ? nodes->nleaders : 1;
    uint64_t node = nodes != NULL ? place_of(nodes->leaders, nodes->nleaders, nodes->here[0]) : 0;
    uint64_t me =
        nodes != NULL ? place_of(nodes->here, nodes->nhere, comm->rank) : (uint64_t) comm->rank;
    uint64_t first = 0;
    uint64_t end = 0;
    if (io == 0)
        return (esdm__handover_role){.stores = comm->rank};
    uint64_t own = (node + 1) * io / of_nodes - node * io / of_nodes;
    own = own == 0 ? 1 : own > here ? here : own;
    group_of(me, here, own, &first, &end);
    int stores = nodes != NULL ? nodes->here[first] : (int) first;
    return (esdm__handover_role){.stores = stores,
                                 .serves = stores == comm->rank && end - first > 1};
}
