/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Observing a session: all threads are counted, what does not fit is told, files are whole
 * lines. */
#include "monitor/monitor.h"

#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define SPANS   500

static char folder[64];

static char *
in_folder(const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    return path;
}

static esdm__monitor *
monitor(uint32_t modules, const char *trace, const char *stats, uint64_t buffer_bytes)
{
    esdm__monitor_options options = {.modules = modules,
                                     .trace_file = in_folder(trace),
                                     .stats_file = in_folder(stats),
                                     .buffer_bytes = buffer_bytes};
    esdm__monitor *m = NULL;
    esdm_error err = {0};
    assert_int_equal(ESDM_OK, esdm__monitor_new(&options, &m, &err));
    esdm__monitor_options_clear(&options);
    return m;
}

/* All of a file; "" when there is none. */
static char *
contents(const char *name)
{
    char *path = in_folder(name);
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 22);
    assert_non_null(text);
    if (file != NULL) {
        text[fread(text, 1, (1 << 22) - 1, file)] = '\0';
        (void) fclose(file);
    }
    free(path);
    return text;
}

static unsigned
count_of(const char *text, const char *what)
{
    unsigned count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        count++;
    return count;
}

/* Each line alone is JSON. */
static void
assert_lines(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        json_error_t error;
        json_t *line = json_loadb(at, (size_t) (end - at), 0, &error);
        if (line == NULL)
            fail_msg("%s in %.*s", error.text, (int) (end - at), at);
        json_decref(line);
        at = end + 1;
    }
}

static void
write_one(esdm__monitor *m, uint32_t object, uint64_t bytes)
{
    esdm__span outer;
    esdm__span inner;
    esdm__span_begin(&outer, m);
    esdm__span_begin(&inner, m);
    assert_int_equal(outer.id, inner.cause);
    esdm__span_stop(
        &inner, &(esdm__span_facts){ESDM__SPAN_ENCODE, object, bytes, bytes / 2, 1, ESDM_OK, NULL});
    esdm__span_stop(&outer, &(esdm__span_facts){ESDM__SPAN_WRITE, object, bytes, 0, 0, ESDM_OK,
                                                esdm__detail_handle(outer.id)});
    assert_int_equal(outer.cause, esdm__span_current());
}

static void *
write_many(void *argument)
{
    esdm__monitor *m = argument;
    uint32_t object = esdm__monitor_object(m, "a \"name\"", "/tas", NULL);
    for (int i = 0; i < SPANS; i++)
        write_one(m, object, 4096);
    return NULL;
}

static void
test_monitor__nobody_observes(void **state)
{
    (void) state;
    const esdm__monitor_options none = {0};
    esdm__monitor *m = (esdm__monitor *) 1;
    esdm_error err;
    esdm__span span;
    assert_int_equal(ESDM_OK, esdm__monitor_new(&none, &m, &err));
    assert_null(m);
    uint64_t current = esdm__span_current();
    esdm__span_begin(&span, m);
    assert_false(esdm__span_is_observed(&span));
    assert_int_equal(current, esdm__span_current());
    esdm__monitor_free(m);
}

static void
test_monitor__threads_are_all_counted_and_written(void **state)
{
    (void) state;
    pthread_t threads[THREADS];
    (void) setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is there, numbers have a comma */
    esdm__monitor *m = monitor(ESDM__MONITOR_STATS | ESDM__MONITOR_TRACE | ESDM__MONITOR_NODE,
                               "all.jsonl", "all.json", 1 << 20);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, write_many, m));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_join(threads[i], NULL));
    esdm__span_counts counts;
    esdm__monitor_total(m, ESDM__SPAN_WRITE, &counts);
    assert_int_equal(THREADS * SPANS, counts.count);
    assert_int_equal(THREADS * SPANS * 4096, counts.bytes);
    assert_int_equal(THREADS * SPANS, counts.sizes[2]);
    esdm__monitor_free(m);

    char *trace = contents("all.jsonl");
    assert_lines(trace);
    assert_int_equal(1, count_of(trace, "\"what\":\"process\""));
    assert_int_equal(THREADS * SPANS, count_of(trace, "\"kind\":\"write\""));
    assert_int_equal(THREADS * SPANS, count_of(trace, "\"kind\":\"encode\""));
    assert_non_null(strstr(trace, "\"container\":\"a \\\"name\\\"\""));
    assert_non_null(strstr(trace, "\"what\":\"node\""));
    assert_non_null(strstr(trace, "\"dropped\":0}"));
    char *stats = contents("all.json");
    assert_lines(stats);
    assert_int_equal(2, count_of(stats, "\"count\":2000"));
    free(trace);
    free(stats);
}

static void
test_monitor__what_finds_no_room_is_dropped_and_told(void **state)
{
    (void) state;
    char *path = in_folder("nobody.jsonl");
    assert_int_equal(0, mkfifo(path, 0600));
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* takes 64 KiB, then nothing */
    assert_true(reader >= 0);
    esdm__monitor *m =
        monitor(ESDM__MONITOR_STATS | ESDM__MONITOR_TRACE, "nobody.jsonl", "told.json", 1 << 16);
    for (int i = 0; i < 40; i++)
        (void) write_many(m); /* if it waited, then for ever */
    esdm__monitor_free(m);
    char *stats = contents("told.json");
    assert_lines(stats);
    assert_int_equal(2, count_of(stats, "\"count\":20000"));
    const char *dropped = strstr(stats, "\"dropped\":");
    assert_non_null(dropped);
    assert_true(strtoull(dropped + 10, NULL, 10) > 20000);
    (void) close(reader);
    free(stats);
    free(path);
}

