/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Which request is which, who may ask, and how answers look. */

#include <string.h>

#include "esdm-serve/esdm-serve.h"
#include "esdm-serve/page.h"

/* ---- answers ------------------------------------------------------------------------------ */

/* Whether a page of another place may ask, and how it is called. NULL: it may not, or is none. */
static const char *
allowed_origin(const serve_request *request)
{
    const char *origin =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Origin");
    if (origin == NULL || request->state->origins == NULL)
        return NULL;
    for (char **one = request->state->origins; *one != NULL; one++) {
        if (g_str_equal(*one, "*") || g_ascii_strcasecmp(*one, origin) == 0)
            return *one;
    }
    return NULL;
}

/* What lets browsers give answers to such pages (CORS, https://fetch.spec.whatwg.org). */
static void
add_origin(const serve_request *request, struct MHD_Response *response)
{
    const char *origin = allowed_origin(request);
    if (request->state->origins != NULL)
        (void) MHD_add_response_header(response, "Vary", "Origin");
    if (origin == NULL)
        return;
    (void) MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    (void) MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                   "ETag, Content-Length, Content-Range, Content-Location");
}

serve_result
serve_reply(serve_request *request, unsigned code, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    add_origin(request, response);
    (void) MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void) MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    (void) MHD_add_response_header(response, "X-Frame-Options", "DENY");
    (void) MHD_add_response_header(response, "Content-Security-Policy",
                                   "default-src 'none'; script-src 'self'; style-src 'self'; "
                                   "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
                                   "form-action 'none'; frame-ancestors 'none'");
    serve_result result = MHD_queue_response(request->connection, code, response);
    MHD_destroy_response(response);
    return result;
}

serve_result
serve_json(serve_request *request, unsigned code, json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (text == NULL)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    (void) MHD_add_response_header(response, "Content-Type", "application/json; charset=utf-8");
    (void) MHD_add_response_header(response, "Cache-Control", "no-cache");
    if (code == MHD_HTTP_UNAUTHORIZED)
        (void) MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"ESDM\"");
    return serve_reply(request, code, response);
}

serve_result
serve_error(serve_request *request, unsigned code, const char *text)
{
    json_t *root = json_object();
    tool_json_set(root, "error", tool_json_text(text));
    return serve_json(request, code, root);
}

serve_result
serve_failed(serve_request *request, esdm_status status, const esdm_error *err)
{
    unsigned code = status == ESDM_ENOENT                             ? MHD_HTTP_NOT_FOUND
                    : status == ESDM_EINVAL || status == ESDM_ENOTSUP ? MHD_HTTP_BAD_REQUEST
                    : status == ESDM_EACCES                           ? MHD_HTTP_FORBIDDEN
                                            : MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (code == MHD_HTTP_INTERNAL_SERVER_ERROR || code == MHD_HTTP_FORBIDDEN)
        tool_error("%s", err->message);
    return serve_error(request, code, err->message);
}

const char *
serve_parameter(const serve_request *request, const char *key)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, key);
}

bool
serve_number(serve_request *request, const char *key, uint64_t otherwise, uint64_t *ret_value,
             serve_result *ret)
{
    guint64 value = otherwise;
    const char *text = serve_parameter(request, key);
    if (text != NULL && !g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &value, NULL)) {
        g_autofree char *message = g_strdup_printf("'%s' is to be a number", key);
        *ret = serve_error(request, MHD_HTTP_BAD_REQUEST, message);
        return false;
    }
    *ret_value = value;
    return true;
}

/* ---- who may ask -------------------------------------------------------------------------- */

static bool
equal_in_constant_time(const char *a, const char *b)
{
    size_t length = strlen(b);
    unsigned char differs = strlen(a) != length;
    for (size_t i = 0; i < length && a[i] != '\0'; i++)
        differs = (unsigned char) (differs | (a[i] ^ b[i]));
    return differs == 0;
}

static bool
has_token(const serve_request *request)
{
    const char *token = request->state->token;
    const char *given =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Authorization");
    if (token == NULL)
        return true;
    if (given != NULL && g_ascii_strncasecmp(given, "Bearer ", 7) == 0)
        return equal_in_constant_time(given + 7, token);
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(request->connection, &password);
    bool good = password != NULL && equal_in_constant_time(password, token);
    MHD_free(user);
    MHD_free(password);
    return good;
}

/* Without a token, a page of another site that a browser shows must not reach us under a name that
 * its owner has pointed at this machine. */
