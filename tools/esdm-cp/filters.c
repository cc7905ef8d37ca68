/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Compression of NetCDF files that are the target of a copy: what the source had, or what was asked
 * for. */

#include "esdm-cp/netcdf.h"

#include <netcdf.h>
#include <netcdf_filter.h>
#include <string.h>

#include "h5filter/h5filter.h"

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, SZIP = 4, BZIP2 = 307, BLOSC = 32001 };
enum { ZSTD = 32015 };

static const struct {
    unsigned id;
    const char *name;
} known[] = {{DEFLATE, "deflate"},  {SHUFFLE, "shuffle"}, {FLETCHER32, "fletcher32"},
             {SZIP, "szip"},        {BZIP2, "bzip2"},     {BLOSC, "blosc"},
             {ZSTD, "zstd"},        {32000, "lzf"},       {32004, "lz4"},
             {32008, "bitshuffle"}, {32013, "zfp"},       {ESDM_H5FILTER, "esdm"}};

bool
cp_filters_asked(void)
{
    return cp_wants.deflate != CP_LEVEL_NONE || cp_wants.zstd != CP_LEVEL_NONE ||
           cp_wants.keep_codecs;
}

/* "zstd", or "filter 4711" */
static char *
filter_name(unsigned id)
{
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (known[i].id == id)
            return g_strdup(known[i].name);
    }
    return g_strdup_printf("filter %u", id);
}

static bool
has_filter(const char *filters, unsigned id)
{
    g_auto(GStrv) list = g_strsplit(filters != NULL ? filters : "", ";", -1);
    for (char **filter = list; *filter != NULL; filter++) {
        if (**filter != '\0' && g_ascii_strtoull(*filter, NULL, 10) == id)
            return true;
    }
    return false;
}

/* HDF5 cannot filter what varies in size, and a single value has no chunks. */
static bool
can_be_filtered(const cp_dataset *dataset)
{
    return dataset->rank > 0 && !dataset->type->varies;
}

/* ---- what was asked for ------------------------------------------------------------------- */

static void
choose(cp_dataset *dataset)
{
    g_autoptr(GString) text = g_string_new(NULL);
    bool fletcher32 = has_filter(dataset->filters, FLETCHER32);
    int level = cp_wants.deflate != CP_LEVEL_NONE ? cp_wants.deflate : cp_wants.zstd;
    if (level > 0 && dataset->type->bytes > 1)
        g_string_append_printf(text, "%d;", SHUFFLE);
    if (level > 0)
        g_string_append_printf(text, "%d,%d;", cp_wants.zstd != CP_LEVEL_NONE ? ZSTD : DEFLATE,
                               level);
    if (fletcher32)
        g_string_append_printf(text, "%d;", FLETCHER32);
    if (text->len > 0)
        g_string_truncate(text, text->len - 1);
    g_free(dataset->filters);
    dataset->filters = text->len > 0 ? g_strdup(text->str) : NULL;
    /* Contiguous storage has no filters: netCDF chooses chunks. */
    if (level > 0 && dataset->storage != NULL && !g_str_equal(dataset->storage, "chunked")) {
        g_free(dataset->storage);
        dataset->storage = NULL;
    }
}

esdm_status
cp_filters_choose(const cp_end *end, cp_model *model, esdm_error *err)
{
    if (!cp_filters_asked() || cp_wants.keep_codecs) /* of the model already */
        return ESDM_OK;
    if (cp_wants.zstd != CP_LEVEL_NONE && nc_inq_filter_avail(end->ncid, ZSTD) != NC_NOERR)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "%s: this libnetcdf has no filter zstd: set HDF5_PLUGIN_PATH to the "
                              "folder that has it, or use --deflate",
                              end->name);
    for (guint i = 0; i < model->datasets->len; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if (can_be_filtered(dataset))
            choose(dataset);
    }
    return ESDM_OK;
}

/* ---- setting them ------------------------------------------------------------------------- */

/* Takes note of a filter that the file will not have. */
static void
note_left_out(cp_left_out *left_out, unsigned id)
{
    g_autofree char *name = filter_name(id);
    g_auto(GStrv) names = g_strsplit(left_out->names, ", ", -1);
    if (g_strv_contains((const char *const *) names, name))
        return;
    if (left_out->names[0] != '\0')
        (void) g_strlcat(left_out->names, ", ", sizeof left_out->names);
    (void) g_strlcat(left_out->names, name, sizeof left_out->names);
}

static int
put_filter(const cp_dataset *dataset, const char *text, bool *ret_missing)
{
    g_auto(GStrv) numbers = g_strsplit(text, ",", -1);
    size_t count = g_strv_length(numbers);
    g_autofree unsigned *values = g_new0(unsigned, count + 1);
    for (size_t i = 0; i < count; i++)
        values[i] = (unsigned) g_ascii_strtoull(numbers[i], NULL, 10);
    *ret_missing = nc_inq_filter_avail(dataset->to.ncid, values[0]) != NC_NOERR;
    if (*ret_missing)
        return NC_NOERR;
    int rc =
        nc_def_var_filter(dataset->to.ncid, dataset->to.varid, values[0], count - 1, values + 1);
    return dataset->type->varies ? NC_NOERR : rc;
}

int
cp_filters_put(const cp_dataset *dataset, bool is_hdf5, cp_left_out *left_out)
{
    if (dataset->filters == NULL || dataset->rank == 0)
        return NC_NOERR;
    bool any = false;
    int rc = NC_NOERR;
    g_auto(GStrv) filters = g_strsplit(dataset->filters, ";", -1);
    for (char **filter = filters; *filter != NULL && rc == NC_NOERR; filter++) {
        bool missing = !is_hdf5;
        if (**filter == '\0')
            continue;
        if (is_hdf5)
            rc = put_filter(dataset, *filter, &missing);
        if (missing)
            note_left_out(left_out, (unsigned) g_ascii_strtoull(*filter, NULL, 10));
        any |= missing;
    }
    left_out->datasets += any;
    return rc;
}
