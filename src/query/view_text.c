/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Views: values as components of paths, and paths taken apart. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checksum.h"
#include "base/error.h"
#include "model/names.h"
#include "query/query.h"
#include "query/view.h"

#define CUT "%~"

/* ---- components --------------------------------------------------------------------------- */

static bool
is_word(const char *value)
{
    return strcmp(value, ESDM__VIEW_MISSING) == 0 || strcmp(value, ESDM__VIEW_EMPTY) == 0 ||
           strcmp(value, ".") == 0 || strcmp(value, "..") == 0;
}

/* Bytes of the character at `at` that can stand as it is; 0: its first byte must be escaped. */
static size_t
plain_bytes(const char *value, size_t at)
{
    const unsigned char *p = (const unsigned char *) value + at;
    if (at == 0 && is_word(value))
        return 0;
    if (p[0] == ' ')
        return at > 0 && p[1] != '\0';
    if (p[0] < 0x80)
        return p[0] > 0x20 && p[0] != 0x7f && strchr("/%?@#\\", p[0]) == NULL;
    if (p[0] == 0xc2 && p[1] < 0xa0) /* controls U+0080 to U+009F */
        return 0;
    for (size_t bytes = 2; bytes <= 4; bytes++) {
        if (strnlen((const char *) p, bytes) == bytes &&
            esdm__utf8_is_valid((const char *) p, bytes))
            return bytes;
    }
    return 0;
}

static void
put_escaped(esdm__buffer *out, const char *value)
{
    char code[4];
    for (size_t at = 0; value[at] != '\0';) {
        size_t bytes = plain_bytes(value, at);
        if (bytes > 0) {
            esdm__buffer_put(out, value + at, bytes);
            at += bytes;
            continue;
        }
        (void) snprintf(code, sizeof code, "%%%02X", (unsigned) (unsigned char) value[at++]);
        esdm__buffer_put(out, code, 3);
    }
}

/* Cuts before the character or escape that goes too far, and tells the rest by a hash. */
static void
cut_long(esdm__buffer *out, size_t from)
{
    char mark[sizeof CUT + 16];
    size_t room = ESDM__VIEW_COMPONENT_MOST - (sizeof mark - 1);
    const uint8_t *text = out->data + from;
    uint64_t hash = esdm__checksum(text, out->bytes - from);
    size_t end = room;
    while (end > 0 && (text[end] & 0xc0) == 0x80)
        end--;
    for (size_t back = 1; back <= 2 && back <= end; back++) {
        if (text[end - back] == '%') {
            end -= back;
            break;
        }
    }
    out->bytes = from + end;
    (void) snprintf(mark, sizeof mark, "%s%016" PRIx64, CUT, hash);
    esdm__buffer_put(out, mark, sizeof mark - 1);
}

void
esdm__view_component(const char *value, esdm__buffer *out)
{
    size_t from = out->bytes;
    const char *word = value == NULL      ? ESDM__VIEW_MISSING
                       : value[0] == '\0' ? ESDM__VIEW_EMPTY
                                          : NULL;
    if (word != NULL)
        esdm__buffer_put(out, word, strlen(word));
    else
        put_escaped(out, value);
    if (!out->failed && out->bytes - from > ESDM__VIEW_COMPONENT_MOST)
        cut_long(out, from);
    esdm__buffer_put_u8(out, 0);
}

static int
hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
esdm__view_value(const char *component, char **ret_value)
{
    size_t used = 0;
    if (strcmp(component, ESDM__VIEW_MISSING) == 0) {
        *ret_value = NULL;
        return true;
    }
    if (strcmp(component, ESDM__VIEW_EMPTY) == 0)
        component = "";
    char *value = malloc(strlen(component) + 1);
    for (const char *at = component; value != NULL && *at != '\0'; at++) {
        int high = *at == '%' ? hex(at[1]) : 0;
        int low = *at == '%' && high >= 0 ? hex(at[2]) : 0;
        if (*at != '%') {
            value[used++] = *at;
        } else if (high < 0 || low < 0 || high + low == 0) {
            free(value);
            return false;
        } else {
            value[used++] = (char) (high * 16 + low);
            at += 2;
        }
    }
    if (value == NULL)
        return false;
    value[used] = '\0';
    *ret_value = value;
    return true;
}

/* ---- paths -------------------------------------------------------------------------------- */

static const char *
after_scheme(const char *name)
{
    static const char scheme[] = "esdm://";
    if (strncasecmp(name, scheme, sizeof scheme - 1) == 0)
        name += sizeof scheme - 1;
    return name + strspn(name, "/");
}

