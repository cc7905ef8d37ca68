/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "xml.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PATH_BYTES 512

typedef struct parser {
    const char *at;
    const char *begin;
    const char *end;
    char path[PATH_BYTES];
    size_t path_bytes;
    size_t starts[S3__XML_DEPTH]; /* length of the path before each open element */
    size_t depth;
    char *text; /* of the innermost element so far; room for the whole input */
    size_t text_bytes;
    bool any; /* there was an element */
    s3__xml_visitor visit;
    void *user;
} parser;

static esdm_status
broken(const parser *p, const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EIO, "the XML of the answer is broken at byte %zu: %s",
                           (size_t) (p->at - p->begin), what);
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':' || (uint8_t) c >= 0x80;
}

static bool
begins(const parser *p, const char *word)
{
    size_t bytes = strlen(word);
    return (size_t) (p->end - p->at) >= bytes && memcmp(p->at, word, bytes) == 0;
}

/* Moves behind the next `word`; false when there is none. */
static bool
skip_past(parser *p, const char *word)
{
    size_t bytes = strlen(word);
    const char *found =
        p->at < p->end ? memmem(p->at, (size_t) (p->end - p->at), word, bytes) : NULL;
    if (found == NULL)
        return false;
    p->at = found + bytes;
    return true;
}

static void
put_char(parser *p, uint32_t code)
{
    char *to = p->text + p->text_bytes;
    if (code < 0x80) {
        to[0] = (char) code;
        p->text_bytes += 1;
    } else if (code < 0x800) {
        to[0] = (char) (0xc0u | (code >> 6));
        to[1] = (char) (0x80u | (code & 0x3fu));
        p->text_bytes += 2;
    } else if (code < 0x10000) {
        to[0] = (char) (0xe0u | (code >> 12));
        to[1] = (char) (0x80u | ((code >> 6) & 0x3fu));
        to[2] = (char) (0x80u | (code & 0x3fu));
        p->text_bytes += 3;
    } else {
        to[0] = (char) (0xf0u | (code >> 18));
        to[1] = (char) (0x80u | ((code >> 12) & 0x3fu));
        to[2] = (char) (0x80u | ((code >> 6) & 0x3fu));
        to[3] = (char) (0x80u | (code & 0x3fu));
        p->text_bytes += 4;
    }
}

