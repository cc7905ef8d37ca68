/* SPDX-License-Identifier: LGPL-3.0-or-later */

#include "io/packs/pack_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/packs/page_list.h"

struct esdm__pack_guard {
    esdm_session *session;
    char (*writers)[ESDM__UUID_BYTES]; /* owned; that count as alive */
    size_t count;
    char last[ESDM__UUID_BYTES]; /* fragments of one writer follow each other */
};

esdm__pack_guard *
esdm__pack_guard_new(esdm_session *session)
{
    esdm__pack_guard *guard = calloc(1, sizeof *guard);
    if (guard != NULL)
        guard->session = session;
    return guard;
}

static bool
is_guarded(const esdm__pack_guard *guard, const char *writer)
{
    for (size_t i = 0; i < guard->count; i++) {
        if (strcmp(guard->writers[i], writer) == 0)
            return true;
    }
    return false;
}

/* Behind writer_begin(), and before any place is read (upkeep/strays.c says why). */
static esdm_status
tell(const esdm_session *session, const char *writer, esdm_error *err)
{
    char fact[sizeof ESDM__FACT_GUARDED + ESDM__UUID_BYTES];
    char chance[ESDM__UUID_BYTES];
    if (session->meta->fact_put == NULL)
        return ESDM_OK;
    (void) snprintf(fact, sizeof fact, ESDM__FACT_GUARDED "%s", writer);
    esdm__uuid_new(chance);
    return session->meta->fact_put(session->store, fact, chance, err);
}

esdm_status
esdm__pack_guard_add(esdm__pack_guard *guard, const char *pack, bool may_begin, esdm_error *err)
{
    const esdm_session *session = guard->session;
    char writer[ESDM__UUID_BYTES];
    esdm__pack_writer(pack, writer);
    if (writer[0] == '\0' || strcmp(writer, guard->last) == 0)
        return ESDM_OK;
    memcpy(guard->last, writer, sizeof writer);
    if (is_guarded(guard, writer))
        return ESDM_OK;
    if (!may_begin) {
        guard->last[0] = '\0';
        return esdm__error_set(err, ESDM_ECONFLICT, "fragments are stored elsewhere now");
    }
    if (!esdm__array_grow(&guard->writers, guard->count, sizeof *guard->writers))
        return esdm__error_nomem(err, guard->count * sizeof *guard->writers,
                                 "packs that are to stay");
    esdm_status status = session->meta->writer_begin(session->store, writer, err);
    if (status == ESDM_OK)
        memcpy(guard->writers[guard->count++], writer, sizeof writer);
    if (status == ESDM_OK)
        status = tell(session, writer, err);
    return status;
}

void
esdm__pack_guard_free(esdm__pack_guard *guard)
{
    if (guard == NULL)
        return;
    for (size_t i = 0; i < guard->count; i++)
        guard->session->meta->writer_end(guard->session->store, guard->writers[i]);
    free(guard->writers);
    free(guard);
}
