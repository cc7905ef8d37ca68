/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reads a header as ncdump -h prints it. */
#include <stdio.h>
#include <string.h>

#include "esdm-mkfs/plan.h"

/* ---- words -------------------------------------------------------------------------------- */

static void
skip_space(plan_header *r)
{
    for (;; r->at++) {
        if (r->at[0] == '\n')
            r->line++;
        else if (r->at[0] == '/' && r->at[1] == '/')
            while (r->at[1] != '\0' && r->at[1] != '\n')
                r->at++;
        else if (!g_ascii_isspace(r->at[0]))
            return;
    }
}

static gboolean fail_at(plan_header *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
fail_at(plan_header *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    if (r->error == NULL)
        r->error = g_strdup_printf("%s:%u: %s", r->file, r->line, text);
    return FALSE;
}

/* A text in quotes, a name with backslashes, a number, or one character. NULL at the end. */
static char *
next_word(plan_header *r)
{
    GString *word = g_string_new(NULL);
    skip_space(r);
    if (*r->at == '"') {
        for (r->at++; *r->at != '\0' && *r->at != '"'; r->at++) {
            if (*r->at == '\\' && r->at[1] != '\0')
                r->at++;
            g_string_append_c(word, *r->at);
        }
        if (*r->at == '"')
            r->at++;
        return g_string_free(word, FALSE);
    }
    while (*r->at != '\0' && !g_ascii_isspace(*r->at) && strchr("{}()=;,:\"", *r->at) == NULL) {
        if (*r->at == '\\' && r->at[1] != '\0')
            r->at++;
        g_string_append_c(word, *r->at++);
    }
    if (word->len == 0 && *r->at != '\0')
        g_string_append_c(word, *r->at++);
    return word->len > 0 ? g_string_free(word, FALSE) : (g_string_free(word, TRUE), NULL);
}

static gboolean
next_is(plan_header *r, const char *text)
{
    skip_space(r);
    size_t n = strlen(text);
    return strncmp(r->at, text, n) == 0;
}

static gboolean
expect_word(plan_header *r, const char *wanted)
{
    g_autofree char *word = next_word(r);
    if (word != NULL && g_str_equal(word, wanted))
        return TRUE;
    return fail_at(r, "expected '%s', found '%s'", wanted, word != NULL ? word : "the end");
}

/* Up to and with the semicolon that ends a statement. */
static gboolean
skip_statement(plan_header *r)
{
    for (;;) {
        skip_space(r);
        gboolean quoted = *r->at == '"';
        g_autofree char *word = next_word(r);
        if (word == NULL)
            return fail_at(r, "the file ends in the middle of a statement");
        if (!quoted && g_str_equal(word, ";"))
            return TRUE;
    }
}

/* Whether these are the first bytes of a NetCDF file, and not of its header as text. */
static gboolean
is_netcdf(const char *bytes)
{
    return g_str_has_prefix(bytes, "CDF") || g_str_has_prefix(bytes, "\x89HDF");
}

/* ---- sections ----------------------------------------------------------------------------- */

/* NAME = LENGTH ;  or  NAME = UNLIMITED ; // (N currently) */
static gboolean
read_dimension(plan_header *r)
{
    plan_dimension *d = g_new0(plan_dimension, 1);
    d->name = next_word(r);
    g_ptr_array_add(r->dimensions, d);
    if (d->name == NULL || !expect_word(r, "="))
        return fail_at(r, "expected a dimension");
    g_autofree char *length = next_word(r);
    d->unlimited = length != NULL && g_ascii_strcasecmp(length, "UNLIMITED") == 0;
    char *end = NULL;
    if (!d->unlimited) {
        d->length = length != NULL ? g_ascii_strtoull(length, &end, 10) : 0;
        if (length == NULL || end == length || *end != '\0')
            return fail_at(r, "dimension '%s': '%s' is no length", d->name,
                           length != NULL ? length : "");
    }
    if (!expect_word(r, ";"))
        return FALSE;
    unsigned long long currently = 0;
    const char *rest = r->at;
    while (*rest == ' ' || *rest == '\t')
        rest++;
    if (d->unlimited && sscanf(rest, "// (%llu currently)", &currently) == 1)
        d->length = currently;
    return TRUE;
}

static gboolean
read_dimensions(plan_header *r)
{
    while (!next_is(r, "}") && !next_is(r, "variables:") && !next_is(r, "group:") &&
           !next_is(r, "//") && !next_is(r, "data:") && !next_is(r, "types:")) {
        skip_space(r);
        if (*r->at == '\0' || *r->at == ':')
            return TRUE;
        if (!read_dimension(r))
            return FALSE;
    }
    return TRUE;
}

static const struct {
    const char *name;
    guint64 bytes;
} types[] = {{"byte", 1},  {"ubyte", 1}, {"char", 1},   {"short", 2},  {"ushort", 2},
             {"int", 4},   {"long", 4},  {"uint", 4},   {"int64", 8},  {"uint64", 8},
             {"float", 4}, {"real", 4},  {"double", 8}, {"string", 32}};

/* 0: not a type that is known. */
static guint64
bytes_of(const char *type)
{
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (g_str_equal(types[i].name, type))
            return types[i].bytes;
    }
    return 0;
}