static void
test_monitor__a_file_that_cannot_be_written_is_told(void **state)
{
    (void) state;
    esdm__monitor *m = monitor(ESDM__MONITOR_STATS | ESDM__MONITOR_TRACE, "no/such/folder.jsonl",
                               "why.json", 1 << 20);
    (void) write_many(m);
    esdm__monitor_free(m);
    char *stats = contents("why.json");
    assert_non_null(strstr(stats, "\"dropped\":1000,\"trace_failure\":\"No such file"));
    free(stats);
    if (access("/dev/full", W_OK) != 0)
        return;
    esdm__monitor_options options = {.modules = ESDM__MONITOR_TRACE | ESDM__MONITOR_STATS};
    options.trace_file = strdup("/dev/full");
    options.stats_file = in_folder("full.json");
    assert_int_equal(ESDM_OK, esdm__monitor_new(&options, &m, NULL));
    (void) write_many(m);
    esdm__monitor_free(m);
    esdm__monitor_options_clear(&options);
    stats = contents("full.json");
    assert_non_null(strstr(stats, "\"trace_failure\":\"No space left"));
    assert_non_null(strstr(stats, "\"dropped\":1000,"));
    free(stats);
}

static void
test_monitor__a_killed_process_leaves_whole_lines(void **state)
{
    (void) state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        esdm__monitor *m = monitor(ESDM__MONITOR_TRACE, "killed.json", "-", 1 << 20);
        (void) write_many(m);
        char *text = contents("killed.json");
        for (int i = 0; i < 600 && count_of(text, "\"write\"") < SPANS; i++) {
            free(text);
            (void) usleep(100000);
            text = contents("killed.json");
        }
        (void) raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status));
    char *text = contents("killed.json");
    assert_memory_equal("[\n", text, 2);
    assert_int_equal(SPANS, count_of(text, "\"name\":\"write\""));
    size_t end = strlen(text);
    assert_string_equal("},\n",
                        text + end - 3); /* what Chrome reads: the end of the list may lack */
    text[end - 2] = ']';
    json_error_t error;
    json_t *list = json_loads(text, 0, &error);
    assert_non_null(list);
    assert_int_equal(2 * SPANS + 1, json_array_size(list));
    json_decref(list);
    free(text);
}

static void
test_monitor__texts_of_people(void **state)
{
    (void) state;
    esdm__monitor_options o = {0};
    esdm_error err = {0};
    assert_int_equal(ESDM_OK, esdm__monitor_parse("stats,trace:/a/b.json,node", "X", &o, &err));
    assert_int_equal(ESDM__MONITOR_STATS | ESDM__MONITOR_TRACE | ESDM__MONITOR_NODE, o.modules);
    assert_string_equal("/a/b.json", o.trace_file);
    assert_int_equal(ESDM_EINVAL, esdm__monitor_parse("stats,trcae", "ESDM_MONITOR", &o, &err));
    assert_string_equal("ESDM_MONITOR: 'trcae' is none of stats, stats:FILE, trace, trace:FILE, "
                        "node, off",
                        err.message);
    assert_int_equal(7, o.modules);
    assert_int_equal(ESDM_EINVAL, esdm__monitor_parse("trace:", "X", &o, &err));
    assert_int_equal(ESDM_ENOTSUP, esdm__monitor_parse("trace:/a/b.otf2", "X", &o, &err));
    assert_non_null(strstr(err.message, "esdm-explain --trace"));
    assert_int_equal(ESDM_OK, esdm__monitor_parse("stats:/a/b.sqlite", "X", &o, &err));
    assert_int_equal(ESDM_OK, esdm__monitor_parse("trace:postgresql://h/d", "X", &o, &err));
    assert_string_equal("postgresql://h/d", o.trace_file);
    assert_int_equal(ESDM_OK, esdm__monitor_parse("off", "X", &o, &err));
    assert_int_equal(0, o.modules);
    esdm__monitor_options_clear(&o);
}

static void
test_monitor__names_beyond_the_bound_share_one_number(void **state)
{
    (void) state;
    esdm__monitor *m = monitor(ESDM__MONITOR_STATS, "-", "many.json", 0);
    uint32_t first = esdm__monitor_object(m, "c", "/a", NULL);
    assert_int_equal(first, esdm__monitor_object(m, "c", "/a", NULL));
    assert_int_not_equal(first, esdm__monitor_object(m, "c/a", NULL, NULL));
    for (int i = 0; i < 5000; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "n%d", i);
        uint32_t number = esdm__monitor_object(m, name, NULL, NULL);
        assert_true(number > 0 && number < 4096);
    }
    assert_int_equal(1, esdm__monitor_object(m, "one more", NULL, NULL));
    esdm__monitor_free(m);
}

static int
make_folder(void **state)
{
    (void) state;
    (void) snprintf(folder, sizeof folder, "/tmp/esdm-test-monitor-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int
remove_folder(void **state)
{
    (void) state;
    char command[128];
    (void) snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command); /* NOLINT: a folder of ours */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monitor__nobody_observes),
        cmocka_unit_test(test_monitor__threads_are_all_counted_and_written),
        cmocka_unit_test(test_monitor__what_finds_no_room_is_dropped_and_told),
        cmocka_unit_test(test_monitor__a_file_that_cannot_be_written_is_told),
        cmocka_unit_test(test_monitor__a_killed_process_leaves_whole_lines),
        cmocka_unit_test(test_monitor__texts_of_people),
        cmocka_unit_test(test_monitor__names_beyond_the_bound_share_one_number),
    };
    return cmocka_run_group_tests_name("monitor", tests, make_folder, remove_folder);
}
