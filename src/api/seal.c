/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Seals and retractions: tags of the engine's own, which the metadata store obeys
 * (esdm/sys/meta_store.h); the text is where the others have their author. */

#include "api/seal.h"

#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "api/tags.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/io.h"
#include "io/session/journaling.h"

/* ---- what is noted ------------------------------------------------------------------------- */

typedef struct reading {
    esdm_notices *notices;
    bool failed;
} reading;

static bool
note(const esdm_meta_tag *tag, void *user)
{
    reading *r = user;
    esdm_notices *n = r->notices;
    bool seal = strcmp(tag->name, ESDM_META_TAG_SEAL) == 0;
    if (!seal && strcmp(tag->name, ESDM_META_TAG_RETRACTION) != 0)
        return true;
    char *text = strdup(tag->author != NULL ? tag->author : "");
    r->failed = r->failed || text == NULL;
    if (seal) {
        n->sealed = true;
        n->sealed_snapshot = tag->snapshot;
        n->sealed_ns = tag->created_ns;
        n->seal = text;
    } else {
        n->retracted = true;
        n->retracted_ns = tag->created_ns;
        n->retraction = text;
    }
    return true;
}

static esdm_status
load(esdm_session *session, uint64_t record, esdm_notices *ret_notices, esdm_error *err)
{
    reading r = {.notices = ret_notices};
    *ret_notices = (esdm_notices){.sealed = false};
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    esdm_status status = session->meta->tag_list(session->store, record, note, &r, err);
    if (status == ESDM_OK && r.failed)
        status = esdm__error_nomem(err, 0, "the text of a seal");
    if (status != ESDM_OK)
        esdm_notices_clear(ret_notices);
    return status;
}

void
esdm_notices_clear(esdm_notices *notices)
{
    if (notices == NULL)
        return;
    free(notices->seal);
    free(notices->retraction);
    *notices = (esdm_notices){.sealed = false};
}

esdm_status
esdm_container_notices(esdm_session *session, const char *name, esdm_notices *ret_notices,
                       esdm_error *err)
{
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record, snapshot;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_notices);
    esdm_status status = esdm__tag_place(session, name, stored, &record, &snapshot, err);
    return status == ESDM_OK ? load(session, record, ret_notices, err) : status;
}

/* ---- making it so -------------------------------------------------------------------------- */

static esdm_status
set(esdm_session *session, const char *name, const esdm_meta_tag *tag, bool replace,
    esdm_error *err)
{
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record, newest;
    if (session->meta->tag_set == NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "the metadata store of site '%s' knows no tags: its plug-in was "
                               "built for an older ESDM",
                               session->site->name);
    esdm_status status = esdm__need_writable(session, err);
    if (status == ESDM_OK && tag->snapshot == 0)
        return esdm__tag_newest(session, name, tag, replace, NULL, NULL, err);
    if (status == ESDM_OK)
        status = esdm__tag_place(session, name, stored, &record, &newest, err);
    return status == ESDM_OK ? esdm__noted_tag(session, stored, record, tag, replace, err) : status;
}

esdm_status
esdm_container_seal(esdm_session *session, const char *name, uint64_t snapshot, const char *text,
                    esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, text);
    if (snapshot == 0)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_container_seal: snapshots begin with 1");
    const esdm_meta_tag tag = {.name = ESDM_META_TAG_SEAL, .snapshot = snapshot, .author = text};
    esdm_error why = {0};
    esdm_status status = set(session, name, &tag, false, &why);
    if (status == ESDM_EEXIST)
        return esdm__error_set(err, ESDM_EEXIST, "container '%s' is sealed already", name);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm_container_retract(esdm_session *session, const char *name, const char *reason, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    const esdm_meta_tag tag = {.name = ESDM_META_TAG_RETRACTION, .author = reason};
    if (reason != NULL)
        return set(session, name, &tag, true, err);
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record, snapshot;
    esdm_status status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = esdm__tag_place(session, name, stored, &record, &snapshot, err);
    if (status != ESDM_OK)
        return status;
    esdm_error why = {0};
    if (session->meta->tag_remove != NULL)
        status = esdm__noted_untag(session, stored, record, ESDM_META_TAG_RETRACTION, &why);
    if (session->meta->tag_remove == NULL || status == ESDM_ENOENT)
        return esdm__error_set(err, ESDM_ENOENT, "container '%s' is not retracted", name);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm_container_remove_sealed(esdm_session *session, const char *name, esdm_error *err)
{
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    return esdm__remove(session, name, true, err);
}

/* ---- obeying it ---------------------------------------------------------------------------- */

static esdm_status
refuse(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EACCES,
                           "container '%s' is sealed: it is never changed, replaced or renamed "
                           "(esdm-seal --verify tells by whom; esdm-cp makes another one)",
                           name);
}

esdm_status
esdm__sealed_check(esdm_session *session, const char *name, esdm_error *err)
{
    esdm_meta_container record;
    esdm_notices notices;
    esdm_error ignored;
    if (session->meta->container_find(session->store, name, &record, &ignored) != ESDM_OK)
        return ESDM_OK; /* whoever uses it is told why */
    esdm_status status = load(session, record.container, &notices, err);
    if (status == ESDM_OK && notices.sealed)
        status = refuse(name, err);
    esdm_notices_clear(&notices);
    return status;
}

esdm_status
esdm__sealed_at_create(esdm_container *container, esdm_error *err)
{
    esdm_notices notices;
    uint64_t former = esdm__io_of(container)->former;
    if (former == 0 || !esdm__io_of(container)->replace)
        return ESDM_OK;
    esdm_status status = load(container->session, former, &notices, err);
    if (status == ESDM_OK && notices.sealed)
        status = refuse(container->name, err);
    esdm_notices_clear(&notices);
    return status;
}

esdm_status
esdm__sealed_at_open(esdm_container *container, esdm_error *err)
{
    esdm_notices notices;
    esdm_error ignored;
    bool changed;
    uint64_t record = esdm__io_of(container)->record;
    if (esdm__io_of(container)->untagged)
        return ESDM_OK;
    if (load(container->session, record, &notices, &ignored) != ESDM_OK)
        return ESDM_OK; /* a damaged row is no reason not to read; stores refuse commits by it */
    esdm_status status = ESDM_OK;
    if (notices.sealed && container->writable)
        status = refuse(container->name, err);
    else if (notices.retraction != NULL && !container->writable)
        status = esdm__attribute_put(&((esdm_group *) container->groups.items[0])->attributes,
                                     ESDM_RETRACTED_ATTRIBUTE, ESDM_TYPE_CHAR,
                                     strlen(notices.retraction), notices.retraction, &changed, err);
    esdm_notices_clear(&notices);
    return status;
}
