/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers as files, whole or in ranges (RFC 9110). */

#include <stdlib.h>
#include <string.h>

#include "esdm-serve/esdm-serve.h"

#define BLOCK (256u << 10) /* sent at once */

typedef struct sent {
    serve_state *state;
    vfile_shared *file;
    uint64_t first;
} sent;

static ssize_t
send_block(void *user, uint64_t position, char *buffer, size_t most)
{
    const sent *s = user;
    esdm_error err = {0};
    size_t got = 0;
    esdm_status status =
        esdm_vfile_pread(vfile_of(s->file), buffer, most, s->first + position, &got, &err);
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
    vfile_pool_put(s->state->files, s->file);
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

static serve_result
send_range(serve_request *request, vfile_shared *file, const char *tag)
{
    uint64_t size = esdm_vfile_size(vfile_of(file)), first = 0, bytes = size;
    const char *wanted = header(request, "Range"), *only_if = header(request, "If-Range");
    if (only_if != NULL && !g_str_equal(only_if, tag))
        wanted = NULL;
    range_kind kind = parse_range(wanted, size, &first, &bytes);
    sent *s = g_new0(sent, 1);
    *s = (sent){.state = request->state, .file = file, .first = first};
    struct MHD_Response *response =
        kind == IMPOSSIBLE
            ? no_content()
            : MHD_create_response_from_callback(bytes, BLOCK, send_block, s, end_sending);
    if (response == NULL || kind == IMPOSSIBLE)
        end_sending(s);
    if (response == NULL)
        return MHD_NO;
    g_autofree char *content =
        kind == IMPOSSIBLE
            ? g_strdup_printf("bytes */%" G_GUINT64_FORMAT, (guint64) size)
            : g_strdup_printf("bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT
                              "/%" G_GUINT64_FORMAT,
                              (guint64) first, (guint64) (first + bytes - 1), (guint64) size);
    if (kind != WHOLE)
        (void) MHD_add_response_header(response, "Content-Range", content);
    (void) MHD_add_response_header(response, "Accept-Ranges", "bytes");
    (void) MHD_add_response_header(response, "ETag", tag);
    (void) MHD_add_response_header(response, "Cache-Control", "no-cache");
    (void) MHD_add_response_header(response, "Content-Type", "application/x-netcdf");
    return serve_reply(request,
                       kind == IMPOSSIBLE ? MHD_HTTP_RANGE_NOT_SATISFIABLE
                       : kind == PART     ? MHD_HTTP_PARTIAL_CONTENT
                                          : MHD_HTTP_OK,
                       response);
}

serve_result
serve_file(serve_request *request)
{
    esdm_error err = {0};
    esdm_container_info info = {.snapshot = 0};
    serve_result result = MHD_NO;
    vfile_shared *file = NULL;
    uint64_t snapshot = 0;
    esdm_vfile_format format = ESDM_VFILE_NETCDF4;
    const char *format_text = serve_parameter(request, "format");
    if (format_text != NULL && !esdm_vfile_format_of(format_text, &format))
        return serve_error(request, MHD_HTTP_BAD_REQUEST,
                           "format is netcdf4, classic, 64bit-offset or cdf5");
    if (!serve_number(request, "snapshot", 0, &snapshot, &result))
        return result;
    esdm_status status = esdm_container_stat(request->state->session, request->rest, &info, &err);
    /* What a query joins has no snapshot of its own. */
    uint64_t time_ns = info.snapshot != 0 ? info.created_ns : info.modified_ns;
    if (status == ESDM_OK)
        status = vfile_pool_get(request->state->files, request->rest, time_ns,
                                snapshot != 0 ? snapshot : info.snapshot, format, &file, &err);
    if (status != ESDM_OK)
        return serve_failed(request, status, &err);
    const esdm_vfile *v = vfile_of(file);
    g_autofree char *tag = g_strdup_printf("\"%s-%" G_GUINT64_FORMAT "-%d\"", esdm_vfile_uuid(v),
                                           (guint64) esdm_vfile_snapshot(v), (int) format);
    const char *known = header(request, "If-None-Match");
    if (known != NULL && names_tag(known, tag)) {
        vfile_pool_put(request->state->files, file);
        struct MHD_Response *response = no_content();
        (void) MHD_add_response_header(response, "ETag", tag);
        return serve_reply(request, MHD_HTTP_NOT_MODIFIED, response);
    }
    return send_range(request, file, tag);
}
