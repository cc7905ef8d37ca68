/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file An open target: its client, names of packs, usage. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/usage.h"
#include "s3.h"

esdm_status
s3__target_new(const esdm_plugin_config *config, s3__target **ret_target, esdm_error *err)
{
    s3__target *target = calloc(1, sizeof *target);
    if (target == NULL)
        return esdm__error_nomem(err, sizeof *target, "an s3 target");
    (void) pthread_mutex_init(&target->lock, NULL);
    esdm_status status = s3__options_read(config, &target->options, &target->credentials, err);
    if (status == ESDM_OK && s3__target_client(target) == NULL)
        status = esdm__error_nomem(err, sizeof *target, "an s3 target");
    if (status != ESDM_OK) {
        s3__close(target);
        return status;
    }
    *ret_target = target;
    return ESDM_OK;
}

s3__client *
s3__target_client(s3__target *target)
{
    s3__client *client = atomic_load(&target->client);
    while (client == NULL || !s3__client_is_ours(client)) {
        s3__client *fresh = s3__client_new(&target->options, &target->credentials);
        if (fresh == NULL)
            return NULL;
        /* The parent's stays where it is: to free it would talk on the parent's connections. */
        if (atomic_compare_exchange_strong(&target->client, &client, fresh))
            return fresh;
        s3__client_free(fresh);
    }
    return client;
}

esdm_status
s3__send(s3__target *target, s3__request *request, esdm_error *err)
{
    s3__client *client = s3__target_client(target);
    if (client == NULL)
        return esdm__error_nomem(err, sizeof *target, "a connection");
    return s3__perform(client, request, err);
}

static bool
is_pack_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    size_t bytes = strspn(name, "0123456789abcdef-");
    return digits >= 32 && bytes <= S3__NAME_MAX && name[bytes] == '\0';
}

esdm_status
s3__pack_key(const s3__target *target, const char *name, char ret_key[S3__KEY_BYTES],
             esdm_error *err)
{
    if (!is_pack_name(name))
        return esdm__error_set(err, ESDM_EINVAL, "s3: '%.120s' is not the name of a pack", name);
    (void) snprintf(ret_key, S3__KEY_BYTES, "%s" S3__PACKS "%s", target->options.prefix, name);
    return ESDM_OK;
}

const char *
s3__pack_of_key(const s3__target *target, const char *key)
{
    size_t bytes = strlen(target->options.prefix);
    if (strncmp(key, target->options.prefix, bytes) != 0 ||
        strncmp(key + bytes, S3__PACKS, sizeof S3__PACKS - 1) != 0)
        return NULL;
    key += bytes + sizeof S3__PACKS - 1;
    return is_pack_name(key) ? key : NULL;
}

esdm_status
s3__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    s3__target *target = NULL;
    esdm_status status = s3__target_new(config, &target, err);
    if (status != ESDM_OK)
        return status;
    status = s3__mark_check(target, NULL, err);
    if (status != ESDM_OK) {
        s3__close(target);
        return status;
    }
    *ret_target = target;
    return ESDM_OK;
}

void
s3__close(void *self)
{
    s3__target *target = self;
    if (target == NULL)
        return;
    s3__client_free(atomic_load(&target->client));
    s3__uploads_forget(target);
    s3__spares_free(target);
    (void) pthread_mutex_destroy(&target->lock);
    s3__options_clear(&target->options);
    s3__credentials_clear(&target->credentials);
    free(target);
}

esdm_status
s3__usage(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    esdm_target_usage usage = {0};
    esdm_status status = s3__pack_list(self, NULL, esdm__usage_add, &usage, err);
    if (status == ESDM_OK)
        *ret_usage = usage;
    return status;
}

void
s3__second_requests(void *self, uint64_t *ret_sent, uint64_t *ret_used)
{
    s3__target *target = self;
    s3__client *client = atomic_load(&target->client);
    *ret_sent = 0;
    *ret_used = 0;
    if (client != NULL && s3__client_is_ours(client))
        s3__client_second_requests(client, ret_sent, ret_used);
}
