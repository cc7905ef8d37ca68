/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions that check, mend, clean and move. */

#include "upkeep/upkeep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "io/session/backups.h"
#include "journal/put_back.h"
#include "journal/restore.h"
#include "model/container.h"
#include "virtual/virtual.h"

esdm_status
esdm_fsck(esdm_session *session, const esdm_fsck_options *options, esdm_fsck_result *ret_result,
          esdm_error *err)
{
    static const esdm_fsck_options none = {0};
    esdm_fsck_result result;
    if (options == NULL)
        options = &none;
    if (session == NULL || (options->containers == NULL && options->ncontainers > 0))
        return esdm__error_set(err, ESDM_EINVAL, "esdm_fsck: NULL argument");
    if (options->repair && !esdm__session_writes(session))
        return esdm__error_prefix(err, esdm__session_read_only(session, err),
                                  "nothing can be repaired");
    return esdm__upkeep_fsck(session, options, ret_result != NULL ? ret_result : &result, err);
}

esdm_status
esdm_restoration_end(esdm_session *session, bool end, esdm_restoration *ret_restoration,
                     esdm_error *err)
{
    esdm_restoration found = {0};
    ESDM__NEED(err, session);
    const esdm__catalogue catalogue = {.plugin = session->meta, .store = session->store};
    uint64_t from_ns;
    esdm_status status = end ? esdm__need_writable(session, err) : ESDM_OK;
    if (status == ESDM_OK)
        (void) esdm__backup_put_back(session, &from_ns); /* counts as brought back */
    if (status == ESDM_OK)
        status = esdm__restoration_read(session, &found, err);
    if (status == ESDM_OK && end)
        status = session->meta->fact_put(session->store, ESDM__FACT_RESTORED, NULL, err);
    if (status == ESDM_OK && end)
        status = esdm__put_back_end(&catalogue, NULL, 0, err); /* it was looked for above */
    if (status == ESDM_OK && ret_restoration != NULL)
        *ret_restoration = found;
    return status;
}

esdm_status
esdm_gc(esdm_session *session, const esdm_gc_options *options, esdm_gc_result *ret_result,
        esdm_error *err)
{
    static const esdm_gc_options none = {0};
    esdm_gc_result result;
    ESDM__NEED(err, session);
    if (!esdm__session_writes(session))
        return esdm__error_prefix(err, esdm__session_read_only(session, err),
                                  "whether writers live cannot be told");
    return esdm__upkeep_gc(session, options != NULL ? options : &none,
                           ret_result != NULL ? ret_result : &result, err);
}

esdm_status
esdm_drain(esdm_session *session, const esdm_drain_options *options, esdm_drain_result *ret_result,
           esdm_error *err)
{
    static const esdm_drain_options none = {0};
    esdm_drain_result result;
    if (options == NULL)
        options = &none;
    if (session == NULL || (options->containers == NULL && options->ncontainers > 0))
        return esdm__error_set(err, ESDM_EINVAL, "esdm_drain: NULL argument");
    if ((options->from == NULL && options->nfrom > 0) || (options->rebalance && options->nfrom > 0))
        return esdm__error_set(err, ESDM_EINVAL,
                               "esdm_drain: targets to empty, or rebalancing, not both");
    if (!esdm__session_writes(session))
        return esdm__error_prefix(err, esdm__session_read_only(session, err),
                                  "nothing can be drained");
    return esdm__upkeep_drain(session, options, NULL, ret_result != NULL ? ret_result : &result,
                              err);
}

const char *
esdm_session_node(const esdm_session *session)
{
    return session != NULL ? session->node : NULL;
}

esdm_status
esdm_reindex(esdm_session *session, const esdm_reindex_options *options,
             esdm_reindex_result *ret_result, esdm_error *err)
{
    static const esdm_reindex_options none = {0};
    esdm_reindex_result result;
    ESDM__NEED(err, session);
    esdm_status status = esdm__need_writable(session, err);
    options = options != NULL ? options : &none;
    if (status == ESDM_OK)
        status =
            esdm__upkeep_reindex(session, options, ret_result != NULL ? ret_result : &result, err);
    return status == ESDM_OK ? esdm__virtual_reindex(session, !options->only_missing, err) : status;
}

esdm_status
esdm_dedup(esdm_session *session, const esdm_dedup_options *options, esdm_dedup_result *ret_result,
           esdm_error *err)
{
    static const esdm_dedup_options none = {0};
    esdm_dedup_result result;
    ESDM__NEED(err, session);
    options = options != NULL ? options : &none;
    esdm_status status = options->dry_run ? ESDM_OK : esdm__need_writable(session, err);
    if (status == ESDM_OK && session->meta->share == NULL)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "the metadata store of site '%s' cannot share packs: its plug-in "
                                 "was built for an older ESDM",
                                 session->site->name);
    return status == ESDM_OK ? esdm__upkeep_dedup(session, options,
                                                  ret_result != NULL ? ret_result : &result, err)
                             : status;
}

esdm_status
esdm_dedup_foretell(esdm_session *session, const esdm_dedup_options *options, bool content,
                    esdm_dedup_forecast *ret_forecast, esdm_error *err)
{
    static const esdm_dedup_options none = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, ret_forecast);
    return esdm__upkeep_dedup_forecast(session, options != NULL ? options : &none, content,
                                       ret_forecast, err);
}

