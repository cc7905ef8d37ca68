/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Several ranks create, open or refresh a container: rank 0 asks the metadata store, the others
 * take over what it found; those that only read pin the same snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "io/container/container_io.h"
#include "io/container/lengths.h"
#include "io/container/shared_pages.h"
#include "io/ranks/collective.h"

/* ---- what the ranks must have in common --------------------------------------------------- */

/* Packs of one rank are read by the others. */
static esdm_status
check_targets(const esdm_session *session, const esdm_comm *comm, esdm_error *err)
{
    for (size_t i = 0; i < session->ntargets && comm->size > 1; i++) {
        if ((session->targets[i].plugin->flags & ESDM_DATA_VOLATILE) != 0)
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "target '%s' lies in the memory of one process: several ranks "
                                   "cannot share a container there",
                                   session->targets[i].name);
    }
    return ESDM_OK;
}

/* Tells which of the arguments differ. `same` is a list of pairs (number, its complement). */
static esdm_status
check_arguments(const uint64_t *same, const char *name, esdm_error *err)
{
    if (same[0] != ~same[1])
        return esdm__error_set(err, ESDM_EINVAL,
                               "the ranks use different sites: let all of them "
                               "have the same configuration");
    if (same[2] != ~same[3])
        return esdm__error_set(err, ESDM_EINVAL,
                               "the ranks give different names to one container ('%s' is one)",
                               name);
    if (same[4] != ~same[5])
        return esdm__error_set(err, ESDM_EINVAL, "the ranks open container '%s' in different modes",
                               name);
    return ESDM_OK;
}

/* Whether all ranks are ready and mean the same. */
static esdm_status
agree_on_arguments(const esdm_session *session, esdm_comm *comm, const char *name, uint64_t mode,
                   esdm_status status, esdm_error *err)
{
    uint64_t site = esdm__checksum(session->site->id, strlen(session->site->id));
    uint64_t called = esdm__checksum(name, strlen(name));
    uint64_t same[7] = {0, site, ~site, called, ~called, mode, ~mode};
    if (status == ESDM_OK)
        status = check_targets(session, comm, err);
    status = esdm__comm_agree_on(comm, status, same, 6, err);
    return status == ESDM_OK ? check_arguments(same + 1, name, err) : status;
}

/* Makes a handle one that ranks share. Before the ranks agree: it may fail. */
static esdm_status
attach(esdm_container *container, esdm_comm *comm, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm_status status = esdm__tree_make(comm, &io->tree, err);
    if (status == ESDM_OK)
        io->comm = esdm_comm_ref(comm);
    return status;
}

/* ---- create ------------------------------------------------------------------------------- */

esdm_status
esdm__collective_create(esdm_session *session, esdm_comm *comm, const char *name,
                        esdm_create_mode mode, esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_error mine = {0};
    mine.status = comm->rank == 0 ? esdm__io_create(session, name, mode, &container, &mine)
                                  : esdm__container_begin(session, name, mode, &container, &mine);
    if (mine.status == ESDM_OK)
        mine.status = attach(container, comm, &mine);
    if (mine.status == ESDM_OK)
        mine.status = esdm__writer_begin(container, comm, &mine);
    esdm_status status =
        agree_on_arguments(session, comm, name, (uint64_t) mode, mine.status, &mine);
    if (status == ESDM_OK)
        status = esdm__writer_share(container, comm, &mine);
    if (status == ESDM_OK) {
        *ret_container = container;
        return ESDM_OK;
    }
    esdm__container_drop(container);
    if (err != NULL)
        *err = mine;
    return status;
}

/* ---- what rank 0 tells -------------------------------------------------------------------- */

/* What rank 0 tells about a snapshot; the document and the lengths follow. */
typedef struct announcement {
    esdm_meta_container record;
    uint64_t snapshot;
    uint64_t structure;
    uint64_t has_document;
    uint64_t token; /* names the memory that ranks of a node share; 0: they share none */
} announcement;

