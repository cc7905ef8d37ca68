/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Journal, worlds and the list of tests. Usage: nc_compare_calls [AREA [NAME]]; with
 * NC_COMPARE_DUMP set it prints what stock netCDF did. */

#include "compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct journal {
    char **lines;
    size_t count;
    size_t capacity;
} journal;

#if defined(__SANITIZE_ADDRESS__)
/* HDF5 1.10 does not free all it allocates. */
extern __attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}
#endif

static journal *current;
static char folder[200];

static void
add_line(char *line)
{
    if (current->count == current->capacity) {
        current->capacity = current->capacity == 0 ? 256 : 2 * current->capacity;
        current->lines = realloc(current->lines, current->capacity * sizeof(char *));
        assert_non_null(current->lines);
    }
    current->lines[current->count++] = line;
}

int
note_call(const char *file, int line, const char *text, int rc)
{
    const char *slash = strrchr(file, '/');
    note("%s:%d: %s -> %d", slash == NULL ? file : slash + 1, line, text, rc);
    return rc;
}

void
note(const char *format, ...)
{
    char *line;
    va_list args;
    va_start(args, format);
    int bytes = vasprintf(&line, format, args);
    va_end(args);
    assert_true(bytes >= 0);
    add_line(line);
}

void
note_ints(const char *what, const int *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %d", what, i, values[i]);
}

void
note_sizes(const char *what, const size_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %zu", what, i, values[i]);
}

void
note_doubles(const char *what, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %.17g", what, i, values[i]);
}

void
note_bytes(const char *what, const void *values, size_t bytes)
{
    const unsigned char *at = values;
    for (size_t i = 0; i < bytes; i += 16) {
        char text[40] = "";
        for (size_t k = i; k < bytes && k < i + 16; k++)
            snprintf(text + 2 * (k - i), 3, "%02x", at[k]);
        note("%s+%zu: %s", what, i, text);
    }
}

/* ---- everything about a file ------------------------------------------------------------------
 */

static size_t
type_bytes(nc_type type)
{
    static const size_t bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};
    return type >= NC_BYTE && type <= NC_STRING ? bytes[type] : 0;
}

static void
note_values(const char *what, nc_type type, const void *values, size_t count)
{
    if (type != NC_STRING) {
        note_bytes(what, values, count * type_bytes(type));
        return;
    }
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = '%s'", what, i, ((char *const *) values)[i]);
}

static void
note_atts(int ncid, int varid, int count)
{
    for (int i = 0; i < count; i++) {
        char name[NC_MAX_NAME + 1] = "?";
        nc_type type = NC_NAT;
        size_t length = 0;
        int id = -1;
        CALL(nc_inq_attname(ncid, varid, i, name));
        CALL(nc_inq_att(ncid, varid, name, &type, &length));
        CALL(nc_inq_attid(ncid, varid, name, &id));
        note("att %d '%s' type %d length %zu id %d", varid, name, type, length, id);
        void *values = calloc(length + 1, sizeof(double));
        assert_non_null(values);
        if (CALL(nc_get_att(ncid, varid, name, values)) == NC_NOERR) {
            note_values("value", type, values, length);
            if (type == NC_STRING)
                (void) nc_free_string(length, values);
        }
        free(values);
    }
}

static void
note_data(int ncid, int varid, nc_type type, int rank, const int *dimids)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        size_t length = 0;
        CALL(nc_inq_dimlen(ncid, dimids[i], &length));
        count *= length;
    }
    void *values = calloc(count + 1, sizeof(double));
    assert_non_null(values);
    if (count < 100000 && CALL(nc_get_var(ncid, varid, values)) == NC_NOERR) {
        note_values("data", type, values, count);
        if (type == NC_STRING)
            (void) nc_free_string(count, values);
    }
    free(values);
}

