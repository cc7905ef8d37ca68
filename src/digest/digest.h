/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_DIGEST_DIGEST_H
#define ESDM_DIGEST_DIGEST_H

/** @file What a container contains, as a hash; esdm/digest.h has the form. */

#include "base/sha256.h"
#include "esdm/digest.h"
#include "io/io.h"

/** A hash that is being made: what is added is put in the form that digest.h states. */
void esdm__digest_number(esdm__sha256 *sum, uint64_t number);
void esdm__digest_text(esdm__sha256 *sum, const void *text, size_t bytes);
/** @param hash ESDM__SHA256_BYTES. */
void esdm__digest_hash(esdm__sha256 *sum, const uint8_t *hash);

/** H of the values of a dataset: reads all of them. */
esdm_status esdm__digest_values(esdm_dataset *dataset, uint8_t ret_hash[ESDM__SHA256_BYTES],
                                esdm_error *err);
/** H of a dataset. */
esdm_status esdm__digest_dataset(esdm_dataset *dataset, uint8_t ret_hash[ESDM__SHA256_BYTES],
                                 esdm_error *err);
/** Of all. */
esdm_status esdm__digest_container(esdm_container *container, uint8_t ret_hash[ESDM__SHA256_BYTES],
                                   esdm_error *err);
/** "esdm1:" and the hexadecimal digits. */
void esdm__digest_print(const uint8_t hash[ESDM__SHA256_BYTES], char ret_text[ESDM_DIGEST_BYTES]);

#endif
