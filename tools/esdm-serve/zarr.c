/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers as stores of Zarr, version 3: /zarr/NAME/KEY. Chunks are made while they are sent. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-serve/esdm-serve.h"
#include "vfile/inner.h"
#include "zarr/zarr.h"

#define META       "zarr.json"
#define MOST_DEPTH 64u /* of folders in the name of a container */
/* Texts of a chunk lie in memory while they are sent: of one, and of all together. */
#define MOST_TEXTS     (32u << 20)
#define MOST_TEXTS_ALL (96u << 20)

/* ---- metadata ----------------------------------------------------------------------------- */

static const zarr_style style = {.format = 3, .most = ZARR_CHUNK_MOST, .codecs = ""};

static bool
is_shown(const serve_node *node)
{
    return node->group != NULL || zarr_has_type(node->dataset->type);
}

char *
serve_zarr_consolidated(const serve_model *model)
{
    GString *json = g_string_new(NULL);
    zarr_consolidated_json(model->model, &style, json);
    return g_string_free(json, false);
}

/* ---- bodies ------------------------------------------------------------------------------- */

/* A text, or a chunk. */
typedef struct content {
    serve_state *state;
    serve_place place;
    char *bytes; /* owned; NULL: a chunk that is read while it is sent */
    size_t size;
    uint64_t counted; /* among the bytes that lie in memory */
    vf_dataset chunked;
    uint64_t number;
} content;

static void
end_content(void *user)
{
    content *c = user;
    serve_place_clear(c->state, &c->place);
    atomic_fetch_sub(&c->state->held_bytes, c->counted);
    g_free(c->bytes);
    g_free(c);
}

static esdm_status
read_content(void *user, uint64_t position, void *buffer, size_t bytes, size_t *ret_read,
             esdm_error *err)
{
    const content *c = user;
    size_t piece = MIN(bytes, c->size - (size_t) position);
    *ret_read = piece;
    if (c->bytes == NULL)
        return vf_render_box(&c->chunked, c->number, position, piece, buffer, err);
    memcpy(buffer, c->bytes + position, piece);
    return ESDM_OK;
}

/* ---- chunks of texts ---------------------------------------------------------------------- */

static void
put_u32(GByteArray *to, size_t value)
{
    guint32 le = GUINT32_TO_LE((guint32) value);
    g_byte_array_append(to, (const guint8 *) &le, sizeof le);
}

/* As the codec "vlen-utf8" has them: their number, and the length before each. */
static esdm_status
pack_texts(char *const *texts, uint64_t count, GByteArray *to, esdm_error *err)
{
    put_u32(to, count);
    for (uint64_t i = 0; i < count; i++) {
        g_autofree char *valid = g_utf8_make_valid(texts[i] != NULL ? texts[i] : "", -1);
        size_t bytes = strlen(valid);
        if (bytes > MOST_TEXTS - to->len)
            return tool_error_set(err, ESDM_ENOTSUP, "the texts of one chunk are more than %u MiB",
                                  MOST_TEXTS >> 20);
        put_u32(to, bytes);
        g_byte_array_append(to, (const guint8 *) valid, (guint) bytes);
    }
    return ESDM_OK;
}

static esdm_status
read_texts(content *c, esdm_error *err)
{
    uint64_t count = c->size / sizeof(char *);
    char **texts = calloc(count, sizeof *texts);
    if (texts == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "no memory for a chunk of texts");
    GByteArray *packed = g_byte_array_new();
    /* Behind the end of a dimension stands the fill value, which is not ours to free. */
    void *const fill = *(void *const *) c->chunked.fill;
    esdm_status status = vf_render_box(&c->chunked, c->number, 0, count * sizeof *texts,
                                       (unsigned char *) texts, err);
    if (status == ESDM_OK)
        status = pack_texts(texts, count, packed, err);
    for (uint64_t i = 0; i < count; i++) {
        if (texts[i] != fill)
            free(texts[i]);
    }
    free(texts);
    c->size = packed->len;
    c->bytes = (char *) g_byte_array_free(packed, false);
    return status;
}

static bool
is_room_for_texts(content *c)
{
    c->counted = MOST_TEXTS;
    return atomic_fetch_add(&c->state->held_bytes, MOST_TEXTS) <= MOST_TEXTS_ALL - MOST_TEXTS;
}

/* ---- requests ----------------------------------------------------------------------------- */