static void
note_var(int ncid, int varid)
{
    char name[NC_MAX_NAME + 1] = "?";
    nc_type type = NC_NAT;
    int rank = 0;
    int dimids[NC_MAX_VAR_DIMS] = {0};
    int atts = 0;
    CALL(nc_inq_var(ncid, varid, name, &type, &rank, dimids, &atts));
    note("var %d '%s' type %d rank %d atts %d", varid, name, type, rank, atts);
    note_ints("dimid", dimids, (size_t) rank);
    int nofill = -1;
    union {
        double number;
        char *text;
        char bytes[16];
    } fill = {.number = 0};
    CALL(nc_inq_var_fill(ncid, varid, &nofill, &fill));
    note("nofill %d", nofill != 0);
    if (!nofill)
        note_values("fill", type, &fill, 1);
    if (type == NC_STRING && !nofill)
        free(fill.text);
    int kind = -1;
    size_t chunks[NC_MAX_VAR_DIMS] = {0};
    CALL(nc_inq_var_chunking(ncid, varid, &kind, chunks));
    note("storage %d", kind);
    if (kind == NC_CHUNKED)
        note_sizes("chunk", chunks, (size_t) rank);
    int shuffle = -1;
    int deflate = -1;
    int level = -1;
    CALL(nc_inq_var_deflate(ncid, varid, &shuffle, &deflate, &level));
    note("shuffle %d deflate %d level %d", shuffle, deflate, deflate > 0 ? level : -1);
    int fletcher32 = -1;
    CALL(nc_inq_var_fletcher32(ncid, varid, &fletcher32));
    int endian = -1;
    CALL(nc_inq_var_endian(ncid, varid, &endian));
    note("fletcher32 %d endian %d", fletcher32, endian);
    note_atts(ncid, varid, atts);
    if (!nofill) /* else what nobody wrote has no defined value */
        note_data(ncid, varid, type, rank, dimids);
}

static void
note_group(int ncid)
{
    char name[NC_MAX_NAME + 1] = "?";
    CALL(nc_inq_grpname(ncid, name));
    int dims = -1;
    int vars = -1;
    int atts = -1;
    int unlimited = -2;
    CALL(nc_inq(ncid, &dims, &vars, &atts, &unlimited));
    note("group '%s' dims %d vars %d atts %d unlimited %d", name, dims, vars, atts, unlimited);
    int dimids[100];
    CALL(nc_inq_dimids(ncid, &dims, dimids, 0));
    for (int i = 0; i < dims; i++) {
        size_t length = 0;
        CALL(nc_inq_dim(ncid, dimids[i], name, &length));
        note("dim %d '%s' length %zu", dimids[i], name, length);
    }
    int count = 0;
    CALL(nc_inq_unlimdims(ncid, &count, dimids));
    note_ints("unlimited", dimids, (size_t) count);
    note_atts(ncid, NC_GLOBAL, atts);
    for (int v = 0; v < vars; v++)
        note_var(ncid, v);
    int groups[100];
    CALL(nc_inq_grps(ncid, &count, groups));
    note("%d groups", count);
    for (int i = 0; i < count; i++)
        note_group(groups[i]);
}

void
note_file(int ncid)
{
    int format = 0;
    CALL(nc_inq_format(ncid, &format));
    note("format %d", format);
    note_group(ncid);
}

int
create(const world *w)
{
    int ncid = -1;
    assert_int_equal(CALL(nc_create(w->path, w->mode, &ncid)), NC_NOERR);
    return ncid;
}

int
reopen(const world *w, int mode)
{
    int ncid = -1;
    assert_int_equal(CALL(nc_open(w->path, mode, &ncid)), NC_NOERR);
    return ncid;
}

/* ---- running ----------------------------------------------------------------------------------
 */

typedef struct job {
    const scenario *scenario;
    int format;
    const char *format_name;
    char *title;
} job;

