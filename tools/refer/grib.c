/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the messages of a GRIB file are, by ecCodes. */

#include "refer/grib.h"

#include <eccodes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/common.h"
#include "refer/grib_guard.h"
#include "refer/remote.h"

#define MESSAGE_BYTES_MAX (UINT64_C(1) << 33)
#define POINTS_MAX        (UINT64_C(1) << 31)

typedef struct looking {
    gribs_file *file;
    gribs_index *index;
    GHashTable *known; /* numbers of a parameter as text → gribs_parameter */
    esdm_error *err;
} looking;

static esdm_status
wrong(const looking *l, uint64_t position, esdm_status status, const char *what)
{
    return tool_error_set(l->err, status, "%s: message at byte %" G_GUINT64_FORMAT ": %s",
                          l->file->path, (guint64) position, what);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static long
number(codes_handle *h, const char *key, long otherwise)
{
    long value = otherwise;
    return codes_get_long(h, key, &value) == CODES_SUCCESS ? value : otherwise;
}

/* owned; NULL: there is none, or "unknown". */
static char *
text(codes_handle *h, const char *key)
{
    char value[512] = "";
    size_t n = sizeof value;
    if (codes_get_string(h, key, value, &n) != CODES_SUCCESS || value[0] == '\0' ||
        strcmp(value, "unknown") == 0 || strcmp(value, "~") == 0)
        return NULL;
    return g_strdup(value);
}

/* "m s**-1" becomes "m s-1", which udunits takes as well. */
static char *
units(codes_handle *h)
{
    char *value = text(h, "units");
    if (value == NULL || g_str_has_prefix(value, "Code table") || value[0] == '(') {
        g_free(value);
        return NULL;
    }
    g_auto(GStrv) parts = g_strsplit(value, "**", -1);
    g_free(value);
    return g_strjoinv("", parts);
}

static void
free_parameter(gpointer data)
{
    gribs_parameter *p = data;
    g_free(p->name);
    g_free(p->short_name);
    g_free(p->long_name);
    g_free(p->standard_name);
    g_free(p->units);
    g_free(p->step_type);
    g_free(p->level_type);
    g_free(p);
}

/* Numbers alone: names are looked up once for each of these. */
static char *
identity_of(codes_handle *h)
{
    static const char *const keys[] = {"editionNumber",
                                       "centre",
                                       "subCentre",
                                       "tablesVersion",
                                       "localTablesVersion",
                                       "discipline",
                                       "parameterCategory",
                                       "parameterNumber",
                                       "productDefinitionTemplateNumber",
                                       "typeOfStatisticalProcessing",
                                       "indicatorOfUnitForTimeRange",
                                       "lengthOfTimeRange",
                                       "typeOfGeneratingProcess",
                                       "aerosolType",
                                       "typeOfSizeInterval",
                                       "sourceSinkChemicalPhysicalProcess",
                                       "scaledValueOfFirstWavelength",
                                       "probabilityType",
                                       "typeOfFirstFixedSurface",
                                       "typeOfSecondFixedSurface",
                                       "scaleFactorOfFirstFixedSurface",
                                       "scaledValueOfFirstFixedSurface",
                                       "constituentType",
                                       "table2Version",
                                       "indicatorOfParameter",
                                       "indicatorOfTypeOfLevel",
                                       "timeRangeIndicator",
                                       "level"};
    GString *all = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        g_string_append_printf(all, "%ld ", number(h, keys[i], -1));
    return g_string_free(all, FALSE);
}

static bool
is_the_same(const gribs_parameter *a, const gribs_parameter *b)
{
    return a->id == b->id && g_strcmp0(a->name, b->name) == 0 &&
           g_strcmp0(a->level_type, b->level_type) == 0 &&
           g_strcmp0(a->step_type, b->step_type) == 0 && g_strcmp0(a->units, b->units) == 0;
}

static const gribs_parameter *
parameter_of(looking *l, codes_handle *h)
{
    g_autofree char *identity = identity_of(h);
    gribs_parameter *known = g_hash_table_lookup(l->known, identity);
    if (known != NULL)
        return known;
    gribs_parameter *p = g_new0(gribs_parameter, 1);
    p->name = text(h, "cfVarName");
    p->short_name = text(h, "shortName");
    p->long_name = text(h, "name");
    p->standard_name = text(h, "cfName");
    p->units = units(h);
    p->step_type = text(h, "stepType");
    p->level_type = text(h, "typeOfLevel");
    p->id = number(h, "paramId", 0);
    if (p->name == NULL && p->short_name != NULL)
        p->name = g_strdup(p->short_name);
    if (p->name == NULL)
        p->name = p->id != 0 ? g_strdup_printf("param%ld", p->id)
                             : g_strdup_printf("param%ld.%ld.%ld", number(h, "discipline", 0),
                                               number(h, "parameterCategory", 0),
                                               number(h, "parameterNumber",
                                                      number(h, "indicatorOfParameter", 0)));
    for (guint i = 0; i < l->index->parameters->len && known == NULL; i++) {
        gribs_parameter *other = g_ptr_array_index(l->index->parameters, i);
        known = is_the_same(other, p) ? other : NULL;
    }
    if (known != NULL)
        free_parameter(p);
    else
        g_ptr_array_add(l->index->parameters, known = p);
    g_hash_table_insert(l->known, g_steal_pointer(&identity), known);
    return known;
}

static bool
scaled(codes_handle *h, const char *factor_key, const char *value_key, double *ret)
{
    long factor = number(h, factor_key, CODES_MISSING_LONG);
    long value = number(h, value_key, CODES_MISSING_LONG);
    if (factor == CODES_MISSING_LONG || value == CODES_MISSING_LONG || factor == 255)
        return false;
    *ret = factor >= 0 ? (double) value / pow(10, (double) factor)
                       : (double) value * pow(10, (double) -factor);
    return true;
}

/* What edition 1 counts levels in, in the unit of their axis. */
static double
unit_of(const gribs_parameter *p, codes_handle *h)
{
    long type = number(h, "indicatorOfTypeOfLevel", -1);
    if (type == 100 || type == 101) /* hPa; layers of it: kPa */
        return type == 100 ? 100 : 1000;
    if (type == 104 || type == 106) /* layers, in hm */
        return 100;
    if (type == 111 || type == 112) /* cm */
        return 0.01;
    return g_strcmp0(p->level_type, "isobaricInhPa") == 0 ? 100 : 1;
}

/* Pa, m, or the number of the level. */
static void
level_of(codes_handle *h, gribs_message *m)
{
    const gribs_parameter *p = m->parameter;
    double unit = unit_of(p, h);
    bool layer = p->level_type != NULL && g_str_has_suffix(p->level_type, "Layer");
    m->level = (double) number(h, "level", 0) * unit;
    m->level_end = NAN;
    if (m->place.edition == 2) {
        bool found = scaled(h, "scaleFactorOfFirstFixedSurface", "scaledValueOfFirstFixedSurface",
                            &m->level);
        if (found && number(h, "typeOfSecondFixedSurface", 255) != 255)
            (void) scaled(h, "scaleFactorOfSecondFixedSurface", "scaledValueOfSecondFixedSurface",
                          &m->level_end);
    } else if (layer) {
        m->level = (double) number(h, "topLevel", 0) * unit;
        m->level_end = (double) number(h, "bottomLevel", 0) * unit;
    }
}

/* ---- hybrid levels -------------------------------------------------------------------------- */

/* 32,767 is what edition 2 has numbers for. */
#define COEFFICIENTS_MAX 65536u

static void
free_hybrid(gpointer data)
{
    gribs_hybrid *hybrid = data;
    g_free(hybrid->a);
    g_free(hybrid);
}

/* All of a, then all of b. */
static const gribs_hybrid *
hybrid_of(looking *l, codes_handle *h, const gribs_parameter *p)
{
    size_t n = 0;
    if (p->level_type == NULL || !g_str_has_prefix(p->level_type, "hybrid") ||
        codes_get_size(h, "pv", &n) != CODES_SUCCESS || n < 4 || n % 2 != 0 || n > COEFFICIENTS_MAX)
        return NULL;
    g_autofree double *values = g_new0(double, n);
    if (codes_get_double_array(h, "pv", values, &n) != CODES_SUCCESS)
        return NULL;
    for (guint i = 0; i < l->index->hybrids->len; i++) {
        const gribs_hybrid *known = g_ptr_array_index(l->index->hybrids, i);
        if (known->interfaces == n / 2 && memcmp(known->a, values, n * sizeof *values) == 0)
            return known;
    }
    gribs_hybrid *made = g_new0(gribs_hybrid, 1);
    made->interfaces = n / 2;
    made->a = g_steal_pointer(&values);
    made->b = made->a + n / 2;
    g_ptr_array_add(l->index->hybrids, made);
    return made;
}

/* ---- times ---------------------------------------------------------------------------------- */

/* Steps beyond a century are none. */
#define STEP_MOST_S 3600000000

/* Where the period of a sum, a mean, … begins. Steps are told in seconds.
 * @param end_s the valid time. */
static int64_t
begin_of(codes_handle *h, int64_t end_s)
{
    long first = number(h, "startStep", G_MAXLONG), last = number(h, "endStep", G_MINLONG);
    if (last <= first || last > STEP_MOST_S || first < -STEP_MOST_S)
        return end_s;
    return end_s - (int64_t) (last - first);
}

static bool
instant(long date, long time, int64_t *ret_s)
{
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) t =
        g_date_time_new(utc, (int) (date / 10000), (int) (date / 100 % 100), (int) (date % 100),
                        (int) (time / 100), (int) (time % 100), 0);
    if (t != NULL)
        *ret_s = g_date_time_to_unix(t);
    return t != NULL;
}

