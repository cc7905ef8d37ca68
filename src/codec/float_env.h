/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_FLOAT_ENV_H
#define ESDM_CODEC_FLOAT_ENV_H

/**
 * @file
 * Codecs compute in the same way in every program: rounding to nearest, with denormals, without
 * traps. Models are often compiled to flush denormals to zero, or to stop at invalid operations,
 * and the threads that they start inherit that (Fortran: ifort, gfortran -Ofast, -ffpe-trap).
 */

#include <fenv.h>

/** @param ret_program what esdm__float_env_leave() restores for the calling thread. */
static inline void
esdm__float_env_enter(fenv_t *ret_program)
{
    (void) fegetenv(ret_program);
    (void) fesetenv(FE_DFL_ENV);
}

static inline void
esdm__float_env_leave(const fenv_t *program)
{
    (void) fesetenv(program);
}

#endif
