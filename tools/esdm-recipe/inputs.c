/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a run reads: containers by their digests, files by theirs. */
#include "esdm-recipe/esdm-recipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "esdm/digest.h"
#include "esdm/history.h"

#define PART_BYTES 65536
/* Who waits for a moment needs no message. */
#define TELL_AFTER_S 0.5
/* Inputs that a message names. */
#define NAMED_MOST 3u

void
recipe_hashing_begin(recipe_hashing *hashing, const char *what)
{
    *hashing = (recipe_hashing){.what = what};
    tool_progress_start(&hashing->progress, !tool.json);
}

static void
tell_hashing(recipe_hashing *hashing, size_t bytes)
{
    if (hashing == NULL)
        return;
    hashing->bytes += bytes;
    if (tool_progress_seconds(&hashing->progress) < TELL_AFTER_S)
        return;
    g_autofree char *size = tool_bytes(hashing->bytes);
    g_autofree char *text =
        g_strdup_printf("%s: %s were read for its SHA-256", hashing->what, size);
    tool_progress_show(&hashing->progress, -1, text);
}

/* SHA-256 of a file in hexadecimal digits; owned; NULL: errno tells. */
static char *
hash_of(const char *path, guint64 *ret_bytes, recipe_hashing *hashing)
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
        tell_hashing(hashing, n);
    }
    bool bad = ferror(file) != 0;
    (void) fclose(file);
    return bad ? NULL : g_strdup(g_checksum_get_string(sum));
}

json_t *
recipe_file(const char *path, recipe_hashing *hashing)
{
    guint64 bytes = 0;
    g_autofree char *hash = hash_of(path, &bytes, hashing);
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

/* A name of what is computed, for the snapshots that this needs: "recipe-NAME-DIGITS"; owned. Other
 * contents of that name have another one, what was cloned or moved the same. */
static char *
tag_of(const json_t *input, const json_t *recipe)
{
    /* Several snapshots of one container need a tag each. */
    const char *name = json_string_value(json_object_get(input, "container"));
    const char *of = json_string_value(json_object_get(input, "digest"));
    const char *own = strchr(name, '@') != NULL && of != NULL ? strchr(of, ':') : NULL;
    const char *output = json_string_value(json_object_get(recipe, "output"));
    const char *digest = json_string_value(json_object_get(recipe, "digest"));
    const char *digits = digest != NULL ? strchr(digest, ':') : NULL;
    char *tag = g_strdup_printf("recipe-%.200s-%.16s%s%.16s", output != NULL ? output : "",
                                digits != NULL ? digits + 1 : "", own != NULL ? "-" : "",
                                own != NULL ? own + 1 : "");
    for (char *at = tag; *at != '\0'; at++) {
        if ((guchar) *at <= ' ' || (guchar) *at >= 127 || strchr("/@?:", *at) != NULL)
            *at = '_';
    }
    return tag;
}

/* What stands for a container today: the snapshot that is kept for the recipe, or that was read,
 * else whatever is the same; owned; NULL: nothing. */
static char *
found_as(esdm_session *session, const json_t *input, const char *kept)
{
    const char *name = json_string_value(json_object_get(input, "container"));
    const char *wanted = json_string_value(json_object_get(input, "digest"));
    const char *then = json_string_value(json_object_get(input, "as"));
    const char *const names[] = {kept, then, name};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (names[i] != NULL && is_digest(session, names[i], wanted))
            return g_strdup(names[i]);
    }
    return NULL;
}

/* How the snapshot is called that is kept for a recipe; owned; NULL: of such an input none can be.
 */
static char *
kept_as(const json_t *input, const json_t *recipe)
{
    const char *name = json_string_value(json_object_get(input, "container"));
    g_autofree char *tag = tag_of(input, recipe);
    const char *at = strchr(name, '@');
    int length = (int) (at != NULL && !g_str_has_prefix(at, "@branch:") ? (size_t) (at - name)
                                                                        : strlen(name));
    return name[0] == '?' ? NULL : g_strdup_printf("%.*s@tag:%s", length, name, tag);
}

static tool_exit
check_container(esdm_session *session, const json_t *input, const json_t *recipe, GString *pins)
{
    const char *name = json_string_value(json_object_get(input, "container"));
    const char *wanted = json_string_value(json_object_get(input, "digest"));
    g_autofree char *kept = kept_as(input, recipe);
    g_autofree char *as = found_as(session, input, kept);
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
    g_autofree char *hash = hash_of(path, &bytes, NULL);
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
    const json_t *image = json_object_get(recipe, "image");
    tool_exit result = image != NULL ? recipe_image_check(image) : TOOL_OK;
    json_array_foreach(json_object_get(recipe, "inputs"), i, input)
    {
        tool_exit one = TOOL_DAMAGED;
        if (json_is_string(json_object_get(input, "container")) &&
            json_is_string(json_object_get(input, "digest")))
            one = check_container(session, input, recipe, ret_pins);
        else if (json_is_string(json_object_get(input, "file")))
            one = check_file(input);
        else
            tool_error("the recipe has an input that is neither a container nor a file");
        result = result == TOOL_OK ? one : result;
    }
    return result;
}

/* ---- what dropped values need --------------------------------------------------------------- */

/* What cannot be kept, for one line. */
typedef struct loose {
    GString *text;
    guint count;
} loose;

static void
add_loose(loose *l, const char *what)
{
    if (l->count < NAMED_MOST)
        g_string_append_printf(l->text, "%s%s", l->count > 0 ? ", " : "", what);
    l->count++;
}

static tool_exit
hold(esdm_session *session, const json_t *input, const json_t *recipe, loose *l)
{
    const char *name = json_string_value(json_object_get(input, "container"));
    esdm_error err = {0};
    g_autofree char *kept = kept_as(input, recipe);
    g_autofree char *as = found_as(session, input, kept);
    g_autofree char *tag = tag_of(input, recipe);
    if (as == NULL || kept == NULL) {
        add_loose(l, name);
        return TOOL_OK;
    }
    if (g_str_equal(as, kept))
        return TOOL_OK;
    esdm_status st = esdm_container_tag(session, as, tag, true, NULL, &err);
    if (st == ESDM_ENOTSUP)
        add_loose(l, name);
    return st == ESDM_OK || st == ESDM_ENOTSUP ? TOOL_OK : tool_fail(st, &err);
}

tool_exit
recipe_hold_inputs(esdm_session *session, const json_t *recipe)
{
    size_t i;
    const json_t *input;
    tool_exit result = TOOL_OK;
    loose l = {.text = g_string_new(NULL)};
    if (json_object_get(recipe, "image") != NULL)
        add_loose(&l, recipe_image_path(json_object_get(recipe, "image")));
    json_array_foreach(json_object_get(recipe, "inputs"), i, input)
    {
        if (json_is_string(json_object_get(input, "file")))
            add_loose(&l, json_string_value(json_object_get(input, "file")));
        else if (result == TOOL_OK)
            result = hold(session, input, recipe, &l);
    }
    if (result == TOOL_OK && l.count > NAMED_MOST)
        g_string_append_printf(l.text, " and %u more (esdm-recipe show lists them)",
                               l.count - NAMED_MOST);
    if (result == TOOL_OK && l.count > 0)
        tool_error("note: values come back only as long as these are what they are now: %s",
                   l.text->str);
    (void) g_string_free(l.text, TRUE);
    return result;
}
