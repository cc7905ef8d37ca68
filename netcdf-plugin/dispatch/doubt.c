/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Statements of accuracy that a program copied from a file together with the numbers. The file may
 * be the result of another program, which copied them from what it computed with. So an absolute
 * tolerance holds only once numbers were written that span much more than it; as a rule the first
 * ones do. Until then nothing is lost.
 */

#include "storage.h"

#include "esdm/accuracy_attributes.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Guards the span of all variables that have a doubted statement. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct esdmnc_doubt {
    esdm_accuracy accuracy;
    double low, high; /* of the numbers so far */
};

int
esdmnc_doubt_begin(esdmnc_var *var, const esdm_accuracy *accuracy)
{
    esdmnc_doubt *doubt = malloc(sizeof *doubt);
    if (doubt == NULL)
        return NC_ENOMEM;
    *doubt =
        (esdmnc_doubt){.accuracy = *accuracy, .low = (double) INFINITY, .high = -(double) INFINITY};
    esdmnc_doubt_drop(var);
    atomic_store(&var->doubt, doubt);
    return NC_NOERR;
}

void
esdmnc_doubt_drop(esdmnc_var *var)
{
    free(atomic_exchange(&var->doubt, NULL));
}

/* Makes it the accuracy of the variable. */
static int
settle(const esdmnc_file *file, esdmnc_var *var, const esdmnc_doubt *doubt)
{
    esdm_error err;
    esdm_status st = esdm_dataset_set_codec(var->dataset, NULL, &err);
    if (st == ESDM_OK)
        st = esdm_dataset_set_accuracy(var->dataset, &doubt->accuracy, &err);
    if (st == ESDM_OK)
        st = esdm_dataset_tell_accuracy(var->dataset, &err);
    esdmnc_doubt_drop(var);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "state the accuracy in", file->name);
}

int
esdmnc_doubt_written(const esdmnc_file *file, esdmnc_var *var, nc_type type, const void *values,
                     uint64_t count)
{
    int rc = NC_NOERR;
    (void) pthread_mutex_lock(&lock);
    esdmnc_doubt *doubt = atomic_load(&var->doubt);
    if (doubt != NULL &&
        esdm_dataset_span(var->dataset, esdmnc_type_to_esdm(file, type), values, count, &doubt->low,
                          &doubt->high) >= esdm_accuracy_least_span(&doubt->accuracy))
        rc = settle(file, var, doubt);
    (void) pthread_mutex_unlock(&lock);
    return rc;
}

static int
end(const esdmnc_file *file, esdmnc_var *var)
{
    const esdmnc_doubt *doubt = atomic_load(&var->doubt);
    if (doubt == NULL)
        return NC_NOERR;
    if (doubt->low > doubt->high) /* there are no numbers yet: it is for those to come */
        return settle(file, var, doubt);
    esdmnc_say("what attributes of variable '%s' in '%s' state is not taken: its numbers differ by "
               "less than 16 times the tolerance; was it copied from another variable? They are "
               "stored without loss (to state it of them: esdm-cp --accuracy)",
               esdm_dataset_name(var->dataset), file->name);
    esdmnc_doubt_drop(var);
    return NC_NOERR;
}

int
esdmnc_doubt_end(const esdmnc_file *file)
{
    int rc = NC_NOERR;
    for (size_t g = 0; g < file->group_count && rc == NC_NOERR; g++)
        for (size_t v = 0; v < file->groups[g]->count && rc == NC_NOERR; v++)
            rc = end(file, file->groups[g]->vars[v]);
    return rc;
}
