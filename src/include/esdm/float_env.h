/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_FLOAT_ENV_H
#define ESDM_FLOAT_ENV_H

/**
 * @file
 * ESDM computes in the same way in every program: rounding to nearest, with denormals, without
 * traps; and what it computes leaves no flags behind. Models are often compiled to flush denormals
 * to zero, or to stop at a division by zero or an invalid operation, and the threads that they
 * start inherit that (ifort; gfortran -Ofast, -ffpe-trap=zero,invalid,overflow). A division of ours
 * would end such a model, and Fortran's STOP would blame its own flags on it.
 */

#include <fenv.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the calling thread had. */
typedef struct esdm_float_env {
#if defined(__x86_64__)
    unsigned mxcsr;
#endif
    fenv_t all; /* where the program has changed something */
} esdm_float_env;

#if defined(__x86_64__)

#define ESDM__MXCSR_FLAGS   0x3FU
#define ESDM__MXCSR_DEFAULT 0x1F80U

static inline unsigned
esdm__mxcsr(void)
{
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr) : : "memory");
    return mxcsr;
}

/* Compilers and fenv.h set SSE and the x87 alike, and asking the latter takes 20 times as long. */
static inline int
esdm__float_env_is_own(const esdm_float_env *program)
{
    return (program->mxcsr & ~ESDM__MXCSR_FLAGS) == ESDM__MXCSR_DEFAULT;
}

/** Begins to compute as described. @param ret_program what esdm_float_env_leave() brings back.
 * Takes some ns where the program computes so, too; flags of `long double` then stay
 *  (esdm_float_env_enter_all()). */
static inline void
esdm_float_env_enter(esdm_float_env *ret_program)
{
    ret_program->mxcsr = esdm__mxcsr();
    if (!esdm__float_env_is_own(ret_program)) {
        (void) fegetenv(&ret_program->all);
        (void) fesetenv(FE_DFL_ENV);
    }
}

static inline void
esdm_float_env_leave(const esdm_float_env *program)
{
    if (!esdm__float_env_is_own(program))
        (void) fesetenv(&program->all);
    else if (esdm__mxcsr() != program->mxcsr)
        __asm__ volatile("ldmxcsr %0" : : "m"(program->mxcsr) : "memory");
}

#else

static inline void
esdm_float_env_enter(esdm_float_env *ret_program)
{
    (void) fegetenv(&ret_program->all);
    (void) fesetenv(FE_DFL_ENV);
}

static inline void
esdm_float_env_leave(const esdm_float_env *program)
{
    (void) fesetenv(&program->all);
}

#endif

/** The same for what computes with `long double`, too. */
static inline void
esdm_float_env_enter_all(esdm_float_env *ret_program)
{
    (void) fegetenv(&ret_program->all);
    (void) fesetenv(FE_DFL_ENV);
}

static inline void
esdm_float_env_leave_all(const esdm_float_env *program)
{
    (void) fesetenv(&program->all);
}

/** The rest of a function computes so. */
#define ESDM_FLOAT_ENV_OWN                                                                         \
    esdm_float_env esdm__program __attribute__((cleanup(esdm__float_env_cleanup)));                \
    esdm_float_env_enter(&esdm__program)

static inline void
esdm__float_env_cleanup(esdm_float_env *program)
{
    esdm_float_env_leave(program);
}

#ifdef __cplusplus
}
#endif

#endif
