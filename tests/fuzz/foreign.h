/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_FUZZ_FOREIGN_H
#define TESTS_FUZZ_FOREIGN_H

/** @file The codecs over foreign libraries that were there when this was built. Inputs name them by
 *  their place here. */

#include <stddef.h>

#include "esdm/sys/codec.h"

#ifdef WITH_ZFP
extern const esdm_codec_plugin esdm_codec_zfp_plugin;
#endif
#ifdef WITH_FPZIP
extern const esdm_codec_plugin esdm_codec_fpzip_plugin;
#endif
#ifdef WITH_SZIP
extern const esdm_codec_plugin esdm_codec_szip_plugin;
#endif
#ifdef WITH_DEFLATE
extern const esdm_codec_plugin esdm_codec_deflate_plugin;
#endif

/* Ends with NULL. */
static const esdm_codec_plugin *const foreign_codecs[] = {
#ifdef WITH_ZFP
    &esdm_codec_zfp_plugin,
#endif
#ifdef WITH_FPZIP
    &esdm_codec_fpzip_plugin,
#endif
#ifdef WITH_SZIP
    &esdm_codec_szip_plugin,
#endif
#ifdef WITH_DEFLATE
    &esdm_codec_deflate_plugin,
#endif
    NULL};
#define FOREIGN_CODECS (sizeof foreign_codecs / sizeof foreign_codecs[0] - 1)

#endif
