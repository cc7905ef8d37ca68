/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-mkfs --plan: reads a header as ncdump -h prints it, and asks the library where the output of
 * a model with that header would go, and how long it would take to store it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "esdm-mkfs.h"

typedef struct plan_dimension {
    char *name;
    guint64 length;
    gboolean unlimited;
} plan_dimension;

typedef struct plan_variable {
    char *name;   /* with the path of its group */
    char *type;   /* as in CDL */
    char *access; /* of its attribute esdm_access; NULL */
    guint64 element_bytes;
    gboolean record; /* its slowest dimension is unlimited */
    guint64 steps;   /* writes */
    guint rank;      /* of one write */
    guint64 shape[ESDM_MAX_RANK];
} plan_variable;

typedef struct plan_share {
    char *target;
    guint64 fragments;
    guint64 bytes;
    double seconds;
} plan_share;

typedef struct reader {
    const char *file;
    const char *at;
    guint line;
    char *container;       /* "netcdf NAME {" */
    GPtrArray *dimensions; /* of all groups that are open, newest last */
    GPtrArray *variables;
    guint64 steps; /* of --steps; 0: as the header says */
    char *error;
} reader;

/* ---- words -------------------------------------------------------------------------------- */

static void
skip_space(reader *r)
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

static gboolean fail_at(reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
fail_at(reader *r, const char *format, ...)
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
next_word(reader *r)
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
next_is(reader *r, const char *text)
{
    skip_space(r);
    size_t n = strlen(text);
    return strncmp(r->at, text, n) == 0;
}

static gboolean
expect_word(reader *r, const char *wanted)
{
    g_autofree char *word = next_word(r);
    if (word != NULL && g_str_equal(word, wanted))
        return TRUE;
    return fail_at(r, "expected '%s', found '%s'", wanted, word != NULL ? word : "the end");
}

/* Up to and with the semicolon that ends a statement. */
static gboolean
skip_statement(reader *r)
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

/* ---- sections ----------------------------------------------------------------------------- */

/* NAME = LENGTH ;  or  NAME = UNLIMITED ; // (N currently) */
static gboolean
read_dimension(reader *r)
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
read_dimensions(reader *r)
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
find_dimension(const reader *r, const char *name)
{
    for (guint i = r->dimensions->len; i > 0; i--) {
        const plan_dimension *d = g_ptr_array_index(r->dimensions, i - 1);
        if (d->name != NULL && g_str_equal(d->name, name))
            return d;
    }
    return NULL;
}

static gboolean
add_dimension(reader *r, plan_variable *v, const char *name, gboolean first)
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
    v->shape[v->rank++] = first && d->unlimited ? 1 : length;
    return TRUE;
}

/* TYPE NAME(DIM, DIM) ; */
static gboolean
read_variable(reader *r, const char *path, char *type)
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
read_attribute(reader *r, const char *path, const char *variable)
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
read_variables(reader *r, const char *path)
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

static gboolean read_group(reader *r, const char *path);

/* What stands between the braces of the file or a group. */
static gboolean
read_sections(reader *r, const char *path)
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
read_group(reader *r, const char *path)
{
    g_autofree char *name = next_word(r);
    guint outer = r->dimensions->len;
    if (name == NULL || !expect_word(r, "{"))
        return fail_at(r, "expected a group");
    g_autofree char *below = g_strconcat(path, name, "/", NULL);
    gboolean ok = read_sections(r, below);
    g_ptr_array_set_size(r->dimensions, (gint) outer);
    return ok;
}

static gboolean
read_header(reader *r)
{
    if (!expect_word(r, "netcdf"))
        return FALSE;
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

static void
free_share(gpointer data)
{
    plan_share *s = data;
    g_free(s->target);
    g_free(s);
}

/* ---- forecasts ---------------------------------------------------------------------------- */

static void
add_share(GPtrArray *shares, const char *target, guint64 fragments, guint64 bytes, double seconds)
{
    plan_share *s = NULL;
    for (guint i = 0; i < shares->len && s == NULL; i++) {
        plan_share *one = g_ptr_array_index(shares, i);
        s = g_str_equal(one->target, target) ? one : NULL;
    }
    if (s == NULL) {
        s = g_new0(plan_share, 1);
        s->target = g_strdup(target);
        g_ptr_array_add(shares, s);
    }
    s->fragments += fragments;
    s->bytes += bytes;
    s->seconds += seconds;
}

static bool
take_share(const esdm_forecast_share *share, void *user)
{
    if (share->fragments > 0)
        add_share(user, share->target, share->fragments, share->bytes, share->busy_s);
    return true;
}

static json_t *
shares_json(const GPtrArray *shares)
{
    json_t *list = json_array();
    for (guint i = 0; i < shares->len; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        json_t *entry = json_object();
        tool_json_set(entry, "target", tool_json_text(s->target));
        tool_json_set(entry, "fragments", tool_json_u64(s->fragments));
        tool_json_set(entry, "bytes", tool_json_u64(s->bytes));
        tool_json_set(entry, "busy_s", json_real(s->seconds));
        tool_json_append(list, entry);
    }
    return list;
}

static char *
shares_text(const GPtrArray *shares, guint64 bytes)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < shares->len; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        g_autofree char *target = tool_printable(s->target);
        g_string_append_printf(text, "%s%s %.0f %%", i > 0 ? ", " : "", target,
                               bytes > 0 ? 100.0 * (double) s->bytes / (double) bytes : 0);
    }
    return g_string_free(text, FALSE);
}

