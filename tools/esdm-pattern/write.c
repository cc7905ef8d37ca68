/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Storing synthetic fields in NetCDF files and in containers. */

#include "esdm-pattern/esdm-pattern.h"

#include <errno.h>
#include <math.h>
#include <netcdf.h>
#include <string.h>
#include <unistd.h>

#define SLAB_VALUES (UINT64_C(1) << 21) /* 16 MiB of doubles */

typedef struct type_row {
    const char *name;
    esdm_type type;
    double fill;
} type_row;

static const type_row types[] = {
    {"byte", ESDM_TYPE_INT8, NC_FILL_BYTE},      {"ubyte", ESDM_TYPE_UINT8, NC_FILL_UBYTE},
    {"short", ESDM_TYPE_INT16, NC_FILL_SHORT},   {"ushort", ESDM_TYPE_UINT16, NC_FILL_USHORT},
    {"int", ESDM_TYPE_INT32, NC_FILL_INT},       {"uint", ESDM_TYPE_UINT32, NC_FILL_UINT},
    {"float", ESDM_TYPE_FLOAT32, NC_FILL_FLOAT}, {"double", ESDM_TYPE_FLOAT64, NC_FILL_DOUBLE},
};

esdm_type
pattern_type(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (g_str_equal(types[i].name, name))
            return types[i].type;
    }
    return ESDM_TYPE_NONE;
}

const char *
pattern_types(void)
{
    return "byte, ubyte, short, ushort, int, uint, float and double";
}

double
pattern_default_fill(esdm_type type)
{
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (types[i].type == type)
            return types[i].fill;
    }
    return 0;
}

typedef struct format_row {
    const char *name;
    int mode;
} format_row;

static const format_row formats[] = {
    {"netcdf4", NC_NETCDF4}, {"netcdf4-classic", NC_NETCDF4 | NC_CLASSIC_MODEL},
    {"cdf5", NC_64BIT_DATA}, {"64bit-offset", NC_64BIT_OFFSET},
    {"classic", 0},
};

static const format_row *
format_of(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (name == NULL || g_str_equal(formats[i].name, name))
            return &formats[i];
    }
    return NULL;
}

bool
pattern_format_known(const char *format)
{
    return format_of(format) != NULL;
}

/* ---- where it goes ------------------------------------------------------------------------ */

typedef struct sink {
    const pattern_field *field;
    const pattern_output *output;
    esdm_session *session;
    esdm_container *container;
    esdm_dataset *dataset;
    int ncid, varid;
    char *temporary; /* owned; a file that is being written */
    esdm_error err;
} sink;

static esdm_status
netcdf_error(sink *to, int rc, const char *what)
{
    return rc == NC_NOERR ? ESDM_OK
                          : tool_error_set(&to->err, ESDM_EIO, "%s '%s': %s", what,
                                           to->output->target, nc_strerror(rc));
}

static esdm_status
file_begin(sink *to)
{
    const pattern_output *output = to->output;
    int dimids[PATTERN_RANK_MAX];
    if (!output->replace && g_file_test(output->target, G_FILE_TEST_EXISTS))
        return tool_error_set(&to->err, ESDM_EEXIST, "'%s' exists; --force replaces it",
                              output->target);
    to->temporary = g_strdup_printf("%s.esdm-pattern-%ld", output->target, (long) getpid());
    int rc = nc_create(to->temporary, format_of(output->format)->mode, &to->ncid);
    if (rc != NC_NOERR) {
        to->ncid = -1;
        return netcdf_error(to, rc, "cannot create");
    }
    for (uint32_t i = 0; i < to->field->rank && rc == NC_NOERR; i++)
        rc = nc_def_dim(to->ncid, output->dimensions[i],
                        i == 0 && output->unlimited ? NC_UNLIMITED : to->field->shape[i],
                        &dimids[i]);
    if (rc == NC_NOERR)
        rc = nc_def_var(to->ncid, output->variable, output->type, (int) to->field->rank, dimids,
                        &to->varid);
    if (rc == NC_NOERR && to->field->land > 0)
        rc = nc_put_att_double(to->ncid, to->varid, "_FillValue", output->type, 1, &output->fill);
    if (rc == NC_NOERR && output->units != NULL)
        rc = nc_put_att_text(to->ncid, to->varid, "units", strlen(output->units), output->units);
    if (rc == NC_NOERR)
        rc = nc_put_att_text(to->ncid, NC_GLOBAL, "history", strlen(output->history),
                             output->history);
    if (rc == NC_NOERR)
        rc = nc_enddef(to->ncid);
    return netcdf_error(to, rc, "cannot define the variable of");
}