static const struct {
    int bit;
    int mode;
    int format;
    const char *name;
} formats[] = {
    {IN_CLASSIC, 0, NC_FORMAT_CLASSIC, "classic"},
    {IN_CDF2, NC_64BIT_OFFSET, NC_FORMAT_64BIT_OFFSET, "cdf2"},
    {IN_CDF5, NC_64BIT_DATA, NC_FORMAT_64BIT_DATA, "cdf5"},
    {IN_NC4, NC_NETCDF4, NC_FORMAT_NETCDF4, "nc4"},
    {IN_NC4C, NC_NETCDF4 | NC_CLASSIC_MODEL, NC_FORMAT_NETCDF4_CLASSIC, "nc4classic"},
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static void
run_in(const job *j, const char *prefix, journal *log)
{
    char path[400];
    char other[400];
    static int serial;
    serial++;
    snprintf(path, sizeof path, "%s%s_%s_%d.nc", prefix, j->scenario->area, j->format_name, serial);
    snprintf(other, sizeof other, "%sother_%d.nc", prefix, serial);
    world w = {.path = path,
               .other = other,
               .mode = formats[j->format].mode,
               .format = formats[j->format].format};
    current = log;
    j->scenario->run(&w);
    current = NULL;
    (void) nc_delete(path);
    (void) nc_delete(other);
}

static void
journal_clear(journal *log)
{
    for (size_t i = 0; i < log->count; i++)
        free(log->lines[i]);
    free(log->lines);
}

/* Whether two lines come from the same place of the scenario. */
static bool
same_place(const char *a, const char *b)
{
    size_t bytes = strcspn(a, ">=");
    return strncmp(a, b, bytes) == 0;
}

static void
compare_journals(const journal *stock, const journal *esdm)
{
    size_t differences = 0;
    size_t count = stock->count < esdm->count ? stock->count : esdm->count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(stock->lines[i], esdm->lines[i]) == 0)
            continue;
        if (differences++ < 20)
            print_error("  stock: %s\n  esdm:  %s\n", stock->lines[i], esdm->lines[i]);
        if (!same_place(stock->lines[i], esdm->lines[i]))
            break; /* from here on they walk apart */
    }
    if (stock->count != esdm->count)
        print_error("  stock noted %zu lines, esdm %zu\n", stock->count, esdm->count);
    assert_int_equal(differences, 0);
    assert_int_equal(stock->count, esdm->count);
    assert_true(count > 0);
}

static void
test_same(void **state)
{
    const job *j = *state;
    char prefix[300];
    journal stock = {0};
    journal esdm = {0};
    snprintf(prefix, sizeof prefix, "%s/", folder);
    run_in(j, prefix, &stock);
    for (size_t i = 0; getenv("NC_COMPARE_DUMP") != NULL && i < stock.count; i++)
        print_message("  %s\n", stock.lines[i]);
    run_in(j, "esdm://compare/", &esdm);
    compare_journals(&stock, &esdm);
    journal_clear(&stock);
    journal_clear(&esdm);
}

/* A site of its own, in $ESDM_COMPARE_DIR or a new folder in /tmp. */
static int
make_site(void **state)
{
    (void) state;
    snprintf(folder, sizeof folder, "/tmp/esdm-compare-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    return setenv("XDG_DATA_HOME", folder, 1) != 0 || setenv("XDG_CONFIG_HOME", folder, 1) != 0 ||
           unsetenv("ESDM_CONFIG") != 0;
}

static int
remove_site(void **state)
{
    (void) state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int
main(int argc, char **argv)
{
    static const scenario *const areas[] = {scenarios_atts,    scenarios_data,   scenarios_dims,
                                            scenarios_fill,    scenarios_groups, scenarios_modes,
                                            scenarios_names,   scenarios_random, scenarios_ranges,
                                            scenarios_storage, scenarios_vars};
    static struct CMUnitTest tests[1000];
    static job jobs[1000];
    size_t count = 0;
    for (size_t a = 0; a < sizeof areas / sizeof areas[0]; a++) {
        for (const scenario *s = areas[a]; s->name != NULL; s++) {
            if ((argc > 1 && strcmp(argv[1], s->area) != 0) ||
                (argc > 2 && strcmp(argv[2], s->name) != 0))
                continue;
            for (int f = 0; f < FORMAT_COUNT && count < 1000; f++) {
                if ((s->formats & formats[f].bit) == 0)
                    continue;
                job *j = &jobs[count];
                *j = (job){.scenario = s, .format = f, .format_name = formats[f].name};
                if (asprintf(&j->title, "%s__%s[%s]", s->area, s->name, formats[f].name) < 0)
                    return 1;
                tests[count] = (struct CMUnitTest){
                    .name = j->title, .test_func = test_same, .initial_state = j};
                count++;
            }
        }
    }
    int rc = _cmocka_run_group_tests("nc_compare", tests, count, make_site, remove_site);
    for (size_t i = 0; i < count; i++)
        free(jobs[i].title);
    return rc;
}
