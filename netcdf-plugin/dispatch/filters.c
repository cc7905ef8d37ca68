/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Filters of a variable. They are kept and reported as HDF5 has them; of what they do, ESDM does
 * its own: every fragment has a checksum, and a filter that compresses asks for a lossless chain.
 */

#include "storage.h"

#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SZIP_MASKS 38u /* of the options, those that HDF5 does not set by itself */

/* One filter in the text of the hint. */
typedef struct entry {
    unsigned id;
    size_t count;       /* of parameters */
    const char *begin;  /* of the entry */
    const char *params; /* ",P,P" */
    const char *end;    /* behind the entry */
} entry;

#define OLD_TEXT_BYTES 16

/* The list as text; `buffer` (OLD_TEXT_BYTES) serves for containers of version 0.1. */
static const char *
filters_text(const esdmnc_var *var, char *buffer)
{
    const char *text = esdm_dataset_hint(var->dataset, ESDMNC_HINT_FILTERS);
    if (text != NULL)
        return text;
    const char *deflate = esdm_dataset_hint(var->dataset, ESDMNC_HINT_DEFLATE);
    bool check = esdm_dataset_hint(var->dataset, ESDMNC_HINT_CHECK) != NULL;
    bool known = deflate != NULL && deflate[0] != '\0' && deflate[1] == ' ';
    char level = known && deflate[2] >= '1' && deflate[2] <= '9' ? deflate[2] : '0';
    const char *const entries[] = {check ? "3" : "", known && deflate[0] == '1' ? "2" : "",
                                   level != '0' ? "1," : ""};
    char *at = buffer;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) { /* each is short */
        if (entries[i][0] != '\0' && at > buffer)
            *at++ = ';';
        at = stpcpy(at, entries[i]);
    }
    if (level != '0')
        *at++ = level;
    *at = '\0';
    return buffer;
}

/* The entry at *at, which moves on. false at the end of the list. */
static bool
next_entry(const char **at, entry *ret)
{
    const char *text = *at;
    if (*text == '\0')
        return false;
    char *end;
    *ret = (entry){.begin = text, .id = (unsigned) strtoul(text, &end, 10), .params = end};
    for (text = end; *text != '\0' && *text != ';'; text++)
        ret->count += *text == ',';
    ret->end = text;
    *at = *text == ';' ? text + 1 : text;
    return true;
}

static bool
find_entry(const char *text, unsigned id, entry *ret)
{
    while (next_entry(&text, ret))
        if (ret->id == id)
            return true;
    return false;
}

static unsigned
param_of(const entry *e, size_t index)
{
    const char *at = e->params;
    for (size_t i = 0; i < index; i++)
        at = strchr(at + 1, ',');
    return (unsigned) strtoul(at + 1, NULL, 10);
}

bool
esdmnc_has_filters(const esdmnc_var *var)
{
    char buffer[OLD_TEXT_BYTES];
    return filters_text(var, buffer)[0] != '\0';
}

bool
esdmnc_has_filter(const esdmnc_var *var, unsigned filter)
{
    char buffer[OLD_TEXT_BYTES];
    entry e;
    return find_entry(filters_text(var, buffer), filter, &e);
}

/* ---- adding --------------------------------------------------------------------------------- */

/* "ID,P,P"; NULL when out of memory. */
static char *
print_entry(unsigned id, size_t count, const unsigned *params)
{
    const size_t number = sizeof "4294967295";
    char *text = count < SIZE_MAX / number - 1 ? malloc((count + 1) * number) : NULL;
    if (text == NULL)
        return NULL;
    int length = sprintf(text, "%u", id);
    for (size_t i = 0; i < count; i++)
        length += sprintf(text + length, ",%u", params[i]);
    return text;
}

/* Where a filter goes that is not there yet: fletcher32 first, shuffle next, others last. */
static const char *
place_of(const char *text, unsigned id)
{
    entry first;
    const char *next = text;
    bool any = next_entry(&next, &first);
    if (!any || (id != ESDMNC_FILTER_FLETCHER32 && id != ESDMNC_FILTER_SHUFFLE))
        return text + strlen(text);
    return id == ESDMNC_FILTER_SHUFFLE && first.id == ESDMNC_FILTER_FLETCHER32 ? next : text;
}

/* Adds a filter, or replaces its parameters. */
static int
add_filter(const esdmnc_file *file, esdmnc_var *var, unsigned id, size_t count,
           const unsigned *params)
{
    if (count > 0 && params == NULL)
        return NC_EINVAL;
    char buffer[OLD_TEXT_BYTES];
    const char *old = filters_text(var, buffer);
    entry e;
    char *added = print_entry(id, count, params);
    char *text = NULL;
    int bytes = -1;
    if (added != NULL && find_entry(old, id, &e)) {
        bytes = asprintf(&text, "%.*s%s%s", (int) (e.begin - old), old, added, e.end);
    } else if (added != NULL) {
        const char *at = place_of(old, id);
        const char *before = at > old && at[-1] != ';' ? ";" : "";
        bytes = asprintf(&text, "%.*s%s%s%s%s", (int) (at - old), old, before, added,
                         *at != '\0' ? ";" : "", at);
    }
    free(added);
    if (bytes < 0)
        return NC_ENOMEM;
    int rc = esdmnc_set_hint(file, var, ESDMNC_HINT_FILTERS, text);
    free(text);
    if (rc == NC_NOERR && esdmnc_comm(file) != NULL)
        var->collective = true; /* as netCDF-4 does, though here it need not stay so */
    return rc;
}

