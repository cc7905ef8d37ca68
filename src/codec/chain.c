/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/chain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plugin/registry.h"

#define NAME_BYTES 64

static esdm_status
add_codec(const char *text, const char *name, size_t length, esdm__chain *chain, esdm_error *err)
{
    char copy[NAME_BYTES];
    if (length == 0 || length >= sizeof copy)
        return esdm__error_set(err, ESDM_EINVAL,
                               "codec chain '%s': name of %zu bytes; write names "
                               "such as lz4 joined by '+', or none",
                               text, length);
    if (chain->count == ESDM__CHAIN_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "codec chain '%s' has more than %u codecs", text,
                               ESDM__CHAIN_MAX);
    memcpy(copy, name, length);
    copy[length] = '\0';

    const esdm_plugin *plugin;
    esdm_status st = esdm__plugin_find(ESDM_PLUGIN_CODEC, copy, &plugin, err);
    if (st != ESDM_OK)
        return esdm__error_prefix(err, st, "codec chain '%s'", text);
    const esdm_codec_plugin *codec = (const esdm_codec_plugin *) plugin;
    if (codec->id == 0)
        return esdm__error_set(err, ESDM_EINVAL, "codec chain '%s': '%s' stands alone", text, copy);
    chain->codecs[chain->count++] = codec;
    return ESDM_OK;
}

/* Filters, and codecs that look at values, want what they are told that the bytes are: numbers. */
static esdm_status
check_order(const char *text, const esdm__chain *chain, esdm_error *err)
{
    const uint32_t values = ESDM_CODEC_LOSSY | ESDM_CODEC_SHAPED;
    for (uint32_t i = 1; i < chain->count; i++) {
        const esdm_codec_plugin *before = chain->codecs[i - 1];
        const esdm_codec_plugin *codec = chain->codecs[i];
        bool compressed = (before->flags & ESDM_CODEC_FILTER) == 0;
        bool numbers = (before->flags & ESDM_CODEC_ROUNDS) != 0;
        if (compressed && (codec->flags & (values | ESDM_CODEC_FILTER)) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "codec chain '%s': '%s' cannot stand behind '%s', which "
                                   "compresses: it works on numbers; put it first",
                                   text, codec->base.name, before->base.name);
        if (!numbers && (codec->flags & values) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "codec chain '%s': '%s' cannot stand behind '%s', which leaves "
                                   "no numbers: put it first",
                                   text, codec->base.name, before->base.name);
    }
    return ESDM_OK;
}

esdm_status
esdm__chain_parse(const char *text, esdm__chain *ret_chain, esdm_error *err)
{
    esdm__chain chain = {.count = 0};
    esdm_status st = esdm__chain_parse_stored(text, &chain, err);
    if (st == ESDM_OK)
        st = check_order(text, &chain, err);
    if (st == ESDM_OK)
        *ret_chain = chain;
    return st;
}

esdm_status
esdm__chain_parse_stored(const char *text, esdm__chain *ret_chain, esdm_error *err)
{
    esdm__chain chain = {.count = 0};
    if (strcmp(text, "none") != 0) {
        for (const char *name = text; name != NULL;) {
            const char *end = strchr(name, '+');
            size_t length = end != NULL ? (size_t) (end - name) : strlen(name);
            esdm_status st = add_codec(text, name, length, &chain, err);
            if (st != ESDM_OK)
                return st;
            name = end != NULL ? end + 1 : NULL;
        }
        const esdm_codec_plugin *last = chain.codecs[chain.count - 1];
        if ((last->flags & ESDM_CODEC_FILTER) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "codec chain '%s': '%s' does not compress; put a compressor "
                                   "behind it, such as %s+zstd",
                                   text, last->base.name, last->base.name);
    }
    *ret_chain = chain;
    return ESDM_OK;
}

esdm_status
esdm__chain_check_writes(const esdm__chain *chain, const char *text, esdm_error *err)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        if ((chain->codecs[i]->flags & ESDM_CODEC_READS) != 0)
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "codec chain '%s': '%s' reads what others wrote and cannot "
                                   "write: its plug-in was built without the library that it needs",
                                   text, chain->codecs[i]->base.name);
    }
    return ESDM_OK;
}

esdm_status
esdm__chain_missing(uint8_t id, esdm_error *err)
{
    const esdm_plugin *plugin = NULL;
    esdm_error why = {0};
    const char *name = esdm__plugin_codec_name(id);
    if (name != NULL && esdm__plugin_find(ESDM_PLUGIN_CODEC, name, &plugin, &why) != ESDM_OK)
        return esdm__error_set(err, ESDM_ENOTSUP, "it needs the codec '%s' (id %u): %s", name, id,
                               why.message);
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "no codec with id %u; install its plug-in (ESDM_PLUGIN_PATH)", id);
}

void
esdm__chain_print(const uint8_t ids[4], char *text, size_t bytes)
{
    if (bytes == 0)
        return;
    (void) snprintf(text, bytes, "none");
    size_t used = 0;
    for (size_t i = 0; i < ESDM__CHAIN_MAX && ids[i] != 0 && used < bytes; i++) {
        const esdm_codec_plugin *codec = esdm__plugin_codec_by_id(ids[i]);
        char unknown[16];
        (void) snprintf(unknown, sizeof unknown, "codec-%u", (unsigned) ids[i]);
        const char *name = codec != NULL ? codec->base.name : esdm__plugin_codec_name(ids[i]);
        int n = snprintf(text + used, bytes - used, "%s%s", i > 0 ? "+" : "",
                         name != NULL ? name : unknown);
        used += n > 0 ? (size_t) n : 0;
    }
}