static void
show_line(const char *name, guint64 bytes, guint64 fragments, double seconds,
          const GPtrArray *shares)
{
    g_autofree char *printable = tool_printable(name);
    g_autofree char *size = tool_bytes(bytes);
    g_autofree char *where = shares_text(shares, bytes);
    g_autofree char *time =
        isnan(seconds) ? g_strdup("not known") : g_strdup_printf("%.3g s", seconds);
    (void) printf("%-24s %10s  %8" G_GUINT64_FORMAT " fragments  %9s  %s\n", printable, size,
                  (guint64) fragments, time, where);
}

/* Sums over all variables. */
typedef struct plan_sums {
    guint64 bytes;
    guint64 fragments;
    double seconds;
    GPtrArray *shares;
    json_t *list;
} plan_sums;

static esdm_status
plan_variable_(esdm_session *session, const reader *r, const plan_variable *v, plan_sums *sums,
               esdm_error *err)
{
    g_autofree char *path = g_strconcat("/", v->name, NULL);
    g_autoptr(GPtrArray) shares = g_ptr_array_new_with_free_func(free_share);
    const esdm_forecast_request request = {.container = r->container,
                                           .path = path,
                                           .element_bytes = v->element_bytes,
                                           .rank = v->rank,
                                           .shape = v->shape,
                                           .writes = v->steps,
                                           .access = v->access};
    double seconds = 0;
    guint64 bytes = 0;
    guint64 fragments = 0;
    esdm_status status = esdm_forecast_write(session, &request, take_share, shares, &seconds, err);
    for (guint i = 0; i < shares->len && status == ESDM_OK; i++) {
        const plan_share *s = g_ptr_array_index(shares, i);
        bytes += s->bytes;
        fragments += s->fragments;
        add_share(sums->shares, s->target, s->fragments, s->bytes, s->seconds);
    }
    if (status != ESDM_OK)
        return status;
    sums->bytes += bytes;
    sums->fragments += fragments;
    sums->seconds += seconds;
    if (!tool.json) {
        show_line(v->name, bytes, fragments, seconds, shares);
        return ESDM_OK;
    }
    json_t *entry = json_object();
    tool_json_set(entry, "path", tool_json_text(v->name));
    tool_json_set(entry, "writes", tool_json_u64(v->steps));
    tool_json_set(entry, "bytes", tool_json_u64(bytes));
    tool_json_set(entry, "seconds", isnan(seconds) ? json_null() : json_real(seconds));
    tool_json_set(entry, "targets", shares_json(shares));
    tool_json_append(sums->list, entry);
    return ESDM_OK;
}

static esdm_status
plan_all(esdm_session *session, const reader *r, json_t *root, esdm_error *err)
{
    plan_sums sums = {.shares = g_ptr_array_new_with_free_func(free_share), .list = json_array()};
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < r->variables->len && status == ESDM_OK; i++)
        status = plan_variable_(session, r, g_ptr_array_index(r->variables, i), &sums, err);
    if (status == ESDM_OK && !tool.json) {
        show_line("together", sums.bytes, sums.fragments, sums.seconds, sums.shares);
        if (isnan(sums.seconds))
            (void) printf("how long that takes is not known: the site was not measured; do it with "
                          "--calibrate\n");
    }
    if (tool.json) {
        tool_json_set(root, "container", tool_json_text(r->container));
        tool_json_set(root, "variables", json_incref(sums.list));
        tool_json_set(root, "bytes", tool_json_u64(sums.bytes));
        tool_json_set(root, "seconds", isnan(sums.seconds) ? json_null() : json_real(sums.seconds));
        tool_json_set(root, "targets", shares_json(sums.shares));
    }
    json_decref(sums.list);
    g_ptr_array_unref(sums.shares);
    return status;
}

esdm_status
mkfs_plan(const esdm_site_options *options, const char *file, guint64 steps, json_t *root,
          esdm_error *err)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, &error))
        return tool_error_set(err, ESDM_ENOENT, "%s", error->message);
    reader r = {.file = file, .at = text, .line = 1, .steps = steps};
    r.dimensions = g_ptr_array_new_with_free_func(free_dimension);
    r.variables = g_ptr_array_new_with_free_func(free_variable);
    esdm_status status = ESDM_OK;
    if (!read_header(&r))
        status =
            tool_error_set(err, ESDM_EINVAL, "%s", r.error != NULL ? r.error : "this is no header");
    const esdm_session_options open = {.config_path = options->config_path, .read_only = true};
    esdm_session *session = NULL;
    if (status == ESDM_OK)
        status = esdm_session_open(&open, &session, err);
    if (status == ESDM_OK)
        status = plan_all(session, &r, root, err);
    esdm_session_close(session);
    g_ptr_array_unref(r.dimensions);
    g_ptr_array_unref(r.variables);
    g_free(r.container);
    g_free(r.error);
    return status;
}
