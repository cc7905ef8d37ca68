/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reads a centre's file: every key is known, every number makes sense, errors tell the path.
 */

#include "cost/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 1e30

typedef struct reader {
    const char *file;
    esdm_error *err;
} reader;

/* ---- errors --------------------------------------------------------------------------------- */

static bool G_GNUC_PRINTF(3, 4) wrong(const reader *r, const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    (void) tool_error_set(r->err, ESDM_EINVAL, "%s: %s: %s", r->file,
                          *path == '\0' ? "the file" : path, text);
    return false;
}

static char *
below(const char *path, const char *key)
{
    return g_strdup_printf("%s%s%s", path, *path != '\0' ? "." : "", key);
}

/* An object of known keys alone; "about" is for people. */
static bool
is_object(const reader *r, const json_t *value, const char *path, const char *const *keys)
{
    const char *key;
    json_t *member;
    if (!json_is_object(value))
        return wrong(r, path, "expected an object { }");
    json_object_foreach((json_t *) value, key, member)
    {
        const char *nearest = NULL;
        guint most = 0;
        bool known = g_str_equal(key, "about");
        for (const char *const *k = keys; *k != NULL && !known; k++) {
            known = g_str_equal(key, *k);
            guint likeness = tool_likeness(key, *k);
            nearest = likeness > most ? *k : nearest;
            most = MAX(most, likeness);
        }
        if (!known)
            return wrong(r, path, "there is no key '%s'%s%s%s", key,
                         nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                         nearest != NULL ? "'?" : "");
    }
    return true;
}

/* ---- numbers -------------------------------------------------------------------------------- */

typedef struct range {
    double lowest, highest;
    bool above; /* lowest itself is too low */
} range;

static const range positive = {0, LARGEST, true}, not_negative = {0, LARGEST, false},
                   lives = {COST_SHORTEST_LIFE, LARGEST, false}, share = {0, 1, true};

static bool
check(const reader *r, const char *path, double value, const range *allowed)
{
    if (value > allowed->lowest && value <= allowed->highest)
        return true;
    if (!allowed->above && value >= allowed->lowest && value <= allowed->highest)
        return true;
    return wrong(r, path, "%g is not %s %g%s", value, allowed->above ? "above" : "at least",
                 allowed->lowest, allowed->highest < LARGEST ? " and at most 1" : "");
}

/* A number that may be left out when `required` is false: *ret keeps what it has then. */
static bool
number(const reader *r, const json_t *object, const char *parent, const char *key, bool required,
       const range *allowed, double *ret)
{
    g_autofree char *path = below(parent, key);
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return !required || wrong(r, path, "is missing");
    if (!json_is_number(value))
        return wrong(r, path, "expected a number");
    *ret = json_number_value(value);
    return check(r, path, *ret, allowed);
}

static bool
text(const reader *r, const json_t *object, const char *parent, const char *key, bool required,
     char **ret)
{
    g_autofree char *path = below(parent, key);
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return !required || wrong(r, path, "is missing");
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wrong(r, path, "expected a text");
    g_free(*ret);
    *ret = g_strdup(json_string_value(value));
    return true;
}

/* ---- numbers of years ----------------------------------------------------------------------- */

static gint
by_year(gconstpointer a, gconstpointer b)
{
    return tool_by_number(&((const cost_point *) a)->year, &((const cost_point *) b)->year);
}

static bool
is_year(const char *key, double *ret_year)
{
    char *end = NULL;
    *ret_year = g_ascii_strtod(key, &end);
    return end != key && *end == '\0' && *ret_year > 1900 && *ret_year < 3000;
}

/* {"year": 2020, "value": 5, "growth": 1.3} */
static bool
growing(const reader *r, const json_t *object, const char *path, const range *allowed,
        cost_series *ret)
{
    static const char *const keys[] = {"year", "value", "growth", NULL};
    cost_point point = {0};
    const range years = {1900, 3000, true}, growths = {0, 1000, true};
    if (!is_object(r, object, path, keys) ||
        !number(r, object, path, "year", true, &years, &point.year) ||
        !number(r, object, path, "value", true, allowed, &point.value) ||
        !number(r, object, path, "growth", true, &growths, &ret->growth))
        return false;
    g_array_append_val(ret->points, point);
    return true;
}

