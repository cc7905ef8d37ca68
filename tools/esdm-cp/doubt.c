/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Statements of accuracy that came with a file, or with a pattern, and belong to other numbers. */

#include "esdm-cp/esdm-cp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/accuracy_attributes.h"

/* ---- files that were stated of, and what was computed from them ----------------------------- */

/* Whether the numbers span enough: as a rule the first ones do. */
static esdm_status
spans_enough(const cp_dataset *dataset, const cp_end *source, double least, bool *ret_enough,
             esdm_error *err)
{
    cp_slab slab;
    double low = (double) INFINITY, high = -(double) INFINITY;
    bool enough = false;
    cp_slab_init(&slab, dataset);
    size_t bytes = slab.most_elements * dataset->type->bytes;
    void *buffer = calloc(1, MAX(bytes, 1));
    esdm_status status =
        buffer != NULL
            ? ESDM_OK
            : tool_error_set(err, ESDM_ENOMEM, "%s: no memory for %zu bytes", dataset->path, bytes);
    while (status == ESDM_OK && !enough && cp_slab_next(&slab)) {
        status = cp_read(source, dataset, &slab, buffer, err);
        if (status == ESDM_OK)
            enough = esdm_dataset_span(dataset->to.dataset, dataset->type->atomic, buffer,
                                       slab.elements, &low, &high) >= least;
    }
    free(buffer);
    *ret_enough = enough || low > high; /* or there is none */
    return status;
}

static esdm_status
doubt(cp_dataset *dataset, const cp_end *source, esdm_error *err)
{
    esdm_accuracy accuracy;
    bool enough = true;
    esdm_accuracy_init(&accuracy);
    (void) esdm_dataset_accuracy(dataset->to.dataset, &accuracy);
    const double least = esdm_accuracy_least_span(&accuracy);
    if (least <= 0)
        return ESDM_OK;
    esdm_status status = spans_enough(dataset, source, least, &enough, err);
    if (status != ESDM_OK || enough)
        return status;
    tool_error("%s: the accuracy stated of '%s' is not taken, its numbers differ by less than 16 "
               "times the tolerance: was it meant for another variable? They are stored without "
               "loss; --accuracy '%s: …' states it of them",
               source->name, dataset->path, dataset->name);
    return esdm_dataset_set_accuracy(dataset->to.dataset, NULL, err);
}

esdm_status
cp_accuracy_doubt(const cp_model *model, const cp_end *source, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if (dataset->doubted)
            status = doubt(dataset, source, err);
    }
    return status;
}

/* ---- containers of earlier versions --------------------------------------------------------- */

static void
document(cp_dataset *dataset)
{
    GPtrArray *known = dataset->attributes;
    esdm_accuracy accuracy;
    esdm_error ignored;
    char *text = NULL;
    bool any = false;
    for (guint i = known->len; i-- > 0;) {
        if (esdm_accuracy_is_attribute(((cp_attribute *) g_ptr_array_index(known, i))->name)) {
            (void) g_ptr_array_remove_index(known, i);
            any = true;
        }
    }
    if (!any || !esdm_dataset_accuracy(dataset->from.dataset, &accuracy) ||
        esdm_accuracy_print(&accuracy, &text, &ignored) != ESDM_OK)
        return;
    const cp_type *type = cp_type_atomic(ESDM_TYPE_CHAR);
    cp_attribute_set(known, ESDM_ACCURACY_STORED_ATTRIBUTE, type, strlen(text),
                     cp_values_copy(type, strlen(text), text));
    free(text);
}

void
cp_accuracy_document(const cp_model *model)
{
    for (guint i = 0; i < model->datasets->len; i++)
        document(g_ptr_array_index(model->datasets, i));
}
