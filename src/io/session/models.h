/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_MODELS_H
#define ESDM_IO_SESSION_MODELS_H

/**
 * @file
 * The site's model in a session: loaded when it is first asked for, corrected by the requests that
 * the session makes, and written back rarely. Nothing here can make a write or a commit fail: what
 * cannot be read or written is as if it were not there. Threads: locked inside.
 */

#include "esdm/placement.h"
#include "placement/site_model.h"

typedef struct esdm__models esdm__models;

/** NULL when out of memory. */
esdm__models *esdm__models_new(size_t ntargets);
/** Takes over what another process has read (esdm__models_texts()). Before anybody asks. */
void esdm__models_tell(const esdm_session *session, const char *model, const char *observed);
/** What the store has. @param ret_model,ret_observed owned, free(); NULL: there is none. */
void esdm__models_texts(const esdm_session *session, char **ret_model, char **ret_observed);
/** Writes back what was observed, if it is worth it. NULL is accepted. */
void esdm__models_settle(esdm__models *models, const esdm_session *session);
/** esdm__models_settle(), and the end. NULL is accepted. */
void esdm__models_free(esdm__models *models, const esdm_session *session);

/** Copies the write models of all targets, as they are now. @param ret_perfs,ret_measured of as
 * many as the session has targets. @return whether any was measured. */
bool esdm__models_write(esdm_session *session, esdm__perf *ret_perfs, bool *ret_measured);
/** The model of one target and direction; false: it was not measured. */
bool esdm__models_get(esdm_session *session, size_t target, bool reading, esdm__perf *ret_perf);
/** Takes note of requests of `bytes` each, `concurrency` of them at once, `seconds` each. */
void esdm__models_observe(esdm_session *session, size_t target, bool reading, double bytes,
                          double concurrency, double seconds);

/** Reads the model of a site. ESDM_ENOENT: there is none. @param ret_model cleared by the caller.
 */
esdm_status esdm__models_load(const esdm_session *session, esdm__site_model *ret_model,
                              esdm_error *err);
/** Keeps a new model of the site. */
esdm_status esdm__models_store(const esdm_session *session, const esdm__site_model *model,
                               esdm_error *err);

/** Keeps what was learned of one direction of a target, or nothing (count 0), in place of what was
 *  learned before; its drift begins anew. ESDM_ENOENT: it is not the measured one any more. */
esdm_status esdm__models_keep_learned(const esdm_session *session, const char *target,
                                      uint64_t measured_ns, bool reading,
                                      const esdm__learned *learned, esdm_error *err);

/** Monotonic clock. */
double esdm__seconds_now(void);

#endif
