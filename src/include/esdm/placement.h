/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_H
#define ESDM_PLACEMENT_H

/**
 * @file
 * The measured model of a site: how fast its targets are, and what follows from it for data.
 *
 * Seconds that one of `concurrency` requests of `bytes` takes:
 *
 *     max(latency + bytes / stream, concurrency * (service + bytes / shared))
 *
 * latency and stream (bytes per second) are those of a request alone; service and shared are the
 * time that the target is busy with a request, and the bytes per second of the whole target.
 */

#include "esdm/session.h"
#include "esdm/site.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An attribute of a variable (text) that says how it will be read: "maps" (whole in its fastest
 * dimensions, the default), "time-series" (along its slowest), or "both". Large writes are cut
 * accordingly where no chunk shape is stated. Comes before the first data; a policy of the site
 * configuration ("access") says it for variables without the attribute.
 */
#define ESDM_ACCESS_ATTRIBUTE "esdm_access"

/** Called now and then. @param share 0 … 1. Return false to stop. */
typedef bool (*esdm_calibrate_progress)(double share, const char *text, void *user);

/** How much a calibration may take; 0: a default. Zero-initialise. */
typedef struct esdm_calibrate_options {
    bool quick;           /**< fewer sizes and repetitions: some seconds instead of a minute */
    const char *target;   /**< NULL: every target of the site */
    uint64_t bytes;       /**< to write on each target at most; 4 GiB, quick: 256 MiB */
    double seconds;       /**< for each target at most, about; 60, quick: 6 */
    uint32_t concurrency; /**< requests at once at most; as many as the engine makes */
    esdm_calibrate_progress progress; /**< may be NULL */
    void *user;
} esdm_calibrate_options;

/**
 * Measures targets of a site with requests of 4 KiB to 256 MiB, one and several at once, writing
 * and reading, and keeps the model in the metadata store; targets that are not measured keep
 * theirs. What is written is removed. Another program's work on the targets disturbs, and is
 * disturbed.
 * @param options config_path, config_json, dry_run, report and user count.
 * @return ESDM_ECANCELED when `progress` said so; nothing is kept then. ESDM_ENOENT: no such
 * target. A target that cannot be measured keeps its model, the others are measured all the same,
 * and its failure is returned, with its name.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_site_calibrate(const esdm_site_options *options,
                                                         const esdm_calibrate_options *how,
                                                         esdm_error *err);

typedef struct esdm_model_sample {
    double bytes;
    double concurrency;
    double seconds; /**< of one request */
} esdm_model_sample;

/** One direction of one target. Borrowed during the callback. */
typedef struct esdm_model_info {
    const char *target;
    bool reading;
    bool quick;
    uint64_t measured_ns;
    double latency_s;
    double stream_bytes_per_s;
    double service_s;
    double shared_bytes_per_s;
    double error;           /**< mean relative error for measurements that the model has not seen */
    double naive_error;     /**< the same of the mean time of all other measurements */
    double median_error;    /**< median instead of mean, of the model */
    uint64_t held_out;      /**< measurements that the errors are of */
    double latency_drift;   /**< factor on latency and service, by requests of programs since */
    double bandwidth_drift; /**< factor on stream and shared, likewise */
    uint64_t observations;  /**< requests that the factors are of */
    size_t nsamples;
    const esdm_model_sample *samples;
    bool past_memory; /**< the device was measured; false: the memory of the machine had a part in
                           it, or the measurement is of an older version */
    uint64_t learned_requests; /**< placement and forecasts go by what was learned from so many
                                    requests of programs (esdm_session_learn()); 0: by the
                                    measured model with its drift */
    double learned_error;      /**< for requests that it had not seen: how far off, as a share */
    double learned_from_error; /**< the same of the measured model with a drift of them */
} esdm_model_info;
typedef bool (*esdm_model_visitor)(const esdm_model_info *info, void *user);

/** Visits the models of the site's targets, in their order, writing before reading; those that were
 *  never measured are left out. ESDM_ECORRUPT: the model is damaged, and placement does without. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_session_models(esdm_session *session,
                                                         esdm_model_visitor visit, void *user,
                                                         esdm_error *err);
/** Seconds that a request takes, with the drifts. @param concurrency ≥ 1. */
ESDM_API double esdm_model_seconds(const esdm_model_info *info, double bytes, double concurrency);

/** What came of learning. */
typedef struct esdm_learn_result {
    uint64_t requests; /**< that could be used */
    double error;      /**< for requests that were held out: exp(mean |ln(predicted / seen)|) - 1 */
    double calibrated_error; /**< the same of the measured model, with a drift of the others */
    bool better;             /**< what was learned predicts better, by more than chance */
} esdm_learn_result;

