/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_PLACES_H
#define ESDM_LAYOUT_PLACES_H

/**
 * @file
 * Where a pack lies, as a text: TARGET[@NODE]{,TARGET[@NODE]}. Mostly it is the name of one target;
 * packs with copies have the same name and content on several; a pack on a target that each node
 * has for itself names its node.
 */

#include <stdbool.h>
#include <stddef.h>

#define ESDM__PLACE_TARGET_BYTES 64u  /* names of targets have up to 63 */
#define ESDM__PLACE_NODE_BYTES   256u /* of nodes up to 255 */

typedef struct esdm__pack_place {
    char target[ESDM__PLACE_TARGET_BYTES];
    char node[ESDM__PLACE_NODE_BYTES]; /* "": every node sees it */
} esdm__pack_place;

/** Takes the first place off the text. false at its end. What is too long is cut off, so that it
 *  names no target of any site. */
bool esdm__places_next(const char **text, esdm__pack_place *ret_place);
/** Number of places. */
size_t esdm__places_count(const char *text);
/** Whether it says more than the name of a target. */
bool esdm__places_are_special(const char *text);

#endif
