/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes a temperature field step by step and reads a point's time series back.
 *
 *     cc example.c $(pkg-config --cflags --libs esdm) -o example && ./example
 */
#include <stdio.h>
#include <stdlib.h>

#include "esdm/esdm.h"

enum { STEPS = 24, LAT = 90, LON = 180 };

static esdm_status
write_field(esdm_session *session, esdm_error *err)
{
    static float step[LAT][LON];
    esdm_container *container = NULL;
    esdm_dimension *dims[3];
    esdm_dataset *tas;
    esdm_status st;

    st = esdm_container_create(session, "example/tas.nc", ESDM_CREATE_REPLACE, &container, err);
    if (st != ESDM_OK)
        return st;
    esdm_group *root = esdm_container_root(container);
    if ((st = esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], err)) != ESDM_OK ||
        (st = esdm_dimension_create(root, "lat", LAT, &dims[1], err)) != ESDM_OK ||
        (st = esdm_dimension_create(root, "lon", LON, &dims[2], err)) != ESDM_OK ||
        (st = esdm_dataset_create(root, "tas", ESDM_TYPE_FLOAT32, 3, dims, &tas, err)) != ESDM_OK ||
        (st = esdm_attribute_set(esdm_dataset_attributes(tas), "units", ESDM_TYPE_CHAR, 1, "K",
                                 err)) != ESDM_OK)
        goto failed;

    for (uint64_t t = 0; t < STEPS; t++) {
        for (int i = 0; i < LAT; i++)
            for (int k = 0; k < LON; k++)
                step[i][k] = 273.0F + (float) t + 0.01F * (float) (i + k);
        esdm_dataspace space;
        st = esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0}, (uint64_t[]){1, LAT, LON}, err);
        if (st == ESDM_OK)
            st = esdm_write(tas, &space, ESDM_TYPE_FLOAT32, step, NULL, err);
        if (st != ESDM_OK)
            goto failed;
    }
    return esdm_container_close(container, err); /* commits: from now on others see it */
failed:
    esdm_container_discard(container); /* nothing was published */
    return st;
}

static esdm_status
read_series(esdm_session *session, uint64_t lat, uint64_t lon, float *series, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_dataspace space;
    esdm_status st;

    st = esdm_container_open(session, "example/tas.nc", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                             &container, err);
    if (st != ESDM_OK)
        return st;
    esdm_dataset *tas = esdm_group_dataset_find(esdm_container_root(container), "tas");
    st = esdm_dataspace_init(&space, 3, (uint64_t[]){0, lat, lon}, (uint64_t[]){STEPS, 1, 1}, err);
    if (st == ESDM_OK)
        st = esdm_read(tas, &space, ESDM_TYPE_FLOAT32, series, NULL, err);
    if (st != ESDM_OK) {
        esdm_container_discard(container);
        return st;
    }
    return esdm_container_close(container, err);
}

int
main(void)
{
    esdm_error err = {0};
    esdm_session *session = NULL;
    float series[STEPS];

    esdm_status st = esdm_session_open(NULL, &session, &err);
    if (st == ESDM_OK)
        st = write_field(session, &err);
    if (st == ESDM_OK)
        st = read_series(session, 45, 90, series, &err);
    esdm_session_close(session);
    if (st != ESDM_OK) {
        fprintf(stderr, "%s: %s\n", esdm_status_string(st), err.message);
        return EXIT_FAILURE;
    }
    printf("tas at (45, 90): %.2f K at first, %.2f K at last\n", series[0], series[STEPS - 1]);
    return EXIT_SUCCESS;
}
