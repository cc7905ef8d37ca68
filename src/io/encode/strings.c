/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/encode/strings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LENGTH_OF_NULL UINT32_MAX

const char esdm__text_null[1] = "";

esdm_status
esdm__strings_encode(const char *const *texts, uint64_t n, esdm__buffer *out, bool *ret_has_null,
                     esdm_error *err)
{
    bool has_null = false;
    for (uint64_t i = 0; i < n; i++) {
        size_t length = texts[i] != NULL ? strlen(texts[i]) : LENGTH_OF_NULL;
        if (texts[i] != NULL && length >= LENGTH_OF_NULL)
            return esdm__error_set(err, ESDM_EINVAL, "a text of %zu bytes is too long", length);
        has_null = has_null || texts[i] == NULL;
        esdm__buffer_put_u32(out, (uint32_t) length);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (texts[i] != NULL)
            esdm__buffer_put(out, texts[i], strlen(texts[i]));
    }
    if (out->failed)
        return esdm__error_nomem(err, out->bytes, "texts");
    *ret_has_null = has_null;
    return ESDM_OK;
}

esdm_status
esdm__strings_open(const void *raw, size_t bytes, uint64_t n, esdm__strings_view *ret_view,
                   esdm_error *err)
{
    if (n > bytes / sizeof(uint32_t))
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "%" PRIu64 " texts cannot lie in %zu stored bytes", n, bytes);
    uint64_t *offsets = malloc((size_t) (n + 1) * sizeof *offsets);
    if (offsets == NULL)
        return esdm__error_nomem(err, (size_t) n * sizeof *offsets, "texts");
    uint64_t at = n * sizeof(uint32_t);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t length;
        memcpy(&length, (const uint8_t *) raw + i * sizeof length, sizeof length);
        offsets[i] = at;
        at += length != LENGTH_OF_NULL ? length : 0;
    }
    offsets[n] = at;
    if (at != bytes) {
        free(offsets);
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "texts of %" PRIu64 " bytes are stored in %zu bytes", at, bytes);
    }
    *ret_view = (esdm__strings_view){.raw = raw, .offsets = offsets, .n = n};
    return ESDM_OK;
}

void
esdm__strings_close(esdm__strings_view *view)
{
    free(view->offsets);
    *view = (esdm__strings_view){0};
}

char *
esdm__strings_dup(const esdm__strings_view *view, uint64_t i)
{
    size_t length = (size_t) (view->offsets[i + 1] - view->offsets[i]);
    uint32_t stored;
    memcpy(&stored, view->raw + i * sizeof stored, sizeof stored);
    if (stored == LENGTH_OF_NULL)
        return (char *) (uintptr_t) esdm__text_null;
    char *text = malloc(length + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, view->raw + view->offsets[i], length);
    text[length] = '\0';
    return text;
}
