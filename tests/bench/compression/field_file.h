/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_BENCH_FIELD_FILE_H
#define ESDM_TESTS_BENCH_FIELD_FILE_H

/** @file The first variable of a netCDF file, as float. */

#include <netcdf.h>
#include <stdbool.h>
#include <stdint.h>

/** Numbers from here on are no data, as fill values are. */
#define FIELD_FILE_HUGE 1e9

typedef struct field_file {
    char name[NC_MAX_NAME + 1];
    uint32_t rank;
    uint64_t shape[NC_MAX_VAR_DIMS];
    uint64_t elements;
    float *values; /* owned */
    float fill;    /* _FillValue; 0 when there is none */
    double range;  /* between the least and the largest number below FIELD_FILE_HUGE */
} field_file;

/** A status of netCDF; on failure there is nothing to free. */
int field_file_load(const char *path, field_file *ret_field);
void field_file_clear(field_file *field);

#endif
