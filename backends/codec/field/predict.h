/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_PREDICT_H
#define FIELD_PREDICT_H

/** @file Weights of the linear prediction, one set for each class of rows. */

#include "volume.h"

/** Sets the taps of a class, weights 0. */
void field__weights_init(field__weights *weights, uint32_t class);
/** Fits the weights of a class to a sample of its rows by robust least squares. */
void field__weights_fit(field__weights *weights, const field__volume *volume, uint32_t class,
                        size_t samples);
/** Lorenzo prediction: exact where the field is a sum of functions of fewer axes. */
void field__weights_lorenzo(field__weights *weights, uint32_t class);
void field__weights_put(const field__weights *weights, esdm__buffer *out);
/** False when they are not what field__weights_put writes. */
bool field__weights_get(field__weights *weights, uint32_t class, esdm__cursor *in);
/** Which classes the rows of a volume have: bit c set for class c. */
uint32_t field__classes_of(const field__axes *axes);

/**
 * Codes the volume's codes from predictions by weights; fills what is masked.
 * @param samples points that weights are fitted to; 0: Lorenzo prediction.
 * @param ret_head bytes of the result that do not grow with the volume.
 */
esdm_status field__rows_encode(const field__volume *volume, size_t samples, esdm__buffer *out,
                               size_t *ret_head, esdm_error *err);
/** One volume or two of the same axes, which are decoded side by side. */
esdm_status field__rows_decode(const field__volume *const volumes[2], esdm__cursor *const ins[2],
                               size_t count, esdm_error *err);

#endif
