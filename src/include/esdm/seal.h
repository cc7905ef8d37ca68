/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SEAL_H
#define ESDM_SEAL_H

/**
 * @file
 * Containers that do not change any more, and notices that readers see.
 *
 * A sealed container takes no commits, is not replaced and not renamed, by anybody, over any handle
 * that is open or comes. Its data may move to other targets. It is removed by
 * esdm_container_remove_sealed() alone, and stays sealed when it is brought back. The seal has a
 * text, which is the caller's: esdm-seal puts a signed digest there.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The global attribute that readers of a retracted container see; it is stored nowhere. */
#define ESDM_RETRACTED_ATTRIBUTE "esdm_retracted"

/** What is noted of a container. */
typedef struct esdm_notices {
    bool sealed;
    bool retracted;
    uint64_t sealed_snapshot;
    uint64_t sealed_ns;
    uint64_t retracted_ns;
    char *seal;       /**< text of the seal; NULL: none */
    char *retraction; /**< why it is not to be used any more; NULL: it may be */
} esdm_notices;

/**
 * Seals a container, for good. What is open for writing cannot commit any more.
 * @param snapshot the newest one, which `text` is about: ESDM_ECONFLICT when there is a newer one.
 * @param text of the seal, UTF-8.
 * @return ESDM_EEXIST: it is sealed. ESDM_ENOTSUP: the metadata store knows no tags. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_seal(esdm_session *session, const char *name,
                                                         uint64_t snapshot, const char *text,
                                                         esdm_error *err);
/** Tells readers not to use a container, sealed or not: all its snapshots have the attribute
 *  ESDM_RETRACTED_ATTRIBUTE from now on. @param reason NULL: takes the notice back. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_retract(esdm_session *session, const char *name,
                                                            const char *reason, esdm_error *err);
/** What is noted of a container. @param ret_notices esdm_notices_clear(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_notices(esdm_session *session, const char *name,
                                                            esdm_notices *ret_notices,
                                                            esdm_error *err);
/** Frees the texts. */
ESDM_API void esdm_notices_clear(esdm_notices *notices);
/** esdm_container_remove() of a container that is sealed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_remove_sealed(esdm_session *session,
                                                                  const char *name,
                                                                  esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