/* Whether somebody who sets the filter wants less to be stored. Those that are not known do
 * something that only the program knows; most compress. */
static bool
is_compression(unsigned id, size_t count, const unsigned *params)
{
    if (id == ESDMNC_FILTER_DEFLATE)
        return count > 0 && params[0] > 0;
    return id != ESDMNC_FILTER_SHUFFLE && id != ESDMNC_FILTER_FLETCHER32;
}

/* A variable's values have the same size each. */
static bool
is_fixed_size(const esdmnc_file *file, const esdmnc_var *var)
{
    bool is_fixed = false;
    return esdmnc_type_is_fixed(file, var->type, &is_fixed) == NC_NOERR && is_fixed;
}

static int
available(int instance, unsigned filter)
{
    int (*is_available)(int);
    /* > 0 when HDF5 has the filter */
    void *of_hdf5 = esdmnc_library_symbol(instance, "H5Zfilter_avail");
    if (of_hdf5 == NULL)
        return filter >= ESDMNC_FILTER_DEFLATE && filter <= ESDMNC_FILTER_SZIP ? NC_NOERR
                                                                               : NC_ENOFILTER;
    memcpy(&is_available, &of_hdf5, sizeof is_available);
    int found = is_available((int) filter);
    return found < 0 ? NC_EHDFERR : found == 0 ? NC_ENOFILTER : NC_NOERR;
}

/* What is checked of a filter that the variable does not have yet. */
static int
check_new(const esdmnc_var *var, unsigned id, size_t count, const unsigned *params)
{
    if (id == ESDMNC_FILTER_DEFLATE) {
        if (count != 1)
            return NC_EFILTER;
        if (params == NULL || params[0] > NC_MAX_DEFLATE_LEVEL)
            return NC_EINVAL;
        return esdmnc_has_filter(var, ESDMNC_FILTER_SZIP) ? NC_EINVAL : NC_NOERR;
    }
    if (id == ESDMNC_FILTER_SZIP) {
        if (count != 2)
            return NC_EFILTER;
        if (params == NULL || params[1] % 2 != 0 || params[1] > 32)
            return NC_EINVAL;
        return esdmnc_has_filter(var, ESDMNC_FILTER_DEFLATE) ? NC_EINVAL : NC_NOERR;
    }
    return NC_NOERR;
}

/* szip's blocks must not be larger than the variable. */
static int
check_szip_block(const esdmnc_var *var, unsigned pixels)
{
    size_t elements = 1;
    for (uint32_t i = 0; i < var->rank; i++) {
        uint64_t length = esdm_dimension_length(var->axes[i].dimension);
        elements *= length > 0 ? length : 1;
    }
    return pixels > elements ? NC_EINVAL : NC_NOERR;
}

int
esdmnc_def_var_filter(esdmnc_id id, int varid, unsigned filter, size_t count,
                      const unsigned *params)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return NC_ENOTVAR == rc || NC_EGLOBAL == rc ? NC_ENOTVAR : rc;
    if (!is_fixed_size(file, var))
        return NC_EFILTER;
    if (esdmnc_is_nc3(file))
        return NC_ENOTNC4;
    if (!atomic_load(&file->indef))
        return NC_EINDEFINE;
    if (var->rank == 0)
        return NC_EINVAL;
    if (var->created)
        return NC_ELATEDEF;
    rc = available(file->instance, filter);
    if (rc == NC_NOERR && !esdmnc_has_filter(var, filter)) {
        rc = check_new(var, filter, count, params);
        if (rc == NC_NOERR)
            rc = esdmnc_storage_set_kind(file, var, NC_CHUNKED);
    }
    if (rc == NC_NOERR && filter == ESDMNC_FILTER_SZIP)
        rc = check_szip_block(var, count > 1 && params != NULL ? params[1] : 0);
    if (rc == NC_NOERR)
        rc = add_filter(file, var, filter, count, params);
    if (rc != NC_NOERR || !is_compression(filter, count, params))
        return rc;
    return esdmnc_accuracy_compress(file, var, filter == ESDMNC_FILTER_DEFLATE ? params[0] : 0);
}

