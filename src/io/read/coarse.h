/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_COARSE_H
#define ESDM_IO_READ_COARSE_H

/** @file Names that ask for less accurate numbers: NAME?accuracy=1%. */

#include "esdm/container.h"

/** @param ret_name room for ESDM_CONTAINER_NAME_MAX + 1: what stands before the "?accuracy=".
 *  @return what stands behind it, in `name`; NULL: nothing is asked for. */
const char *esdm__coarse_is_said(const char *name, char *ret_name);
/**
 * Makes reads of a container that was opened to read take only what the accuracy needs, and tells
 * readers of it by attributes of this handle.
 * @param text as in esdm_container_open(). Of a virtual container what describes others is read as
 * it is stored, and esdm__virtual_coarse() makes its members follow.
 * @return ESDM_EINVAL naming what is wrong with the text.
 */
esdm_status esdm__coarse_apply(esdm_container *container, const char *text, esdm_error *err);
/** The same of a member of a virtual container, which need not have what the text names; nobody is
 *  told. */
esdm_status esdm__coarse_apply_to_member(esdm_container *member, const char *text, esdm_error *err);

#endif