/* ---- grids ---------------------------------------------------------------------------------- */

static void
free_grid(gpointer data)
{
    gribs_grid *g = data;
    g_free(g->digest);
    g_free(g->type);
    g_free(g->latitudes);
    g_free(g->longitudes);
    g_free(g);
}

static double *
coordinates(codes_handle *h, const char *key, size_t points)
{
    size_t n = 0;
    if (codes_get_size(h, key, &n) != CODES_SUCCESS || n != points)
        return NULL;
    double *values = g_new(double, n);
    if (codes_get_double_array(h, key, values, &n) == CODES_SUCCESS && n == points)
        return values;
    g_free(values);
    return NULL;
}

/* Of all points, to those of rows and columns. */
static void
thin_out(gribs_grid *g)
{
    uint64_t rows = g->shape[0], columns = g->shape[1];
    double *latitudes = g_new(double, rows), *longitudes = g_new(double, columns);
    for (uint64_t j = 0; j < rows; j++)
        latitudes[j] = g->latitudes[j * columns];
    for (uint64_t i = 0; i < columns; i++)
        longitudes[i] = g->longitudes[i];
    g_free(g->latitudes);
    g_free(g->longitudes);
    g->latitudes = latitudes;
    g->longitudes = longitudes;
}

static const char *
describe_grid(codes_handle *h, gribs_grid *g)
{
    long points = number(h, "numberOfDataPoints", number(h, "numberOfPoints", 0));
    long columns = number(h, "Ni", number(h, "Nx", -1)),
         rows = number(h, "Nj", number(h, "Ny", -1));
    bool reduced = g_str_has_prefix(g->type, "reduced_");
    g->regular = strcmp(g->type, "regular_ll") == 0 || strcmp(g->type, "regular_gg") == 0;
    if (number(h, "jPointsAreConsecutive", 0) != 0 || number(h, "alternativeRowScanning", 0) != 0)
        return "its points are scanned in columns or in turns";
    if (points <= 0 || (uint64_t) points > POINTS_MAX)
        return "its grid has no points (spectral fields are not known)";
    g->rank = reduced || columns <= 0 || rows <= 0 || columns == CODES_MISSING_LONG ? 1 : 2;
    g->shape[0] = g->rank == 1 ? (uint64_t) points : (uint64_t) rows;
    g->shape[1] = (uint64_t) columns;
    if (g->rank == 2 && rows * columns != points)
        return "its rows and columns contradict its number of points";
    g->latitudes = coordinates(h, "latitudes", (size_t) points);
    g->longitudes = coordinates(h, "longitudes", (size_t) points);
    if (g->latitudes == NULL || g->longitudes == NULL)
        return "ecCodes does not know where its points lie";
    if (g->regular && g->rank == 2)
        thin_out(g);
    g->regular &= g->rank == 2;
    return NULL;
}

