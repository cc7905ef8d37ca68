/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compares NetCDF files through the stock library alone: structure, attributes, data bit for bit.
 *
 *     nc_compare [--data] [--ignore-attribute NAME]… A B     one pair
 *     nc_compare […] --list FILE                            pairs, one a line, separated by a tab
 *
 * --data compares only the values of variables, in their stored type, by name and shape.
 * Prints each difference; exit status 0 equal, 1 different, 2 trouble.
 */

#include <netcdf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IGNORED = 16 };

typedef struct comparison {
    const char *path_a;
    const char *path_b;
    bool data_only;
    const char *ignored[MAX_IGNORED];
    int nignored;
    long differences;
} comparison;

static void
differ(comparison *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (c->differences++ < 20) {
        printf("%s | %s: ", c->path_a, c->path_b);
        vprintf(format, list);
        putchar('\n');
    }
    va_end(list);
}

#define must(call)                                                                                 \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != NC_NOERR) {                                                                     \
            fprintf(stderr, "nc_compare: %s: %s: %s\n", path, #call, nc_strerror(rc_));            \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static void *
allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "nc_compare: out of memory\n");
        exit(2);
    }
    return memory;
}

static bool
is_ignored(const comparison *c, const char *name)
{
    for (int i = 0; i < c->nignored; i++)
        if (strcmp(name, c->ignored[i]) == 0)
            return true;
    return false;
}

static size_t
type_size(nc_type type, const char *path)
{
    static const size_t sizes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};
    if (type < NC_BYTE || type > NC_STRING) {
        fprintf(stderr, "nc_compare: %s: user-defined types are not compared\n", path);
        exit(2);
    }
    return sizes[type];
}

static bool
values_equal(nc_type type, size_t count, const void *a, const void *b)
{
    if (type != NC_STRING)
        return memcmp(a, b, count * type_size(type, "")) == 0;
    for (size_t i = 0; i < count; i++) {
        const char *s = ((char *const *) a)[i];
        const char *t = ((char *const *) b)[i];
        if (strcmp(s ? s : "", t ? t : "") != 0)
            return false;
    }
    return true;
}

static void
free_values(nc_type type, size_t count, void *values)
{
    if (type == NC_STRING)
        nc_free_string(count, values);
    free(values);
}

static void *
read_attribute(const char *path, int ncid, int var, const char *name, nc_type *type, size_t *length)
{
    must(nc_inq_att(ncid, var, name, type, length));
    void *values = allocate(*length, type_size(*type, path));
    must(nc_get_att(ncid, var, name, values));
    return values;
}

static void
compare_attributes(comparison *c, int a, int var_a, int b, int var_b, const char *owner)
{
    const char *path = c->path_a;
    int na;
    int nb;
    int kept_a = 0;
    int kept_b = 0;
    char names_a[512][NC_MAX_NAME + 1];
    char names_b[512][NC_MAX_NAME + 1];
    must(nc_inq_varnatts(a, var_a, &na));
    must(nc_inq_varnatts(b, var_b, &nb));
    for (int i = 0; i < na && kept_a < 512; i++) {
        must(nc_inq_attname(a, var_a, i, names_a[kept_a]));
        kept_a += !is_ignored(c, names_a[kept_a]);
    }
    for (int i = 0; i < nb && kept_b < 512; i++) {
        must(nc_inq_attname(b, var_b, i, names_b[kept_b]));
        kept_b += !is_ignored(c, names_b[kept_b]);
    }
    if (kept_a != kept_b)
        differ(c, "%s: %d and %d attributes", owner, kept_a, kept_b);
    for (int i = 0; i < kept_a && i < kept_b; i++) {
        nc_type type_a;
        nc_type type_b;
        size_t count_a;
        size_t count_b;
        if (strcmp(names_a[i], names_b[i]) != 0) {
            differ(c, "%s: attribute %d is %s and %s", owner, i, names_a[i], names_b[i]);
            continue;
        }
        void *va = read_attribute(c->path_a, a, var_a, names_a[i], &type_a, &count_a);
        void *vb = read_attribute(c->path_b, b, var_b, names_b[i], &type_b, &count_b);
        if (type_a != type_b || count_a != count_b)
            differ(c, "%s:%s: type %d[%zu] and %d[%zu]", owner, names_a[i], type_a, count_a, type_b,
                   count_b);
        else if (!values_equal(type_a, count_a, va, vb))
            differ(c, "%s:%s: values differ", owner, names_a[i]);
        free_values(type_a, count_a, va);
        free_values(type_b, count_b, vb);
    }
}

