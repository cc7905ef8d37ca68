/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers for clients of OPeNDAP: /dap/NAME.dds, .das, .dods. */

#include "esdm-serve/dap.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK (64u << 10) /* sent at once */

/* ---- answers ------------------------------------------------------------------------------ */

static void
add_headers(struct MHD_Response *response, const char *description, const char *type)
{
    (void) MHD_add_response_header(response, "XDODS-Server", "dods/3.2");
    (void) MHD_add_response_header(response, "Content-Description", description);
    (void) MHD_add_response_header(response, "Content-Type", type);
    (void) MHD_add_response_header(response, "Cache-Control", "no-cache");
}

static serve_result
send_text(serve_request *request, unsigned code, const char *description, const char *tag,
          GString *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->len, text->str, MHD_RESPMEM_MUST_COPY);
    g_string_free(text, true);
    if (response == NULL)
        return MHD_NO;
    add_headers(response, description, "text/plain; charset=utf-8");
    if (tag != NULL)
        (void) MHD_add_response_header(response, "ETag", tag);
    return serve_reply(request, code, response);
}

/* As clients of OPeNDAP read it. */
static serve_result
send_error(serve_request *request, unsigned code, const char *message)
{
    GString *text = g_string_new("Error {\n    code = ");
    g_string_append_printf(text, "%u;\n    message = \"", code);
    for (const char *c = message; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *c);
    }
    g_string_append(text, "\";\n};\n");
    return send_text(request, code, "dods_error", NULL, text);
}

/* ---- values ------------------------------------------------------------------------------- */

typedef struct sent {
    serve_state *state;
    serve_place place;
    dap_set *set;
    dap_data *data;
} sent;

static void
end_sending(void *user)
{
    sent *s = user;
    dap_data_free(s->data);
    dap_set_free(s->set);
    serve_place_clear(s->state, &s->place);
    g_free(s);
}

static ssize_t
send_block(void *user, uint64_t position, char *buffer, size_t most)
{
    const sent *s = user;
    esdm_error err = {0};
    size_t bytes = 0;
    (void) position; /* one block follows the other */
    esdm_status status = dap_data_next(s->data, buffer, most, &bytes, &err);
    if (status != ESDM_OK) {
        tool_error("%s", err.message);
        return MHD_CONTENT_READER_END_WITH_ERROR; /* the client sees that it is not all */
    }
    return bytes > 0 ? (ssize_t) bytes : MHD_CONTENT_READER_END_OF_STREAM;
}

/* Takes over the set and the place. */
static serve_result
send_data(serve_request *request, serve_place *place, dap_set *set)
{
    sent *s = g_new0(sent, 1);
    GString *head = g_string_new(NULL);
    dap_put_dds(set, head);
    g_string_append(head, "\nData:\n");
    *s = (sent){.state = request->state,
                .place = *place,
                .set = set,
                .data = dap_data_new(dap_parts(set), head)};
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, send_block, s, end_sending);
    if (response == NULL) {
        end_sending(s);
        return MHD_NO;
    }
    add_headers(response, "dods_data", "application/octet-stream");
    (void) MHD_add_response_header(response, "ETag", s->place.tag);
    return serve_reply(request, MHD_HTTP_OK, response);
}

/* ---- requests ----------------------------------------------------------------------------- */

typedef struct said {
    const char *expression; /* borrowed; NULL: none */
    unsigned parts;         /* of what stands behind '?', between '&' */
    bool has_value;
} said;

static enum MHD_Result
note_argument(void *user, enum MHD_ValueKind kind, const char *key, const char *value)
{
    said *s = user;
    (void) kind;
    if (s->parts++ == 0)
        s->expression = key;
    s->has_value |= value != NULL && value[0] != '\0';
    return MHD_YES;
}

static serve_result
answer(serve_request *request, serve_place *place, const char *kind, const char *expression)
{
    dap_set *set = dap_set_new(place->model);
    g_autofree char *wrong = dap_constrain(set, expression);
    serve_result result = MHD_NO;
    GString *text = g_string_new(NULL);
    if (wrong != NULL) {
        result = send_error(request, MHD_HTTP_BAD_REQUEST, wrong);
    } else if (g_str_equal(kind, "das")) {
        dap_put_das(set, text);
        result = send_text(request, MHD_HTTP_OK, "dods_das", place->tag, g_steal_pointer(&text));
    } else if (g_str_equal(kind, "dds")) {
        dap_put_dds(set, text);
        result = send_text(request, MHD_HTTP_OK, "dods_dds", place->tag, g_steal_pointer(&text));
    } else {
        g_string_free(text, true);
        return send_data(request, place, set);
    }
    if (text != NULL)
        g_string_free(text, true);
    dap_set_free(set);
    serve_place_clear(request->state, place);
    return result;
}

serve_result
serve_dap(serve_request *request)
{
    static const char *const kinds[] = {"dds", "das", "dods"};
    serve_result result = MHD_NO;
    serve_place place;
    said s = {.expression = NULL};
    const char *dot = strrchr(request->rest, '.'), *kind = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(kinds) && dot != NULL; i++)
        kind = g_str_equal(dot + 1, kinds[i]) ? kinds[i] : kind;
    if (kind == NULL)
        return send_error(request, MHD_HTTP_NOT_FOUND,
                          "this is for clients of OPeNDAP, which ask for NAME.dds, NAME.das and "
                          "NAME.dods");
    (void) MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, note_argument, &s);
    if (s.parts > 1 || s.has_value)
        return send_error(request, MHD_HTTP_BAD_REQUEST,
                          "there are no sequences that something could be selected of");
    g_autofree char *name = g_strndup(request->rest, (size_t) (dot - request->rest));
    if (!serve_place_open(request, name, &place, &result))
        return result;
    return answer(request, &place, kind, s.expression);
}