/* How often others may come in between without a commit of ours. */
#define CONFLICTS 10

static esdm_status
compact_once(esdm_session *session, const char *name, const esdm_compact_options *options,
             esdm_compact_result *result, esdm_error *err)
{
    esdm_container *container;
    esdm_open_mode mode = options->dry_run ? ESDM_OPEN_READ : ESDM_OPEN_WRITE;
    esdm_status status =
        esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, &container, err);
    if (status != ESDM_OK)
        return status;
    if (container->provider != NULL)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "'%s' is put together from several containers: compact these",
                                 container->name);
    else
        status = esdm__upkeep_compact(container, options, result, err);
    esdm_container_discard(container);
    return status;
}

/* Of what is no container of its own nothing is left to do. */
static esdm_status
empty_packs(esdm_session *session, const char *name, const esdm_compact_options *options,
            esdm_compact_result *result, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = esdm__name_normalise(name, normal, err);
    return status == ESDM_OK ? esdm__upkeep_empty(session, normal, options, result, err) : status;
}

static esdm_status
pin_once(esdm_session *session, const char *name, const esdm_pin_options *options,
         esdm_pin_result *result, bool *ret_again, esdm_error *err)
{
    esdm_container *container;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, err);
    if (status != ESDM_OK)
        return status;
    if (container->provider != NULL)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "'%s' is put together from several containers: pin these",
                                 container->name);
    else
        status = esdm__upkeep_pin(container, options, result, ret_again, err);
    esdm_container_discard(container);
    return status;
}

esdm_status
esdm_pin(esdm_session *session, const char *name, const esdm_pin_options *options,
         esdm_pin_result *ret_result, esdm_error *err)
{
    static const esdm_pin_options none = {0};
    esdm_pin_result result = {0};
    esdm_status status = ESDM_OK;
    bool again = true;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    for (int tries = 0; again && tries < CONFLICTS; tries++) {
        again = false;
        status = pin_once(session, name, options != NULL ? options : &none, &result, &again, err);
    }
    if (ret_result != NULL)
        *ret_result = result;
    return status;
}

esdm_status
esdm_dataset_chunk_for_readers(esdm_dataset *dataset, uint64_t *ret_chunk, char *ret_why,
                               size_t room, esdm_error *err)
{
    uint64_t chunk[ESDM_MAX_RANK] = {0};
    bool wanted = false;
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_chunk);
    esdm_status status = esdm__upkeep_wish(dataset, chunk, ret_why, room, &wanted, err);
    if (status == ESDM_OK && !wanted)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "variable '%s': nothing is known of readers who want other chunks",
                                 dataset->name);
    if (status == ESDM_OK)
        memcpy(ret_chunk, chunk, dataset->rank * sizeof *chunk);
    return status;
}

esdm_status
esdm_compact(esdm_session *session, const char *name, const esdm_compact_options *options,
             esdm_compact_result *ret_result, esdm_error *err)
{
    static const esdm_compact_options none = {0};
    esdm_compact_result result = {0};
    uint64_t commits = 0;
    esdm_status status = ESDM_ECONFLICT;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    for (int tries = 0; status == ESDM_ECONFLICT && tries < CONFLICTS; tries++) {
        result.rounded = 0;
        status = compact_once(session, name, options != NULL ? options : &none, &result, err);
        result.conflicts += status == ESDM_ECONFLICT;
        if (result.commits > commits)
            tries = 0;
        commits = result.commits;
    }
    if (status == ESDM_OK)
        status = empty_packs(session, name, options != NULL ? options : &none, &result, err);
    if (ret_result != NULL)
        *ret_result = result;
    if (status == ESDM_ECONFLICT)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "container '%s': others wrote to the same parts each of %d times "
                               "that these were stored anew: what they wrote stays, as do the "
                               "%" PRIu64 " fragments that were done. Call again when less is "
                               "written",
                               name, CONFLICTS, result.fragments);
    return status;
}

esdm_status
esdm_usage_count(esdm_session *session, const esdm_usage_part *parts, size_t nparts,
                 esdm_usage *ret_groups, size_t ngroups, esdm_usage *ret_total, esdm_error *err)
{
    esdm_usage total = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, ret_total);
    if ((parts == NULL && nparts > 0) || (ret_groups == NULL && ngroups > 0) ||
        nparts >= UINT32_MAX || ngroups >= UINT32_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_usage_count: NULL argument, or too many");
    for (size_t i = 0; i < nparts; i++) {
        if (parts[i].name == NULL || parts[i].group >= ngroups)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "esdm_usage_count: part %zu of %zu has no name, or its group is "
                                   "not one of %zu",
                                   i, nparts, ngroups);
    }
    esdm_usage *groups = calloc(ngroups + 1, sizeof *groups);
    if (groups == NULL)
        return esdm__error_nomem(err, ngroups * sizeof *groups, "groups of containers");
    esdm_status status = esdm__upkeep_usage(session, parts, nparts, groups, &total, err);
    if (status == ESDM_OK) {
        if (ngroups > 0)
            memcpy(ret_groups, groups, ngroups * sizeof *groups);
        *ret_total = total;
    }
    free(groups);
    return status;
}