/* Sends the document (when there is one) and the lengths. */
static esdm_status
share_contents(esdm_comm *comm, bool has_document, esdm_meta_snapshot *loaded, esdm_error *err)
{
    void *document = loaded->document;
    void *lengths = loaded->lengths;
    size_t bytes = loaded->nlengths * sizeof *loaded->lengths;
    esdm_status status = ESDM_OK;
    if (has_document)
        status = esdm__comm_share_block(comm, &document, &loaded->document_bytes, err);
    loaded->document = document;
    if (status == ESDM_OK)
        status = esdm__comm_share_block(comm, &lengths, &bytes, err);
    if (status == ESDM_OK) {
        loaded->lengths = lengths;
        loaded->nlengths = bytes / sizeof *loaded->lengths;
    }
    return status;
}

/* Not 0. */
static uint64_t
token_of_chance(void)
{
    char digits[ESDM__UUID_BYTES];
    esdm__uuid_new(digits);
    digits[16] = '\0';
    return strtoull(digits, NULL, 16) | 1u;
}

/* ---- pins --------------------------------------------------------------------------------- */

/* What a rank has of the snapshot that rank 0 tells of. Ranks that write lean on rank 0's pin: they
 * close and move on together, so it lasts as long as they need it. Those that read close when they
 * like. */
typedef struct hold {
    bool pinned;
    esdm__shared_pages *shared; /* owned; NULL: nothing is shared in the node */
} hold;

/* Of the memory that a node shares; its leader makes it. */
static void
name_of_node(const esdm_comm *comm, uint64_t token, char *name, size_t bytes)
{
    (void) snprintf(name, bytes, "/esdm-%016" PRIx64 "-%d", token, comm->nodes->here[0]);
}

/* Pins it; a leader also tells the others of its node what it reads, if it can. */
static esdm_status
pin(const esdm_session *session, const announcement *news, const char *name, hold *h,
    esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t record = news->record.container;
    if (!h->pinned)
        status = session->meta->pin(session->store, record, news->snapshot, err);
    h->pinned |= status == ESDM_OK;
    if (status == ESDM_OK && name != NULL)
        (void) !esdm__shared_pages_make(session, record, news->snapshot, name, &h->shared, NULL);
    return status;
}

/* Each rank that reads pins the snapshot; where that needs a connection, the leaders of nodes do,
 * and the others lean on them. All succeed or fail; rank 0 stays until all have it. */
static esdm_status
pin_for_reading(const esdm_session *session, esdm_comm *comm, const announcement *news, hold *h,
                esdm_error *err)
{
    char name[64];
    esdm_status status = ESDM_OK;
    if (news->token == 0 || comm->nodes == NULL) {
        status = pin(session, news, NULL, h, err);
        return esdm__comm_agree(comm, status, err);
    }
    name_of_node(comm, news->token, name, sizeof name);
    bool leads = comm->rank == comm->nodes->here[0];
    if (leads)
        status = pin(session, news, comm->nodes->nhere > 1 ? name : NULL, h, err);
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK) {
        if (!leads)
            h->shared = esdm__shared_pages_join(name);
        if (!leads && h->shared == NULL)
            status = pin(session, news, NULL, h, err);
        status = esdm__comm_agree(comm, status, err);
    }
    if (leads && h->shared != NULL)
        esdm__shared_pages_hide(name);
    return status;
}

static void
let_go(esdm_session *session, const announcement *news, hold *h)
{
    if (h->shared != NULL)
        esdm__shared_pages_end(h->shared, session, h->pinned);
    else if (h->pinned)
        session->meta->unpin(session->store, news->record.container, news->snapshot);
    *h = (hold){0};
}

/* Takes over what rank 0 loaded and pinned; on success this rank has pinned it too, unless it leans
 * on another one. @param sharing whether nodes may share what is read. */
static esdm_status
share_snapshot(esdm_session *session, esdm_comm *comm, bool writing, bool sharing,
               esdm_status status, esdm_meta_snapshot *loaded, hold *ret_hold, esdm_error *err)
{
    announcement news = {loaded->record, loaded->snapshot, loaded->structure,
                         loaded->document != NULL, 0};
    hold h = {.pinned = comm->rank == 0 && status == ESDM_OK};
    if (sharing && !writing && comm->size > 1 && session->meta->connects)
        news.token = token_of_chance();
    status = esdm__comm_agree(comm, status, err);
    if (status == ESDM_OK)
        status = comm->ops->broadcast(comm, &news, sizeof news, 0, err);
    if (status == ESDM_OK && comm->rank != 0) {
        loaded->record = news.record;
        loaded->snapshot = news.snapshot;
        loaded->structure = news.structure;
    }
    if (status == ESDM_OK)
        status = share_contents(comm, news.has_document != 0, loaded, err);
    if (status == ESDM_OK)
        status = writing ? esdm__comm_agree(comm, status, err)
                         : pin_for_reading(session, comm, &news, &h, err);
    if (status == ESDM_OK)
        *ret_hold = h;
    else
        let_go(session, &news, &h);
    return status;
}