static void
compare_dimensions(comparison *c, int a, int b)
{
    const char *path = c->path_a;
    int na;
    int nb;
    int ids_a[NC_MAX_DIMS];
    int ids_b[NC_MAX_DIMS];
    int unlimited[2][NC_MAX_DIMS];
    int nunlimited[2];
    must(nc_inq_dimids(a, &na, ids_a, 0));
    must(nc_inq_dimids(b, &nb, ids_b, 0));
    must(nc_inq_unlimdims(a, &nunlimited[0], unlimited[0]));
    must(nc_inq_unlimdims(b, &nunlimited[1], unlimited[1]));
    if (na != nb || nunlimited[0] != nunlimited[1]) {
        differ(c, "%d (%d unlimited) and %d (%d unlimited) dimensions", na, nunlimited[0], nb,
               nunlimited[1]);
        return;
    }
    for (int i = 0; i < na; i++) {
        char name_a[NC_MAX_NAME + 1];
        char name_b[NC_MAX_NAME + 1];
        size_t length_a;
        size_t length_b;
        must(nc_inq_dim(a, ids_a[i], name_a, &length_a));
        must(nc_inq_dim(b, ids_b[i], name_b, &length_b));
        if (strcmp(name_a, name_b) != 0 || length_a != length_b)
            differ(c, "dimension %d: %s = %zu and %s = %zu", i, name_a, length_a, name_b, length_b);
    }
    for (int i = 0; i < nunlimited[0]; i++) {
        char name_a[NC_MAX_NAME + 1];
        char name_b[NC_MAX_NAME + 1];
        must(nc_inq_dimname(a, unlimited[0][i], name_a));
        must(nc_inq_dimname(b, unlimited[1][i], name_b));
        if (strcmp(name_a, name_b) != 0)
            differ(c, "unlimited dimension %s and %s", name_a, name_b);
    }
}

/* In the stored type; whole, or row by row when that would be too large. */
static void
compare_data(comparison *c, int a, int var_a, int b, int var_b, const char *name)
{
    const char *path = c->path_a;
    nc_type type;
    int rank;
    int dims[2][NC_MAX_VAR_DIMS];
    size_t start[NC_MAX_VAR_DIMS] = {0};
    size_t count[NC_MAX_VAR_DIMS] = {1};
    size_t elements = 1;
    must(nc_inq_var(a, var_a, NULL, &type, &rank, dims[0], NULL));
    must(nc_inq_vardimid(b, var_b, dims[1]));
    for (int i = 0; i < rank; i++) {
        size_t other;
        must(nc_inq_dimlen(a, dims[0][i], &count[i]));
        must(nc_inq_dimlen(b, dims[1][i], &other));
        if (other != count[i]) {
            differ(c, "%s: axis %d has length %zu and %zu", name, i, count[i], other);
            return;
        }
        elements *= count[i];
    }
    if (elements == 0)
        return;
    size_t rows = rank > 1 && elements > 100000000 ? count[0] : 1;
    if (rows > 1)
        count[0] = 1;
    elements /= rows;
    void *va = allocate(elements, type_size(type, path));
    void *vb = allocate(elements, type_size(type, path));
    for (size_t row = 0; row < rows; row++) {
        start[0] = row;
        must(nc_get_vara(a, var_a, start, count, va));
        must(nc_get_vara(b, var_b, start, count, vb));
        bool equal = values_equal(type, elements, va, vb);
        if (type == NC_STRING) {
            nc_free_string(elements, va);
            nc_free_string(elements, vb);
        }
        if (!equal) {
            differ(c, "%s: data differ in row %zu", name, row);
            break;
        }
    }
    free(va);
    free(vb);
}

static void
compare_shape(comparison *c, int a, int var_a, int b, int var_b, const char *name)
{
    const char *path = c->path_a;
    int rank;
    int other;
    int dims[2][NC_MAX_VAR_DIMS];
    must(nc_inq_var(a, var_a, NULL, NULL, &rank, dims[0], NULL));
    must(nc_inq_var(b, var_b, NULL, NULL, &other, dims[1], NULL));
    for (int i = 0; i < rank && rank == other; i++) {
        char dim_a[NC_MAX_NAME + 1];
        char dim_b[NC_MAX_NAME + 1];
        must(nc_inq_dimname(a, dims[0][i], dim_a));
        must(nc_inq_dimname(b, dims[1][i], dim_b));
        if (strcmp(dim_a, dim_b) != 0)
            differ(c, "%s: axis %d is %s and %s", name, i, dim_a, dim_b);
    }
}