static esdm_status
set_text(esdm_attributes *list, const char *name, const char *text, esdm_error *err)
{
    return text == NULL ? ESDM_OK
                        : esdm_attribute_set(list, name, ESDM_TYPE_CHAR, strlen(text), text, err);
}

/* The fill value in the dataset's own type. */
static esdm_status
container_fill(sink *to)
{
    uint64_t own = 0;
    esdm_status status = esdm_convert(ESDM_TYPE_FLOAT64, &to->output->fill, to->output->type, &own,
                                      1, NULL, &to->err);
    if (status == ESDM_OK)
        status = esdm_dataset_set_fill(to->dataset, &own, &to->err);
    if (status == ESDM_OK)
        status = esdm_attribute_set(esdm_dataset_attributes(to->dataset), "_FillValue",
                                    to->output->type, 1, &own, &to->err);
    return status;
}

static esdm_status
container_begin(sink *to)
{
    const pattern_output *output = to->output;
    esdm_dimension *dimensions[PATTERN_RANK_MAX];
    esdm_status status = esdm_container_create(
        to->session, output->target, output->replace ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW,
        &to->container, &to->err);
    if (status != ESDM_OK)
        return status;
    esdm_group *root = esdm_container_root(to->container);
    for (uint32_t i = 0; i < to->field->rank && status == ESDM_OK; i++)
        status = esdm_dimension_create(root, output->dimensions[i],
                                       i == 0 && output->unlimited ? ESDM_UNLIMITED
                                                                   : to->field->shape[i],
                                       &dimensions[i], &to->err);
    if (status == ESDM_OK)
        status = esdm_dataset_create(root, output->variable, output->type, to->field->rank,
                                     dimensions, &to->dataset, &to->err);
    if (status == ESDM_OK && to->field->land > 0)
        status = container_fill(to);
    if (status == ESDM_OK)
        status = set_text(esdm_dataset_attributes(to->dataset), "units", output->units, &to->err);
    if (status == ESDM_OK)
        status = set_text(esdm_group_attributes(root), "history", output->history, &to->err);
    return status;
}

static esdm_status
put_slab(sink *to, const uint64_t *offset, const uint64_t *size, const double *values)
{
    if (to->output->is_container) {
        esdm_dataspace space;
        esdm_status status = esdm_dataspace_init(&space, to->field->rank, offset, size, &to->err);
        if (status == ESDM_OK)
            status = esdm_write(to->dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &to->err);
        return status;
    }
    size_t start[PATTERN_RANK_MAX], count[PATTERN_RANK_MAX];
    for (uint32_t i = 0; i < to->field->rank; i++) {
        start[i] = offset[i];
        count[i] = size[i];
    }
    int rc = nc_put_vara_double(to->ncid, to->varid, start, count, values);
    return netcdf_error(to, rc == NC_ERANGE ? NC_NOERR : rc, "cannot write to");
}

static esdm_status
finish(sink *to, esdm_status status)
{
    if (to->output->is_container) {
        if (status == ESDM_OK)
            status = esdm_container_close(to->container, &to->err);
        else
            esdm_container_discard(to->container);
        return status;
    }
    if (to->ncid >= 0) {
        int rc = nc_close(to->ncid);
        if (status == ESDM_OK)
            status = netcdf_error(to, rc, "cannot finish");
    }
    if (status == ESDM_OK && rename(to->temporary, to->output->target) != 0)
        status = tool_error_set(&to->err, ESDM_EIO, "cannot rename '%s' to '%s': %s", to->temporary,
                                to->output->target, g_strerror(errno));
    if (status != ESDM_OK && to->temporary != NULL)
        (void) unlink(to->temporary);
    g_free(to->temporary);
    return status;
}

/* ---- making it ---------------------------------------------------------------------------- */

