/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_MKFS_H
#define ESDM_TOOLS_MKFS_H

/** @file What the files of esdm-mkfs share. */

#include "common/common.h"

/** Measures the site; with a progress bar on a terminal. Interrupted by SIGINT and SIGTERM. */
esdm_status mkfs_calibrate(const esdm_site_options *options, const esdm_calibrate_options *how,
                           esdm_error *err);
/** The models of the site. @param ret_models owned: esdm_model_info with samples of its own. */
esdm_status mkfs_models(const esdm_site_options *options, GPtrArray **ret_models, esdm_error *err);
/** The models as JSON; owned. */
json_t *mkfs_models_json(const GPtrArray *models);

/** Predicts where the output of a model would go whose header `file` has, as ncdump -h prints it.
 *  @param steps length of unlimited dimensions; 0: as the header says. @param root with --json:
 *  receives the result. */
esdm_status mkfs_plan(const esdm_site_options *options, const char *file, guint64 steps,
                      json_t *root, esdm_error *err);

/** Whether nothing is missing. */
bool mkfs_restored_all(const esdm_restore_result *result);
/** Owned. */
json_t *mkfs_restore_json(const esdm_restore_result *result);
void mkfs_restore_report(const esdm_restore_result *result, bool dry_run);

/** Draws models and measurements as SVG. */
esdm_status mkfs_plot(const GPtrArray *models, const char *file, esdm_error *err);

/** Takes a part of the site for mkfs_health_json(): the `part` of the options of a check. */
void mkfs_health_part(const esdm_part_health *part, void *user);
/** After a check: what the site holds, by target, user and age, and how many parts have a problem.
 */
json_t *mkfs_health_json(const esdm_site_options *options);

/** Makes the site with a PostgreSQL server of its own, and enters it into the configuration.
 *  @param folder of the server's data. */
esdm_status mkfs_private_postgres(const esdm_site_options *given, const char *folder,
                                  esdm_error *err);

#endif