static bool
is_called_local(const serve_request *request)
{
    const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Host");
    if (request->state->token != NULL || host == NULL)
        return true;
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < G_N_ELEMENTS(local); i++) {
        size_t length = strlen(local[i]);
        if (g_ascii_strncasecmp(host, local[i], length) == 0 &&
            (host[length] == '\0' || host[length] == ':'))
            return true;
    }
    return false;
}

/* ---- which is which ----------------------------------------------------------------------- */

static serve_result
serve_page(serve_request *request, const serve_page_part *part)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        part->bytes, (void *) (uintptr_t) part->text, MHD_RESPMEM_PERSISTENT);
    if (response != NULL)
        (void) MHD_add_response_header(response, "Content-Type", part->type);
    return serve_reply(request, MHD_HTTP_OK, response);
}

static const struct {
    const char *prefix;
    serve_result (*handle)(serve_request *request);
    bool reads; /* the container behind it, as accurately as ?accuracy= says */
} routes[] = {{"/api/list", serve_list, false},
              {"/api/find", serve_find, false},
              {"/api/facets", serve_facets, false},
              {"/api/views/", serve_views, false},
              {"/api/container/", serve_container, true},
              {"/api/snapshots/", serve_snapshots, false},
              {"/api/fragments/", serve_fragments, false},
              {"/api/values/", serve_values, true},
              {"/files/", serve_file, true},
              {"/zarr/", serve_zarr, false},
              {"/dap/", serve_dap, false}};

static serve_result
answer(serve_request *request, const char *url)
{
    if (!is_called_local(request))
        return serve_error(request, MHD_HTTP_MISDIRECTED_REQUEST,
                           "this server is for this machine, as http://localhost:PORT/");
    if (!has_token(request))
        return serve_error(
            request, MHD_HTTP_UNAUTHORIZED,
            "this server wants its token: as 'Authorization: Bearer TOKEN', or as the "
            "password of any user");
    for (size_t i = 0; i < serve_page_parts; i++) {
        if (g_str_equal(url, serve_pages[i].path))
            return serve_page(request, &serve_pages[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(routes); i++) {
        size_t length = strlen(routes[i].prefix);
        bool whole = routes[i].prefix[length - 1] != '/';
        if (strncmp(url, routes[i].prefix, length) == 0 && (!whole || url[length] == '\0')) {
            const char *accuracy = routes[i].reads ? serve_parameter(request, "accuracy") : NULL;
            g_autofree char *name = accuracy != NULL
                                        ? g_strdup_printf("%s%caccuracy=%s", url + length,
                                                          url[length] == '?' ? '&' : '?', accuracy)
                                        : NULL;
            request->rest = name != NULL ? name : url + length;
            return routes[i].handle(request);
        }
    }
    return serve_error(request, MHD_HTTP_NOT_FOUND, "there is nothing of that name");
}

/* A browser asks before it sends a request with headers such as Range for a page. */
static serve_result
answer_preflight(serve_request *request)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *) (uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    (void) MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, HEAD");
    (void) MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                   "Authorization, If-Match, If-None-Match, If-Range, Range");
    (void) MHD_add_response_header(response, "Access-Control-Max-Age", "86400");
    return serve_reply(request, MHD_HTTP_NO_CONTENT, response);
}

enum MHD_Result
serve_handle(void *state, struct MHD_Connection *connection, const char *url, const char *method,
             const char *version, const char *upload, size_t *upload_bytes, void **seen)
{
    static const char begun;
    (void) version;
    (void) upload;
    serve_request request = {.state = state, .connection = connection};
    bool stranger = false;
    serve_guard_request(request.state->guard, connection,
                        request.state->any_user ? NULL : &stranger);
    request.head = g_str_equal(method, MHD_HTTP_METHOD_HEAD);
    if (g_str_equal(method, MHD_HTTP_METHOD_OPTIONS) && allowed_origin(&request) != NULL)
        return answer_preflight(&request);
    if (!request.head && !g_str_equal(method, MHD_HTTP_METHOD_GET))
        return serve_error(&request, MHD_HTTP_METHOD_NOT_ALLOWED, "this server only reads");
    if (*seen == NULL) { /* the headers alone */
        *seen = (void *) (uintptr_t) &begun;
        return MHD_YES;
    }
    *upload_bytes = 0;
    if (stranger)
        return serve_error(
            &request, MHD_HTTP_FORBIDDEN,
            "this server is for the user who started it, and for users who can read "
            "the directories of the site, where it has nothing elsewhere (as on S3); "
            "esdm-serve --all-users lets all of this machine read");
    return answer(&request, url);
}