static esdm_status
grid_of(looking *l, codes_handle *h, const uint8_t *section, size_t bytes, const gribs_place *place,
        const gribs_grid **ret)
{
    g_autofree char *digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, section, bytes);
    for (guint i = 0; i < l->index->grids->len; i++) {
        const gribs_grid *known = g_ptr_array_index(l->index->grids, i);
        if (g_str_equal(known->digest, digest)) {
            *ret = known;
            return ESDM_OK;
        }
    }
    gribs_grid *g = g_new0(gribs_grid, 1);
    g->digest = g_steal_pointer(&digest);
    g->type = text(h, "gridType");
    const char *why = g->type != NULL ? describe_grid(h, g) : "its grid is unknown";
    if (why != NULL) {
        free_grid(g);
        return wrong(l, place->position, ESDM_ENOTSUP, why);
    }
    g_ptr_array_add(l->index->grids, g);
    *ret = g;
    return ESDM_OK;
}

/* ---- messages ------------------------------------------------------------------------------- */

static esdm_status
describe(looking *l, codes_handle *h, gribs_message *m)
{
    m->parameter = parameter_of(l, h);
    level_of(h, m);
    m->hybrid = hybrid_of(l, h, m->parameter);
    m->member = number(h, "perturbationNumber", -1);
    m->members = number(h, "numberOfForecastsInEnsemble", -1);
    m->ensemble = number(h, "typeOfEnsembleForecast", -1);
    if (!instant(number(h, "validityDate", 0), number(h, "validityTime", 0), &m->time_s) ||
        !instant(number(h, "dataDate", 0), number(h, "dataTime", 0), &m->reference_s))
        return wrong(l, m->place.position, ESDM_ENOTSUP, "its time is no date of this calendar");
    /* ecCodes tells times by the minute, and steps in hours, which fails where they are none. */
    long second = number(h, "second", 0) % 60;
    long end = number(h, "secondOfEndOfOverallTimeInterval", -1);
    if (codes_set_long(h, "stepUnits", 13) == CODES_SUCCESS) {
        m->time_s += end >= 0 ? end % 60 : second + number(h, "endStep", 0) % 60;
        m->reference_s += second;
        m->begin_s = begin_of(h, m->time_s);
    } else {
        m->begin_s = m->time_s;
    }
    if (l->index->centre == NULL)
        l->index->centre = text(h, "centreDescription");
    return ESDM_OK;
}

