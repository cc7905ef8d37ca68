/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file An open target: names, usage, removal of packs. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/usage.h"
#include "posix.h"

bool
posix__is_pack_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    size_t bytes = strspn(name, "0123456789abcdef-");
    return digits >= 32 && bytes <= POSIX__NAME_MAX && name[bytes] == '\0';
}

esdm_status
posix__file_name(const char *name, char ret_file[POSIX__FILE_BYTES], esdm_error *err)
{
    if (!posix__is_pack_name(name))
        return esdm__error_set(err, ESDM_EINVAL, "posix: '%.120s' is not the name of a pack", name);
    ret_file[0] = name[0];
    ret_file[1] = name[1];
    ret_file[2] = '/';
    memcpy(ret_file + 3, name, strlen(name) + 1);
    return ESDM_OK;
}

esdm_status
posix__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    esdm__place place = {0};
    esdm_status status = esdm__place_init(&place, "posix", config, err);
    if (status != ESDM_OK)
        return status;
    posix__target *target = calloc(1, sizeof *target);
    if (target == NULL) {
        esdm__place_clear(&place);
        return esdm__error_nomem(err, sizeof *target, "a posix target");
    }
    target->fd = -1;
    target->name = strdup(place.name);
    target->cache = posix__cache_new();
    if (target->name == NULL || target->cache == NULL)
        status = esdm__error_nomem(err, strlen(place.name) + 1, "a posix target");
    else
        status = esdm__place_open(&place, &target->fd, err);
    target->fd = esdm__descriptor_keep(target->fd);
    target->directory = place.directory;
    place.directory = NULL;
    esdm__place_clear(&place);
    if (status != ESDM_OK) {
        posix__close(target);
        return status;
    }
    *ret_target = target;
    return ESDM_OK;
}

void
posix__close(void *self)
{
    posix__target *target = self;
    if (target == NULL)
        return;
    posix__cache_free(target->cache);
    if (target->fd >= 0)
        (void) esdm__descriptor_close(target->fd);
    free(target->directory);
    free(target->name);
    free(target);
}

esdm_status
posix__space(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    const posix__target *target = self;
    return esdm__usage_of_directory(target->fd, "posix", target->directory, ret_usage, err);
}

esdm_status
posix__usage(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    const posix__target *target = self;
    esdm_target_usage usage;
    esdm_status status =
        esdm__usage_of_directory(target->fd, "posix", target->directory, &usage, err);
    if (status == ESDM_OK)
        status =
            posix__visit_packs(target->fd, target->directory, NULL, esdm__usage_add, &usage, err);
    if (status == ESDM_OK)
        *ret_usage = usage;
    return status;
}

esdm_status
posix__pack_remove(void *self, const char *name, esdm_error *err)
{
    posix__target *target = self;
    char file[POSIX__FILE_BYTES];
    esdm_status status = posix__file_name(name, file, err);
    if (status != ESDM_OK)
        return status;
    if (unlinkat(target->fd, file, 0) != 0 && errno != ENOENT)
        return esdm__error_set_errno(err, errno, "posix: cannot remove pack '%s/%s'",
                                     target->directory, file);
    posix__cache_drop(target->cache, name);
    return ESDM_OK;
}

esdm_status
posix__pack_list(void *self, const char *prefix, esdm_pack_visitor visit, void *user,
                 esdm_error *err)
{
    const posix__target *target = self;
    return posix__visit_packs(target->fd, target->directory, prefix, visit, user, err);
}
