/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* vfile_copy NAME FORMAT SNAPSHOT FILE SEED: writes a virtual file out, from several threads, and
 * reads ranges by chance, which must be those of the whole. */

#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfile/vfile.h"

#define THREADS 3
#define PIECE   100003u /* no multiple of anything */

typedef struct work {
    esdm_vfile *file;
    unsigned char *whole;
    uint64_t size, first;
    uint32_t seed;
    bool failed;
} work;

static void
fail(work *w, const char *what, const esdm_error *err)
{
    (void) fprintf(stderr, "vfile_copy: %s: %s\n", what, err->message);
    w->failed = true;
}

static void *
read_pieces(void *user)
{
    work *w = user;
    esdm_error err = {0};
    size_t got = 0;
    for (uint64_t at = w->first; at < w->size && !w->failed; at += THREADS * PIECE) {
        if (esdm_vfile_pread(w->file, w->whole + at, MIN(PIECE, w->size - at), at, &got, &err) !=
                ESDM_OK ||
            got != MIN(PIECE, w->size - at))
            fail(w, "pread", &err);
    }
    return NULL;
}

static void *
read_by_chance(void *user)
{
    work *w = user;
    esdm_error err = {0};
    GRand *chance = g_rand_new_with_seed(w->seed);
    unsigned char *buffer = malloc(70000);
    for (int i = 0; i < 300 && !w->failed; i++) {
        uint64_t at = (uint64_t) (g_rand_double(chance) * (double) (w->size + 10));
        size_t most = i % 3 == 0 ? 9 : i % 3 == 1 ? 700 : 70000, got = 0;
        size_t bytes = (size_t) g_rand_int_range(chance, 0, (gint32) most);
        uint64_t there = at < w->size ? MIN(bytes, w->size - at) : 0;
        if (esdm_vfile_pread(w->file, buffer, bytes, at, &got, &err) != ESDM_OK || got != there ||
            memcmp(buffer, w->whole + MIN(at, w->size), got) != 0) {
            (void) fprintf(stderr, "%zu bytes at %llu of %llu: %zu\n", bytes,
                           (unsigned long long) at, (unsigned long long) w->size, got);
            fail(w, "a range differs", &err);
        }
    }
    free(buffer);
    g_rand_free(chance);
    return NULL;
}

static bool
in_threads(work *all, void *(*function)(void *) )
{
    pthread_t threads[THREADS];
    bool good = true;
    for (int i = 0; i < THREADS; i++)
        (void) pthread_create(&threads[i], NULL, function, &all[i]);
    for (int i = 0; i < THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
        good &= !all[i].failed;
    }
    return good;
}

static bool
copy(esdm_vfile *file, const char *path, uint32_t seed)
{
    work all[THREADS];
    uint64_t size = esdm_vfile_size(file);
    unsigned char *whole = malloc(size + 1);
    for (unsigned i = 0; i < THREADS; i++)
        all[i] = (work){.file = file,
                        .whole = whole,
                        .size = size,
                        .first = (uint64_t) i * PIECE,
                        .seed = seed + i};
    bool good = in_threads(all, read_pieces) && in_threads(all, read_by_chance);
    FILE *out = fopen(path, "wb");
    good = good && out != NULL && fwrite(whole, 1, size, out) == size;
    if (out != NULL)
        good &= fclose(out) == 0;
    free(whole);
    return good;
}

int
main(int argc, char **argv)
{
    esdm_error err = {0};
    esdm_session *session = NULL;
    esdm_vfile *file = NULL;
    esdm_vfile_format format = ESDM_VFILE_NETCDF4;
    if (argc != 6 || !esdm_vfile_format_of(argv[2], &format))
        return 2;
    esdm_session_options options = {.read_only = true};
    esdm_status status = esdm_session_open(&options, &session, &err);
    if (status == ESDM_OK)
        status =
            esdm_vfile_open(session, argv[1], strtoull(argv[3], NULL, 10), format, &file, &err);
    if (status != ESDM_OK)
        (void) fprintf(stderr, "vfile_copy: %s\n", err.message);
    bool good = status == ESDM_OK && copy(file, argv[4], (uint32_t) atoi(argv[5]));
    esdm_vfile_close(file);
    esdm_session_close(session);
    return good ? 0 : 1;
}