/**
 * Learns from requests that programs made to a target: a regression tree of factors on the measured
 * times, by the size of a request and how many are under way. Five parts, in the order given, are
 * each predicted from the others, and both models compared request by request.
 * @param samples in the order in which they were made; borrowed.
 * @param keep placement and forecasts go by it from now on, in sessions that are opened later,
 * until the target is calibrated again; where it is not better, they go by the measured model.
 * @return ESDM_ENOENT: no such target, or it was not calibrated. ESDM_EINVAL: fewer than 100
 *         requests that can be used. ESDM_EACCES: with `keep`, a session that may only read.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_session_learn(
    esdm_session *session, const char *target, bool reading, const esdm_model_sample *samples,
    size_t nsamples, bool keep, esdm_learn_result *ret_result, esdm_error *err);

/* ---- what would be ------------------------------------------------------------------------ */

/** `writes` writes of a box each, one after the other, to a variable that need not exist. */
typedef struct esdm_forecast_request {
    const char *container; /**< for the site's policies */
    const char *path;      /**< "/group/name", likewise */
    uint64_t element_bytes;
    uint32_t rank;
    const uint64_t *shape; /**< of one write */
    uint64_t writes;
    const char *access; /**< value of ESDM_ACCESS_ATTRIBUTE; NULL: not stated */
} esdm_forecast_request;

/** What one target would get. Borrowed during the callback. */
typedef struct esdm_forecast_share {
    const char *target; /**< "(inline)": the metadata store */
    uint64_t fragments;
    uint64_t
        bytes; /**< before compression; of all copies that the site asks for, as fragments are */
    double busy_s; /**< that the target would work on it */
} esdm_forecast_share;
typedef bool (*esdm_forecast_visitor)(const esdm_forecast_share *share, void *user);

/**
 * Predicts where writes would go and how long they would take, with nothing else under way.
 * Compression, and the time that it takes, are left out.
 * @param ret_seconds NAN when the site was not measured.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_forecast_write(esdm_session *session,
                                                         const esdm_forecast_request *request,
                                                         esdm_forecast_visitor visit, void *user,
                                                         double *ret_seconds, esdm_error *err);

/* ---- how writes went ---------------------------------------------------------------------- */

/** Fragments as they were written; small ones that stay in the metadata store do not count. */
typedef struct esdm_write_counts {
    uint64_t fragments;    /**< all */
    uint64_t elsewhere;    /**< of these: on another target than planned, because one was full,
                                failed, or could not be reached */
    uint64_t fewer_copies; /**< of these: on fewer targets than "copies" asks for */
} esdm_write_counts;

/** What this handle has written since it was opened, committed or not; on a container of several
 *  ranks what this rank has. Complete after a commit: targets may fail until then. */
ESDM_API void esdm_container_write_counts(esdm_container *container, esdm_write_counts *ret_counts);
/** The same of all writers so far, since the container was made, whether or not the fragments are
 *  still there or were brought in order since (esdm-fsck --repair). Writers tell it when they
 *  close, and now and then; as in esdm_container_decisions() some may be missing. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_write_history(esdm_container *container,
                                                                  esdm_write_counts *ret_counts,
                                                                  esdm_error *err);

/* ---- why data lie where they lie ---------------------------------------------------------- */

/** How a target stood when the fragments of a pack were placed. */
typedef struct esdm_decision_target {
    const char *target;
    const char *why;    /**< it was chosen, or was not, in words; the most frequent reason */
    double predicted_s; /**< of one fragment, with what was under way; a mean; 0: no model */
} esdm_decision_target;

/** One pack, as its writer saw it. Borrowed during the callback. */
typedef struct esdm_decision_info {
    const char *pack;
    const char *target; /**< its first one */
    uint64_t fragments; /**< placed, whether or not they are still live */
    uint64_t bytes;
    double predicted_s; /**< sum over fragments, with what was under way; 0: no model */
    double observed_s;  /**< what they took, with the pack's flushing and sealing */
    size_t ntargets;
    const esdm_decision_target *targets; /**< of all targets of the site then */
} esdm_decision_info;
typedef bool (*esdm_decision_visitor)(const esdm_decision_info *info, void *user);

/** Visits what is known about the placement of a container's packs: nothing for writers that were
 *  killed, and for sites with neither a choice nor a model. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_decisions(esdm_container *container,
                                                              esdm_decision_visitor visit,
                                                              void *user, esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
