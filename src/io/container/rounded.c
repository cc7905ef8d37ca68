/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Numbers that were rounded stay in the units by which they were, until they are committed. */
#include "io/container/rounded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "io/container/accuracy.h"
#include "model/accuracy.h"

#define UNITS_BYTES 256

typedef struct esdm__rounded {
    double scale;      /* esdm__accuracy_scale(); the largest that is allowed */
    uint64_t accuracy; /* what was stated, as text_hash(); 0: that is not known, or not one */
    bool thresholds;   /* see esdm__accuracy_same_units() */
    bool mixed;        /* and some by another statement, in other units */
    char units[];      /* "": not told by then */
} esdm__rounded;

/* Of what numbers may lose; 0: memory is short. */
static uint64_t
text_hash(const esdm_accuracy *accuracy)
{
    esdm_accuracy bounds = *accuracy;
    esdm__buffer text;
    esdm__buffer_init(&text);
    bounds.stated &= ~(uint32_t) ESDM__LOSES_NOTHING;
    esdm__accuracy_put(&text, &bounds);
    uint64_t hash = text.data == NULL || text.failed ? 0 : esdm__checksum(text.data, text.bytes);
    esdm__buffer_clear(&text);
    return hash;
}

static esdm_status
keep(esdm__dataset_io *io, const esdm__rounded *what, const char *units, esdm_error *err)
{
    size_t bytes = strlen(units) + 1;
    esdm__rounded *kept = malloc(sizeof *kept + bytes);
    if (kept == NULL)
        return esdm__error_nomem(err, sizeof *kept + bytes, "units");
    *kept = *what;
    memcpy(kept->units, units, bytes);
    free(io->rounded);
    io->rounded = kept;
    return ESDM_OK;
}

static bool
units_are(const esdm_dataset *dataset, const esdm__rounded *kept)
{
    char now[UNITS_BYTES];
    esdm__attribute_text(dataset, "units", now, sizeof now);
    return kept->units[0] == '\0' || esdm__accuracy_same_units(kept->units, now, kept->thresholds);
}

/* Packed numbers mean others with a larger factor, and are off by more. */
static bool
is_scaled_up(const esdm_dataset *dataset, const esdm__rounded *kept)
{
    return esdm__accuracy_scale(dataset) > kept->scale * (1 + 0x1p-20);
}

/* Whether what is stated now allows what the numbers lost. */
static bool
allowed(const esdm_dataset *dataset, const esdm__rounded *kept)
{
    esdm_accuracy now;
    if (kept->mixed)
        return false;
    if (esdm_dataset_accuracy_units(dataset) == NULL && units_are(dataset, kept))
        return true;
    return kept->accuracy != 0 && esdm_dataset_accuracy(dataset, &now) &&
           text_hash(&now) == kept->accuracy;
}

esdm_status
esdm__rounded_note(const esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    char units[UNITS_BYTES];
    esdm_accuracy stated;
    if (!esdm_dataset_accuracy(dataset, &stated) || (stated.stated & ESDM__IN_UNITS) == 0)
        return ESDM_OK;
    const double scale = esdm__accuracy_scale(dataset);
    if (io->rounded != NULL) {
        io->rounded->scale = fmin(io->rounded->scale, scale);
        if (!io->rounded->mixed && !allowed(dataset, io->rounded))
            io->rounded->mixed = true;
        else if (io->rounded->accuracy != text_hash(&stated))
            io->rounded->accuracy = 0; /* in these units no one statement says what all lost */
        return ESDM_OK;
    }
    esdm__attribute_text(dataset, "units", units, sizeof units);
    const esdm__rounded what = {.scale = scale,
                                .accuracy = text_hash(&stated),
                                .thresholds = (stated.stated & ESDM__THRESHOLDS) != 0};
    return keep(io, &what, units, err);
}

esdm_status
esdm__rounded_restate(const esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err)
{
    const char *units = esdm_dataset_accuracy_units(dataset);
    if (io->rounded == NULL || io->rounded->units[0] != '\0' || units == NULL)
        return ESDM_OK;
    const esdm__rounded what = *io->rounded;
    return keep(io, &what, units, err);
}

esdm_status
esdm__rounded_check(const esdm_dataset *dataset, const esdm__dataset_io *io, esdm_error *err)
{
    if (io->rounded == NULL)
        return ESDM_OK;
    if (is_scaled_up(dataset, io->rounded))
        return esdm__error_set(
            err, ESDM_EINVAL,
            "its attribute 'scale_factor' was made larger after numbers had been written with an "
            "accuracy, which they do not keep with it. They cannot be committed: set it before "
            "the numbers, or give these up (nc_abort, esdm_container_discard)");
    if (allowed(dataset, io->rounded))
        return ESDM_OK;
    if (io->rounded->mixed)
        return esdm__error_set(
            err, ESDM_EINVAL,
            "its attribute 'units' was changed between numbers that were written with an accuracy, "
            "some of which was stated in '%s': no statement is right for all of them. They "
            "cannot be committed: give them up (nc_abort, esdm_container_discard), and write anew "
            "in units that stay, or commit (nc_sync) before the units change",
            io->rounded->units[0] != '\0' ? io->rounded->units : "other units");
    const char *units = io->rounded->units;
    if (units[0] == '\0')
        units = esdm_dataset_accuracy_units(dataset);
    return esdm__error_set(
        err, ESDM_EINVAL,
        "its attribute 'units' was changed after numbers had been written with "
        "an accuracy that was stated in '%s': change it before, or state anew that "
        "these numbers may be off by as much",
        units != NULL ? units : "other units");
}

void
esdm__rounded_clear(esdm__dataset_io *io)
{
    free(io->rounded);
    io->rounded = NULL;
}