/* "&#65;" or "&#x41;", the position behind "&#". A reference is never shorter than its UTF-8. */
static bool
number_reference(const char *at, const char *end, uint32_t *ret_code)
{
    uint32_t base = 10;
    uint32_t code = 0;
    if (at < end && *at == 'x') {
        base = 16;
        at++;
    }
    if (at == end)
        return false;
    for (; at < end; at++) {
        uint32_t digit = UINT32_MAX;
        if (*at >= '0' && *at <= '9')
            digit = (uint32_t) (*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            digit = (uint32_t) (*at - 'a') + 10;
        else if (*at >= 'A' && *at <= 'F')
            digit = (uint32_t) (*at - 'A') + 10;
        if (digit >= base)
            return false;
        code = code * base + digit;
        if (code > 0x10ffff)
            return false;
    }
    *ret_code = code;
    return code != 0 && (code < 0xd800 || code > 0xdfff);
}

static esdm_status
read_reference(parser *p, esdm_error *err)
{
    static const struct {
        const char *name;
        char value;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    const char *start = p->at + 1;
    size_t left = (size_t) (p->end - start);
    const char *semicolon = memchr(start, ';', left < 12 ? left : 12);
    if (semicolon == NULL)
        return broken(p, "'&' begins no reference", err);
    size_t bytes = (size_t) (semicolon - start);
    uint32_t code = 0;
    if (bytes > 1 && start[0] == '#') {
        if (!number_reference(start + 1, semicolon, &code))
            return broken(p, "no such character", err);
    } else {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (strlen(known[i].name) == bytes && memcmp(known[i].name, start, bytes) == 0)
                code = (uint8_t) known[i].value;
        }
        if (code == 0)
            return broken(p, "unknown entity", err);
    }
    put_char(p, code);
    p->at = semicolon + 1;
    return ESDM_OK;
}

/* Reads a name and leaves out what stands before a colon. */
static esdm_status
read_name(parser *p, const char **ret_name, size_t *ret_bytes, esdm_error *err)
{
    const char *name = p->at;
    while (p->at < p->end && is_name_byte(*p->at))
        p->at++;
    size_t bytes = (size_t) (p->at - name);
    const char *colon = memrchr(name, ':', bytes);
    if (colon != NULL) {
        bytes -= (size_t) (colon + 1 - name);
        name = colon + 1;
    }
    if (bytes == 0)
        return broken(p, "a name is missing", err);
    *ret_name = name;
    *ret_bytes = bytes;
    return ESDM_OK;
}

/* Passes over attributes to the end of a tag. */
static esdm_status
skip_attributes(parser *p, bool *ret_empty, esdm_error *err)
{
    while (p->at < p->end) {
        char c = *p->at++;
        if (c == '"' || c == '\'') {
            const char quote[2] = {c, '\0'};
            if (!skip_past(p, quote))
                break;
        } else if (c == '>') {
            *ret_empty = p->at[-2] == '/';
            return ESDM_OK;
        } else if (c == '<') {
            break;
        }
    }
    return broken(p, "a tag has no end", err);
}

static esdm_status
close_element(parser *p, esdm_error *err)
{
    p->text[p->text_bytes] = '\0';
    if (strlen(p->text) != p->text_bytes)
        return broken(p, "a text holds a NUL", err);
    esdm_status status = p->visit(p->path, p->text, p->user, err);
    p->path_bytes = p->starts[--p->depth];
    p->path[p->path_bytes] = '\0';
    p->text_bytes = 0; /* a parent's text around children means nothing in S3 */
    return status;
}

static esdm_status
open_element(parser *p, esdm_error *err)
{
    const char *name = NULL;
    size_t bytes = 0;
    bool empty = false;
    p->at++;
    esdm_status status = read_name(p, &name, &bytes, err);
    if (status != ESDM_OK)
        return status;
    if (p->depth == S3__XML_DEPTH || bytes + 2 > PATH_BYTES - p->path_bytes)
        return broken(p, "elements lie too deep", err);
    p->starts[p->depth++] = p->path_bytes;
    if (p->path_bytes > 0)
        p->path[p->path_bytes++] = '/';
    memcpy(p->path + p->path_bytes, name, bytes);
    p->path_bytes += bytes;
    p->path[p->path_bytes] = '\0';
    p->text_bytes = 0;
    p->any = true;
    status = skip_attributes(p, &empty, err);
    return status == ESDM_OK && empty ? close_element(p, err) : status;
}

static esdm_status
end_element(parser *p, esdm_error *err)
{
    const char *name = NULL;
    size_t bytes = 0;
    p->at += 2;
    esdm_status status = read_name(p, &name, &bytes, err);
    if (status != ESDM_OK)
        return status;
    while (p->at < p->end && is_space(*p->at))
        p->at++;
    if (p->at == p->end || *p->at != '>')
        return broken(p, "a tag has no end", err);
    p->at++;
    if (p->depth == 0)
        return broken(p, "an element ends that did not begin", err);
    size_t start = p->starts[p->depth - 1];
    start += start > 0;
    if (p->path_bytes - start != bytes || memcmp(p->path + start, name, bytes) != 0)
        return broken(p, "another element ends than the one that began", err);
    return close_element(p, err);
}

static esdm_status
read_cdata(parser *p, esdm_error *err)
{
    p->at += 9;
    const char *start = p->at;
    if (!skip_past(p, "]]>"))
        return broken(p, "CDATA has no end", err);
    size_t bytes = (size_t) (p->at - 3 - start);
    memcpy(p->text + p->text_bytes, start, bytes);
    p->text_bytes += bytes;
    return ESDM_OK;
}

static esdm_status
read_markup(parser *p, esdm_error *err)
{
    if (begins(p, "</"))
        return end_element(p, err);
    if (begins(p, "<![CDATA[") && p->depth > 0)
        return read_cdata(p, err);
    if (begins(p, "<!--"))
        return skip_past(p, "-->") ? ESDM_OK : broken(p, "a comment has no end", err);
    if (begins(p, "<?"))
        return skip_past(p, "?>") ? ESDM_OK : broken(p, "an instruction has no end", err);
    if (begins(p, "<!"))
        return broken(p, "document types are not accepted", err);
    return open_element(p, err);
}

static esdm_status
read_all(parser *p, esdm_error *err)
{
    while (p->at < p->end) {
        esdm_status status = ESDM_OK;
        if (*p->at == '<') {
            status = read_markup(p, err);
        } else if (*p->at == '&' && p->depth > 0) {
            status = read_reference(p, err);
        } else if (p->depth > 0) {
            p->text[p->text_bytes++] = *p->at++;
        } else if (is_space(*p->at) || (uint8_t) *p->at >= 0x80) { /* also a byte order mark */
            p->at++;
        } else {
            status = broken(p, "text outside of elements", err);
        }
        if (status != ESDM_OK)
            return status;
    }
    if (p->depth > 0)
        return broken(p, "it ends too early", err);
    return p->any ? ESDM_OK : broken(p, "there is no element", err);
}

esdm_status
s3__xml_parse(const void *data, size_t bytes, s3__xml_visitor visit, void *user, esdm_error *err)
{
    parser p = {.visit = visit, .user = user};
    p.at = p.begin = data != NULL ? data : "";
    p.end = p.begin + bytes;
    p.text = malloc(bytes + 8);
    if (p.text == NULL)
        return esdm__error_nomem(err, bytes + 8, "an answer");
    esdm_status status = read_all(&p, err);
    free(p.text);
    return status;
}
