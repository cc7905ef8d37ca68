/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/weights.h"

#include <math.h>
#include <string.h>

#include "common/common.h"
#include "esdm-reduce/variable.h"

#define RADIANS (3.14159265358979323846 / 180)
/* A last cell that ends so near to a pole ends there. */
#define NEAR_POLE 88.0

/* ---- values -------------------------------------------------------------------------------- */

/* All values of a variable as they are stored; NULL after a failure. */
static double *
read_all(esdm_dataset *variable, uint64_t *ret_count, esdm_error *err)
{
    uint64_t n[ESDM_MAX_RANK];
    const uint64_t zero[ESDM_MAX_RANK] = {0};
    esdm_dataspace space;
    uint32_t rank = esdm_dataset_rank(variable);
    *ret_count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        n[d] = esdm_dimension_length(esdm_dataset_dimension(variable, d));
        if (__builtin_mul_overflow(*ret_count, n[d], ret_count))
            *ret_count = G_MAXUINT64;
    }
    double *values = *ret_count < G_MAXSIZE / sizeof *values
                         ? g_try_malloc0(((gsize) *ret_count + 1) * sizeof *values)
                         : NULL;
    if (values == NULL) {
        (void) tool_error_set(err, ESDM_ENOMEM, "'%s' does not fit into memory",
                              esdm_dataset_name(variable));
        return NULL;
    }
    if (esdm_dataspace_init(&space, rank, zero, n, err) != ESDM_OK ||
        esdm_read(variable, &space, ESDM_TYPE_FLOAT64, values, NULL, err) != ESDM_OK) {
        g_free(values);
        return NULL;
    }
    return values;
}

static bool
has_text(const esdm_dataset *variable, const char *name, const char *beginning)
{
    esdm_attribute a;
    size_t length = strlen(beginning);
    return esdm_attribute_find(esdm_dataset_attributes((esdm_dataset *) variable), name, &a,
                               NULL) &&
           a.type == ESDM_TYPE_CHAR && a.count >= length &&
           memcmp(a.values, beginning, length) == 0;
}

/* ---- cells --------------------------------------------------------------------------------- */

/* Lower and upper bounds of the cells of a coordinate, two for each, as the container has them;
 * NULL: it has none. */
static double *
stated_bounds(const esdm_dataset *coordinate, uint64_t count)
{
    esdm_attribute a;
    uint64_t n = 0;
    if (!esdm_attribute_find(esdm_dataset_attributes((esdm_dataset *) coordinate), "bounds", &a,
                             NULL) ||
        a.type != ESDM_TYPE_CHAR)
        return NULL;
    g_autofree char *name = g_strndup(a.values, (gsize) a.count);
    esdm_dataset *bounds = seen_from(coordinate, name);
    if (bounds == NULL || esdm_dataset_rank(bounds) != 2)
        return NULL;
    double *values = read_all(bounds, &n, NULL);
    bool right = values != NULL && n == 2 * count;
    for (uint64_t i = 0; i < n && right; i++)
        right = isfinite(values[i]) && fabs(values[i]) <= 720;
    if (right)
        return values;
    g_free(values);
    return NULL;
}

/* From the middles between neighbours; the outermost cells are as wide to both sides. */
static double *
middle_bounds(const double *values, uint64_t count)
{
    double *bounds = g_new(double, 2 * count);
    for (uint64_t i = 0; i + 1 < count; i++)
        bounds[2 * i + 1] = bounds[2 * i + 2] = (values[i] + values[i + 1]) / 2;
    bounds[0] = count > 1 ? 2 * values[0] - bounds[1] : values[0] - 0.5;
    bounds[2 * count - 1] =
        count > 1 ? 2 * values[count - 1] - bounds[2 * count - 2] : values[0] + 0.5;
    return bounds;
}

static double
at_pole(double latitude)
{
    return fabs(latitude) > NEAR_POLE ? copysign(90, latitude) : latitude;
}

static bool
is_monotonic(const double *values, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        if (!((values[i] > values[i - 1]) == (values[1] > values[0])) || values[i] == values[i - 1])
            return false;
    }
    return count > 0 && isfinite(values[0]) && isfinite(values[count - 1]);
}

/* Bounds of the cells along a coordinate; NULL: it is none of a regular grid. */
static double *
bounds_along(esdm_dataset *coordinate, bool latitude, uint64_t *ret_count, esdm_error *err)
{
    g_autofree double *values = read_all(coordinate, ret_count, err);
    uint64_t n = *ret_count;
    if (values == NULL)
        return NULL;
    for (uint64_t i = 1; i < n && !latitude; i++) /* across the date line */
        values[i] -= 360 * round((values[i] - values[i - 1]) / 360);
    if (!is_monotonic(values, n))
        return NULL;
    double *bounds = stated_bounds(coordinate, n);
    if (bounds == NULL) {
        bounds = middle_bounds(values, n);
        bounds[0] = latitude ? at_pole(bounds[0]) : bounds[0];
        bounds[2 * n - 1] = latitude ? at_pole(bounds[2 * n - 1]) : bounds[2 * n - 1];
    }
    return bounds;
}

