/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKENDS_GRIB_H
#define ESDM_BACKENDS_GRIB_H

/** @file What the codec (process.c) and the program that runs ecCodes (serve.c) say to each other,
 *  over a socket: a question and the message; an answer, and the values or a text. Both are of one
 *  build on one machine. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

/** The first that the program says; another number with each change of what is said. */
#define GRIB_HELLO UINT64_C(0x4553444d47520001)
/** Name of the program, beside the plug-in. */
#define GRIB_PROGRAM "esdm-grib"
/** Name of the function of the plug-in that the program calls. */
#define GRIB_SERVE "esdm_grib_serve"

typedef struct grib__question {
    uint64_t message_bytes;
    uint64_t values;        /* that the message has to have */
    uint64_t element_bytes; /* of float or double */
} grib__question;

#define GRIB_TEXT_BYTES 504u

typedef struct grib__answer {
    uint64_t status; /* esdm_status. ESDM_OK: values follow */
    char text[GRIB_TEXT_BYTES];
} grib__answer;

/** All bytes, or false: the other side has ended. */
bool grib__send(int fd, const void *data, size_t bytes);
bool grib__receive(int fd, void *to, size_t bytes);

/** Has a message decoded by a program that is there for it, or is started. Any thread, also after
 *  fork(). @param to question->values elements; untouched or in part written where it fails.
 *  @return ESDM_ECORRUPT: ecCodes refuses the message, or has ended over it. ESDM_ENOTSUP: the
 *  program or the definitions of ecCodes are not there. */
esdm_status grib__ask(const grib__question *question, const void *message, void *to,
                      esdm_error *err);

#endif
