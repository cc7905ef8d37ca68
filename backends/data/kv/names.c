/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Names of packs and files. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv.h"

#define OWN_PREFIX   "p-"
#define SHARD_PREFIX "s-"
#define SUFFIX       ".kch"
/* Zeros are the site's own packs. */
#define NO_CONTAINER "ffffffffffffffffffffffffffffffff"

static bool
is_pack_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    size_t bytes = strspn(name, "0123456789abcdef-");
    return digits >= 32 && bytes <= KV__NAME_MAX && name[bytes] == '\0';
}

esdm_status
kv__check_name(const char *name, esdm_error *err)
{
    if (is_pack_name(name))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL, "kv: '%.120s' is not the name of a pack", name);
}

void
kv__own_file(const char *name, char ret_file[KV__FILE_BYTES])
{
    (void) snprintf(ret_file, KV__FILE_BYTES, OWN_PREFIX "%.*s" SUFFIX, KV__NAME_MAX, name);
}

/* The writer in <container>-<writer>-<n>, and n. */
static const char *
writer_of(const char *name, size_t *ret_bytes, unsigned long long *ret_number)
{
    const char *writer = strchr(name, '-');
    writer = writer != NULL ? writer + 1 : "";
    const char *number = strrchr(writer, '-');
    *ret_bytes = number != NULL ? (size_t) (number - writer) : strlen(writer);
    *ret_number = number != NULL ? strtoull(number + 1, NULL, 16) : 0;
    return writer;
}

/* s-<writer>-<n / KV__SHARD_PACKS>.kch */
void
kv__shard_file(const char *name, char ret_file[KV__FILE_BYTES])
{
    size_t bytes = 0;
    unsigned long long n = 0;
    const char *writer = writer_of(name, &bytes, &n);
    (void) snprintf(ret_file, KV__FILE_BYTES, SHARD_PREFIX "%.*s-%llx" SUFFIX, (int) bytes, writer,
                    n / KV__SHARD_PACKS);
}

void
kv__unfinished_file(const char *shard, char ret_file[KV__FILE_BYTES])
{
    const char *stem = shard + strlen(SHARD_PREFIX);
    (void) snprintf(ret_file, KV__FILE_BYTES, OWN_PREFIX NO_CONTAINER "-%s", stem);
}

unsigned
kv__shard_number(const char *name)
{
    size_t bytes = 0;
    unsigned long long n = 0;
    (void) writer_of(name, &bytes, &n);
    return (unsigned) (n % KV__SHARD_PACKS);
}

bool
kv__is_numbered(const char *name)
{
    const char *last = strrchr(name, '-');
    if (last == NULL || last == strchr(name, '-'))
        return false;
    size_t digits = strlen(last + 1);
    return digits > 0 && digits <= 16 && (last[1] != '0' || digits == 1);
}

/* Length without the suffix, 0 when it has another one. */
static size_t
stem_bytes(const char *file)
{
    size_t bytes = strlen(file);
    size_t suffix = strlen(SUFFIX);
    return bytes > suffix && strcmp(file + bytes - suffix, SUFFIX) == 0 ? bytes - suffix : 0;
}

const char *
kv__pack_of(const char *file, size_t *ret_bytes)
{
    size_t prefix = strlen(OWN_PREFIX);
    size_t bytes = stem_bytes(file);
    if (strncmp(file, OWN_PREFIX, prefix) != 0 || bytes <= prefix)
        return NULL;
    *ret_bytes = bytes - prefix;
    return file + prefix;
}

bool
kv__is_shard(const char *file)
{
    return strncmp(file, SHARD_PREFIX, strlen(SHARD_PREFIX)) == 0 && stem_bytes(file) > 0;
}

bool
kv__is_database(const char *file)
{
    char stem[KV__FILE_BYTES];
    size_t bytes = strlen(file);
    size_t of_pack = 0;
    if (bytes > 4 && bytes < sizeof stem && strcmp(file + bytes - 4, ".wal") == 0)
        bytes -= 4;
    if (bytes >= sizeof stem)
        return false;
    memcpy(stem, file, bytes);
    stem[bytes] = '\0';
    return kv__is_shard(stem) || kv__pack_of(stem, &of_pack) != NULL;
}
