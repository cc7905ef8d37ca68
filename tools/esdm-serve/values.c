/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Values of a box for pictures: float32 or float64, little-endian, C order; missing ones are NaN.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-serve/esdm-serve.h"

/* "1,2,3". false: it is not of that form, or has another number of them. */
static bool
parse(const char *text, uint32_t rank, uint64_t *ret)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    if (rank == 0)
        return text[0] == '\0';
    if (g_strv_length(parts) != rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        guint64 value;
        if (!g_ascii_string_to_unsigned(parts[i], 10, 0, G_MAXUINT64, &value, NULL))
            return false;
        ret[i] = value;
    }
    return true;
}

static bool
parse_box(const serve_request *request, const esdm_dataset *dataset, uint64_t *start,
          uint64_t *count, uint64_t *stride)
{
    uint32_t rank = esdm_dataset_rank(dataset);
    const char *starts = serve_parameter(request, "start");
    const char *counts = serve_parameter(request, "count");
    const char *strides = serve_parameter(request, "stride");
    for (uint32_t i = 0; i < rank; i++) {
        start[i] = 0;
        count[i] = esdm_dimension_length(esdm_dataset_dimension(dataset, i));
        stride[i] = 1;
    }
    return (starts == NULL || parse(starts, rank, start)) &&
           (counts == NULL || parse(counts, rank, count)) &&
           (strides == NULL || parse(strides, rank, stride));
}

/* Whether the box is in the dataset, and no more than one may ask for. */
static const char *
objection(const esdm_dataset *dataset, const uint64_t *start, const uint64_t *count,
          const uint64_t *stride, uint64_t *ret_elements)
{
    uint64_t elements = 1, read = esdm_type_size(esdm_dataset_type(dataset));
    for (uint32_t i = 0; i < esdm_dataset_rank(dataset); i++) {
        uint64_t length = esdm_dimension_length(esdm_dataset_dimension(dataset, i)), extent = 0;
        if (stride[i] == 0 || count[i] == 0)
            return "counts and strides are 1 or more";
        if (__builtin_mul_overflow(count[i] - 1, stride[i], &extent) || extent >= length ||
            start[i] >= length - extent)
            return "the box is not in the variable";
        elements *= count[i]; /* no more than was checked the last time */
        if (elements > SERVE_MOST_ELEMENTS || __builtin_mul_overflow(read, extent + 1, &read) ||
            read > SERVE_MOST_READ)
            return "too many values: ask for fewer, or with a stride";
    }
    *ret_elements = elements;
    return NULL;
}

/* 2^8 for bytes whose readers take -1 for 255 (_Unsigned), …; 0: numbers are what they are. */
static double
turn_of(esdm_dataset *dataset)
{
    esdm_attribute a;
    esdm_type type = esdm_dataset_type(dataset);
    if ((type != ESDM_TYPE_INT8 && type != ESDM_TYPE_INT16 && type != ESDM_TYPE_INT32 &&
         type != ESDM_TYPE_INT64) ||
        !esdm_attribute_find(esdm_dataset_attributes(dataset), "_Unsigned", &a, NULL) ||
        a.type != ESDM_TYPE_CHAR || a.count != 4 || g_ascii_strncasecmp(a.values, "true", 4) != 0)
        return 0;
    return ldexp(1, (int) esdm_type_size(type) * 8);
}

/* The values that mean that there is none, as numbers. */
static size_t
missing_values(esdm_dataset *dataset, double *missing, size_t most)
{
    static const char *const names[] = {"_FillValue", "missing_value"};
    size_t count = 0;
    bool is_default = true;
    esdm_type type = esdm_dataset_type(dataset);
    const void *fill = esdm_dataset_fill(dataset, &is_default);
    if (esdm_type_size(type) > 1 || !is_default) { /* all bytes are values */
        if (esdm_convert(type, fill, ESDM_TYPE_FLOAT64, &missing[count], 1, NULL, NULL) == ESDM_OK)
            count++;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        esdm_attribute a;
        if (!esdm_attribute_find(esdm_dataset_attributes(dataset), names[i], &a, NULL) ||
            a.type == ESDM_TYPE_CHAR || a.type >= ESDM_TYPE_STRING)
            continue;
        uint64_t taken = MIN(a.count, most - count);
        if (esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, &missing[count], taken, NULL, NULL) ==
            ESDM_OK)
            count += taken;
    }
    return count;
}

