/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_ENCODE_H
#define ESDM_BACKEND_S3_ENCODE_H

/** @file Texts in URLs, as S3 encodes them: those of requests of a target, and of objects that
 *  containers refer to (source "http"). */

#include <stdbool.h>

#include "base/buffer.h"

/** Appends `text` with everything but A-Z a-z 0-9 - . _ ~ (and '/' if asked) as %XX. */
void s3__encode(esdm__buffer *out, const char *text, bool keep_slashes);
/** Replaces %XX in place; what is no such triple stays. */
void s3__decode(char *text);

#endif