static const plan_dimension *
find_dimension(const plan_header *r, const char *name)
{
    for (guint i = r->dimensions->len; i > 0; i--) {
        const plan_dimension *d = g_ptr_array_index(r->dimensions, i - 1);
        if (d->name != NULL && g_str_equal(d->name, name))
            return d;
    }
    return NULL;
}

static gboolean
add_dimension(plan_header *r, plan_variable *v, const char *name, gboolean first)
{
    const plan_dimension *d = find_dimension(r, name);
    if (d == NULL)
        return fail_at(r, "variable '%s': there is no dimension '%s'", v->name, name);
    if (v->rank == ESDM_MAX_RANK)
        return fail_at(r, "variable '%s' has too many dimensions", v->name);
    guint64 length = d->unlimited && r->steps > 0 ? r->steps : d->length;
    v->record = v->record || (first && d->unlimited);
    if (first && d->unlimited)
        v->steps = length;
    if (d->unlimited && length == 0)
        v->empty = d->name;
    v->shape[v->rank++] = first && d->unlimited ? 1 : length;
    return TRUE;
}

/* TYPE NAME(DIM, DIM) ; */
static gboolean
read_variable(plan_header *r, const char *path, char *type)
{
    plan_variable *v = g_new0(plan_variable, 1);
    v->type = type;
    v->steps = 1;
    g_ptr_array_add(r->variables, v);
    g_autofree char *name = next_word(r);
    v->name = g_strconcat(path, name != NULL ? name : "", NULL);
    v->element_bytes = bytes_of(type);
    if (v->element_bytes == 0)
        v->element_bytes = 16; /* a user-defined type: about */
    if (next_is(r, "(")) {
        g_free(next_word(r));
        for (gboolean first = TRUE;; first = FALSE) {
            g_autofree char *dimension = next_word(r);
            g_autofree char *after = next_word(r);
            if (dimension == NULL || after == NULL)
                return fail_at(r, "variable '%s' ends too early", v->name);
            if (!add_dimension(r, v, dimension, first))
                return FALSE;
            if (g_str_equal(after, ")"))
                break;
            if (!g_str_equal(after, ","))
                return fail_at(r, "expected ',' or ')', found '%s'", after);
        }
    }
    return expect_word(r, ";");
}

/* NAME:ATTRIBUTE = VALUES ; of a variable, whose name was read; notes esdm_access alone. */
static gboolean
read_attribute(plan_header *r, const char *path, const char *variable)
{
    g_autofree char *colon = next_word(r);
    g_autofree char *name = next_word(r);
    (void) colon;
    if (name != NULL && g_str_equal(name, ESDM_ACCESS_ATTRIBUTE) && expect_word(r, "=")) {
        g_autofree char *full = g_strconcat(path, variable, NULL);
        g_autofree char *value = next_word(r);
        for (guint i = 0; i < r->variables->len; i++) {
            plan_variable *v = g_ptr_array_index(r->variables, i);
            if (g_str_equal(v->name, full) && v->access == NULL)
                v->access = g_strdup(value);
        }
    }
    return skip_statement(r);
}

