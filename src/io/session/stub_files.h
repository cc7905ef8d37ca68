/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_STUB_FILES_H
#define ESDM_IO_SESSION_STUB_FILES_H

/**
 * @file
 * Files in routed folders that stand for former containers. Who runs a model again in a folder that
 * is empty has removed the files of the last run, or moved them to where nobody looks; which of
 * both, nobody knows. So such former containers are kept longer than others (`keep_moved` of the
 * site), and as long as a file is there through which one was read since. What is known of it is a
 * fact of the container, "UUID/file", which goes with it.
 */

#include "io/session/session.h"

#define ESDM__STUB_PLACE_BYTES 320 /**< ESDM_STUB_PLACE_BYTES */

/** esdm_stub_place(). @param ret_place room for ESDM__STUB_PLACE_BYTES; "": not known. */
void esdm__stub_file_place(const esdm_session *session, const char *folder, char *ret_place);

/** The container is about to be replaced, and its file is not where it was. */
esdm_status esdm__stub_file_missing(const esdm_session *session, const char *uuid, esdm_error *err);
/** A file stands for the container there. @param path absolute. */
esdm_status esdm__stub_file_seen(const esdm_session *session, const char *uuid, const char *path,
                                 esdm_error *err);
/**
 * Until when a former container is to be kept for the sake of its file, in ns since 1970.
 * @param settle notes when a file is missed first: it counts from then on.
 * @return 0: none is known of. UINT64_MAX: it is there, or lies where this node does not see it.
 */
uint64_t esdm__stub_file_until(const esdm_session *session, const char *uuid, bool settle);

#endif
