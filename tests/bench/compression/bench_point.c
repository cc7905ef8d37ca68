/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What one number of an archived field takes, through ESDM.
 *
 * bench_point FOLDER QUANTITIES MEMORY FILE…
 *
 * Writes the first variable of each netCDF file into a site in FOLDER (which must not exist), with
 * accuracies such as "abs=0.1%; mode=archive" ("%": of the field's range) and one thread that has
 * so much engine.memory ("256 MiB"). Then reads numbers at 15 places, each in a session of its own,
 * so that nothing is cached, and prints the median of the processor time and the ratio.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esdm/esdm.h"
#include "field_file.h"

#define PLACES 15

static esdm_error err;
static char config[2048];

static void
check(esdm_status status, const char *what)
{
    if (status == ESDM_OK)
        return;
    fprintf(stderr, "bench_point: %s: %s\n", what, err.message);
    exit(1);
}

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static esdm_session *
open_session(void)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = config};
    check(esdm_session_open(&options, &session, &err), "session");
    return session;
}

/* "abs=0.1%" as a number of the field's unit; the rest as it is. */
static void
print_quantities(const char *text, double range, char *out, size_t bytes)
{
    double share;
    int used = 0;
    if (sscanf(text, "abs=%lf%%%n", &share, &used) == 1 && used > 0)
        (void) snprintf(out, bytes, "abs=%.9g%s", share / 100 * range, text + used);
    else
        (void) snprintf(out, bytes, "%s", text);
}

static void
store(const field_file *f, const char *quantities)
{
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_dataset *dataset;
    esdm_dimension *dims[NC_MAX_VAR_DIMS];
    esdm_dataspace space;
    esdm_accuracy accuracy;
    char text[256];
    check(esdm_container_create(session, f->name, ESDM_CREATE_NEW, &container, &err), f->name);
    esdm_group *root = esdm_container_root(container);
    for (uint32_t d = 0; d < f->rank; d++) {
        (void) snprintf(text, sizeof text, "d%u", d);
        check(esdm_dimension_create(root, text, f->shape[d], &dims[d], &err), text);
    }
    check(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, f->rank, dims, &dataset, &err), "v");
    if (f->fill != 0)
        check(esdm_attribute_set(esdm_dataset_attributes(dataset), "_FillValue", ESDM_TYPE_FLOAT32,
                                 1, &f->fill, &err),
              "_FillValue");
    print_quantities(quantities, f->range, text, sizeof text);
    esdm_accuracy_init(&accuracy);
    check(esdm_accuracy_parse(&accuracy, text, NULL, &err), text);
    check(esdm_dataset_set_accuracy(dataset, &accuracy, &err), text);
    check(esdm_dataspace_init(&space, f->rank, NULL, f->shape, &err), "space");
    check(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, f->values, NULL, &err), "write");
    check(esdm_container_close(container, &err), "close");
    esdm_session_close(session);
}

static bool
add_bytes(const esdm_fragment_info *info, void *user)
{
    *(uint64_t *) user += info->stored_bytes;
    return true;
}

/* Processor time of one number, in a session of its own. */
static double
read_point(const field_file *f, uint64_t element, uint64_t *ret_bytes)
{
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_dataspace space;
    uint64_t at[NC_MAX_VAR_DIMS];
    uint64_t one[NC_MAX_VAR_DIMS];
    float value;
    for (uint32_t d = f->rank; d-- > 0;) {
        at[d] = element % f->shape[d];
        one[d] = 1;
        element /= f->shape[d];
    }
    check(esdm_container_open(session, f->name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                              &err),
          f->name);
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    check(esdm_dataspace_init(&space, f->rank, at, one, &err), "space");
    double begin = seconds();
    check(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, &value, NULL, &err), "read");
    double took = seconds() - begin;
    *ret_bytes = 0;
    check(esdm_dataset_fragments(dataset, add_bytes, ret_bytes, &err), "fragments");
    esdm_container_discard(container);
    esdm_session_close(session);
    return took;
}

static int
compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

int
main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: bench_point FOLDER QUANTITIES MEMORY FILE...\n");
        return 2;
    }
    (void) snprintf(config, sizeof config,
                    "{\"site\":{\"name\":\"point\"},\"targets\":[{\"name\":\"disk\",\"plugin\":"
                    "\"posix\",\"directory\":\"%s/data\"}],\"metadata\":{\"plugin\":\"sqlite\","
                    "\"directory\":\"%s/meta\"},\"engine\":{\"inline\":0,\"threads\":1,"
                    "\"memory\":\"%s\"}}",
                    argv[1], argv[1], argv[3]);
    const esdm_site_options site = {.config_json = config};
    check(esdm_site_create(&site, &err), argv[1]);
    for (int i = 4; i < argc; i++) {
        field_file f;
        double took[PLACES];
        uint64_t bytes = 0;
        if (field_file_load(argv[i], &f) != NC_NOERR) {
            fprintf(stderr, "bench_point: %s cannot be read\n", argv[i]);
            return 1;
        }
        store(&f, argv[2]);
        for (uint64_t k = 0; k < PLACES; k++)
            took[k] = read_point(&f, (f.elements - 1) / PLACES * k + k * 7919 % 1009 % f.elements,
                                 &bytes);
        qsort(took, PLACES, sizeof took[0], compare);
        printf("%-14s %6.2f ms (%.2f to %.2f)  ratio %.2f\n", f.name, took[PLACES / 2] * 1e3,
               took[0] * 1e3, took[PLACES - 1] * 1e3,
               (double) f.elements * sizeof(float) / (double) bytes);
        field_file_clear(&f);
    }
    return 0;
}