static gboolean
read_variables(plan_header *r, const char *path)
{
    for (;;) {
        if (next_is(r, "}") || next_is(r, "group:") || next_is(r, "data:"))
            return TRUE;
        if (next_is(r, ":")) { /* attribute of the group */
            if (!skip_statement(r))
                return FALSE;
            continue;
        }
        char *word = next_word(r);
        if (word == NULL)
            return fail_at(r, "the file ends within \"variables:\"");
        gboolean attribute = next_is(r, ":");
        /* "string v:a = …" has a type before the name of the variable. */
        gboolean typed = FALSE;
        if (!attribute && bytes_of(word) > 0) {
            const char *back = r->at;
            guint line = r->line;
            g_autofree char *second = next_word(r);
            typed = second != NULL && next_is(r, ":");
            if (typed) {
                gboolean ok = read_attribute(r, path, second);
                g_free(word);
                if (!ok)
                    return FALSE;
                continue;
            }
            r->at = back;
            r->line = line;
        }
        gboolean ok = attribute ? read_attribute(r, path, word) : read_variable(r, path, word);
        if (attribute)
            g_free(word);
        if (!ok)
            return FALSE;
    }
}

static gboolean read_group(plan_header *r, const char *path);

/* What stands between the braces of the file or a group. */
static gboolean
read_sections(plan_header *r, const char *path)
{
    for (;;) {
        if (next_is(r, "}")) {
            g_free(next_word(r));
            return TRUE;
        }
        if (next_is(r, ":")) {
            if (!skip_statement(r))
                return FALSE;
            continue;
        }
        g_autofree char *word = next_word(r);
        if (word == NULL)
            return fail_at(r, "the file ends before '}'");
        gboolean ok = TRUE;
        if (g_str_equal(word, "group"))
            ok = expect_word(r, ":") && read_group(r, path);
        else if (g_str_equal(word, "dimensions"))
            ok = expect_word(r, ":") && read_dimensions(r);
        else if (g_str_equal(word, "variables"))
            ok = expect_word(r, ":") && read_variables(r, path);
        else if (g_str_equal(word, "types"))
            ok = fail_at(r, "headers with user-defined types cannot be planned");
        else if (g_str_equal(word, "data"))
            ok = fail_at(r, "a header has no data; make it with ncdump -h");
        else
            ok = skip_statement(r);
        if (!ok)
            return FALSE;
    }
}

static gboolean
read_group(plan_header *r, const char *path)
{
    g_autofree char *name = next_word(r);
    guint outer = r->dimensions->len;
    if (name == NULL || !expect_word(r, "{"))
        return fail_at(r, "expected a group");
    g_autofree char *below = g_strconcat(path, name, "/", NULL);
    gboolean ok = read_sections(r, below);
    /* Those of the group are out of sight from now on. */
    while (r->dimensions->len > outer)
        g_ptr_array_add(r->closed, g_ptr_array_steal_index(r->dimensions, r->dimensions->len - 1));
    return ok;
}

gboolean
mkfs_header_read(plan_header *r)
{
    skip_space(r);
    if (!g_str_has_prefix(r->at, "netcdf"))
        return fail_at(r, "this is no header of a NetCDF file; make one with ncdump -h FILE.nc%s",
                       is_netcdf(r->at) ? " (it is such a file itself)" : "");
    (void) expect_word(r, "netcdf");
    r->container = next_word(r);
    if (r->container == NULL || !expect_word(r, "{"))
        return fail_at(r, "expected \"netcdf NAME {\"");
    return read_sections(r, "");
}

static void
free_dimension(gpointer data)
{
    plan_dimension *d = data;
    g_free(d->name);
    g_free(d);
}

static void
free_variable(gpointer data)
{
    plan_variable *v = data;
    g_free(v->name);
    g_free(v->type);
    g_free(v->access);
    g_free(v);
}

void
mkfs_header_init(plan_header *header)
{
    header->line = 1;
    header->dimensions = g_ptr_array_new_with_free_func(free_dimension);
    header->closed = g_ptr_array_new_with_free_func(free_dimension);
    header->variables = g_ptr_array_new_with_free_func(free_variable);
}

void
mkfs_header_clear(plan_header *header)
{
    g_ptr_array_unref(header->dimensions);
    g_ptr_array_unref(header->variables);
    g_ptr_array_unref(header->closed);
    g_free(header->container);
    g_free(header->error);
}
