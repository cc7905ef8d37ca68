/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether packs are still there, when others may have taken their writer for dead. */

#include <string.h>

#include "base/error.h"
#include "io/packs/pack_set_inner.h"
#include "io/packs/page_list.h"

/* ---- looking ------------------------------------------------------------------------------ */

esdm__writer_doubt
esdm__pack_set_take_doubt(esdm__pack_set *packs)
{
    esdm__writer_doubt doubt = packs->doubt;
    packs->doubt = ESDM__WRITER_SEEN;
    return doubt;
}

void
esdm__pack_set_tell_doubt(esdm__pack_set *packs, esdm__writer_doubt doubt)
{
    packs->doubt = doubt > packs->doubt ? doubt : packs->doubt;
}

/* What rank 0 was answered. */
static esdm_status
hear(esdm__pack_set *packs, bool *ret_lost, esdm_error *err)
{
    esdm__writer_doubt doubt = esdm__pack_set_take_doubt(packs);
    *ret_lost = doubt == ESDM__WRITER_LOST;
    if (doubt != ESDM__WRITER_UNANSWERED)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EIO, "rank 0 cannot ask the metadata store");
}

/* Makes sure that others see the writer; they may not have until now. */
static esdm_status
ask(esdm__pack_set *packs, esdm_error *err)
{
    const esdm_session *session = packs->owner.session;
    esdm_status status = ESDM_OK;
    bool lost = false;
    (void) pthread_mutex_lock(&packs->lock);
    bool writing = packs->writing;
    (void) pthread_mutex_unlock(&packs->lock);
    if (packs->owner.rank > 0)
        status = hear(packs, &lost, err);
    else if (writing && session->meta->writer_check != NULL)
        status = session->meta->writer_check(session->store, packs->owner.writer, &lost, err);
    if (lost && packs->owner.rank == 0)
        esdm__pack_set_tell_doubt(packs, ESDM__WRITER_LOST);
    packs->unsure |= lost;
    packs->look_back |= lost && packs->unanswered;
    return status;
}

static esdm_status
look_at(esdm__pack_set *packs, esdm__pack *p, void *user, esdm_error *err)
{
    atomic_bool *missing = user;
    (void) packs;
    esdm_status status = esdm__pack_look(p, err);
    if (p->stage == ESDM__PACK_GONE)
        atomic_store(missing, true);
    return status;
}

/* The first pack of a list: others may put more in front of it. */
static esdm__pack *
head(esdm__pack_set *packs, esdm__pack *const *list)
{
    (void) pthread_mutex_lock(&packs->lock);
    esdm__pack *first = *list;
    (void) pthread_mutex_unlock(&packs->lock);
    return first;
}

/* Looks at the packs that are written, and at committed ones of which nobody knows whether they
 * were still there at the commit. */
static esdm_status
look(esdm__pack_set *packs, esdm_error *err)
{
    atomic_bool missing = packs->missing; /* several threads look */
    esdm__pack *sealed = head(packs, &packs->sealed);
    esdm__pack *kept = head(packs, &packs->kept);
    esdm_status status = esdm__pack_set_visit(packs, NULL, look_at, &missing, err);
    for (esdm__pack *p = sealed; p != NULL && status == ESDM_OK; p = p->next)
        status = look_at(packs, p, &missing, err);
    for (esdm__pack *p = kept; p != NULL && status == ESDM_OK && packs->look_back; p = p->next) {
        if (p->use == ESDM__PACK_UNVERIFIED)
            status = look_at(packs, p, &missing, err);
    }
    packs->missing = atomic_load(&missing);
    return status;
}

/* The first pack that is gone and for which `wanted` holds; NULL: none. */
static const esdm__pack *
find_missing(esdm__pack_set *packs, bool (*wanted)(const void *user, const esdm__pack *pack),
             const void *user)
{
    const esdm__pack *lists[] = {head(packs, &packs->sealed), head(packs, &packs->kept)};
    for (size_t i = 0; i < 2; i++) {
        for (const esdm__pack *p = lists[i]; p != NULL; p = p->next) {
            if (p->stage == ESDM__PACK_GONE && wanted(user, p))
                return p;
        }
    }
    return NULL;
}

/* ---- before a commit ---------------------------------------------------------------------- */

