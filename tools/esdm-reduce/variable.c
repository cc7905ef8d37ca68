/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/variable.h"

double
stated_number(const esdm_dataset *dataset, const char *name, double none)
{
    esdm_attribute a;
    double number = none;
    if (!esdm_attribute_find(esdm_dataset_attributes((esdm_dataset *) dataset), name, &a, NULL) ||
        a.count != 1)
        return none;
    if (a.type == ESDM_TYPE_CHAR || a.type >= ESDM_TYPE_STRING)
        return none;
    return esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, &number, 1, NULL, NULL) == ESDM_OK
               ? number
               : none;
}

esdm_dataset *
seen_from(const esdm_dataset *dataset, const char *name)
{
    esdm_dataset *found = NULL;
    for (esdm_group *group = esdm_dataset_group(dataset); group != NULL && found == NULL;
         group = esdm_group_parent(group))
        found = esdm_group_dataset_find(group, name);
    return found;
}
