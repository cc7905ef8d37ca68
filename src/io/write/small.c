/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/small.h"

#include "layout/page.h"

/* All data of such a container, in the size of a fragment that always stays in the index page. */
#define TIMES 16u
/* A program that makes fewer of them is left alone: packs are what is read and moved in bulk. */
#define FIRST 16u
/* More than that a session does not put into the catalogue this way. */
#define SESSION_BYTES (UINT64_C(16) << 20)
/* Who has more is not asked how large all are. */
#define DATASETS_MOST 32u

/* Pages take no fragment that is longer than ESDM__PAGE_INLINE_MAX. */
static uint64_t
most_bytes(const esdm_session *session)
{
    uint64_t most = TIMES * session->site->engine.inline_bytes;
    return most < ESDM__PAGE_INLINE_MAX ? most : ESDM__PAGE_INLINE_MAX;
}

/* Raw bytes of a dataset as long as it is now. */
static uint64_t
bytes_of(const esdm_dataset *dataset, uint64_t most)
{
    uint64_t bytes = esdm_type_size(dataset->type);
    for (uint32_t i = 0; i < dataset->rank && bytes <= most; i++) {
        uint64_t length = esdm_dimension_length(dataset->dimensions[i]);
        bytes = length > most ? most + 1 : bytes * length;
    }
    return bytes;
}

static bool
is_small(const esdm_container *container)
{
    const esdm__container_io *io = esdm__io_of(container);
    uint64_t most = most_bytes(io->session), bytes = 0;
    uint64_t record, snapshot;
    esdm__container_position(container, &record, &snapshot);
    bool small = record == 0 && io->comm == NULL && io->trial == NULL && !io->dedups &&
                 container->datasets.count <= DATASETS_MOST;
    for (size_t i = 0; i < container->datasets.count && small; i++) {
        bytes += bytes_of(container->datasets.items[i], most);
        small = bytes <= most;
    }
    return small;
}

/* Asked once for each container: later it may have grown, which small_bytes bounds. */
static esdm__small
kind_of(const esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    esdm__small kind = (esdm__small) atomic_load(&io->small);
    if (kind != ESDM__SMALL_UNKNOWN)
        return kind;
    kind = ESDM__SMALL_NOT;
    if (is_small(container) && atomic_fetch_add(&io->session->small_containers, 1u) >= FIRST)
        kind = ESDM__SMALL_IS;
    atomic_store(&io->small, kind);
    return kind;
}

bool
esdm__small_allows(const esdm__round *r)
{
    const esdm_container *container = r->dataset->group->container;
    const esdm_session *session = container->session;
    const esdm__dataset_io *io = r->io;
    uint64_t record, snapshot;
    if (!r->inline_room || io->copies > 1 || io->allowed != NULL || io->cheap ||
        r->accuracy->stated || io->chain->count > 0 || esdm__elements_vary(r->elements) ||
        esdm__box_elements(r->box) * r->elements->bytes > most_bytes(session) ||
        kind_of(container) != ESDM__SMALL_IS)
        return false;
    esdm__container_position(container, &record, &snapshot);
    return record == 0;
}

static bool
add(atomic_uint_fast64_t *sum, uint64_t bytes, uint64_t most)
{
    if (atomic_fetch_add(sum, bytes) + bytes <= most)
        return true;
    atomic_fetch_sub(sum, bytes);
    return false;
}

bool
esdm__small_take(const esdm__round *r, uint64_t bytes)
{
    esdm_session *session = r->dataset->group->container->session;
    esdm__container_io *io = esdm__io_of(r->dataset->group->container);
    if (bytes > most_bytes(session) || !add(&io->small_bytes, bytes, most_bytes(session)))
        return false;
    return add(&session->small_bytes, bytes, SESSION_BYTES);
}
