/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The codec grib: messages that end a process in which ecCodes 2.28 decodes them are errors,
 *  and good ones are decoded before and after, in children of fork() and threads as well. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esdm/types.h"
#include "plugin/registry.h"

enum { ROWS = 6, COLUMNS = 8, NUMBERS = ROWS * COLUMNS, MISSING = 2 };

/* Both have 280 + column / 2 - row, made by ecCodes 2.28. */
/* Edition 1, with a bitmap: the first two of each row are missing. */
static const uint8_t simple[] = {
    0x47, 0x52, 0x49, 0x42, 0x00, 0x00, 0x9c, 0x01, 0x00, 0x00, 0x34, 0x80, 0x62, 0x80, 0xff, 0xc0,
    0xa7, 0x64, 0x03, 0x52, 0x07, 0x03, 0x17, 0x0c, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x15, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x01, 0x02, 0x04, 0x01, 0x30, 0x30, 0x30, 0x31, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00,
    0xff, 0x00, 0x00, 0x08, 0x00, 0x06, 0x00, 0xea, 0x60, 0x00, 0x00, 0x00, 0x80, 0x00, 0xc3, 0x50,
    0x00, 0x75, 0x30, 0x07, 0xd0, 0x07, 0xd0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x00,
    0x00, 0x00, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x00, 0x00, 0x30, 0x08, 0x80, 0x05, 0x43, 0x11,
    0x40, 0x00, 0x08, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0, 0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0x60,
    0x70, 0x80, 0x90, 0xa0, 0xb0, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0x20, 0x30, 0x40, 0x50, 0x60,
    0x70, 0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x00, 0x37, 0x37, 0x37, 0x37,
};
/* Edition 1, second-order packing. */
static const uint8_t second_order[] = {
    0x47, 0x52, 0x49, 0x42, 0x00, 0x00, 0xad, 0x01, 0x00, 0x00, 0x34, 0x80, 0x62, 0x80, 0xff, 0x80,
    0xa7, 0x64, 0x03, 0x52, 0x07, 0x03, 0x17, 0x0c, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x15, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x01, 0x02, 0x04, 0x01, 0x30, 0x30, 0x30, 0x31, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00,
    0xff, 0x00, 0x00, 0x08, 0x00, 0x06, 0x00, 0xea, 0x60, 0x00, 0x00, 0x00, 0x80, 0x00, 0xc3, 0x50,
    0x00, 0x75, 0x30, 0x07, 0xd0, 0x07, 0xd0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x4d, 0x40,
    0x80, 0x04, 0x43, 0x11, 0x30, 0x00, 0x00, 0x00, 0x20, 0x1a, 0x00, 0x20, 0x00, 0x01, 0x00, 0x2e,
    0x00, 0x04, 0x06, 0x00, 0x1f, 0x08, 0x50, 0x58, 0xd0, 0x80, 0xb8, 0x50, 0x50, 0x50, 0x50, 0x50,
    0x50, 0x00, 0xa0, 0x50, 0x50, 0x50, 0x50, 0x50, 0x50, 0x00, 0xa0, 0x50, 0x50, 0x50, 0x50, 0x50,
    0x50, 0x00, 0xa0, 0x50, 0x50, 0x50, 0x50, 0x50, 0x50, 0x00, 0xa0, 0x50, 0x50, 0x50, 0x50, 0x50,
    0x50, 0x00, 0xa0, 0x50, 0x50, 0x50, 0x50, 0x50, 0x50, 0x37, 0x37, 0x37, 0x37,
};

/* One byte of a message that is another one. */
typedef struct fault {
    const uint8_t *message;
    size_t bytes, at;
    uint8_t byte;
} fault;

static const fault faults[] = {
    {simple, sizeof simple, 94, 0},               /* the bitmap has no bytes: an assertion */
    {simple, sizeof simple, 106, 0},              /* nor has the data */
    {second_order, sizeof second_order, 109, 0},  /* no groups: a wild address */
    {second_order, sizeof second_order, 113, 20}, /* widths of 20 bits: the same */
};

static const esdm_codec_input input = {.type = ESDM_TYPE_FLOAT32, .element_bytes = sizeof(float)};