/* {"2020": 5, "2025": 8} */
static bool
by_years(const reader *r, const json_t *object, const char *path, const range *allowed,
         cost_series *ret)
{
    const char *key;
    json_t *member;
    json_object_foreach((json_t *) object, key, member)
    {
        g_autofree char *inner = below(path, key);
        cost_point point = {.value = json_number_value(member)};
        if (!is_year(key, &point.year))
            return wrong(r, path,
                         "'%s' is no year; expected a number, {\"2020\": …, \"2025\": …} or "
                         "{\"year\": …, \"value\": …, \"growth\": …}",
                         key);
        if (!json_is_number(member))
            return wrong(r, inner, "expected a number");
        if (!check(r, inner, point.value, allowed))
            return false;
        g_array_append_val(ret->points, point);
    }
    g_array_sort(ret->points, by_year);
    return ret->points->len > 0 || wrong(r, path, "has no year");
}

static bool
series(const reader *r, const json_t *object, const char *parent, const char *key, bool required,
       const range *allowed, cost_series *ret)
{
    g_autofree char *path = below(parent, key);
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return !required || wrong(r, path, "is missing");
    ret->points = g_array_new(FALSE, FALSE, sizeof(cost_point));
    if (json_is_object(value))
        return json_object_get(value, "growth") != NULL || json_object_get(value, "value") != NULL
                   ? growing(r, value, path, allowed, ret)
                   : by_years(r, value, path, allowed, ret);
    if (!json_is_number(value))
        return wrong(r, path, "expected a number, or an object with numbers of years");
    cost_point point = {.value = json_number_value(value)};
    g_array_append_val(ret->points, point);
    return check(r, path, point.value, allowed);
}

/* ---- resources ------------------------------------------------------------------------------ */

/* @param capacity key of its capacity; NULL: it has none. @param more keys that the caller reads.
 */
static bool
resource(const reader *r, const json_t *root, const char *parent, const char *key,
         const char *capacity, bool moves, const char *const *more, cost_resource *ret)
{
    const char *keys[16] = {"purchase", "life_years", "power_kw", "upkeep_per_year", "utilisation"};
    gsize n = 5;
    g_autofree char *path = below(parent, key);
    const json_t *object = json_object_get(root, key);
    if (capacity != NULL)
        keys[n++] = capacity;
    if (moves)
        keys[n++] = "throughput_gb_per_s";
    for (; more != NULL && *more != NULL; more++)
        keys[n++] = *more;
    ret->utilisation = 1;
    ret->copies = 1;
    if (object == NULL)
        return wrong(r, path, "is missing");
    return is_object(r, object, path, keys) &&
           series(r, object, path, "purchase", true, &not_negative, &ret->purchase) &&
           series(r, object, path, "life_years", true, &lives, &ret->life_years) &&
           series(r, object, path, "power_kw", false, &not_negative, &ret->power_kw) &&
           series(r, object, path, "upkeep_per_year", false, &not_negative,
                  &ret->upkeep_per_year) &&
           number(r, object, path, "utilisation", false, &share, &ret->utilisation) &&
           (capacity == NULL ||
            series(r, object, path, capacity, true, &positive, &ret->capacity)) &&
           (!moves || series(r, object, path, "throughput_gb_per_s", capacity == NULL, &positive,
                             &ret->throughput));
}

static bool
copies(const reader *r, const json_t *root, const char *key, cost_resource *ret)
{
    static const range counts = {1, 100, false};
    const json_t *object = json_object_get(root, key);
    return number(r, object, key, "copies", false, &counts, &ret->copies);
}

static bool
computing(const reader *r, const json_t *root, cost_centre *centre)
{
    static const char *const more[] = {"measure", "node", NULL};
    const json_t *object = json_object_get(root, "computing");
    return resource(r, root, "", "computing", "capacity", false, more, &centre->computing) &&
           text(r, object, "computing", "measure", false, &centre->measure) &&
           series(r, object, "computing", "node", false, &positive, &centre->node);
}

