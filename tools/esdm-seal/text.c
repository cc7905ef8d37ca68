/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The text of a seal, and whether what it says holds. */
#include <string.h>

#include "esdm-seal/seal.h"

#define FORMAT 1

void
seal_text_clear(seal_text *seal)
{
    char **const texts[] = {&seal->digest, &seal->name, &seal->uuid, &seal->time,
                            &seal->by,     &seal->note, &seal->key,  &seal->signature};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        g_clear_pointer(texts[i], g_free);
}

static gboolean
take(const json_t *object, const char *key, char **ret)
{
    const char *text = json_string_value(json_object_get(object, key));
    *ret = g_strdup(text);
    return text != NULL;
}

const char *
seal_parse(const char *text, seal_text *ret_seal)
{
    json_t *object = tool_json_read(text, -1, 0, NULL);
    *ret_seal = (seal_text){.snapshot = 0};
    const char *why = NULL;
    if (!json_is_object(object))
        why = "the text of the seal is damaged";
    else if (json_integer_value(json_object_get(object, "format")) != FORMAT)
        why = "the seal was made by a newer ESDM";
    else if (!take(object, "digest", &ret_seal->digest) || !take(object, "name", &ret_seal->name) ||
             !take(object, "uuid", &ret_seal->uuid) || !take(object, "time", &ret_seal->time) ||
             !take(object, "by", &ret_seal->by) || !take(object, "note", &ret_seal->note) ||
             !take(object, "key", &ret_seal->key) ||
             !take(object, "signature", &ret_seal->signature))
        why = "the text of the seal lacks something";
    else
        ret_seal->snapshot = (guint64) json_integer_value(json_object_get(object, "snapshot"));
    json_decref(object);
    return why;
}

char *
seal_print(const seal_text *seal)
{
    json_t *object = json_object();
    tool_json_set(object, "format", json_integer(FORMAT));
    tool_json_set(object, "digest", tool_json_text(seal->digest));
    tool_json_set(object, "name", tool_json_text(seal->name));
    tool_json_set(object, "uuid", tool_json_text(seal->uuid));
    tool_json_set(object, "snapshot", tool_json_u64(seal->snapshot));
    tool_json_set(object, "time", tool_json_text(seal->time));
    tool_json_set(object, "by", tool_json_text(seal->by));
    tool_json_set(object, "note", tool_json_text(seal->note));
    tool_json_set(object, "key", tool_json_text(seal->key));
    tool_json_set(object, "signature", tool_json_text(seal->signature));
    char *dumped = json_dumps(object, JSON_COMPACT);
    char *text = g_strdup(dumped);
    free(dumped);
    json_decref(object);
    return text;
}

static char *
check_digest(esdm_session *session, const char *name, const seal_text *seal)
{
    char digest[ESDM_DIGEST_BYTES];
    esdm_error err = {0};
    esdm_container *container = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, seal->snapshot, &container, &err);
    if (status == ESDM_OK)
        status = esdm_container_digest(container, ESDM_DIGEST_READ, digest, &err);
    char *why = NULL;
    if (status != ESDM_OK)
        why = g_strdup_printf("its data cannot be read: %s", err.message);
    else if (!g_str_equal(esdm_container_uuid(container), seal->uuid))
        why = g_strdup("the seal is one of another container");
    else if (!g_str_equal(digest, seal->digest))
        why = g_strdup_printf("its contents are not what was sealed: %s now, %s then", digest,
                              seal->digest);
    esdm_container_discard(container);
    return why;
}

char *
seal_verify(esdm_session *session, const char *name, const esdm_notices *notices, char **keys,
            seal_text *ret_seal)
{
    const char *wrong = seal_parse(notices->seal, ret_seal);
    if (wrong != NULL)
        return g_strdup(wrong);
    char *why = seal_check_signature(ret_seal);
    if (why == NULL && keys != NULL && !g_strv_contains((const char *const *) keys, ret_seal->key))
        why = g_strdup_printf("it was sealed with another key than those given: %s", ret_seal->key);
    if (why == NULL && ret_seal->snapshot != notices->sealed_snapshot)
        why = g_strdup("the seal is one of another snapshot");
    return why != NULL ? why : check_digest(session, name, ret_seal);
}