static esdm_status
unread(const looking *l, uint64_t position)
{
    const esdm_error *why = l->file->remote != NULL ? remote_failure() : NULL;
    if (why == NULL)
        return wrong(l, position, ESDM_EIO, "it cannot be read");
    *l->err = *why;
    return why->status;
}

/* A field, by a message of its own without data. */
static esdm_status
look_at_field(looking *l, const gribs_walk *walk, gribs_message *m)
{
    g_autofree uint8_t *message = NULL;
    size_t bytes = 0;
    if (!gribs_empty_message(walk, &message, &bytes))
        return unread(l, m->place.position);
    gribs_guard(l->file->path, m->place.position);
    codes_handle *h = codes_handle_new_from_message(NULL, message, bytes);
    if (h == NULL) {
        gribs_guard(NULL, 0);
        return wrong(l, m->place.position, ESDM_ECORRUPT, "ecCodes cannot read it");
    }
    uint64_t before =
        m->place.edition == 1
            ? 8 + walk->field.bytes[1]
            : 16 + walk->field.bytes[1] + (walk->field.at[2] != 0 ? walk->field.bytes[2] : 0);
    esdm_status status = describe(l, h, m);
    if (status == ESDM_OK)
        status =
            grid_of(l, h, message + before, (size_t) walk->field.bytes[3], &m->place, &m->grid);
    (void) codes_handle_delete(h);
    gribs_guard(NULL, 0);
    m->field = walk->fields - 1;
    if (status == ESDM_OK)
        g_array_append_val(l->index->messages, *m);
    return status;
}

/* A message: of a file it is in memory, of an object it is read where it is wanted. */
typedef struct bytes_of {
    gribs_file *file;
    uint64_t position;
    const uint8_t *data;
} bytes_of;

static bool
read_bytes(void *message, uint64_t position, void *to, size_t bytes)
{
    const bytes_of *of = message;
    if (of->data == NULL)
        return gribs_file_read(of->file, of->position + position, to, bytes, false);
    memcpy(to, of->data + position, bytes);
    return true;
}

static esdm_status
look_at(looking *l, const gribs_place *place)
{
    gribs_message m = {.place = *place};
    guint first = l->index->messages->len;
    g_autofree uint8_t *data = NULL;
    bytes_of of = {.file = l->file, .position = place->position};
    gribs_walk walk = {.place = place, .read = read_bytes, .message = &of};
    if (place->bytes > l->file->bytes - place->position || place->bytes > MESSAGE_BYTES_MAX)
        return wrong(l, place->position, ESDM_ECORRUPT, "the file was cut off, or it is damaged");
    if (l->file->remote == NULL) {
        of.data = data = g_malloc(place->bytes);
        if (!gribs_file_read(l->file, place->position, data, place->bytes, true))
            return unread(l, place->position);
        if (memcmp(data + place->bytes - 4, "7777", 4) != 0)
            return wrong(l, place->position, ESDM_ECORRUPT, "its end is missing");
        m.checksum = XXH3_64bits(data, place->bytes);
    } else {
        gribs_file_expect(l->file, place->bytes);
    }
    esdm_status status = ESDM_OK;
    gribs_step step = GRIBS_END;
    while (status == ESDM_OK && (step = gribs_next(&walk)) == GRIBS_FIELD)
        status = look_at_field(l, &walk, &m);
    if (status == ESDM_OK && step == GRIBS_UNREAD)
        status = unread(l, place->position);
    if (status == ESDM_OK && step == GRIBS_DAMAGED)
        status =
            wrong(l, place->position, ESDM_ECORRUPT, "it is damaged, or has no grid of its own");
    for (guint i = first; i < l->index->messages->len; i++)
        g_array_index(l->index->messages, gribs_message, i).fields = walk.fields;
    return status;
}