static bool
places(const reader *r, const json_t *root, cost_centre *centre)
{
    static const char *const on_disk[] = {"copies", NULL}, *const on_tape[] = {"copies", "drives",
                                                                               NULL};
    const json_t *archive = json_object_get(root, "archive");
    centre->has_metadata = json_object_get(root, "metadata") != NULL;
    centre->has_archive = archive != NULL;
    centre->has_drives = json_object_get(archive, "drives") != NULL;
    return resource(r, root, "", "storage", "capacity_tb", true, on_disk, &centre->storage) &&
           copies(r, root, "storage", &centre->storage) &&
           (!centre->has_metadata ||
            resource(r, root, "", "metadata", "capacity_files", false, NULL, &centre->metadata)) &&
           (archive == NULL ||
            (resource(r, root, "", "archive", "capacity_tb", false, on_tape, &centre->archive) &&
             copies(r, root, "archive", &centre->archive))) &&
           (!centre->has_drives ||
            resource(r, archive, "archive", "drives", NULL, true, NULL, &centre->drives));
}

/* ---- techniques ----------------------------------------------------------------------------- */

static bool
compression(const reader *r, const json_t *object, const char *path, cost_centre *centre)
{
    static const char *const keys[] = {"name", "share", "write_mb_per_s", "read_mb_per_s", NULL};
    cost_compression *c = g_new0(cost_compression, 1);
    g_ptr_array_add(centre->compressions, c);
    bool speeds = json_object_get(object, "write_mb_per_s") != NULL ||
                  json_object_get(object, "read_mb_per_s") != NULL;
    if (speeds && centre->node.points == NULL)
        return wrong(r, "computing.node", "is missing: speeds of compression are those of a node");
    return is_object(r, object, path, keys) && text(r, object, path, "name", true, &c->name) &&
           number(r, object, path, "share", true, &positive, &c->share) &&
           series(r, object, path, "write_mb_per_s", false, &positive, &c->write_mb_per_s) &&
           series(r, object, path, "read_mb_per_s", false, &positive, &c->read_mb_per_s);
}

static bool
deduplication(const reader *r, const json_t *root, cost_centre *centre)
{
    static const char *const keys[] = {"share", "block_bytes", "entry_bytes", "memory", NULL};
    const char *path = "deduplication";
    const json_t *object = json_object_get(root, path);
    centre->has_deduplication = object != NULL;
    return object == NULL ||
           (is_object(r, object, path, keys) &&
            number(r, object, path, "share", true, &share, &centre->duplicate_share) &&
            number(r, object, path, "block_bytes", true, &positive, &centre->block_bytes) &&
            number(r, object, path, "entry_bytes", true, &not_negative, &centre->entry_bytes) &&
            resource(r, object, path, "memory", "capacity_tb", false, NULL, &centre->memory));
}

static bool
one_case(const reader *r, const json_t *object, const char *path, cost_centre *centre)
{
    static const char *const keys[] = {"name",         "work_hours",    "volume_tb", "files",
                                       "online_years", "archive_years", "transfers", "keep_years",
                                       "readings",     "read_share",    NULL};
    cost_case *one = g_new0(cost_case, 1);
    g_ptr_array_add(centre->cases, one);
    const range years = {0, 1000, false};
    one->read_share = 1;
    if (!is_object(r, object, path, keys) || !text(r, object, path, "name", true, &one->name) ||
        !number(r, object, path, "work_hours", true, &positive, &one->work_hours) ||
        !number(r, object, path, "volume_tb", true, &positive, &one->volume_tb) ||
        !number(r, object, path, "files", false, &not_negative, &one->files) ||
        !number(r, object, path, "online_years", true, &years, &one->online_years) ||
        !number(r, object, path, "archive_years", false, &years, &one->archive_years) ||
        !number(r, object, path, "transfers", false, &not_negative, &one->transfers))
        return false;
    if (one->archive_years > 0 && !centre->has_archive)
        return wrong(r, path, "archive_years is %g, but the centre has no 'archive'",
                     one->archive_years);
    one->keep_years = fmax(one->online_years, one->archive_years);
    return number(r, object, path, "keep_years", false, &years, &one->keep_years) &&
           number(r, object, path, "readings", false, &not_negative, &one->readings) &&
           number(r, object, path, "read_share", false, &share, &one->read_share);
}

static bool
list(const reader *r, const json_t *root, const char *key, cost_centre *centre,
     bool (*read)(const reader *r, const json_t *object, const char *path, cost_centre *centre))
{
    size_t i;
    const json_t *one, *all = json_object_get(root, key);
    if (all != NULL && !json_is_array(all))
        return wrong(r, key, "expected a list [ ]");
    json_array_foreach(all, i, one)
    {
        g_autofree char *path = g_strdup_printf("%s[%zu]", key, i);
        if (!read(r, one, path, centre))
            return false;
    }
    return true;
}

