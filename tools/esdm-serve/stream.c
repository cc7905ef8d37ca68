/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Bodies that are read while they are sent, whole or in ranges (RFC 9110). */

#include <string.h>

#include "esdm-serve/esdm-serve.h"

#define BLOCK (256u << 10) /* sent at once */

typedef struct sent {
    serve_body body;
    uint64_t first;
} sent;

static ssize_t
send_block(void *user, uint64_t position, char *buffer, size_t most)
{
    const sent *s = user;
    esdm_error err = {0};
    size_t got = 0;
    esdm_status status = s->body.read(s->body.user, s->first + position, buffer, most, &got, &err);
    if (status == ESDM_OK && got > 0)
        return (ssize_t) got;
    if (status != ESDM_OK)
        tool_error("%s", err.message);
    return MHD_CONTENT_READER_END_WITH_ERROR; /* the client sees that it is not all */
}

static void
end_sending(void *user)
{
    sent *s = user;
    s->body.done(s->body.user);
    g_free(s);
}

/* ---- what is asked for -------------------------------------------------------------------- */

typedef enum range_kind { WHOLE, PART, IMPOSSIBLE } range_kind;

static bool
parse_number(const char **at, uint64_t *ret)
{
    char *end = NULL;
    if (!g_ascii_isdigit(**at))
        return false;
    *ret = g_ascii_strtoull(*at, &end, 10);
    *at = end;
    return true;
}

/* One range. What has another form is passed over, as the standard allows. */
static range_kind
parse_range(const char *text, uint64_t size, uint64_t *ret_first, uint64_t *ret_bytes)
{
    uint64_t first = 0, last = UINT64_MAX;
    if (text == NULL || g_ascii_strncasecmp(text, "bytes=", 6) != 0 || strchr(text, ',') != NULL)
        return WHOLE;
    const char *at = text + 6;
    bool has_first = parse_number(&at, &first);
    if (*at != '-')
        return WHOLE;
    at++;
    bool has_last = parse_number(&at, &last);
    if (*at != '\0' || (!has_first && !has_last) || (has_first && last < first))
        return WHOLE;
    if (!has_first) { /* the last bytes */
        first = size - MIN(last, size);
        if (last == 0)
            return IMPOSSIBLE;
        last = UINT64_MAX;
    }
    if (first >= size)
        return IMPOSSIBLE;
    *ret_first = first;
    *ret_bytes = MIN(last, size - 1) - first + 1;
    return PART;
}

static const char *
header(const serve_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* Whether one of the tags, or "*", is this one. */
static bool
names_tag(const char *list, const char *tag)
{
    g_auto(GStrv) tags = g_strsplit(list, ",", -1);
    for (char **one = tags; *one != NULL; one++) {
        const char *text = g_strstrip(*one);
        if (g_str_has_prefix(text, "W/"))
            text += 2;
        if (g_str_equal(text, "*") || g_str_equal(text, tag))
            return true;
    }
    return false;
}

/* ---- the answer --------------------------------------------------------------------------- */

static struct MHD_Response *
no_content(void)
{
    return MHD_create_response_from_buffer(0, (void *) (uintptr_t) "", MHD_RESPMEM_PERSISTENT);
}

static void
add_headers(const serve_body *body, struct MHD_Response *response)
{
    (void) MHD_add_response_header(response, "ETag", body->tag);
    (void) MHD_add_response_header(response, "Cache-Control", "no-cache");
    if (body->location != NULL)
        (void) MHD_add_response_header(response, "Content-Location", body->location);
}

serve_result
serve_unchanged(serve_request *request, const serve_body *body, bool *ret_unchanged)
{
    const char *known = header(request, "If-None-Match");
    *ret_unchanged = known != NULL && names_tag(known, body->tag);
    if (!*ret_unchanged)
        return MHD_NO;
    struct MHD_Response *response = no_content();
    if (response == NULL)
        return MHD_NO;
    add_headers(body, response);
    return serve_reply(request, MHD_HTTP_NOT_MODIFIED, response);
}

serve_result
serve_stream(serve_request *request, const serve_body *body)
{
    uint64_t first = 0, bytes = body->size;
    const char *wanted = header(request, "Range"), *only_if = header(request, "If-Range");
    if (only_if != NULL && !g_str_equal(only_if, body->tag))
        wanted = NULL;
    range_kind kind = parse_range(wanted, body->size, &first, &bytes);
    sent *s = g_new0(sent, 1);
    *s = (sent){.body = *body, .first = first};
    struct MHD_Response *response =
        kind == IMPOSSIBLE || bytes == 0
            ? no_content()
            : MHD_create_response_from_callback(bytes, BLOCK, send_block, s, end_sending);
    if (response == NULL || kind == IMPOSSIBLE || bytes == 0)
        end_sending(s);
    if (response == NULL)
        return MHD_NO;
    g_autofree char *content =
        kind == IMPOSSIBLE
            ? g_strdup_printf("bytes */%" G_GUINT64_FORMAT, (guint64) body->size)
            : g_strdup_printf("bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT
                              "/%" G_GUINT64_FORMAT,
                              (guint64) first, (guint64) (first + bytes - 1), (guint64) body->size);
    if (kind != WHOLE)
        (void) MHD_add_response_header(response, "Content-Range", content);
    (void) MHD_add_response_header(response, "Accept-Ranges", "bytes");
    (void) MHD_add_response_header(response, "Content-Type", body->type);
    add_headers(body, response);
    return serve_reply(request,
                       kind == IMPOSSIBLE ? MHD_HTTP_RANGE_NOT_SATISFIABLE
                       : kind == PART     ? MHD_HTTP_PARTIAL_CONTENT
                                          : MHD_HTTP_OK,
                       response);
}
