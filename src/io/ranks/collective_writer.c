/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Packs of all ranks that write a container have one writer, of which rank 0 says to the metadata
 * store that it lives: the others need no connection for that. They end together. When the writer
 * may have seemed dead, rank 0 tells the others at commits, and each looks whether its packs are
 * still there.
 */
#include <string.h>

#include "base/error.h"
#include "io/ranks/collective.h"

esdm_status
esdm__writer_begin(esdm_container *container, const esdm_comm *comm, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm__pack_set *packs = NULL;
    if (comm->size == 1 || comm->rank != 0)
        return ESDM_OK;
    esdm__uuid_new(io->writer);
    esdm_status status = esdm__container_packs(container, &packs, err);
    return status == ESDM_OK ? esdm__pack_set_say_writing(packs, err) : status;
}

esdm_status
esdm__writer_share(esdm_container *container, esdm_comm *comm, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    struct {
        char uuid[ESDM__UUID_BYTES];
        char writer[ESDM__UUID_BYTES];
        esdm__site_ranks ranks;
    } news = {.ranks = io->session->site->ranks};
    memcpy(news.uuid, io->uuid, sizeof news.uuid);
    memcpy(news.writer, io->writer, sizeof news.writer);
    esdm_status status = comm->ops->broadcast(comm, &news, sizeof news, 0, err);
    if (status != ESDM_OK)
        return status;
    memcpy(io->uuid, news.uuid, sizeof news.uuid);
    memcpy(io->writer, news.writer, sizeof news.writer);
    io->writer_rank = comm->rank;
    return esdm__handover_begin(container, comm, news.ranks.io, news.ranks.timeout_s, err);
}

static esdm__pack_set *
packs_of(const esdm__container_io *io)
{
    return __atomic_load_n(&io->packs, __ATOMIC_ACQUIRE);
}

uint64_t
esdm__writer_take_doubt(const esdm__container_io *io)
{
    esdm__pack_set *packs = packs_of(io);
    if (io->comm->rank != 0 || packs == NULL)
        return ESDM__WRITER_SEEN;
    return (uint64_t) esdm__pack_set_take_doubt(packs);
}

void
esdm__writer_tell_doubt(const esdm__container_io *io, uint64_t doubt)
{
    esdm__pack_set *packs = packs_of(io);
    if (io->comm->rank != 0 && packs != NULL)
        esdm__pack_set_tell_doubt(packs, (esdm__writer_doubt) doubt);
}

esdm_status
esdm__writer_check(const esdm__commit_work *work, esdm_error *err)
{
    esdm__pack_set *packs = packs_of(work->io);
    if (work->io->comm->rank != 0 || packs == NULL || esdm__commit_has_changes(work))
        return ESDM_OK;
    return esdm__pack_set_check(packs, err);
}

esdm_status
esdm__writer_check_others(const esdm__container_io *io, uint64_t doubt, esdm_error *err)
{
    esdm__pack_set *packs = packs_of(io);
    esdm_status status = ESDM_OK;
    if (doubt == ESDM__WRITER_SEEN)
        return ESDM_OK;
    esdm__writer_tell_doubt(io, doubt);
    if (io->comm->rank != 0 && packs != NULL)
        status = esdm__pack_set_check(packs, err);
    return esdm__comm_agree(io->comm, status, err);
}
