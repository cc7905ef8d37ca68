/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_CHAIN_H
#define ESDM_CODEC_CHAIN_H

/** @file Chains by name: "none", "lz4", "shuffle+lz4". */

#include "codec/blob.h"

/** Parses names joined by '+'. ESDM_ENOENT names the unknown codec and lists those that exist;
 *  ESDM_EINVAL when a filter stands last, behind which nothing compresses, or a codec that needs
 *  numbers behind one that leaves none. */
esdm_status esdm__chain_parse(const char *text, esdm__chain *ret_chain, esdm_error *err);
/** The same for a chain that a document has: earlier versions took codecs in any order. */
esdm_status esdm__chain_parse_stored(const char *text, esdm__chain *ret_chain, esdm_error *err);
/** ESDM_ENOTSUP: a codec of it only reads here. @param text of the chain, for the message. */
esdm_status esdm__chain_check_writes(const esdm__chain *chain, const char *text, esdm_error *err);
/** The error that there is no codec of this id, and what to install. @return ESDM_ENOTSUP. */
esdm_status esdm__chain_missing(uint8_t id, esdm_error *err);
/** The inverse, from ids: writes "lz4" or "none" into text. */
void esdm__chain_print(const uint8_t ids[4], char *text, size_t bytes);

#endif