static const esdm_codec_plugin *
find(void)
{
    const esdm_plugin *plugin = NULL;
    esdm_error err = {0};
    if (esdm__plugin_find(ESDM_PLUGIN_CODEC, "grib", &plugin, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return (const esdm_codec_plugin *) plugin;
}

/* @return NULL: the numbers are right, else what is wrong. */
static const char *
decode_good(const esdm_codec_plugin *codec)
{
    static _Thread_local esdm_error err;
    float back[NUMBERS];
    for (int second = 0; second < 2; second++) {
        if (codec->decode(&input, second ? second_order : simple,
                          second ? sizeof second_order : sizeof simple, back, sizeof back,
                          &err) != ESDM_OK)
            return err.message;
        for (int i = 0; i < NUMBERS; i++) {
            float wanted = 280.0f + (float) (i % COLUMNS) * 0.5f - (float) (i / COLUMNS);
            if (!second && i % COLUMNS < MISSING)
                wanted = -9e33f;
            if (memcmp(&back[i], &wanted, sizeof wanted) != 0)
                return "a number is another one";
        }
    }
    return NULL;
}

static void
need_good(const esdm_codec_plugin *codec)
{
    const char *wrong = decode_good(codec);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

static void
test_grib__ill_messages_are_errors(void **state)
{
    (void) state;
    const esdm_codec_plugin *codec = find();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const fault *f = &faults[i];
        uint8_t message[256];
        float back[NUMBERS];
        esdm_error err = {0};
        need_good(codec);
        memcpy(message, f->message, f->bytes);
        message[f->at] = f->byte;
        esdm_status status = codec->decode(&input, message, f->bytes, back, sizeof back, &err);
        assert_int_equal(status, ESDM_ECORRUPT);
        assert_non_null(strstr(err.message, "grib: "));
        need_good(codec);
    }
}

static void
test_grib__other_numbers_than_wanted__an_error(void **state)
{
    (void) state;
    float back[NUMBERS + 1];
    esdm_error err = {0};
    assert_int_equal(find()->decode(&input, simple, sizeof simple, back, sizeof back, &err),
                     ESDM_ECORRUPT);
    assert_string_equal(err.message, "grib: 48 values instead of 49");
    assert_int_equal(find()->decode(&input, simple, 15, back, sizeof back, &err), ESDM_ECORRUPT);
}

/* Those that decode for this test: they have its environment. @param number of the signal; 0: they
 * are counted alone. @param ret_last one of them */
static unsigned
signal_programs(int number, pid_t *ret_last)
{
    unsigned found = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (struct dirent *entry = readdir(all); entry != NULL; entry = readdir(all)) {
        char path[300], text[4096] = "", mine[32];
        pid_t pid = (pid_t) atoi(entry->d_name);
        if (pid <= 0)
            continue;
        (void) snprintf(path, sizeof path, "/proc/%d/environ", (int) pid);
        FILE *file = fopen(path, "r");
        size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file != NULL)
            (void) fclose(file);
        (void) snprintf(mine, sizeof mine, "GRIB_TEST=%d", (int) getpid());
        bool is_mine = memmem(text, n, mine, strlen(mine) + 1) != NULL;
        if (is_mine && pid != getpid() && kill(pid, number) == 0) {
            *ret_last = pid;
            found++;
        }
    }
    (void) closedir(all);
    return found;
}

static unsigned
end_programs(void)
{
    return signal_programs(SIGKILL, &(pid_t){0});
}

static void
test_grib__a_program_that_was_ended_is_started_again(void **state)
{
    (void) state;
    const esdm_codec_plugin *codec = find();
    need_good(codec);
    for (int i = 0; i < 3; i++) {
        assert_true(end_programs() > 0);
        need_good(codec);
    }
}

static void
test_grib__children_have_programs_of_their_own(void **state)
{
    (void) state;
    const esdm_codec_plugin *codec = find();
    need_good(codec);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            const char *wrong = NULL;
            for (int k = 0; k < 50 && wrong == NULL; k++)
                wrong = decode_good(codec);
            _exit(wrong != NULL);
        }
    }
    for (int k = 0; k < 50; k++)
        need_good(codec);
    for (int i = 0; i < 4; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    /* Who waits for all of its children waits for none of ours. */
    assert_int_equal(waitpid(-1, NULL, 0), -1);
}

/* A program may close all numbers from 3 on, and open files of its own under them. */
static void
test_grib__sockets_are_out_of_the_way(void **state)
{
    (void) state;
    (void) end_programs();
    need_good(find());
    pid_t before = 0;
    pid_t after = 0;
    assert_int_equal(signal_programs(0, &before), 1);
    for (int fd = STDERR_FILENO + 1; fd < 100; fd++)
        assert_int_equal(dup2(STDERR_FILENO, fd), fd);
    need_good(find());
    for (int fd = STDERR_FILENO + 1; fd < 100; fd++)
        assert_int_equal(close(fd), 0);
    need_good(find());
    assert_int_equal(signal_programs(0, &after), 1);
    assert_int_equal(after, before);
}

static void *
decode_many(void *codec)
{
    const char *wrong = NULL;
    for (int k = 0; k < 50 && wrong == NULL; k++)
        wrong = decode_good(codec);
    return (void *) (uintptr_t) (wrong != NULL);
}

static void
test_grib__threads_side_by_side(void **state)
{
    (void) state;
    pthread_t threads[6]; /* more than programs that may wait */
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, decode_many, (void *) find()), 0);
    for (int i = 0; i < 6; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int
main(void)
{
    char mine[32];
    (void) snprintf(mine, sizeof mine, "%d", (int) getpid());
    (void) setenv("GRIB_TEST", mine, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grib__ill_messages_are_errors),
        cmocka_unit_test(test_grib__other_numbers_than_wanted__an_error),
        cmocka_unit_test(test_grib__a_program_that_was_ended_is_started_again),
        cmocka_unit_test(test_grib__sockets_are_out_of_the_way),
        cmocka_unit_test(test_grib__children_have_programs_of_their_own),
        cmocka_unit_test(test_grib__threads_side_by_side),
    };
    return cmocka_run_group_tests_name("grib", tests, NULL, NULL);
}
