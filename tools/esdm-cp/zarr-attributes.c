/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Attributes of Zarr, which are JSON, as attributes of NetCDF. */

#include "esdm-cp/zarr.h"

#include <math.h>
#include <string.h>

/* ---- numbers of any type -------------------------------------------------------------------- */

/* Whether all of a list can be of the type, bit for bit. @param to NULL: look only. */
#define CONVERT(TYPE, READ)                                                                        \
    for (size_t i = 0; i < n; i++) {                                                               \
        TYPE value = (TYPE) READ;                                                                  \
        if (to != NULL)                                                                            \
            memcpy((char *) to + i * sizeof value, &value, sizeof value);                          \
    }

static const json_t *
item(const json_t *list, size_t i)
{
    return json_is_array(list) ? json_array_get(list, i) : list;
}

static double
real_at(const json_t *list, size_t i)
{
    double value = 0;
    if (json_is_boolean(item(list, i)))
        return json_is_true(item(list, i)) ? 1 : 0;
    (void) zarr_json_real(item(list, i), 8, &value);
    return value;
}

static int64_t
whole_at(const json_t *list, size_t i)
{
    int64_t value = 0;
    bool is_unsigned;
    if (json_is_boolean(item(list, i)))
        return json_is_true(item(list, i)) ? 1 : 0;
    (void) zarr_json_integer(item(list, i), &value, &is_unsigned);
    return value;
}

static void *
values_of(const json_t *list, size_t n, const cp_type *type)
{
    void *to = g_malloc0(MAX(n * type->bytes, 1));
    switch (type->atomic) {
    case ESDM_TYPE_FLOAT32:
        CONVERT(float, real_at(list, i))
        break;
    case ESDM_TYPE_FLOAT64:
        CONVERT(double, real_at(list, i))
        break;
    case ESDM_TYPE_INT8:
    case ESDM_TYPE_UINT8:
        CONVERT(uint8_t, whole_at(list, i))
        break;
    case ESDM_TYPE_INT16:
    case ESDM_TYPE_UINT16:
        CONVERT(uint16_t, whole_at(list, i))
        break;
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_UINT32:
        CONVERT(uint32_t, whole_at(list, i))
        break;
    default:
        CONVERT(int64_t, whole_at(list, i))
        break;
    }
    return to;
}

/* @param rounded the nearest float will do, as a text rarely says one exactly. */
static bool
fits(const json_t *list, size_t n, esdm_type type, bool rounded)
{
    static const double least[] = {[ESDM_TYPE_INT8] = -128, [ESDM_TYPE_INT16] = -32768};
    static const double most[] = {[ESDM_TYPE_INT8] = 127,
                                  [ESDM_TYPE_INT16] = 32767,
                                  [ESDM_TYPE_UINT8] = 255,
                                  [ESDM_TYPE_UINT16] = 65535,
                                  [ESDM_TYPE_UINT32] = 4294967295.0};
    for (size_t i = 0; i < n; i++) {
        int64_t whole = 0;
        bool is_unsigned = false;
        double real = real_at(list, i);
        bool is_whole = zarr_json_integer(item(list, i), &whole, &is_unsigned);
        switch (type) {
        case ESDM_TYPE_FLOAT32:
            if (real == real && (rounded ? isinf((float) real) && !isinf(real)
                                         : (double) (float) real != real)) /* NaN fits */
                return false;
            break;
        case ESDM_TYPE_FLOAT64:
            break;
        case ESDM_TYPE_INT64:
        case ESDM_TYPE_UINT64:
            if (!is_whole || (type == ESDM_TYPE_INT64 ? is_unsigned : whole < 0 && !is_unsigned))
                return false;
            break;
        case ESDM_TYPE_INT32:
            if (!is_whole || is_unsigned || whole < INT32_MIN || whole > INT32_MAX)
                return false;
            break;
        default:
            if (!is_whole || is_unsigned || (double) whole < least[type] ||
                (double) whole > most[type])
                return false;
        }
    }
    return true;
}

/* Of one number or a list of such. */
static bool
are_numbers(const json_t *list, size_t n, bool *ret_whole, bool *ret_unsigned)
{
    *ret_whole = true;
    *ret_unsigned = false;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = item(list, i);
        int64_t value;
        bool is_unsigned = false;
        if (!zarr_json_is_number(one) && !json_is_boolean(one))
            return false;
        if (json_is_real(one) ||
            (!json_is_boolean(one) && !zarr_json_integer(one, &value, &is_unsigned)))
            *ret_whole = false;
        *ret_unsigned |= is_unsigned;
    }
    return n > 0;
}

