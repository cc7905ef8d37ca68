/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_SEAL_H
#define ESDM_TOOLS_SEAL_H

/** @file Signed seals: JSON texts that libesdm keeps. Shared with esdm-fsck. */

#include "common/common.h"
#include "esdm/digest.h"
#include "esdm/seal.h"

/** What a seal says. Texts are owned; seal_text_clear(). */
typedef struct seal_text {
    char *digest;
    char *name; /* of the container when it was sealed */
    char *uuid;
    char *time; /* ISO 8601 */
    char *by;
    char *note;      /* "": none */
    char *key;       /* public key, hexadecimal */
    char *signature; /* hexadecimal */
    guint64 snapshot;
} seal_text;

void seal_text_clear(seal_text *seal);
/** Takes a seal apart. @return NULL, or why it is none: static text. */
const char *seal_parse(const char *text, seal_text *ret_seal);
/** The JSON text. */
char *seal_print(const seal_text *seal);

/** Signs with the Ed25519 key in a PEM file; fills in key and signature.
 *  @return NULL, or what is wrong: owned text. */
char *seal_sign(const char *key_file, seal_text *seal);
/** Whether the signature is that of the seal's key. @return as seal_sign(). */
char *seal_check_signature(const seal_text *seal);
/** Makes a key pair: FILE (mode 0600) and FILE.pub. Never over one that is there. */
char *seal_make_key(const char *key_file);
/** The public key in a PEM file, hexadecimal. @return as seal_sign(). */
char *seal_public_key(const char *file, char **ret_key);

/** Verifies a sealed container: signature, and the digest of the values as they are read now.
 *  @param keys public keys that are trusted, hexadecimal; NULL: any. @return NULL: all is well. */
char *seal_verify(esdm_session *session, const char *name, const esdm_notices *notices, char **keys,
                  seal_text *ret_seal);

#endif
