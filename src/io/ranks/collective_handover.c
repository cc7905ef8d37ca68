/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks that store for others ("ranks" of the site). Who stores listens before the others connect;
 * all of that inside nodes, so no data cross a network, and by local sockets, so that the thread
 * which serves calls no MPI. Records of the index stay with who put the data, so commits are as
 * ever; but all ranks have handed over what they have before the first one asks for it to be made
 * readable: packs are then ended once for all (collective_commit.c).
 */
#include <stdio.h>

#include "base/error.h"
#include "io/packs/handover.h"
#include "io/packs/handover_wire.h"
#include "io/packs/taker.h"
#include "io/ranks/collective.h"
#include "io/ranks/handover_roles.h"

static void
name_of(const esdm__container_io *io, int rank, char *name)
{
    (void) snprintf(name, ESDM__HANDOVER_NAME_BYTES, "esdm-%s-%d", io->writer, rank);
}

static esdm_status
listen_for_others(esdm_container *container, esdm__pack_set *packs, int rank, esdm_error *err)
{
    char name[ESDM__HANDOVER_NAME_BYTES];
    esdm__container_io *io = esdm__io_of(container);
    name_of(io, rank, name);
    return esdm__taker_new(name, packs, &io->taker, err);
}

static esdm_status
connect_to(esdm_container *container, esdm__pack_set *packs, int rank, unsigned timeout_s,
           esdm_error *err)
{
    char name[ESDM__HANDOVER_NAME_BYTES];
    esdm__handover *handover = NULL;
    name_of(esdm__io_of(container), rank, name);
    const esdm__handover_to to = {.name = name, .rank = rank, .timeout_s = timeout_s};
    esdm_status status = esdm__handover_new(&to, esdm__pack_set_owner(packs), &handover, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status,
                                  "ranks that store for others must be reached inside their node, "
                                  "by local sockets (without \"ranks\" in the configuration of the "
                                  "site each rank stores by itself)");
    esdm__pack_set_hand_over(packs, handover);
    return ESDM_OK;
}

esdm_status
esdm__handover_begin(esdm_container *container, esdm_comm *comm, uint32_t io_ranks,
                     uint32_t timeout_s, esdm_error *err)
{
    esdm__pack_set *packs = NULL;
    const esdm__handover_role role = esdm__handover_role_of(comm, io_ranks);
    if (io_ranks == 0 || comm->size == 1)
        return ESDM_OK;
    esdm__io_of(container)->hands_over = true;
    esdm_status status = esdm__container_packs(container, &packs, err);
    if (status == ESDM_OK && role.serves)
        status = listen_for_others(container, packs, comm->rank, err);
    status = esdm__comm_agree(comm, status, err);
    if (status != ESDM_OK)
        return status;
    if (role.stores != comm->rank)
        status = connect_to(container, packs, role.stores, timeout_s, err);
    return esdm__comm_agree(comm, status, err);
}