/* These are compared with values of the variable, and have its type in NetCDF. */
static bool
is_of_the_variable(const char *name)
{
    static const char *const names[] = {"_FillValue",  "missing_value", "valid_min", "valid_max",
                                        "valid_range", "flag_values",   "flag_masks"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Values are compared with it bit for bit, and 1e20 is another number as a float. */
static bool
says_missing(const char *name)
{
    return strcmp(name, "_FillValue") == 0 || strcmp(name, "missing_value") == 0;
}

static void
add_numbers(GPtrArray *to, const char *name, const json_t *list, size_t n,
            const cp_dataset *dataset, bool whole, bool is_unsigned)
{
    esdm_type type = !whole ? ESDM_TYPE_FLOAT64 : is_unsigned ? ESDM_TYPE_UINT64 : ESDM_TYPE_INT64;
    if (type == ESDM_TYPE_INT64 && fits(list, n, ESDM_TYPE_INT32, false))
        type = ESDM_TYPE_INT32;
    if (dataset != NULL && is_of_the_variable(name) && dataset->type->atomic != ESDM_TYPE_CHAR &&
        dataset->type->atomic != ESDM_TYPE_STRING &&
        fits(list, n, dataset->type->atomic, says_missing(name)))
        type = dataset->type->atomic;
    const cp_type *of = cp_type_atomic(type);
    cp_attribute_add(to, name, of, n, values_of(list, n, of));
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void
add_text(GPtrArray *to, const char *name, const char *text)
{
    cp_attribute_add(to, name, cp_type_atomic(ESDM_TYPE_CHAR), strlen(text), g_strdup(text));
}

static bool
are_texts(const json_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (zarr_json_text(json_array_get(list, i)) == NULL)
            return false;
    }
    return n > 0;
}

static void
add_texts(GPtrArray *to, const char *name, const json_t *list, size_t n)
{
    char **texts = g_new0(char *, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = g_strdup(zarr_json_text(json_array_get(list, i)));
    cp_attribute_add(to, name, cp_type_atomic(ESDM_TYPE_STRING), n, texts);
}

/* xarray writes the _FillValue of floats as base64 of a double. */
static bool
add_fill(GPtrArray *to, const json_t *value, const cp_dataset *dataset)
{
    const char *text = zarr_json_text(value);
    gsize n = 0;
    double real = 0;
    if (text == NULL ||
        (dataset->type->atomic != ESDM_TYPE_FLOAT32 && dataset->type->atomic != ESDM_TYPE_FLOAT64))
        return false;
    if (!zarr_json_real(value, dataset->type->bytes, &real)) {
        g_autofree guchar *bytes = g_base64_decode(text, &n);
        if (n != sizeof real)
            return false;
        memcpy(&real, bytes, sizeof real);
    }
    void *fill = g_malloc0(sizeof real);
    float single = (float) real;
    if (dataset->type->bytes == sizeof single)
        memcpy(fill, &single, sizeof single);
    else
        memcpy(fill, &real, sizeof real);
    cp_attribute_add(to, "_FillValue", dataset->type, 1, fill);
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* What others keep there for themselves. */
static bool
is_hidden(const char *name)
{
    return strcmp(name, "_ARRAY_DIMENSIONS") == 0 || g_ascii_strncasecmp(name, "_nczarr", 7) == 0;
}

static void
add_attribute(GPtrArray *to, const char *name, const json_t *value, const cp_dataset *dataset)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    bool whole, is_unsigned;
    const char *text = zarr_json_text(value);
    if (strcmp(name, "_FillValue") == 0 && dataset != NULL && add_fill(to, value, dataset))
        return;
    if (text != NULL)
        add_text(to, name, text);
    else if (are_numbers(value, n, &whole, &is_unsigned))
        add_numbers(to, name, value, n, dataset, whole, is_unsigned);
    else if (json_is_array(value) && are_texts(value, n))
        add_texts(to, name, value, n);
    else if (!json_is_null(value)) {
        char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        add_text(to, name, dump != NULL ? dump : "");
        free(dump);
    }
}

void
cp_zarr_attributes(const json_t *attributes, const cp_dataset *dataset, GPtrArray *to)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *) (uintptr_t) attributes, name, value)
    {
        if (!is_hidden(name))
            add_attribute(to, name, value, dataset);
    }
}