static const esdm__site_view *
find_view(const esdm__site *site, const char *name, const char **ret_rest)
{
    name = after_scheme(name);
    size_t bytes = strcspn(name, ":/");
    if (name[bytes] != ':' || (name[bytes + 1] != '/' && name[bytes + 1] != '\0'))
        return NULL;
    for (size_t i = 0; i < site->nviews; i++) {
        const char *known = site->views[i].name;
        if (strlen(known) == bytes && strncmp(known, name, bytes) == 0) {
            *ret_rest = name + bytes + 1;
            return &site->views[i];
        }
    }
    return NULL;
}

bool
esdm__view_is_said(const esdm__site *site, const char *name)
{
    const char *rest = NULL;
    return find_view(site, name, &rest) != NULL;
}

esdm_status
esdm__view_refuse(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EACCES,
                           "'%.300s' is in a view of the site, which nobody can write to: a "
                           "container appears there by its attributes, whatever it is called",
                           name);
}

/* Appends the component as esdm__view_component() writes it. */
static void
put_canonical(const char *component, esdm__buffer *out)
{
    char *value = NULL;
    if (esdm__view_value(component, &value))
        esdm__view_component(value, out);
    else
        esdm__buffer_put(out, component, strlen(component) + 1);
    free(value);
}

static esdm_status
too_deep(const char *name, const esdm__site_view *view, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT,
                           "'%.300s' has more levels than the %zu of the view: %s", name,
                           view->nlevels, view->text);
}

esdm_status
esdm__view_path_parse(const esdm__site *site, const char *name, esdm__view_path *ret_path,
                      esdm_error *err)
{
    const char *rest = NULL;
    esdm__view_path path = {.view = find_view(site, name, &rest)};
    size_t starts[ESDM__VIEW_LEVELS_MOST];
    esdm__buffer text;
    if (path.view == NULL)
        return esdm__error_set(err, ESDM_ENOENT,
                               "'%.200s' is no view of the site: esdm-ls --views lists them", name);
    char *copy = strdup(rest);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(rest), "a path");
    esdm__buffer_init(&text);
    char *next = NULL;
    for (char *one = strtok_r(copy, "/", &next); one != NULL; one = strtok_r(NULL, "/", &next)) {
        if (path.depth == path.view->nlevels) {
            free(copy);
            esdm__buffer_clear(&text);
            return too_deep(name, path.view, err);
        }
        starts[path.depth++] = text.bytes;
        put_canonical(one, &text);
    }
    free(copy);
    if (text.failed) {
        esdm__buffer_clear(&text);
        return esdm__error_nomem(err, strlen(rest), "a path");
    }
    size_t bytes = 0;
    path.text = (char *) esdm__buffer_steal(&text, &bytes);
    for (size_t i = 0; i < path.depth; i++)
        path.components[i] = path.text + starts[i];
    *ret_path = path;
    return ESDM_OK;
}

/* ---- expressions -------------------------------------------------------------------------- */

static void
put(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

/* "name = 'value'" of containers; NULL: it has none. */
static void
put_comparison(esdm__buffer *out, const char *attribute, const char *value)
{
    put(out, out->bytes > 0 ? " and " : "");
    put(out, value == NULL ? "not exists :" : ":");
    put(out, attribute);
    if (value == NULL)
        return;
    put(out, " = \"");
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            put(out, "\\");
        esdm__buffer_put(out, at, 1);
    }
    put(out, "\"");
}

esdm_status
esdm__view_expression(const esdm__view_path *path, esdm__buffer *out, esdm_error *err)
{
    for (size_t i = 0; i < path->view->nlevels; i++) {
        const esdm__view_level *level = &path->view->levels[i];
        char *value = NULL;
        if (i < path->depth && !esdm__view_value(path->components[i], &value))
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "'%.140s' is the beginning of a long text: it is no comparison",
                                   path->components[i]);
        if (i < path->depth)
            put_comparison(out, level->attribute, value);
        else if (level->value != NULL)
            put_comparison(out, level->attribute, level->value);
        free(value);
    }
    put(out, out->bytes > 0 ? " and exists :" : "exists :");
    put(out, path->view->levels[0].attribute);
    put_comparison(out, ESDM__SAVED_ATTRIBUTE, NULL);
    esdm__buffer_put_u8(out, 0);
    return out->failed ? esdm__error_nomem(err, out->bytes, "an expression") : ESDM_OK;
}

void
esdm__view_path_clear(esdm__view_path *path)
{
    free(path->text);
    *path = (esdm__view_path){0};
}
