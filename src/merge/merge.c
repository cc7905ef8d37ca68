/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The order of a merge: structure, a look at the values, and what is to be entered. */

#include "merge/merge.h"

#include "base/error.h"

bool
esdm__merge_conflict(esdm__merging *m, esdm_merge_conflict *conflict, bool decidable)
{
    const esdm_merge_options *options = m->options;
    conflict->decided = decidable && options->prefer != ESDM_MERGE_REFUSE;
    if (!m->writes) {
        m->result->conflicts++;
        m->result->open_conflicts += !conflict->decided;
        if (options->report != NULL)
            options->report(conflict, options->user);
    }
    return decidable && options->prefer == ESDM_MERGE_THEIRS;
}

static esdm_status
merge_all_values(esdm__merging *m, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < m->theirs->datasets.count && status == ESDM_OK; i++) {
        esdm_dataset *theirs = m->theirs->datasets.items[i];
        esdm_dataset *ours = esdm__merge_same(m, m->ours, theirs);
        esdm_dataset *before = NULL;
        if (ours == NULL ||
            !esdm__merge_fits(theirs, ours)) /* a conflict of structure that was told */
            continue;
        before = (esdm_dataset *) esdm__container_dataset(m->before, ours->id);
        esdm_dataset *bases[ESDM__BASES_LEAVES];
        for (uint32_t k = 0; k < esdm__merge_leaves(m); k++) {
            bases[k] = esdm__merge_before(m, theirs, k);
            if (bases[k] != NULL && !esdm__merge_fits(theirs, bases[k])) /* another one */
                bases[k] = NULL;
        }
        status = esdm__merge_values(m, theirs, bases, before, ours, err);
    }
    return status;
}

esdm_status
esdm__merge_branch(esdm__merging *m, esdm_error *err)
{
    bool writes = m->writes;
    m->writes = false;
    esdm__io_of(m->ours)->opened.guards_all = true;
    esdm_status status = esdm__merge_structure(m, err);
    if (status == ESDM_OK)
        status = merge_all_values(m, err);
    if (status != ESDM_OK || !writes || m->result->open_conflicts > 0)
        return status;
    esdm_merge_result seen = *m->result;
    m->writes = true;
    status = merge_all_values(m, err);
    *m->result = seen;
    return status;
}
