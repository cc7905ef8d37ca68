/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a run reads: containers by their digests, files by theirs. */
#include "esdm-recipe/esdm-recipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "esdm/digest.h"

#define PART_BYTES 65536

/* SHA-256 of a file in hexadecimal digits; owned; NULL: errno tells. */
static char *
hash_of(const char *path, guint64 *ret_bytes)
{
    FILE *file = fopen(path, "re");
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree guchar *part = g_malloc(PART_BYTES);
    size_t n;
    *ret_bytes = 0;
    if (file == NULL)
        return NULL;
    while ((n = fread(part, 1, PART_BYTES, file)) > 0) {
        g_checksum_update(sum, part, (gssize) n);
        *ret_bytes += n;
    }
    bool bad = ferror(file) != 0;
    (void) fclose(file);
    return bad ? NULL : g_strdup(g_checksum_get_string(sum));
}

json_t *
recipe_file(const char *path)
{
    guint64 bytes = 0;
    g_autofree char *hash = hash_of(path, &bytes);
    if (hash == NULL) {
        tool_error("%s: %s", path, g_strerror(errno));
        return NULL;
    }
    json_t *object = json_object();
    tool_json_set(object, "file", tool_json_text(path));
    tool_json_set(object, "bytes", tool_json_u64(bytes));
    tool_json_set(object, "sha256", tool_json_text(hash));
    return object;
}

static esdm_status
digest_of(esdm_session *session, const char *name, char ret[ESDM_DIGEST_BYTES], esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, err);
    if (st != ESDM_OK)
        return st;
    st = esdm_container_digest(container, 0, ret, err);
    esdm_container_discard(container);
    return st;
}

tool_exit
recipe_digest(esdm_session *session, const char *name, char ret[ESDM_DIGEST_BYTES])
{
    esdm_error err = {0};
    esdm_status st = digest_of(session, name, ret, &err);
    return st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
}

static bool
is_digest(esdm_session *session, const char *name, const char *wanted)
{
    char digest[ESDM_DIGEST_BYTES];
    return digest_of(session, name, digest, NULL) == ESDM_OK && g_str_equal(digest, wanted);
}

/* What stands for a container today: the snapshot that was read, else whatever is the same. */
static tool_exit
check_container(esdm_session *session, const json_t *input, GString *pins)
{
    const char *name = json_string_value(json_object_get(input, "container"));
    const char *wanted = json_string_value(json_object_get(input, "digest"));
    const char *then = json_string_value(json_object_get(input, "as"));
    const char *as = NULL;
    if (then != NULL && is_digest(session, then, wanted))
        as = then;
    else if (is_digest(session, name, wanted))
        as = name;
    if (as == NULL) {
        tool_error(
            "the input '%s' is not what it was: no snapshot of it that is kept has the digest "
            "%s",
            name, wanted);
        return TOOL_REFUSED;
    }
    g_string_append_printf(pins, "%s\t%s\n", name, as);
    return TOOL_OK;
}

static tool_exit
check_file(const json_t *input)
{
    guint64 bytes = 0;
    const char *path = json_string_value(json_object_get(input, "file"));
    const char *wanted = json_string_value(json_object_get(input, "sha256"));
    g_autofree char *hash = hash_of(path, &bytes);
    if (hash != NULL && wanted != NULL && g_str_equal(hash, wanted))
        return TOOL_OK;
    tool_error("the input '%s' is not what it was: %s", path,
               hash == NULL ? g_strerror(errno) : "it has another SHA-256");
    return TOOL_REFUSED;
}

tool_exit
recipe_check_inputs(esdm_session *session, const json_t *recipe, GString *ret_pins)
{
    size_t i;
    const json_t *input;
    tool_exit result = TOOL_OK;
    json_array_foreach(json_object_get(recipe, "inputs"), i, input)
    {
        tool_exit one = TOOL_DAMAGED;
        if (json_is_string(json_object_get(input, "container")) &&
            json_is_string(json_object_get(input, "digest")))
            one = check_container(session, input, ret_pins);
        else if (json_is_string(json_object_get(input, "file")))
            one = check_file(input);
        else
            tool_error("the recipe has an input that is neither a container nor a file");
        result = result == TOOL_OK ? one : result;
    }
    return result;
}