static bool
is_needed(const void *user, const esdm__pack *p)
{
    const esdm__pack_set *packs = user;
    const esdm__pack_owner *owner = &packs->owner;
    uint64_t handed = atomic_load(&p->handed_at);
    /* Another rank may not have committed what it had stored here before the last commit. */
    if (handed != 0 && handed + 1 > atomic_load(&packs->commits))
        return true;
    return owner->needed == NULL || owner->needed(owner->user, p->name);
}

esdm_status
esdm__pack_set_check(esdm__pack_set *packs, esdm_error *err)
{
    esdm_status status = ask(packs, err);
    if (status == ESDM_OK && packs->unsure)
        status = look(packs, err);
    packs->unsure &= status != ESDM_OK;
    if (status != ESDM_OK || !packs->missing)
        return status;
    const esdm__pack *gone = find_missing(packs, is_needed, packs);
    if (gone == NULL)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EIO,
                           "pack '%s' was removed while the connection to the metadata store was "
                           "lost: what was written to it and not committed is gone",
                           gone->name);
}

/* ---- after a commit ----------------------------------------------------------------------- */

static bool
is_named(const void *user, const esdm__pack *pack)
{
    const esdm__page *page = user;
    for (uint32_t i = 0; i < page->npacks; i++) {
        if (strcmp(page->packs[i].pack, pack->name) == 0)
            return true;
    }
    return false;
}

static esdm_status
search_pages(esdm__pack_set *packs, const esdm__page_list *pages, bool *ret_again,
             const esdm__pack **ret_lost, esdm_error *err)
{
    *ret_again = false;
    for (size_t i = 0; i < pages->count && *ret_lost == NULL; i++) {
        const esdm_meta_page entry = esdm__page_list_at(pages, i);
        esdm__page *page = NULL;
        esdm_error why = {0};
        esdm_status status = esdm__page_fetch(packs->owner.session, &entry, &page, &why);
        if (status == ESDM_OK)
            *ret_lost = find_missing(packs, is_named, page);
        esdm__page_unref(page);
        *ret_again |= status == ESDM_ENOENT; /* what it named stands in another one now */
        if (status != ESDM_OK && status != ESDM_ENOENT) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
    return ESDM_OK;
}

/* The first pack that is gone and that an index page of the record names. */
static esdm_status
find_lost(esdm__pack_set *packs, uint64_t container, const esdm__pack **ret_lost, esdm_error *err)
{
    bool again = true;
    esdm_status status = ESDM_OK;
    for (int pass = 0;
         pass < ESDM__PAGE_LISTINGS && again && *ret_lost == NULL && status == ESDM_OK; pass++) {
        esdm__page_list pages = {0};
        status = esdm__page_list_load_all(packs->owner.session, container, &pages, err);
        if (status == ESDM_OK)
            status = search_pages(packs, &pages, &again, ret_lost, err);
        esdm__page_list_clear(&pages);
    }
    if (status == ESDM_OK && again && *ret_lost == NULL)
        return esdm__error_set(err, ESDM_EIO, "the index pages change all the time");
    return status;
}

static esdm_status
look_after(esdm__pack_set *packs, uint64_t container, bool *ret_lost, esdm_error *err)
{
    const esdm__pack *lost = NULL;
    esdm_status status = ask(packs, err);
    if (status != ESDM_OK || !(packs->unsure || packs->look_back))
        return status;
    status = look(packs, err);
    if (status == ESDM_OK && packs->missing)
        status = find_lost(packs, container, &lost, err);
    if (status != ESDM_OK)
        return status;
    packs->unsure = false;
    packs->look_back = false;
    *ret_lost = lost != NULL;
    if (lost == NULL)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EIO,
                           "pack '%s', to which it refers, was removed while the connection to the "
                           "metadata store was lost: esdm-fsck tells what is lost",
                           lost->name);
}

esdm_status
esdm__pack_set_check_committed(esdm__pack_set *packs, uint64_t container, bool *ret_lost,
                               esdm_error *err)
{
    *ret_lost = false;
    esdm_status status = look_after(packs, container, ret_lost, err);
    packs->unanswered = status != ESDM_OK && !*ret_lost;
    if (packs->unanswered && packs->owner.rank == 0)
        esdm__pack_set_tell_doubt(packs, ESDM__WRITER_UNANSWERED);
    packs->look_back |= packs->unanswered && packs->unsure;
    return status;
}

bool
esdm__pack_set_is_unanswered(const esdm__pack_set *packs)
{
    return packs->unanswered;
}
