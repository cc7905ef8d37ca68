/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_AHEAD_H
#define ESDM_IO_READ_AHEAD_H

/** @file What reads will ask of targets on a network is asked for before they want it. */

#include "io/container/dataset_io.h"

/** Whether it is of use for the dataset to ask ahead at all. */
static inline bool
esdm__can_ask_ahead(const esdm_dataset *dataset)
{
    return dataset->group->container->session->ahead != NULL;
}

/** For whom bytes are asked for; as of esdm__ahead_want. */
typedef struct esdm__asker {
    const void *owner;
    uint64_t turn;
    esdm__ahead_account *account;
} esdm__asker;

/** Asks for what reading `count` pieces takes, which are read together when they are several: small
 *  neighbours in one pack. @param element_bytes of the stored form; 0: elements of different
 *  lengths. @return false: there is no room for more. */
bool esdm__ask_for_pieces(const esdm_dataset *dataset, const esdm_dataspace *space,
                          const esdm__piece *pieces, size_t count, uint64_t element_bytes,
                          const esdm__asker *asker);

/** A container was opened for reading: what earlier runs of the program read first of it is asked
 *  for. Never fails. Virtual containers and those that ranks share are left alone. */
void esdm__read_as_before(esdm_container *container);

/** Before a read: where the last ones went step by step, what the next ones will want is asked for.
 *  Never fails: what cannot be told is read when it is wanted. */
void esdm__read_note_step(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space);

#endif