/* ---- open --------------------------------------------------------------------------------- */

esdm_status
esdm__collective_open(esdm_session *session, esdm_comm *comm, const char *name, esdm_open_mode mode,
                      uint64_t snapshot, esdm_container **ret_container, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_meta_snapshot loaded = {0};
    esdm_error mine = {0};
    mine.status = esdm__container_new_handle(session, name, &container, &mine);
    if (mine.status == ESDM_OK)
        mine.status = attach(container, comm, &mine);
    esdm_status status = agree_on_arguments(session, comm, name, snapshot << 1 | (uint64_t) mode,
                                            mine.status, &mine);
    if (status == ESDM_OK) {
        if (comm->rank == 0)
            mine.status =
                session->meta->snapshot_open(session->store, name, snapshot, 0, 0, &loaded, &mine);
        bool writing = mode == ESDM_OPEN_WRITE;
        hold held = {0};
        status = share_snapshot(session, comm, writing, true, mine.status, &loaded, &held, &mine);
        if (status == ESDM_OK) {
            mine.status = esdm__container_fill(container, &loaded, mode, snapshot, &mine);
            esdm__io_of(container)->pinned = held.pinned;
            esdm__io_of(container)->shared = held.shared;
            if (mine.status == ESDM_OK && writing)
                mine.status = esdm__writer_begin(container, comm, &mine);
            status = esdm__comm_agree(comm, mine.status, &mine);
        }
        if (status == ESDM_OK && writing)
            status = esdm__writer_share(container, comm, &mine);
    }
    free(loaded.document);
    free(loaded.lengths);
    if (status == ESDM_OK) {
        *ret_container = container;
        return ESDM_OK;
    }
    esdm__container_drop(container);
    if (err != NULL)
        *err = mine;
    return status == ESDM_ENOENT || status == ESDM_EACCES
               ? status
               : esdm__error_prefix(err, status, "container '%s'", name);
}

/* ---- refresh ------------------------------------------------------------------------------ */

static esdm_status
refresh_locked(esdm_container *container, esdm_meta_snapshot *loaded, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm_session *session = io->session;
    esdm_comm *comm = io->comm;
    hold held = {0};
    esdm_status status = esdm__container_check_refreshable(container, err);
    status = esdm__comm_agree(comm, status, err);
    if (status != ESDM_OK)
        return status;
    if (comm->rank == 0)
        status = session->meta->snapshot_open(session->store, container->name, 0, io->record,
                                              io->structure, loaded, err);
    if (status == ESDM_OK && comm->rank == 0)
        status = esdm__container_check_same(container, loaded, err);
    status = share_snapshot(session, comm, container->writable, false, status, loaded, &held, err);
    if (status != ESDM_OK)
        return status;
    esdm__container_move_to(container, loaded);
    io->pinned = held.pinned;
    return ESDM_OK;
}

esdm_status
esdm__collective_check(const esdm_container *container, esdm_error *err)
{
    const esdm_error *parted = &esdm__io_of(container)->parted;
    if (parted->status != ESDM_OK && err != NULL)
        *err = *parted;
    return parted->status;
}

esdm_status
esdm__collective_refresh(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm_meta_snapshot loaded = {0};
    esdm_error mine = {0};
    (void) pthread_mutex_lock(&io->commit_lock);
    esdm_status status = esdm__collective_check(container, &mine);
    if (status == ESDM_OK)
        status = refresh_locked(container, &loaded, &mine);
    (void) pthread_mutex_unlock(&io->commit_lock);
    free(loaded.document);
    free(loaded.lengths);
    if (status != ESDM_OK && err != NULL)
        *err = mine;
    return status;
}