static void
compare_variables(comparison *c, int a, int b)
{
    const char *path = c->path_a;
    int na;
    int nb;
    must(nc_inq_nvars(a, &na));
    must(nc_inq_nvars(b, &nb));
    if (na != nb)
        differ(c, "%d and %d variables", na, nb);
    for (int i = 0; i < na; i++) {
        char name[NC_MAX_NAME + 1];
        char other[NC_MAX_NAME + 1];
        int var_b;
        int rank_a;
        int rank_b;
        nc_type type_a;
        nc_type type_b;
        must(nc_inq_var(a, i, name, &type_a, &rank_a, NULL, NULL));
        if (nc_inq_varid(b, name, &var_b) != NC_NOERR) {
            differ(c, "variable %s is missing", name);
            continue;
        }
        must(nc_inq_var(b, var_b, other, &type_b, &rank_b, NULL, NULL));
        if (type_a != type_b || rank_a != rank_b) {
            differ(c, "%s: type %d rank %d and type %d rank %d", name, type_a, rank_a, type_b,
                   rank_b);
            continue;
        }
        if (!c->data_only) {
            if (var_b != i)
                differ(c, "variable %s is number %d and %d", name, i, var_b);
            compare_shape(c, a, i, b, var_b, name);
            compare_attributes(c, a, i, b, var_b, name);
        }
        compare_data(c, a, i, b, var_b, name);
    }
}

static void
compare_groups(comparison *c, int a, int b)
{
    const char *path = c->path_a;
    int na;
    int nb;
    if (!c->data_only) {
        compare_dimensions(c, a, b);
        compare_attributes(c, a, NC_GLOBAL, b, NC_GLOBAL, "");
    }
    compare_variables(c, a, b);
    must(nc_inq_grps(a, &na, NULL));
    must(nc_inq_grps(b, &nb, NULL));
    int *groups = allocate((size_t) na, sizeof *groups);
    must(nc_inq_grps(a, &na, groups));
    if (na != nb)
        differ(c, "%d and %d groups", na, nb);
    for (int i = 0; i < na; i++) {
        char name[NC_MAX_NAME + 1];
        int other;
        must(nc_inq_grpname(groups[i], name));
        if (nc_inq_ncid(b, name, &other) != NC_NOERR)
            differ(c, "group %s is missing", name);
        else
            compare_groups(c, groups[i], other);
    }
    free(groups);
}

static void
compare_files(comparison *c)
{
    int a;
    int b;
    const char *path = c->path_a;
    must(nc_open(path, NC_NOWRITE, &a));
    path = c->path_b;
    must(nc_open(path, NC_NOWRITE, &b));
    compare_groups(c, a, b);
    must(nc_close(a));
    must(nc_close(b));
}

static int
compare_list(comparison *c, const char *list)
{
    char line[8192];
    FILE *file = fopen(list, "r");
    if (!file) {
        perror(list);
        return 2;
    }
    long differences = 0;
    while (fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t');
        if (!tab)
            continue;
        *tab = '\0';
        line[strlen(tab + 1) + (size_t) (tab + 1 - line) - 1] = '\0';
        c->path_a = line;
        c->path_b = tab + 1;
        c->differences = 0;
        compare_files(c);
        differences += c->differences;
    }
    fclose(file);
    return differences ? 1 : 0;
}

int
main(int argc, char **argv)
{
    comparison c = {0};
    int i = 1;
    for (; i < argc - 1 && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--data") == 0)
            c.data_only = true;
        else if (strcmp(argv[i], "--ignore-attribute") == 0 && c.nignored < MAX_IGNORED)
            c.ignored[c.nignored++] = argv[++i];
        else if (strcmp(argv[i], "--list") == 0)
            return compare_list(&c, argv[i + 1]);
    }
    if (argc - i != 2) {
        fprintf(stderr, "usage: nc_compare [--data] [--ignore-attribute NAME] A B\n");
        return 2;
    }
    c.path_a = argv[i];
    c.path_b = argv[i + 1];
    compare_files(&c);
    return c.differences ? 1 : 0;
}
