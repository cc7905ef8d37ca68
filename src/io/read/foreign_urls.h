/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FOREIGN_URLS_H
#define ESDM_IO_READ_FOREIGN_URLS_H

/** @file Objects on servers, below the URLs that the site allows. Any thread. As the functions of
 *  esdm/sys/source.h; ESDM_EACCES: the site does not allow that place; ESDM_ENOENT also: the
 *  plug-in that reads it is not installed. */

#include "esdm/sys/source.h"
#include "io/read/elsewhere.h"

esdm_status esdm__url_stat(esdm_session *session, const char *url, esdm_source_state *ret_state,
                           esdm_error *err);
esdm_status esdm__url_read(esdm_session *session, const char *url, const esdm_source_state *was,
                           uint64_t position, void *buffer, size_t bytes, esdm_error *err);
esdm_status esdm__url_load(esdm_session *session, const char *url, size_t most,
                           esdm_source_state *ret_state, void **ret_data, size_t *ret_bytes,
                           esdm_error *err);

#endif
