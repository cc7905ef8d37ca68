/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_VFILE_INNER_H
#define ESDM_TOOLS_VFILE_INNER_H

/** @file What the files of the virtual files share. */

#include "esdm-cp/esdm-cp.h"
#include "vfile/vfile.h"

/** Values of a box of a dataset, dense and in C order, somewhere in the file. */
typedef struct vf_region {
    uint64_t address; /* of the first byte */
    uint64_t bytes;
    uint64_t number;  /* of the box among those of the dataset, in C order */
    uint32_t dataset; /* index in `datasets` */
} vf_region;

typedef struct vf_dataset {
    esdm_dataset *dataset;
    uint32_t rank;
    bool swap;                     /* bytes of an element lie in the opposite order */
    bool clear;                    /* elements have padding, which is to be zero */
    size_t bytes;                  /* of an element */
    uint64_t shape[ESDM_MAX_RANK]; /* lengths of the dimensions */
    uint64_t box[ESDM_MAX_RANK];   /* of each region */
    esdm_type type;
    const void *fill; /* one element; borrowed */
} vf_dataset;

/** Records of the classic formats: those of all variables take turns. */
typedef struct vf_records {
    uint64_t begin; /* of the first record; 0: there are none */
    uint64_t bytes; /* of a record */
    uint64_t count;
    GArray *parts; /* vf_region of the first record, by address */
} vf_records;

struct esdm_vfile {
    cp_end end; /* the container */
    cp_model *model;
    esdm_vfile_format format;
    uint64_t time_ns; /* of the commit; 0: not known */
    int fd;           /* of the sparse file */
    uint64_t size;
    GArray *datasets; /* vf_dataset */
    GArray *regions;  /* vf_region, by address */
    vf_records records;
};

/** Makes the sparse file at `path`, which does not exist. (header.c) */
esdm_status vf_make(esdm_vfile *file, const char *path, esdm_error *err);
/** The model as the file is to have it: chunks, no filters. (header.c) */
void vf_prepare(esdm_vfile *file);
/** Asks HDF5 where values lie in the sparse file. (addresses.c) */
esdm_status vf_addresses(esdm_vfile *file, const char *path, esdm_error *err);
/** Brings unlimited dimensions of datasets of fixed size to their lengths. (addresses.c) */
esdm_status vf_extend(const esdm_vfile *file, const char *path, esdm_error *err);
/** Reads where values lie from the header of a classic file. (classic.c) */
esdm_status vf_classic_addresses(esdm_vfile *file, esdm_error *err);
/** A dataset of the model, as one box. */
vf_dataset vf_dataset_of(const cp_dataset *dataset, bool swap);
/** Enters a dataset of the model; returns its index. */
uint32_t vf_dataset_add(esdm_vfile *file, const cp_dataset *dataset, bool swap);
/** Bytes of the values of a box, dense and in C order, from the `first` byte on; those behind the
 *  end of a dimension are the fill value. @param number of the box, in C order. (render.c) */
esdm_status vf_render_box(const vf_dataset *dataset, uint64_t number, uint64_t first, size_t bytes,
                          unsigned char *buffer, esdm_error *err);
/** Bytes of a region's values, from the `first` byte on. (render.c) */
esdm_status vf_render(const esdm_vfile *file, const vf_region *region, uint64_t first, size_t bytes,
                      unsigned char *buffer, esdm_error *err);

/** While true, H5Dcreate2() gives datasets of fixed size their room at once, and writes nothing
 *  there. Under the lock of headers. (interpose.c) */
extern bool vf_interposing;

#endif