static double
number_of(esdm_dataset *dataset, const char *name, double otherwise)
{
    esdm_attribute a;
    double value = otherwise;
    if (esdm_attribute_find(esdm_dataset_attributes(dataset), name, &a, NULL) && a.count == 1 &&
        a.type != ESDM_TYPE_CHAR && a.type < ESDM_TYPE_STRING &&
        esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, &value, 1, NULL, NULL) == ESDM_OK)
        return value;
    return otherwise;
}

/* In place: each float lies before the double that comes after it. */
static void
unpack(esdm_dataset *dataset, uint64_t elements, double *values, bool as_doubles)
{
    double missing[16];
    size_t count = missing_values(dataset, missing, G_N_ELEMENTS(missing));
    double scale = number_of(dataset, "scale_factor", 1),
           offset = number_of(dataset, "add_offset", 0), turn = turn_of(dataset);
    bool is_float = esdm_dataset_type(dataset) == ESDM_TYPE_FLOAT32;
    char *out = (char *) values;
    for (size_t k = 0; k < count; k++)
        missing[k] += missing[k] < 0 ? turn : 0;
    for (uint64_t i = 0; i < elements; i++) {
        double value = values[i] + (values[i] < 0 ? turn : 0);
        bool none = false;
        for (size_t k = 0; k < count; k++) {
            float a = (float) value, b = (float) missing[k];
            none |= is_float ? memcmp(&a, &b, sizeof a) == 0
                             : memcmp(&value, &missing[k], sizeof value) == 0;
        }
        double number = none ? NAN : value * scale + offset;
        float told = (float) number;
        if (as_doubles)
            values[i] = number;
        else
            memcpy(out + i * sizeof told, &told, sizeof told);
    }
}

static esdm_status
read_box(esdm_dataset *dataset, const uint64_t *start, const uint64_t *count,
         const uint64_t *stride, double *values, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, esdm_dataset_rank(dataset), start, count, err);
    if (status == ESDM_OK)
        status = esdm_dataspace_set_stride(&space, stride, err);
    return status == ESDM_OK ? esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, err)
                             : status;
}

static serve_result
answer(serve_request *request, esdm_dataset *dataset)
{
    uint64_t start[ESDM_MAX_RANK], count[ESDM_MAX_RANK], stride[ESDM_MAX_RANK], elements = 0;
    esdm_error err = {0};
    esdm_type type = esdm_dataset_type(dataset);
    if (type == ESDM_TYPE_CHAR || type >= ESDM_TYPE_STRING)
        return serve_error(request, MHD_HTTP_BAD_REQUEST, "its values are no numbers");
    if (!parse_box(request, dataset, start, count, stride))
        return serve_error(request, MHD_HTTP_BAD_REQUEST,
                           "start, count and stride are numbers with commas between them, one for "
                           "each dimension");
    const char *form = serve_parameter(request, "type");
    bool as_doubles = form != NULL && g_str_equal(form, "double");
    if (form != NULL && !as_doubles && !g_str_equal(form, "float"))
        return serve_error(request, MHD_HTTP_BAD_REQUEST, "type is float or double");
    const char *wrong = objection(dataset, start, count, stride, &elements);
    if (wrong != NULL)
        return serve_error(request, MHD_HTTP_BAD_REQUEST, wrong);
    double *values = malloc(elements * sizeof *values);
    if (values == NULL)
        return serve_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for that many values");
    esdm_status status = read_box(dataset, start, count, stride, values, &err);
    if (status != ESDM_OK) {
        free(values);
        return serve_failed(request, status, &err);
    }
    unpack(dataset, elements, values, as_doubles);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        elements * (as_doubles ? sizeof(double) : sizeof(float)), values, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(values);
        return MHD_NO;
    }
    (void) MHD_add_response_header(response, "Content-Type", "application/octet-stream");
    return serve_reply(request, MHD_HTTP_OK, response);
}

serve_result
serve_values(serve_request *request)
{
    serve_result result = MHD_NO;
    const char *variable = serve_parameter(request, "variable");
    esdm_container *container = serve_open(request, &result);
    if (container == NULL)
        return result;
    esdm_dataset *dataset = variable != NULL ? serve_dataset(container, variable) : NULL;
    result = dataset != NULL
                 ? answer(request, dataset)
                 : serve_error(request, MHD_HTTP_NOT_FOUND, "there is no such variable");
    esdm_container_discard(container);
    return result;
}
