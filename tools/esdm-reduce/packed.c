/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/packed.h"

double
stated_number(const esdm_dataset *dataset, const char *name, double none)
{
    esdm_attribute a;
    if (!esdm_attribute_find(esdm_dataset_attributes((esdm_dataset *) dataset), name, &a, NULL) ||
        a.count != 1)
        return none;
    if (a.type == ESDM_TYPE_FLOAT64)
        return *(const double *) a.values;
    switch (a.type) {
    case ESDM_TYPE_FLOAT32:
        return (double) *(const float *) a.values;
    case ESDM_TYPE_INT8:
        return *(const int8_t *) a.values;
    case ESDM_TYPE_UINT8:
        return *(const uint8_t *) a.values;
    case ESDM_TYPE_INT16:
        return *(const int16_t *) a.values;
    case ESDM_TYPE_UINT16:
        return *(const uint16_t *) a.values;
    case ESDM_TYPE_INT32:
        return *(const int32_t *) a.values;
    case ESDM_TYPE_UINT32:
        return *(const uint32_t *) a.values;
    case ESDM_TYPE_INT64:
        return (double) *(const int64_t *) a.values;
    case ESDM_TYPE_UINT64:
        return (double) *(const uint64_t *) a.values;
    default:
        return none;
    }
}