/* The area between the equator and an edge of a cell, on the unit sphere, in radians; that of the
 * triangle between the edge and the pole is missing from a lune, where it is a great circle. */
static double
area_below(double latitude, double width, bool great_circle)
{
    if (!great_circle || width >= 180 * RADIANS)
        return width * sin(latitude * RADIANS);
    double t = tan((90 - fabs(latitude)) * RADIANS / 2);
    double cap = 2 * atan2(t * t * sin(width), 1 + t * t * cos(width));
    return copysign(width - cap, latitude);
}

/* Of two bounds of latitude and two of longitude. */
static double
area_of(const double *lat, const double *lon, bool great_circles)
{
    double width = fabs(lon[1] - lon[0]);
    if (width > 360) /* bounds on both sides of the date line */
        width = fabs(width - 360 * round(width / 360));
    return fabs(area_below(lat[1], width * RADIANS, great_circles) -
                area_below(lat[0], width * RADIANS, great_circles));
}

/* The axis that has such a coordinate, or the rank. */
static uint32_t
axis_of(const esdm_dataset *dataset, const char *units, const char *short_units,
        const char *standard_name, esdm_dataset **ret_coordinate)
{
    uint32_t rank = esdm_dataset_rank(dataset);
    for (uint32_t d = 0; d < rank; d++) {
        const esdm_dimension *dimension = esdm_dataset_dimension(dataset, d);
        esdm_dataset *found = seen_from(dataset, esdm_dimension_name(dimension));
        if (found == NULL || esdm_dataset_rank(found) != 1 ||
            esdm_dataset_dimension(found, 0) != dimension)
            continue;
        if (has_text(found, "units", units) || has_text(found, "units", short_units) ||
            has_text(found, "standard_name", standard_name)) {
            *ret_coordinate = found;
            return d;
        }
    }
    return rank;
}

esdm_status
weights_of_area(const esdm_dataset *dataset, bool great_circles, reduce_weights *ret,
                esdm_error *err)
{
    esdm_dataset *lat = NULL;
    esdm_dataset *lon = NULL;
    uint64_t nlat = 0;
    uint64_t nlon = 0;
    esdm_error own = {0};
    uint32_t rank = esdm_dataset_rank(dataset);
    uint32_t y = axis_of(dataset, "degrees_north", "degree_north", "latitude", &lat);
    uint32_t x = axis_of(dataset, "degrees_east", "degree_east", "longitude", &lon);
    g_autofree double *lats = y < rank ? bounds_along(lat, true, &nlat, &own) : NULL;
    g_autofree double *lons = x < rank ? bounds_along(lon, false, &nlon, &own) : NULL;
    if (own.status != ESDM_OK) {
        *err = own;
        return own.status;
    }
    if (lats == NULL || lons == NULL)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "'%s' lies on no grid with one latitude for each row and one "
                              "longitude for each column: give a variable with the areas of cells "
                              "(--weights NAME)",
                              esdm_dataset_name(dataset));
    ret->values = g_try_malloc((gsize) (nlat * nlon) * sizeof *ret->values);
    if (ret->values == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "the weights do not fit into memory");
    ret->axes[y] = ret->axes[x] = true;
    for (uint64_t i = 0; i < nlat * nlon; i++) {
        uint64_t j = y < x ? i / nlon : i % nlat;
        uint64_t k = y < x ? i % nlon : i / nlat;
        ret->values[i] = area_of(lats + 2 * j, lons + 2 * k, great_circles);
    }
    return ESDM_OK;
}

/* ---- variables ----------------------------------------------------------------------------- */

/* Whether the dimensions of a variable are some of the dataset's, in their order. */
static bool
choose_axes(const esdm_dataset *dataset, const esdm_dataset *variable, bool *ret_axes)
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < esdm_dataset_rank(dataset) && at < esdm_dataset_rank(variable); d++) {
        ret_axes[d] = esdm_dataset_dimension(dataset, d) == esdm_dataset_dimension(variable, at);
        at += ret_axes[d];
    }
    return at == esdm_dataset_rank(variable);
}

esdm_status
weights_of_variable(const esdm_dataset *dataset, esdm_dataset *variable, const char *name,
                    reduce_weights *ret, esdm_error *err)
{
    uint64_t count = 0;
    if (variable == NULL)
        return tool_error_set(err, ESDM_ENOENT, "there is no variable '%s' with weights", name);
    if (!choose_axes(dataset, variable, ret->axes))
        return tool_error_set(err, ESDM_EINVAL,
                              "the dimensions of '%s' are not some of those of '%s', in this order",
                              name, esdm_dataset_name(dataset));
    ret->values = read_all(variable, &count, err);
    if (ret->values == NULL)
        return err->status;
    double scale = stated_number(variable, "scale_factor", 1);
    double offset = stated_number(variable, "add_offset", 0);
    double fill = stated_number(variable, "_FillValue", (double) NAN);
    double missing = stated_number(variable, "missing_value", (double) NAN);
    for (uint64_t i = 0; i < count; i++) {
        double v = ret->values[i];
        bool is_missing = isnan(v) || v == fill || v == missing;
        ret->values[i] = is_missing ? 0 : v * scale + offset;
    }
    return ESDM_OK;
}