static serve_result
send_content(serve_request *request, const char *key, const char *type, content *c)
{
    g_autofree char *escaped = g_uri_escape_string(key, "/", false);
    g_autofree char *location =
        c->place.pinned != NULL ? g_strdup_printf("/zarr/%s/%s", c->place.pinned, escaped) : NULL;
    g_autofree char *tag = g_strdup(c->place.tag);
    bool unchanged = false;
    esdm_error err = {0};
    const serve_body head = {.tag = tag, .location = location};
    serve_result result = serve_unchanged(request, &head, &unchanged);
    if (unchanged) {
        end_content(c);
        return result;
    }
    bool texts = c->bytes == NULL && c->chunked.type == ESDM_TYPE_STRING;
    if (texts && !is_room_for_texts(c)) {
        end_content(c);
        return serve_error(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "too many chunks of texts are being sent: ask again later");
    }
    esdm_status status = texts ? read_texts(c, &err) : ESDM_OK;
    if (status != ESDM_OK) {
        end_content(c);
        return serve_failed(request, status, &err);
    }
    if (texts) { /* as many as there are from now on */
        atomic_fetch_sub(&c->state->held_bytes, c->counted - c->size);
        c->counted = c->size;
    }
    const serve_body body = {.size = c->size,
                             .type = type,
                             .tag = tag,
                             .location = location,
                             .read = read_content,
                             .done = end_content,
                             .user = c};
    return serve_stream(request, &body);
}

static serve_result
no_such_key(serve_request *request, serve_place *place)
{
    serve_place_clear(request->state, place);
    return serve_error(request, MHD_HTTP_NOT_FOUND, "the store has no such key");
}

static serve_result
answer_meta(serve_request *request, serve_place *place, const char *key, const serve_node *node)
{
    GString *json = g_string_new(NULL);
    if (node->dataset != NULL)
        zarr_array_json(node->dataset, &style, json);
    else
        zarr_group_json(
            node->group,
            node->group == place->model->model->root ? place->model->consolidated : NULL, json);
    content *c = g_new0(content, 1);
    c->state = request->state;
    c->place = *place;
    c->size = json->len;
    c->bytes = g_string_free(json, false);
    return send_content(request, key, "application/json", c);
}

/* The array that a key begins with, and what is behind it: "c/0/1". */
static const cp_dataset *
find_array(const serve_model *model, const char *key, const char **ret_rest)
{
    for (size_t i = strlen(key); i-- > 0;) {
        if (key[i] != 'c' || (key[i + 1] != '/' && key[i + 1] != '\0') || i == 0 ||
            key[i - 1] != '/')
            continue;
        g_autofree char *path = g_strndup(key, i - 1);
        const serve_node *node = serve_node_find(model, path);
        if (node == NULL || node->dataset == NULL)
            continue;
        *ret_rest = key + i;
        return node->dataset;
    }
    return NULL;
}

static serve_result
answer_chunk(serve_request *request, serve_place *place, const char *key)
{
    uint64_t chunk[ESDM_MAX_RANK], number = 0;
    const char *rest = NULL;
    const cp_dataset *d = find_array(place->model, key, &rest);
    if (d == NULL || !zarr_has_type(d->type))
        return no_such_key(request, place);
    zarr_chunk(d, style.most, chunk);
    if (!zarr_chunk_number(d, chunk, rest, &number))
        return no_such_key(request, place);
    content *c = g_new0(content, 1);
    c->state = request->state;
    c->place = *place;
    c->chunked = vf_dataset_of(d, G_BYTE_ORDER != G_LITTLE_ENDIAN);
    for (uint32_t i = 0; i < d->rank; i++)
        c->chunked.box[i] = chunk[i];
    c->number = number;
    c->size = (size_t) zarr_chunk_bytes(d, chunk);
    return send_content(request, key, "application/octet-stream", c);
}

static serve_result
answer_key(serve_request *request, serve_place *place, const char *key)
{
    size_t length = strlen(key);
    bool is_root = g_str_equal(key, META);
    if (!is_root && !g_str_has_suffix(key, "/" META))
        return answer_chunk(request, place, key);
    g_autofree char *path = g_strndup(key, is_root ? 0 : length - strlen("/" META));
    const serve_node *node =
        is_root || path[0] != '\0' ? serve_node_find(place->model, path) : NULL;
    if (node == NULL || !is_shown(node))
        return no_such_key(request, place);
    return answer_meta(request, place, key, node);
}

/* Where the name of the container ends: no container lies below another one, so the first one that
 * is there is it. NULL: there is none. */
static char *
find_name(const serve_request *request, const char **ret_key)
{
    const char *path = request->rest, *slash = path;
    for (unsigned depth = 0; depth < MOST_DEPTH && (slash = strchr(slash, '/')) != NULL; depth++) {
        esdm_container_info info;
        g_autofree char *name = g_strndup(path, (size_t) (slash - path));
        slash++;
        if (esdm_container_stat(request->state->session, name, &info, NULL) == ESDM_OK) {
            *ret_key = slash;
            return g_steal_pointer(&name);
        }
    }
    return NULL;
}

serve_result
serve_zarr(serve_request *request)
{
    serve_result result = MHD_NO;
    serve_place place;
    const char *key = NULL;
    g_autofree char *name = find_name(request, &key);
    if (name == NULL)
        return serve_error(
            request, MHD_HTTP_NOT_FOUND,
            "no container is called so: /zarr/NAME/zarr.json is the first key of one");
    if (!serve_place_open(request, name, &place, &result))
        return result;
    return answer_key(request, &place, key);
}
