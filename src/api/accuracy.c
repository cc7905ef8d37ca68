/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on accuracy: what is stated, and what was stored. */

#include "esdm/accuracy.h"

#include "base/arguments.h"
#include "base/error.h"
#include "io/container/accuracy.h"
#include "io/io.h"
#include "model/accuracy.h"

esdm_status
esdm_dataset_set_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    esdm_container *container = dataset->group->container;
    esdm_status status = esdm__container_check_writable(container, err);
    if (status == ESDM_OK && accuracy != NULL && accuracy->stated != 0)
        status = esdm__accuracy_accept(dataset, accuracy, err);
    bool changed = false;
    if (status == ESDM_OK)
        status = esdm__io_set_accuracy(dataset, accuracy, &changed, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(dataset, status, err);
    if (changed)
        esdm__container_changed(container);
    return ESDM_OK;
}

esdm_status
esdm_dataset_accuracy_report(esdm_dataset *dataset, esdm_accuracy_report *ret_report,
                             esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_report);
    return esdm__accuracy_report(dataset, NULL, 0, ret_report, err);
}

bool
esdm_dataset_accuracy_holds(const esdm_dataset *dataset, const void *before, const void *after,
                            uint64_t count, uint64_t *ret_index)
{
    uint64_t index = 0;
    if (dataset == NULL || before == NULL || after == NULL)
        return count == 0;
    if (esdm__accuracy_holds(dataset, before, after, count, &index))
        return true;
    if (ret_index != NULL)
        *ret_index = index;
    return false;
}

bool
esdm_dataset_accuracy_in_force(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy)
{
    return dataset != NULL && esdm__accuracy_in_force(dataset, ret_accuracy);
}

bool
esdm_dataset_accuracy_spared(const esdm_dataset *dataset, size_t *ret_rule, const char **ret_kind)
{
    return dataset != NULL && ret_rule != NULL && ret_kind != NULL &&
           esdm__accuracy_spared(dataset, ret_rule, ret_kind);
}
