/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SUPPORT_FAULTY_DATA_H
#define ESDM_TESTS_SUPPORT_FAULTY_DATA_H

/**
 * @file
 * Data target "faulty": the target "posix" with faults at chosen operations. Unarmed it is
 * transparent, and packs written through one can be read through the other (same directory, same
 * target name, `"plugin"` exchanged).
 *
 * It is linked into a test, or loaded as `esdm-data-faulty.so` ($ESDM_PLUGIN_PATH). A program that
 * nobody recompiled is armed by $ESDM_FAULTY, read at the first operation:
 *
 *     OPERATION:NTH[+COUNT]:ACTION[:STATUS][,…]     append:3:fail:ENOSPC,read:1+0:flip
 *
 * A test that links libesdm finds the functions below by dlsym() in the loaded object.
 * Threads: locked inside; which of several threads meets the n-th operation is chance.
 */

#include "esdm/sys/data_target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum esdm_faulty_op {
    ESDM_FAULTY_OPEN,
    ESDM_FAULTY_CREATE,
    ESDM_FAULTY_APPEND,
    ESDM_FAULTY_SYNC,
    ESDM_FAULTY_SEAL,
    ESDM_FAULTY_READ,
    ESDM_FAULTY_REMOVE,
    ESDM_FAULTY_LIST,
    ESDM_FAULTY_OPS
} esdm_faulty_op;

typedef enum esdm_faulty_action {
    ESDM_FAULTY_NONE,
    ESDM_FAULTY_FAIL,  /**< nothing is done, `status` is returned (a seal still frees) */
    ESDM_FAULTY_SHORT, /**< read: the first half arrives, then `status`; append: the first half
                            is written and taken back, then `status` */
    ESDM_FAULTY_FLIP   /**< read and append: one bit of the middle byte is wrong; ESDM_OK */
} esdm_faulty_action;

/**
 * From the `nth` operation of this kind on (1: the next one) `count` operations are hit (0: all
 * that follow). One fault for each kind; arming again replaces it.
 */
ESDM_API void esdm_faulty_arm(esdm_faulty_op op, uint64_t nth, uint64_t count,
                              esdm_faulty_action action, esdm_status status);
ESDM_API void esdm_faulty_disarm(void);
/** Operations of this kind so far. */
ESDM_API uint64_t esdm_faulty_calls(esdm_faulty_op op);
/** As by $ESDM_FAULTY. false: not such a text, and nothing is armed. */
ESDM_API bool esdm_faulty_parse(const char *text);

extern const esdm_data_plugin esdm_data_faulty_plugin;

#ifdef __cplusplus
}
#endif
#endif
