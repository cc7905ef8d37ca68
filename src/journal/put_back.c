/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file An older copy of the catalogue, put back in its place. */

#include "journal/put_back.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "journal/backup.h"
#include "journal/restore.h"

/* Fact: when the newest backup began that was made of this catalogue, in nanoseconds since 1970. */
#define FACT_KNOWN "esdm/backup_known"
/* Programs of older versions make backups without that fact. All note when one is due; the backup
 * begins within this time. */
#define SLACK_S 60
/* As long as there have been no others: theirs when a target is drained are not noted at all. */
#define SLACK_BEFORE_S 7200
#define SECOND_NS      UINT64_C(1000000000)

/* 0: there is none. */
static uint64_t
number(const esdm__catalogue *catalogue, const char *fact, bool *ret_there)
{
    char *text = NULL;
    uint64_t value = 0;
    bool there = catalogue->plugin->fact_get != NULL &&
                 catalogue->plugin->fact_get(catalogue->store, fact, &text, NULL) == ESDM_OK;
    if (there)
        value = strtoull(text, NULL, 10);
    if (ret_there != NULL)
        *ret_there = there;
    free(text);
    return value;
}

static esdm_status
put_number(const esdm__catalogue *catalogue, const char *fact, uint64_t value, esdm_error *err)
{
    char text[32];
    (void) snprintf(text, sizeof text, "%" PRIu64, value);
    return catalogue->plugin->fact_put(catalogue->store, fact, text, err);
}

esdm_status
esdm__unknown_since(const esdm__catalogue *catalogue, uint64_t from_ns, esdm_error *err)
{
    char text[64];
    bool there;
    uint64_t earlier_ns = number(catalogue, ESDM__FACT_RESTORED, &there);
    if (there && earlier_ns < from_ns)
        from_ns = earlier_ns;
    (void) snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, from_ns, esdm__now_ns());
    return catalogue->plugin->fact_put(catalogue->store, ESDM__FACT_RESTORED, text, err);
}

bool
esdm__put_back_noted(const esdm__catalogue *catalogue, uint64_t *ret_from_ns)
{
    bool there;
    *ret_from_ns = number(catalogue, ESDM__FACT_PUT_BACK, &there);
    return there;
}

/* What cannot be looked at shows nothing. */
static uint64_t
newest_backup(const esdm__journal_target *targets, size_t ntargets)
{
    uint64_t newest_ns = 0;
    for (size_t i = 0; i < ntargets; i++) {
        esdm__backup *all = NULL;
        size_t count = 0;
        if (esdm__backup_list(&targets[i], 1, &all, &count, NULL) == ESDM_OK && count > 0 &&
            all[0].start_ns > newest_ns)
            newest_ns = all[0].start_ns;
        free(all);
    }
    return newest_ns;
}

/* When the newest backup began that the catalogue knows of.
 * @param ret_limit_ns one that began later it should know. */
static uint64_t
known_until(const esdm__catalogue *catalogue, uint64_t *ret_limit_ns)
{
    bool there;
    char *text = NULL;
    char *end = NULL;
    uint64_t known_ns = number(catalogue, FACT_KNOWN, &there);
    uint64_t due_ns = number(catalogue, ESDM__FACT_BACKUP, NULL) * SECOND_NS;
    /* Those of older versions when a site has been restored. */
    if (!there && catalogue->plugin->fact_get(catalogue->store, ESDM__FACT_RESTORED, &text, NULL) ==
                      ESDM_OK) {
        (void) strtoull(text, &end, 10);
        uint64_t restored_ns = strtoull(end, NULL, 10);
        due_ns = restored_ns > due_ns ? restored_ns : due_ns;
        free(text);
    }
    uint64_t limit_ns = due_ns + (there ? SLACK_S : SLACK_BEFORE_S) * SECOND_NS;
    *ret_limit_ns = known_ns > limit_ns ? known_ns : limit_ns;
    return known_ns > due_ns ? known_ns : due_ns;
}

bool
esdm__put_back_look(const esdm__catalogue *catalogue, const esdm__journal_target *targets,
                    size_t ntargets, uint64_t *ret_from_ns)
{
    if (esdm__put_back_noted(catalogue, ret_from_ns))
        return true;
    if (catalogue->plugin->fact_put == NULL || catalogue->plugin->fact_get == NULL)
        return false;
    /* In this order: who begins a backup meanwhile notes it first. */
    uint64_t newest_ns = newest_backup(targets, ntargets);
    uint64_t limit_ns;
    *ret_from_ns = known_until(catalogue, &limit_ns);
    if (newest_ns <= limit_ns)
        return false;
    /* What a reader cannot note, the next writer does. */
    if (esdm__unknown_since(catalogue, *ret_from_ns, NULL) == ESDM_OK &&
        put_number(catalogue, ESDM__FACT_PUT_BACK, *ret_from_ns, NULL) == ESDM_OK)
        (void) !esdm__put_back_know(catalogue, newest_ns, NULL); /* its clock may be ahead */
    return true;
}

esdm_status
esdm__put_back_know(const esdm__catalogue *catalogue, uint64_t start_ns, esdm_error *err)
{
    /* A clock that was ahead may have made one. */
    if (catalogue->plugin->fact_put == NULL || number(catalogue, FACT_KNOWN, NULL) >= start_ns)
        return ESDM_OK;
    return put_number(catalogue, FACT_KNOWN, start_ns, err);
}

esdm_status
esdm__put_back_end(const esdm__catalogue *catalogue, const esdm__journal_target *targets,
                   size_t ntargets, esdm_error *err)
{
    if (catalogue->plugin->fact_put == NULL)
        return ESDM_OK;
    uint64_t newest_ns = newest_backup(targets, ntargets);
    uint64_t now_ns = esdm__now_ns();
    esdm_status status =
        esdm__put_back_know(catalogue, newest_ns > now_ns ? newest_ns : now_ns, err);
    if (status != ESDM_OK)
        return status;
    return catalogue->plugin->fact_put(catalogue->store, ESDM__FACT_PUT_BACK, NULL, err);
}
