/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_META_ATTRIBUTE_INDEX_H
#define ESDM_META_ATTRIBUTE_INDEX_H

/**
 * @file
 * What a commit tells the metadata store about the attributes of a container, for queries.
 */

#include "esdm/sys/meta_store.h"
#include "model/container.h"

/** Texts longer than this are indexed by their first bytes. */
#define ESDM__INDEXED_TEXT_BYTES 1024u
/** Of arrays the first so many elements are indexed, each as an entry of its own. */
#define ESDM__INDEXED_ELEMENTS 64u

typedef struct esdm__attribute_index {
    esdm_meta_attribute *entries; /* owned, with their texts */
    size_t count;
    size_t capacity;
    char **texts; /* owned strings that the entries borrow */
    size_t ntexts;
    size_t text_capacity;
} esdm__attribute_index;

/** Global attributes of the root group (dataset 0) and the attributes of every dataset; also each
 *  dataset itself under the attribute name "@type". Entries borrow names from the container. */
esdm_status esdm__attribute_index_make(const esdm_container *container,
                                       esdm__attribute_index *ret_index, esdm_error *err);
void esdm__attribute_index_clear(esdm__attribute_index *index);

#endif