/* Adds to the error where messages begin again. */
static esdm_status
damaged(const looking *l, uint64_t position)
{
    gribs_place next = {0};
    g_autofree char *what = g_strdup(l->err->message);
    if (l->file->remote != NULL)
        return l->err->status;
    if (!gribs_find_behind(l->file, position + 1, &next))
        return tool_error_set(l->err, ESDM_ECORRUPT,
                              "%s; no whole message is behind it. Get the file again, or refer to "
                              "what is whole: head -c %" G_GUINT64_FORMAT,
                              what, (guint64) position);
    return tool_error_set(l->err, ESDM_ECORRUPT,
                          "%s; the next whole message is at byte %" G_GUINT64_FORMAT
                          ". Get the file again, or refer to what is whole: head -c "
                          "%" G_GUINT64_FORMAT ", tail -c +%" G_GUINT64_FORMAT,
                          what, (guint64) next.position, (guint64) position,
                          (guint64) next.position + 1);
}

static esdm_status
look_at_all(looking *l)
{
    gribs_place place = {0};
    gribs_found found = GRIBS_NO_MORE;
    uint64_t position = 0;
    while ((found = gribs_find(l->file, &position, &place)) == GRIBS_MESSAGE) {
        esdm_status status = look_at(l, &place);
        if (status != ESDM_OK)
            return status == ESDM_ECORRUPT ? damaged(l, position) : status;
        position += place.bytes;
    }
    if (found == GRIBS_FAILED)
        return unread(l, position);
    if (found == GRIBS_NO_MORE)
        return ESDM_OK;
    (void) tool_error_set(l->err, ESDM_ECORRUPT,
                          "%s: at byte %" G_GUINT64_FORMAT " begins what is no message, and more "
                          "than padding",
                          l->file->path, (guint64) position);
    return damaged(l, position);
}

/* Without them ecCodes ends the process when it is asked for anything. The codec "grib" asks the
 * same. */
static esdm_status
need_definitions(const gribs_file *file, esdm_error *err)
{
    const char *path = codes_definition_path(NULL);
    g_auto(GStrv) folders = g_strsplit(path != NULL ? path : "", ":", -1);
    for (char **folder = folders; *folder != NULL; folder++) {
        g_autofree char *boot = g_build_filename(*folder, "boot.def", NULL);
        /* Some libraries have them inside, under a path that no file has. */
        if (g_str_has_prefix(*folder, "/MEMFS") || access(boot, R_OK) == 0)
            return ESDM_OK;
    }
    return tool_error_set(err, ESDM_ENOTSUP,
                          "%s: ecCodes has no definitions of GRIB: there is no boot.def in %s. "
                          "Install them (Debian: libeccodes-data), or say where they are by "
                          "ECCODES_DEFINITION_PATH",
                          file->path, path);
}

esdm_status
gribs_index_new(gribs_file *file, gribs_index **ret, esdm_error *err)
{
    esdm_status able = need_definitions(file, err);
    if (able != ESDM_OK)
        return able;
    gribs_index *index = g_new0(gribs_index, 1);
    index->parameters = g_ptr_array_new_with_free_func(free_parameter);
    index->grids = g_ptr_array_new_with_free_func(free_grid);
    index->hybrids = g_ptr_array_new_with_free_func(free_hybrid);
    index->messages = g_array_new(FALSE, FALSE, sizeof(gribs_message));
    looking l = {.file = file,
                 .index = index,
                 .known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                 .err = err};
    gribs_guard_begin();
    esdm_status status = look_at_all(&l);
    gribs_guard_end();
    if (status == ESDM_OK && index->messages->len == 0)
        status = tool_error_set(err, ESDM_EINVAL, "%s: there is no message of GRIB", file->path);
    g_hash_table_unref(l.known);
    if (status == ESDM_OK)
        *ret = index;
    else
        gribs_index_free(index);
    return status;
}

void
gribs_index_free(gribs_index *index)
{
    if (index == NULL)
        return;
    g_ptr_array_unref(index->parameters);
    g_ptr_array_unref(index->grids);
    g_ptr_array_unref(index->hybrids);
    g_array_unref(index->messages);
    g_free(index->centre);
    g_free(index);
}