int
esdmnc_def_var_deflate(esdmnc_id id, int varid, int shuffle, int deflate, int level)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = esdmnc_find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (shuffle != 0) {
        rc = var->rank == 0 ? NC_EINVAL
                            : esdmnc_def_var_filter(id, varid, ESDMNC_FILTER_SHUFFLE, 0, NULL);
        if (rc != NC_NOERR)
            return rc;
    }
    esdmnc_cache_adjust(file, var);
    if (deflate == 0 || level == 0) /* level 0 would be slower and larger than no filter */
        return NC_NOERR;
    return esdmnc_def_var_filter(id, varid, ESDMNC_FILTER_DEFLATE, 1,
                                 (unsigned[]){(unsigned) level});
}

int
esdmnc_def_var_fletcher32(esdmnc_id id, int varid, int fletcher32)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = esdmnc_find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    if (var->rank == 0 && fletcher32 != 0)
        return NC_EINVAL;
    /* netCDF-C sets it whatever the argument. */
    rc = esdmnc_def_var_filter(id, varid, ESDMNC_FILTER_FLETCHER32, 0, NULL);
    if (rc == NC_NOERR)
        esdmnc_cache_adjust(file, var);
    return rc;
}

/* ---- what HDF5 says when it creates the dataset --------------------------------------------- */

static uint64_t
chunk_elements(const esdmnc_var *var)
{
    size_t shape[ESDM_MAX_RANK];
    uint64_t elements = 1;
    esdmnc_chunks_get(var, shape);
    for (uint32_t i = 0; i < var->rank; i++)
        elements *= shape[i];
    return elements;
}

int
esdmnc_filters_check(const esdmnc_var *var)
{
    char buffer[OLD_TEXT_BYTES];
    const char *at = filters_text(var, buffer);
    bool cannot_create = false;
    entry e;
    while (next_entry(&at, &e)) {
        if (e.id == ESDMNC_FILTER_DEFLATE && (e.count != 1 || param_of(&e, 0) > 9))
            return NC_EFILTER;
        if (e.id != ESDMNC_FILTER_SZIP)
            continue;
        if (e.count != 2 || param_of(&e, 1) % 2 != 0 || param_of(&e, 1) > 32)
            return NC_EFILTER;
        cannot_create |= var->type == NC_CHAR || param_of(&e, 1) > chunk_elements(var);
    }
    return cannot_create ? NC_EHDFERR : NC_NOERR;
}

/* ---- inquiry -------------------------------------------------------------------------------- */

int
esdmnc_inq_var_filter_ids(esdmnc_id id, int varid, size_t *ret_count, unsigned *ret_filters)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file)) { /* which does not look at the variable */
        if (ret_count != NULL)
            *ret_count = 0;
        return NC_NOERR;
    }
    rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    char buffer[OLD_TEXT_BYTES];
    const char *at = filters_text(var, buffer);
    size_t count = 0;
    for (entry e; next_entry(&at, &e); count++)
        if (ret_filters != NULL)
            ret_filters[count] = e.id;
    if (ret_count != NULL)
        *ret_count = count;
    return NC_NOERR;
}

/* Parameter `index` of a filter, or of what HDF5 made of it when the dataset was created. */
static unsigned
told_param(const esdmnc_var *var, const entry *e, size_t index)
{
    if (var->stored && e->id == ESDMNC_FILTER_SHUFFLE)
        return (unsigned) var->bytes;
    unsigned value = param_of(e, index);
    if (var->stored && e->id == ESDMNC_FILTER_SZIP && index == 0)
        return value & SZIP_MASKS & ~2u;
    if (var->stored && e->id == ESDMNC_FILTER_BLOSC && index < 4) {
        size_t bytes = var->bytes;
        const unsigned local[] = {2, 2, bytes > 255 ? 1 : (unsigned) bytes,
                                  (unsigned) (bytes * chunk_elements(var))};
        return local[index];
    }
    return value;
}

int
esdmnc_inq_var_filter_info(esdmnc_id id, int varid, unsigned filter, size_t *ret_count,
                           unsigned *ret_params)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && esdmnc_is_nc3(file))
        return NC_ENOFILTER;
    if (rc == NC_NOERR)
        rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    char buffer[OLD_TEXT_BYTES];
    entry e;
    if (!find_entry(filters_text(var, buffer), filter, &e))
        return NC_ENOFILTER;
    if (var->stored && filter == ESDMNC_FILTER_FLETCHER32)
        e.count = 0; /* whatever was said */
    if (var->stored && filter == ESDMNC_FILTER_SHUFFLE)
        e.count = 1; /* HDF5 notes the size of the elements */
    if (ret_count != NULL)
        *ret_count = e.count;
    for (size_t i = 0; ret_params != NULL && i < e.count; i++)
        ret_params[i] = told_param(var, &e, i);
    return NC_NOERR;
}

int
esdmnc_inq_filter_avail(esdmnc_id id, unsigned filter)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    return esdmnc_is_nc3(file) ? NC_ENOFILTER : available(file->instance, filter);
}
