/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_OPTIONS_H
#define ESDM_BACKEND_S3_OPTIONS_H

/** @file What the site configuration says about an S3 target, and whose credentials it uses. */

#include <stdbool.h>
#include <stdint.h>

#include "credentials.h"
#include "esdm/sys/plugin.h"

#define S3__PART_LEAST (UINT64_C(5) << 20) /* S3's rule; only the last part may be smaller */
#define S3__PART_MOST  (UINT64_C(1) << 30)
#define S3__PARTS_MOST 10000u /* S3's rule */

typedef struct s3__options {
    char *name;     /* of the target */
    char *path;     /* "site.json: targets[0]", for messages */
    char *site_id;  /* "": not known */
    char *endpoint; /* "https://s3.example.org:9000" */
    char *host;     /* the endpoint without its scheme: what the header "host" begins with */
    char *bucket;
    char *prefix; /* "" or "a/b/" */
    char *region;
    char *ca_file;   /* NULL: the system's */
    char *place;     /* "s3://bucket/a/b at https://…", for messages */
    bool tls;        /* https */
    bool host_style; /* the bucket is part of the host's name */
    bool sign_payload;
    bool create_bucket;
    bool hedge; /* reads that wait long for an answer are asked for twice */
    uint32_t connections;
    uint32_t timeout_ms;
    uint64_t part_bytes;
    uint64_t object_bytes; /* a pack that has so many is complete */
    uint64_t memory_bytes; /* of the parts being filled or sent, about */
} s3__options;

/**
 * Reads and checks the target's object. ESDM_EINVAL names the path and the key; a value is never
 * quoted when it may be a secret.
 * @param ret_options zeroed before; s3__options_clear(), on failure too.
 * @param ret_credentials the same, s3__credentials_clear(). From the configuration; else from the
 *        profile or file that it names; else from the environment; else from the user's file.
 *        ESDM_EACCES says where they were looked for.
 */
esdm_status s3__options_read(const esdm_plugin_config *config, s3__options *ret_options,
                             s3__credentials *ret_credentials, esdm_error *err);
void s3__options_clear(s3__options *options);

#endif