/* ---- the file ------------------------------------------------------------------------------- */

static bool
years_of_tables(const reader *r, const json_t *root, cost_centre *centre)
{
    size_t i;
    const json_t *one, *all = json_object_get(root, "years");
    json_array_foreach(all, i, one)
    {
        double year = json_number_value(one);
        if (!(year > 1900 && year < 3000))
            return wrong(r, "years", "expected years such as 2025");
        g_array_append_val(centre->years, year);
    }
    return centre->years->len > 0 || wrong(r, "years", "expected a list of years, [2020, 2025]");
}

static bool
read_root(const reader *r, const json_t *root, cost_centre *centre)
{
    static const char *const keys[] = {"currency",    "unit",          "years",    "energy",
                                       "computing",   "storage",       "metadata", "archive",
                                       "compression", "deduplication", "cases",    NULL};
    static const char *const energy[] = {"price_per_kwh", NULL};
    const json_t *prices = json_object_get(root, "energy");
    return is_object(r, root, "", keys) &&
           text(r, root, "", "currency", false, &centre->currency) &&
           number(r, root, "", "unit", false, &positive, &centre->unit) &&
           years_of_tables(r, root, centre) &&
           (prices == NULL ||
            (is_object(r, prices, "energy", energy) &&
             series(r, prices, "energy", "price_per_kwh", true, &not_negative, &centre->energy))) &&
           computing(r, root, centre) && places(r, root, centre) &&
           list(r, root, "compression", centre, compression) && deduplication(r, root, centre) &&
           list(r, root, "cases", centre, one_case);
}

static void
free_compression(gpointer data)
{
    cost_compression *c = data;
    g_clear_pointer(&c->write_mb_per_s.points, g_array_unref);
    g_clear_pointer(&c->read_mb_per_s.points, g_array_unref);
    g_free(c->name);
    g_free(c);
}

static void
free_case(gpointer data)
{
    g_free(((cost_case *) data)->name);
    g_free(data);
}

esdm_status
cost_centre_read(const char *file, cost_centre **ret_centre, esdm_error *err)
{
    json_error_t problem;
    reader r = {.file = file, .err = err};
    g_autofree char *bytes = NULL;
    gsize size = 0;
    g_autoptr(GError) trouble = NULL;
    if (!g_file_get_contents(file, &bytes, &size, &trouble))
        return tool_error_set(
            err,
            g_error_matches(trouble, G_FILE_ERROR, G_FILE_ERROR_NOENT) ? ESDM_ENOENT : ESDM_EIO,
            "%s", trouble->message);
    json_t *root = tool_json_read(bytes, (gssize) size, 0, &problem);
    if (root == NULL)
        return tool_error_set(err, ESDM_EINVAL, "%s:%d:%d: %s", file, problem.line, problem.column,
                              problem.text);
    cost_centre *centre = g_new0(cost_centre, 1);
    centre->currency = g_strdup("EUR");
    centre->measure = g_strdup("node");
    centre->unit = 1;
    centre->years = g_array_new(FALSE, FALSE, sizeof(double));
    centre->compressions = g_ptr_array_new_with_free_func(free_compression);
    centre->cases = g_ptr_array_new_with_free_func(free_case);
    bool good = read_root(&r, root, centre);
    json_decref(root);
    if (!good) {
        cost_centre_free(centre);
        return ESDM_EINVAL;
    }
    *ret_centre = centre;
    return ESDM_OK;
}

static void
clear_resource(cost_resource *resource)
{
    cost_series *all[] = {&resource->purchase,        &resource->life_years, &resource->power_kw,
                          &resource->upkeep_per_year, &resource->capacity,   &resource->throughput};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        g_clear_pointer(&all[i]->points, g_array_unref);
}

void
cost_centre_free(cost_centre *centre)
{
    if (centre == NULL)
        return;
    cost_resource *all[] = {&centre->computing, &centre->storage, &centre->metadata,
                            &centre->archive,   &centre->drives,  &centre->memory};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        clear_resource(all[i]);
    g_clear_pointer(&centre->energy.points, g_array_unref);
    g_clear_pointer(&centre->node.points, g_array_unref);
    g_array_unref(centre->years);
    g_ptr_array_unref(centre->compressions);
    g_ptr_array_unref(centre->cases);
    g_free(centre->currency);
    g_free(centre->measure);
    g_free(centre);
}
