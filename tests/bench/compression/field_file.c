/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "field_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double
range_of(const float *values, uint64_t n)
{
    double least = INFINITY;
    double most = -INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        if (!(fabs((double) values[i]) < FIELD_FILE_HUGE))
            continue;
        least = fmin(least, (double) values[i]);
        most = fmax(most, (double) values[i]);
    }
    return most > least ? most - least : 0;
}

static int
load_variable(int file, field_file *f)
{
    int rank, dims[NC_MAX_VAR_DIMS];
    int status = nc_inq_var(file, 0, f->name, NULL, &rank, dims, NULL);
    f->elements = 1;
    f->rank = status == NC_NOERR ? (uint32_t) rank : 0;
    for (uint32_t i = 0; i < f->rank && status == NC_NOERR; i++) {
        size_t length = 0;
        status = nc_inq_dimlen(file, dims[i], &length);
        f->shape[i] = length;
        f->elements *= length;
    }
    if (status != NC_NOERR)
        return status;
    if (nc_get_att_float(file, 0, "_FillValue", &f->fill) != NC_NOERR)
        f->fill = 0;
    f->values = malloc(f->elements * sizeof *f->values);
    return f->values != NULL ? nc_get_var_float(file, 0, f->values) : NC_ENOMEM;
}

int
field_file_load(const char *path, field_file *ret_field)
{
    int file;
    memset(ret_field, 0, sizeof *ret_field);
    int status = nc_open(path, NC_NOWRITE, &file);
    if (status != NC_NOERR)
        return status;
    status = load_variable(file, ret_field);
    int closed = nc_close(file);
    if (status == NC_NOERR)
        status = closed;
    if (status == NC_NOERR)
        ret_field->range = range_of(ret_field->values, ret_field->elements);
    else
        field_file_clear(ret_field);
    return status;
}

void
field_file_clear(field_file *field)
{
    free(field->values);
    field->values = NULL;
}