/* Largest value of an integer type that is at least as large as what it holds; rounding instead
 * of cutting off, so that a range is used to its ends. */
static double
for_type(esdm_type type, double value)
{
    return type == ESDM_TYPE_FLOAT64   ? value
           : type == ESDM_TYPE_FLOAT32 ? (float) value
                                       : nearbyint(value);
}

/* Next index in C order within [offset, offset + size). */
static void
advance(uint32_t rank, const uint64_t *offset, const uint64_t *size, uint64_t *index)
{
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < offset[i] + size[i])
            return;
        index[i] = offset[i];
    }
}

static void
make_slab(const sink *to, const uint64_t *offset, const uint64_t *size, uint64_t count,
          double *values, pattern_summary *sum)
{
    uint64_t index[PATTERN_RANK_MAX];
    memcpy(index, offset, to->field->rank * sizeof *index);
    for (uint64_t i = 0; i < count; i++) {
        if (pattern_is_land(to->field, index)) {
            values[i] = to->output->fill;
            sum->masked++;
        } else {
            values[i] = for_type(to->output->type, pattern_value(to->field, index));
            sum->smallest = fmin(sum->smallest, values[i]);
            sum->largest = fmax(sum->largest, values[i]);
        }
        advance(to->field->rank, offset, size, index);
    }
    sum->values += count;
}

/* Slabs take whole fastest axes: `split` is the first axis of which a slab has more than one. */
static uint32_t
slab_shape(const pattern_field *field, uint64_t *size)
{
    uint64_t inner = 1;
    uint32_t split = field->rank;
    for (uint32_t i = 0; i < field->rank; i++)
        size[i] = 1;
    while (split > 0 && inner * field->shape[split - 1] <= SLAB_VALUES) {
        split--;
        size[split] = field->shape[split];
        inner *= field->shape[split];
    }
    if (split > 0)
        size[--split] = MAX(SLAB_VALUES / inner, 1);
    return split;
}

/* The next slab; false at the end. */
static bool
next_slab(const pattern_field *field, uint32_t split, uint64_t step, uint64_t *offset)
{
    for (uint32_t i = split + 1; i-- > 0;) {
        offset[i] += i == split ? step : 1;
        if (offset[i] < field->shape[i])
            return true;
        offset[i] = 0;
    }
    return false;
}

static esdm_status
write_slabs(sink *to, tool_progress *progress, pattern_summary *sum)
{
    const pattern_field *field = to->field;
    uint64_t offset[PATTERN_RANK_MAX] = {0}, size[PATTERN_RANK_MAX], most = 1, all = 1;
    uint32_t split = slab_shape(field, size);
    uint64_t step = size[split];
    for (uint32_t i = 0; i < field->rank; i++) {
        most *= size[i];
        all *= field->shape[i];
    }
    g_autofree double *values = g_try_new(double, most);
    if (values == NULL)
        return tool_error_set(&to->err, ESDM_ENOMEM, "out of memory for a slab");
    esdm_status status = ESDM_OK;
    do {
        size[split] = MIN(step, field->shape[split] - offset[split]);
        uint64_t count = most / step * size[split];
        make_slab(to, offset, size, count, values, sum);
        status = put_slab(to, offset, size, values);
        tool_progress_show(progress, (double) sum->values / (double) all, to->output->target);
    } while (status == ESDM_OK && next_slab(field, split, step, offset));
    return status;
}

tool_exit
pattern_write(const pattern_field *field, const pattern_output *output, tool_progress *progress,
              pattern_summary *ret_summary)
{
    sink to = {.field = field, .output = output, .ncid = -1};
    pattern_summary sum = {.smallest = NAN, .largest = NAN};
    if (output->is_container) {
        tool_exit opened = tool_session(false, &to.session);
        if (opened != TOOL_OK)
            return opened;
    }
    esdm_status status = output->is_container ? container_begin(&to) : file_begin(&to);
    if (status == ESDM_OK)
        status = write_slabs(&to, progress, &sum);
    tool_progress_end(progress);
    status = finish(&to, status);
    sum.bytes = sum.values * esdm_type_size(output->type);
    *ret_summary = sum;
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &to.err);
    esdm_session_close(to.session);
    return result;
}
