# SPDX-License-Identifier: LGPL-3.0-or-later
"""What ESDM promises to those who met it as strangers, the tests of each promise, and how these were seen
failing: by a fault of mutations.py, which takes the mend back. `mutations.py --promises` prints the list,
and says which tests or faults it names that are not there."""

# As in mutations.py: name, commit, changes, targets, test, functions, seeds.
LIBRARY = ("libesdm.so",)
PLUGIN = ("esdm-netcdf-core",)
ALL = ("libesdm.so", "netcdf-plugin/all", "tools/all")

FAULTS = [
    # results that are silently wrong or gone
    ("accuracy-of-an-input", "6bf35b5", [
        ("netcdf-plugin/dispatch/accuracy.c",
         "const bool borrowed = origin != ESDMNC_FROM_PROGRAM && !copied;", "const bool borrowed = false;")],
     PLUGIN, "netcdf.clients.derived", ("test_results_of_plain_files__are_told",), 1),
    ("accuracy-of-former-units", "4b42390", [
        ("src/model/attribute.c", 'if (st == ESDM_OK && list->of_dataset && strcmp(name, "units") == 0)',
         'if (st == ESDM_OK && list->of_dataset && strcmp(name, "") == 0)')],
     LIBRARY, "netcdf.clients.derived", ("test_units_that_change__end_the_statement",), 1),
    ("units-in-other-words", "02e4d52", [
        ("src/model/accuracy_units.c", "    if (by_udunits(unit, units, difference, ret_factor))",
         "    if (by_udunits(unit, units, difference, ret_factor) && units == NULL)")],
     ("libesdm.so", "integration_accuracy_again"), "integration.accuracy_again", (), 1),
    ("a-thread-that-failed", "02e4d52", [
        ("netcdf-plugin/dispatch/ending.c", "        if (file->opening != opening || file->postponed",
         "        if (file->opening == opening || file->postponed")],
     PLUGIN, "netcdf.clients.python_failures", ("test_debian",), 4),
    ("accuracy-stated-anew", "368ebcf", [
        ("src/io/container/rounded.c", "    return kept->units[0] == '\\0' ||",
         "    return true || kept->units[0] == '\\0' ||")],
     ("libesdm.so", "integration_accuracy_again"), "integration.accuracy_again", (), 1),
    ("rules-round-dates", "b261cbd", [
        ("src/io/container/accuracy_rules.c", "    return esdm_accuracy_is_lossy(&rule->accuracy) &&",
         "    return false && esdm_accuracy_is_lossy(&rule->accuracy) &&")],
     LIBRARY, "netcdf.clients.accuracy", ("test_rules_round_no_coordinates",), 1),
    ("beyond-valid-range", "0a4a7e1b", [
        ("src/codec/blob_encode.c", "    return limits == NULL || esdm__limits_kept(",
         "    return limits == NULL || limits->low < limits->high || esdm__limits_kept(")],
     LIBRARY, "netcdf.clients.accuracy", ("test_valid_range",), 1),
    ("natural-numbers-that-wrap", "12d3fd38", [
        ("src/io/container/accuracy_exact.c", "    limits->natural = esdm__type_of_readers(dataset) != dataset->type;",
         "    limits->natural = false && esdm__type_of_readers(dataset) != dataset->type;")],
     LIBRARY, "netcdf.clients.accuracy", ("test_valid_range",), 1),
    ("limits-that-are-not-turned", "f8cea880", [
        ("src/io/container/accuracy_exact.c",
         'esdm__accuracy_number(dataset, "scale_factor", 1) < 0;', 'esdm__accuracy_number(dataset, "scale_factor", 1) < -1e30;')],
     LIBRARY, "netcdf.clients.accuracy", ("test_valid_range",), 1),
    ("limits-of-coarse-layers", "5ebf51b4", [
        ("src/io/write/round.c", "(lossy || layers) && esdm__limits_any(limits) ? limits : NULL,",
         "lossy && esdm__limits_any(limits) ? limits : NULL,")],
     LIBRARY, "netcdf.clients.accuracy", ("test_valid_range",), 1),
    ("limits-that-come-too-late", "026ca5a8", [
        ("netcdf-plugin/dispatch/accuracy.c", "    if (strncmp(attribute, \"valid_\", 6) != 0 ||",
         "    if (strncmp(attribute, \"valid-\", 6) != 0 ||")],
     PLUGIN, "netcdf.clients.accuracy", ("test_valid_range_after_the_values__is_told",), 1),
    ("choices-of-the-first-fragment", "ca34f591", [
        ("src/io/write/round.c", "wanted = count < ESDM__CHOICE_FRAGMENTS ? count : ESDM__CHOICE_FRAGMENTS;",
         "wanted = count < 1 ? count : 1;")],
     LIBRARY, "integration.archive", (), 1),
    ("another-site-is-read", "169ce7fd", [
        ("netcdf-plugin/dispatch/session.c", "        rc = check_config();",
         "        rc = writing ? check_config() : NC_NOERR;")],
     PLUGIN, "netcdf.clients.mishaps", ("test_a_program_that_names_another_site_later",), 1),
    ("half-of-a-container", "8129272", [
        ("netcdf-plugin/dispatch/python.c", "    return bound && py.Py_IsInitialized() != 0 &&",
         "    return false && bound && py.Py_IsInitialized() != 0 &&")],
     PLUGIN, "netcdf.clients.python_failures", ("test_debian",), 1),
    ("futures-that-nobody-asks", "9361006", [
        ("netcdf-plugin/dispatch/watch.py", "        unasked[guard.key] = guard.text, files", "        pass")],
     PLUGIN, "netcdf.clients.python_failures", ("test_debian",), 4),
    ("tasks-that-nobody-asks", "6ce7623", [
        ("netcdf-plugin/dispatch/watch.py", "    if watch_tasks():\n        tasks.note(number)\n", "")],
     PLUGIN, "netcdf.clients.python_failures", ("test_debian",), 4),
    ("failures-that-gather-forgets", "d9b02a22", [
        ("netcdf-plugin/dispatch/watch.py", "        if exc is not None:\n            self.failed(exc, task)\n", "")],
     PLUGIN, "netcdf.clients.python_failures", ("test_tasks_of_trio_and_several_that_fail",), 1),
    ("tasks-of-other-loops", "7500fec8", [
        ("netcdf-plugin/dispatch/watch.py", "            if once(kind):\n                self.watch_other(kind)\n",
         "            once(kind)\n")],
     PLUGIN, "netcdf.clients.python_failures", ("test_tasks_of_uvloop",), 1),
    ("threads-that-begin-at-once", "d9b02a22", [
        ("netcdf-plugin/dispatch/python.c", "    await_start();\n", "    if (!tried)\n        await_start();\n")],
     PLUGIN, "netcdf.clients.python_failures", ("test_threads_that_write_their_first_files_at_once",), 1),
    ("workers-that-hand-on", "6ce7623", [
        ("netcdf-plugin/dispatch/watch.py", "    if tell is None or not once(\"workers\"):", "    if once(\"workers\"):")],
     PLUGIN, "netcdf.clients.workers", ("test_tasks_of_dask_workers",), 1),
    ("renamed-is-removed", "6ce7623", [
        ("src/api/suggest.c", "    if (suggest_renamed(session, &all, text, bytes))",
         "    if (all.name == NULL && suggest_renamed(session, &all, text, bytes))")],
     LIBRARY, "integration.restore", ("test_names__what_was_renamed_is_told",), 1),
    ("tools-take-the-newest", "6ce7623", [
        ("tools/common/stub.c", "    if (means_newest(session, &found, anew)) {",
         "    if (means_newest(session, &found, anew) || found.container != former) {")],
     ("tools/all",), "netcdf.clients.copies", ("test_tools_take_what_a_copy_was_made_for",), 1),
    ("nothing-is-kept", "e2dbbfe", [
        ("src/io/session/former.c", "if (session->site->replaced.keep_s == 0 &&",
         "if (session->site->replaced.keep_s != UINT64_MAX &&")],
     LIBRARY, "integration.restore", ("test_restore__whoever_replaces_or_removes_it",), 1),
    ("two-appenders", "4a1b5e7", [
        ("src/io/commit/overlap.c", "pages[i].apart = axis_behind(", "pages[i].apart = false && axis_behind(")],
     LIBRARY, "netcdf.clients.appending", ("test_netcdf4__second_appender_is_told",), 1),
    ("renames-over-anything", "9c56ed44", [
        ("src/api/seen.c", "    if (seen->uuid[0] == '\\0' || session->site->last_wins || strcmp(from, to) == 0)",
         "    if (seen->uuid[0] == '\\0' || strcmp(from, to) != 0)")],
     LIBRARY, "netcdf.clients.appending", ("test_nco__copies_changes_and_renames", "test_nco__over_what_it_has_read"), 1),
    ("a-run-beside-the-run", "78d0273", [
        ("netcdf-plugin/router/path.c", "switch (esdmnc__living_stub(folder, container, where, sizeof(where))) {",
         "switch (folder ? ESDMNC_LIVING_UNKNOWN : esdmnc__living_stub(folder, container, where, sizeof(where))) {")],
     ALL, "netcdf.clients.routes", ("test_a_second_run_replaces_the_first_one",), 1),
    ("a-run-beside-the-run-renamed", "46766e1", [
        ("netcdf-plugin/router/moves.c", "    return move->at_home &&\n",
         "    return move->replaces &&\n")],
     ALL, "netcdf.clients.routes", ("test_a_second_run_by_programs_that_rename__replaces_the_first_one",), 1),
    ("moved-runs-are-removed", "9dc17912", [
        ("netcdf-plugin/router/path.c", "    (void) esdmnc__core_get()->stub_file(container, NULL);",
         "    if (told < 0)\n        (void) esdmnc__core_get()->stub_file(container, NULL);")],
     ALL, "netcdf.clients.routes", ("test_a_run_that_was_moved_far_away_stays",), 1),
    ("files-that-stand-are-not-looked-at", "9dc17912", [
        ("src/io/session/stub_files.c", "    if (n.inode != 0 && (is_there(", "    if (n.inode == 1 && (is_there(")],
     LIBRARY, "netcdf.clients.routes", ("test_a_run_that_was_moved_far_away_stays",), 1),
    ("low-descriptors", "99101d2", [
        ("src/base/descriptor.c", "int high = fcntl(fd, F_DUPFD_CLOEXEC, ESDM_DESCRIPTORS_MIN);",
         "int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);")],
     ALL, "netcdf.clients.descriptors", ("test_programs",), 1),
    ("descriptors-that-programs-close", "7eec043", [
        ("src/base/descriptor.c", "    if (kept && !moving)\n        return true;", "")],
     ALL, "netcdf.clients.descriptors", ("test_programs",), 1),
    ("damage-without-a-remedy", "46766e1", [
        ("backends/meta/sqlite/sql.h", '"esdm-mkfs --restore makes it anew', '"something makes it anew')],
     ALL, "integration.lost_catalogue", ("test_a_damaged_catalogue__tells_what_to_do_and_comes_back",), 1),
    ("no-journal", "bc66ff9", [
        ("src/io/session/journaling.c", "    if (!session->site->journal || session->read_only)",
         "    if (session->site->journal || session->read_only)")],
     LIBRARY, "integration.lost_catalogue", ("test_targets_alone_bring_every_container_back",), 1),
    ("packs-after-the-backup", "ea95666", [
        ("src/upkeep/gc.c", "else if (esdm__stray_may_be_unknown(&strays, entry)) {",
         "else if (esdm__stray_may_be_unknown(&strays, entry) && c == NULL) {")],
     LIBRARY, "integration.lost_catalogue", ("test_packs_that_came_after_the_backup_are_kept",), 1),
    ("all-in-the-log", "dead5a4", [
        ("backends/meta/sqlite/open.c", "if (store->writer.db == NULL || store->rollback_journal)",
         "if (store->writer.db == NULL || store->rollback_journal || store->writer.db != NULL)")],
     LIBRARY, "integration.lost_catalogue", ("test_the_last_session_leaves_all_in_the_file_of_the_catalogue",), 1),
    ("copies-without-a-notice", "8a55684", [
        ("netcdf-plugin/router/stub_kinds.c", 'put_text(&f, "esdm_notice",', 'put_text(&f, "esdm_",')],
     ("netcdf_stub",), "netcdf.router.stub", (), 1),
    ("statements-that-fail", "35dc9ac", [
        ("netcdf-plugin/dispatch/accuracy.c", "        file->refused = true;", "        file->refused = false;")],
     PLUGIN, "netcdf.clients.derived", ("test_statements__are_judged_when_definitions_end",
                                        "test_programs_that_fail__leave_what_was_there"), 1),
    # space, safety, ranks
    ("old-snapshots-stay", "576e55b", [
        ("backends/meta/sqlite/prune.c", "old_enough = later >= keep &&", "old_enough = later >= keep + 16 &&")],
     LIBRARY, "integration.space", ("test_overwriting__keeps_what_the_history_wants",), 1),
    ("configuration-of-anybody", "81e6ffc", [
        ("src/site/trust.c", "    return owner == geteuid() || owner == 0;",
         "    return owner == geteuid() || owner != geteuid();")],
     ALL, "integration.trust", ("test_found_configuration__must_be_the_users_own",), 1),
    ("failed-writes-for-good", "6d8c360", [
        ("src/io/container/failed.c", "    if (!is_told_apart(failed))\n        return;\n"
         "    failed_list *list = failed->list;\n    esdm__box by;",
         "    if (!is_told_apart(failed) || failed->list != NULL)\n        return;\n"
         "    failed_list *list = failed->list;\n    esdm__box by;")],
     ("libesdm.so", "faults_writes"), "faults.writes", (), 1),
    ("more-bytes-than-there-are", "ab509d0", [
        ("src/api/data.c", "    if (elements <= INT64_MAX / each)\n", "    if (elements <= UINT64_MAX)\n")],
     ("libesdm.so", "integration_commit"), "integration.commit", (), 1),
    ("folders-not-flushed", "5dc7f34", [
        ("src/base/parent.c", "    (void) fsync(fd);", "    (void) fd;")],
     LIBRARY, "faults.places", ("test_new_folders__are_flushed",), 1),
    ("pipes-in-place-of-packs", "5dc7f34", [
        ("backends/data/posix/cache.c", "O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK",
         "O_RDONLY | O_CLOEXEC | O_NOFOLLOW")],
     LIBRARY, "faults.places", ("test_pipe_in_place_of_a_pack__is_damage",), 1),
    ("escapes-in-names", "46bab72", [
        ("src/base/text.c", "if (bytes == 0 || (bytes == 1 && is_hidden(character))) {", "if (bytes == 0) {"),
        ("src/base/text.c", "    if (is_hidden(character)) {\n        (void) snprintf(ret_shown, SHOWN_BYTES, character >",
         "    if (is_hidden(character) && character < 0x20) {\n        (void) snprintf(ret_shown, SHOWN_BYTES, character >")],
     ALL, "integration.printable", (), 1),
    ("foreign-etags", "50c4a84", [
        ("backends/data/s3/seal.c", "    return request->etag[0] != '\\0' &&\n", "    return request->etag[0] == '\\0' ||\n")],
     ("esdm-data-s3",), "faults.s3", ("test_s3__answers_that_say_nothing_are_not_believed",), 1),
    ("pins-that-vanish", "2c542f0", [
        ("backends/meta/postgres/store.c", "        status = postgres__pins_renew(store, ret_failure, err);",
         "        store->pins.floating = 0;")],
     ("esdm-meta-postgres",), "faults.postgres", ("test_postgres__pins_are_taken_again",), 1),
    ("snapshots-that-went", "515d7eb", [
        ("src/io/container/catch_up.c", "    if (!container->writable)\n", "    if (container != NULL)\n")],
     LIBRARY, "faults.postgres", ("test_postgres__pauses_of_the_server_cost_writers_nothing",), 1),
    ("failure-of-another", "6d8c360", [
        ("src/io/write/write.c", "    if (own.status == ESDM_OK && why.status == ESDM_OK)\n        return ESDM_OK;\n"
                                 "    if (atomic_load(&session->gathered) <= session->gather_limit_bytes)\n",
         "    if (own.status == ESDM_OK && why.status == ESDM_OK)\n")],
     ("libesdm.so", "faults_writes"), "faults.writes", (), 1),
    ("pages-that-are-merged", "ab509d0", [
        ("src/io/commit/commit.c", "m->pages, m->count, m->held, err);", "m->pages, m->count, NULL, err);"),
        ("src/io/commit/commit.c", "        again = status == ESDM_OK && !esdm__merge_is_ready(&m, io);",
         "        again = status != ESDM_OK && status == ESDM_OK && esdm__merge_is_ready(&m, io);")],
     ("unit_api_merged_pages",), "unit.api.merged_pages", (), 1),
    ("reads-that-end-packs", "ab509d0", [
        ("src/io/read/read.c", "        if ((fragment->sequence & ESDM__SEQUENCE_PENDING) == 0 || fragment->pack == NULL)\n"
                               "            continue;\n", ""),
        ("src/io/read/read.c", "    if (count > 0)\n"
                               "        status = esdm__pack_set_make_named_readable(packs, names, count, ret_moved, err);",
         "    if (packs != NULL)\n        status = esdm__pack_set_make_readable(packs, err);")],
     LIBRARY, "faults.kv", ("test_kv__reads_of_other_data_end_no_packs",), 1),
    ("locks-of-readers", "5dc7f34", [
        ("backends/data/kv/database.c", "    if (wanted != (lock.st_mode & 0777))\n", "    if (wanted == 0)\n")],
     ("esdm-data-kv",), "faults.places", ("test_lock_of_a_reader__does_not_stop_writers",), 1),
    ("too-many-targets", "8f20a6f", [
        ("src/site/parse.c", "if (count == 0 || count > ESDM__SITE_TARGETS_MAX)", "if (count == 0)")],
     ("libesdm.so", "tools/all"), "integration.many_targets", ("test_too_many__are_refused",), 1),
    ("codes-that-mislead", "46bab72", [
        ("netcdf-plugin/dispatch/errors.c", "return status == ESDM_ENOENT ? NC_ETRUNC :", "return status == ESDM_OK ? NC_ETRUNC :")],
     PLUGIN, "faults.places", ("test_what_is_missing__is_no_missing_or_existing_file",), 1),
    ("states-of-datasets", "ac5e11e", [
        ("src/io/container/index_memory.c", "    return !kept && !chosen &&", "    return false && !kept && !chosen &&")],
     ("libesdm.so", "integration_memory"), "integration.memory", (), 1),
    # what programs and people met
    ("regions-in-other-numbers", "02e4d52", [
        ("src/model/accuracy_regions.c", "    if (width >= 360 || west >= 180)", "    if (width >= 360)"),
        ("src/model/accuracy_regions.c", "    double west = rounded(r->west - 360 * floor((r->west + 180) / 360));",
         "    double west = rounded(r->west);")],
     ("libesdm.so", "ranks_threads"), "integration.ranks.threads2", (), 1),
    ("listed-again", "19aeb9c", [
        ("src/upkeep/drain.c", "        status = esdm__drain_records_load(d->session, d->options, &d->groups, &list, err);",
         "        status = esdm__drain_records_load(d->session, d->options, &d->groups, &list, err);\n"
         "    esdm__drain_records_clear(&list);\n"
         "    list = (records){0};\n"
         "    if (status == ESDM_OK)\n"
         "        status = esdm__drain_records_load(d->session, d->options, &d->groups, &list, err);")],
     LIBRARY, "faults.drain", ("test_drain__work_grows_with_what_is_there",), 1),
    ("observations-that-are-lost", "bc66ff9", [
        ("netcdf-plugin/dispatch/ending.c", "    esdmnc_missing_ending(status);\n    esdmnc_session_settle();",
         "    esdmnc_missing_ending(status);")],
     PLUGIN, "integration.placement", ("test_targets_that_store_in_the_background",), 1),
    ("steps-that-show-nothing", "d25b433", [
        ("tools/quickstart.sh", "show esdm-stat --explain demo/input.nc/tas", "show esdm-stat demo/input.nc/tas")],
     LIBRARY, "integration.quickstart", (), 1),
    ("another-site-in-between", "b511dd85", [
        ("README.md", "for y in 2001 2002; do", "export ESDM_CONFIG=FOLDER/site.json; for y in 2001 2002; do")],
     LIBRARY, "integration.readme", (), 1),
    ("damaged-files-end-all", "0bd30e21", [
        ("tools/esdm-advise/apart.c", "            turn->lost(turn->user, next++);", "            return;")],
     ALL, "integration.crashes", ("test_advice_goes_on_after_files_that_crash_or_hang",), 1),
    ("mpi-is-not-named", "d25b433", [
        ("tools/install-deps.sh", 'mpi="libopenmpi-dev openmpi-bin mpich libmpich-dev"', 'mpi="mpich"')],
     LIBRARY, "integration.quickstart", (), 1),
    ("health-without-numbers", "c0c1dbc", [
        ("src/site/check.c", "        .free_bytes = sum->free_bytes,\n        .total_bytes",
         "        .free_bytes = 0,\n        .total_bytes")],
     LIBRARY, "integration.space", ("test_check__tells_numbers",), 1),
    ("attributes-of-ranks", "b0d4f4a", [
        ("src/model/compare.c", "strcmp(x.name, y.name) != 0 || x.type != y.type || decides",
         "strcmp(x.name, y.name) == 0 || x.type != y.type || decides")],
     ("libesdm.so", "ranks_threads"), "integration.ranks.threads2", (), 1),
    ("routes-of-nothing", "883f181", [
        ("netcdf-plugin/router/routes.c", "if (!may_route(entry) && !__atomic", "if (0 && !may_route(entry) && !__atomic")],
     ALL, "netcdf.clients.routes", ("test_entries_that_route_nothing_are_told",), 1),
    ("each-dataset-asks", "ff5dd3b3", [
        ("src/io/container/container_io.c", "    io->fragments = loaded->record.fragments;",
         "    io->fragments = UINT64_MAX;")],
     LIBRARY, "netcdf.clients.small_files", ("test_each_small_file_costs_few_readings",), 1),
    ("listed-three-times", "c50b344a", [
        ("tools/esdm-fsck/esdm-fsck.c", "    if (status == ESDM_OK && list.gathers)", "    if (status == ESDM_OK)")],
     ("tools/all",), "faults.fsck", ("test_fsck__lists_containers_twice",), 1),
    ("a-pack-for-each-small-file", "42ebf35c", [
        ("src/io/write/small.c", ">= FIRST)\n        kind = ESDM__SMALL_IS;", ">= FIRST)\n        kind = ESDM__SMALL_NOT;")],
     LIBRARY, "netcdf.clients.small_files", ("test_many_small_files_make_few_packs",), 1),
    ("children-that-wait-for-the-linker", "1e2ab396", [
        ("netcdf-plugin/shim/open.c", "static bool\ncalled_by_hdf5(const void *caller)\n{",
         "static int\npass_by(struct dl_phdr_info *info, size_t bytes, void *user)\n{\n    (void) info;\n    (void) bytes;\n"
         "    (void) user;\n    return 1;\n}\n\nstatic bool\ncalled_by_hdf5(const void *caller)\n{\n"
         "    (void) dl_iterate_phdr(pass_by, NULL);")],
     ("netcdf-plugin/all",), "netcdf.processes", (), 1),
    ("answers-to-no-range", "e309fe65", [
        ("backends/data/s3/transfer.c", "    if (request->range_bytes > 0 && !refused) {",
         "    if (wants_range(request, request->http_status)) {")],
     ("esdm-data-s3",), "faults.s3", ("test_s3__wrong_bytes_are_found",), 1),
    ("callers-looked-up-each-time", "43c1ce80", [
        ("netcdf-plugin/router/libraries.c", "    if (_dl_find_object((void *) (uintptr_t) address, &found) == 0) {",
         "    Dl_info slow;\n    (void) dladdr(address, &slow);\n    if (_dl_find_object((void *) (uintptr_t) address, &found) == 0) {")],
     ALL, "netcdf.clients.small_files", ("test_opening_costs_few_instructions",), 1),
    ("null-arguments", "c59e7f3", [
        ("src/model/accuracy_check.c", "    ESDM__NEED(err, accuracy);\n", "")],
     LIBRARY, "integration.null_arguments", (), 1),
    ("server-that-flushes", "ee6b5c2", [
        ("backends/meta/postgres/store.c", "bool relaxed = !durable && !link->replicated &&",
         "bool relaxed = false && !durable && !link->replicated &&")],
     ("esdm-meta-postgres",), "faults.postgres", ("test_postgres__durability_process_waits_for_no_disk",), 1),
    ("copies-are-not-explained", "a8e5a5f", [
        ("tools/esdm-stat/explain.c", 'g_strsplit(p->target, ",", -1)', 'g_strsplit(p->target, "\\n", -1)')],
     ("tools/all",), "integration.placement", ("test_copies_are_explained",), 1),
    ("speeds-of-memory", "f156b24", [
        ("src/io/measure/calibrate_target.c", "    esdm_status status = plugin->pack_sync(handle, &w->error);\n"
                                              "    if (status != ESDM_ENOTSUP)",
         "    esdm_status status = handle != NULL ? ESDM_ENOTSUP : ESDM_OK;\n    if (status != ESDM_ENOTSUP)"),
        ("src/io/measure/calibrate_target.c", "        atomic_store(&w->p->from_memory[0], true);",
         "        atomic_store(&w->p->from_memory[0], false);")],
     ("libesdm.so", "tools/all"), "integration.calibration", ("test_memory_is_kept_out_of_measurements",), 1),
    ("stubs-in-memory", "9e5708e", [
        ("netcdf-plugin/router/memory.c", "    if (!memory || !memory->memory ||\n", "    if (!memory || memory->memory ||\n")],
     ALL, "netcdf.clients.routes", ("test_stubs_in_memory",), 1),
    ("stubs-of-a-named-route", "9d999331", [
        ("tools/esdm-gc/candidates.c", "        c->walked = gc_below(c->folder, walked) != NULL ? walked : NULL;\n",
         "        c->walked = gc_below(c->folder, walked) != NULL ? NULL : NULL;\n")],
     ("tools/all",), "faults.fsck", ("test_gc__folders_routed_to_a_name",), 1),
    ("stubs-of-clones", "9d999331", [
        ("src/api/stubs.c", "strncmp(text, uuid, digits) != 0", "strlen(text) < digits")],
     ("tools/all",), "netcdf.clients.stub_folders", ("test_clones_and_branches_are_not_the_original",), 1),
    ("stubs-of-what-may-come-back", "9d999331", [
        ("tools/esdm-gc/gone.c", "    return kept || (status", "    return (kept && !kept) || (status")],
     ("tools/all",), "netcdf.clients.stub_folders", ("test_stubs_of_containers_that_are_gone",), 1),
    ("stubs-of-running-programs", "9d999331", [
        ("tools/esdm-gc/gone.c", "        bool ours = stub->site != NULL && strcmp(stub->site, site) == 0;",
         "        bool ours = stub->site != NULL && strcmp(site, site) == 0;")],
     ("tools/all",), "netcdf.clients.stub_folders",
     ("test_stubs_of_which_nothing_is_known_stay", "test_a_stub_that_is_in_use_again"), 1),
    ("common-conditions-first", "3b6839a", [
        ("src/base/meta_tree.c", "        if (one < least) {", "        if (one < UINT64_MAX) {")],
     ("unit_sqlite_find",), "unit.sqlite.find", (), 1),
    ("exports-without-filters", "c8372c7", [
        ("tools/esdm-cp/filters.c", "    if (level > 0)\n        g_string_append_printf(text, \"%d,%d;\"",
         "    if (level > 99)\n        g_string_append_printf(text, \"%d,%d;\"")],
     ("tools/all",), "integration.export", (), 1),
    ("no-suggestions", "26d6a6d", [
        ("src/api/suggest.c", "    if (nearest[0] != '\\0')\n", "    if (nearest[0] == '\\0')\n")],
     LIBRARY, "integration.restore", ("test_names__what_was_meant_is_told",), 1),
    ("removes-without-asking", "c8372c7", [
        ("tools/esdm-rm/esdm-rm.c", "(force || count <= A_FEW)))", "(force || count >= A_FEW)))")],
     ("tools/all",), "integration.restore", ("test_rm__asks_before_it_removes_many",), 1),
    ("secrets-that-all-can-read", "81e6ffc", [
        ("src/site/trust.c", "        if (is_secret(key, value))\n            return true;",
         "        if (is_secret(key, value))\n            return false;")],
     ALL, "integration.trust", ("test_secret_that_everybody_can_read__is_warned_of",), 1),
]

# What is promised; tests, "ctest-name: functions…" or all of them; faults of above or of mutations.py.
# No fault: no one takes the mend back yet.
PROMISES = [
    # results that are silently wrong or gone
    ("an accuracy does not travel to variables that are derived",
     ["netcdf.clients.derived"], ["accuracy-of-an-input"]),
    ("nor does it outlast the units in which it was stated",
     ["netcdf.clients.derived: test_units_that_change__end_the_statement", "integration.accuracy_again",
      "integration.ranks.threads2"], ["accuracy-of-former-units", "accuracy-stated-anew", "units-in-other-words"]),
    ("'*' rounds no coordinates, times, flags",
     ["netcdf.clients.accuracy: test_wildcards_round_no_coordinates test_rules_round_no_coordinates",
      "integration.fit: test_coordinates_are_not_rounded", "unit.model.auxiliary"], ["rules-round-dates"]),
    ("numbers within valid_range stay within it",
     ["netcdf.clients.accuracy", "unit.codec.blob_numbers"],
     ["beyond-valid-range", "natural-numbers-that-wrap", "limits-that-are-not-turned", "limits-of-coarse-layers",
      "limits-that-come-too-late"]),
    ("archive: whole numbers that are kept do not make others cost more", ["integration.archive"],
     ["choices-of-the-first-fragment"]),
    ("children of fork open containers, whatever threads of their parents did", ["netcdf.processes"],
     ["children-that-wait-for-the-linker"]),
    ("a program that names another site reads nothing of the first one",
     ["netcdf.clients.mishaps: test_a_program_that_names_another_site_later"], ["another-site-is-read"]),
    ("statements are judged when definitions end; nothing is left of a program that fails",
     ["netcdf.clients.derived: test_statements__are_judged_when_definitions_end "
      "test_programs_that_fail__leave_what_was_there"], ["statements-that-fail"]),
    ("a failing Python program replaces nothing",
     ["netcdf.clients.python_failures", "netcdf.clients.unclosed", "netcdf.clients.workers"], ["half-of-a-container", "a-thread-that-failed",
                                                                      "tasks-that-nobody-asks",
                                                                      "tasks-of-other-loops",
                                                                      "workers-that-hand-on",
                                                                      "futures-that-nobody-asks"]),
    ("what replaces or removes a container keeps the former one",
     ["integration.restore", "netcdf.clients.operators: test_overwrite__asks_or_replaces_as_with_files"],
     ["nothing-is-kept"]),
    ("what was renamed is told apart from what was removed",
     ["integration.restore: test_names__what_was_renamed_is_told"], ["renamed-is-removed"]),
    ("two appenders lose no record",
     ["integration.appenders", "netcdf.clients.appending", "integration.postgres: "
      "test_postgres__appenders_of_the_same_records_are_told"], ["two-appenders"]),
    ("nor do two that copy, change and rename",
     ["netcdf.clients.appending", "conformance.meta"], ["renames-over-anything"]),
    ("a second run in a routed folder replaces the first one",
     ["netcdf.clients.routes: test_a_second_run_replaces_the_first_one "
      "test_a_second_run_by_programs_that_rename__replaces_the_first_one"],
     ["a-run-beside-the-run", "a-run-beside-the-run-renamed"]),
    ("what a moved file stands for stays as long as the file",
     ["netcdf.clients.routes: test_a_run_that_was_moved_far_away_stays"],
     ["moved-runs-are-removed", "files-that-stand-are-not-looked-at"]),
    ("a program that scribbles over its descriptors harms itself alone",
     ["netcdf.clients.descriptors"], ["low-descriptors", "descriptors-that-programs-close"]),
    ("what lies on the targets is enough, and so are a backup and what came after it",
     ["integration.lost_catalogue", "integration.lost_changes", "integration.lost_tags", "integration.lost_clones"],
     ["no-journal", "packs-after-the-backup", "all-in-the-log", "damage-without-a-remedy"]),
    ("the copy of a stub says what it is",
     ["netcdf.clients.routes: test_copied_bytes_tell_what_they_are test_stubs_of_nothing_and_copies_are_explained",
      "netcdf.router.copies", "netcdf.router.stub"], ["copies-without-a-notice"]),
    ("the copy of a stub stays what it was copied for, for programs and tools",
     ["netcdf.clients.copies", "netcdf.clients.routes: test_a_copy_of_a_stub_stays_what_it_was_copied_of"],
     ["tools-take-the-newest"]),
    # space, safety, ranks
    ("overwriting in place keeps what the history wants", ["integration.space"], ["old-snapshots-stay"]),
    ("nobody else's configuration is obeyed", ["integration.trust"], ["configuration-of-anybody"]),
    ("pauses of PostgreSQL cost writers nothing",
     ["faults.postgres: test_postgres__pauses_of_the_server_cost_writers_nothing "
      "test_postgres__server_restarts_in_the_middle_of_a_commit test_postgres__pins_are_taken_again"],
     ["pins-that-vanish", "snapshots-that-went"]),
    ("a failed write can be written again, and harms no other dataset",
     ["faults.writes", "faults.full_disk: test_full_disk__is_over_when_there_is_room"],
     ["failed-writes-for-good", "failure-of-another"]),
    ("a commit does not fail while another thread reads", ["integration.threads", "unit.api.merged_pages"],
     ["pages-that-are-merged"]),
    ("reads end the packs alone that they need",
     ["faults.kv: test_kv__reads_of_other_data_end_no_packs"], ["reads-that-end-packs"]),
    ("more bytes than there are: refused", ["integration.commit"], ["more-bytes-than-there-are"]),
    ("new folders are flushed", ["faults.places: test_new_folders__are_flushed"], ["folders-not-flushed"]),
    ("a pipe in place of a file hangs nobody",
     ["faults.places: test_pipe_in_place_of_a_pack__is_damage test_pipe_in_place_of_a_shard__is_damage "
      "test_pipe_in_place_of_the_catalogue__is_an_error"], ["pipes-in-place-of-packs"]),
    ("waits for locks last as long as documented; who may only read stalls no writer",
     ["faults.places: test_waits_for_locks__are_timed test_lock_of_a_reader__does_not_stop_writers"],
     ["locks-of-readers"]),
    ("engine.memory holds with many variables",
     ["integration.memory", "integration.idle_states", "faults.memory"], ["states-of-datasets"]),
    ("no escapes of names and attributes reach a terminal", ["integration.printable"], ["escapes-in-names"]),
    ("codes of errors do not mislead", ["faults.places: test_what_is_missing__is_no_missing_or_existing_file"],
     ["codes-that-mislead"]),
    ("S3: what was not stored is not taken for stored; a flipped bit is found",
     ["faults.s3: test_s3__answers_that_say_nothing_are_not_believed test_s3__wrong_bytes_are_found"],
     ["foreign-etags", "answers-to-no-range"]),
    ("more than 64 targets", ["integration.many_targets"], ["too-many-targets"]),
    # what programs and people met
    ("attributes that differ between ranks are rank 0's",
     ["integration.ranks.threads2", "netcdf.parallel.trouble"], ["attributes-of-ranks", "regions-in-other-numbers"]),
    ("a route of nothing is told",
     ["netcdf.clients.routes: test_entries_that_route_nothing_are_told test_everything_and_patterns"],
     ["routes-of-nothing"]),
    ("gdal_translate and nc_open_memio", ["netcdf.clients.gdal_r: test_gdal",
                                          "netcdf.clients.routes: test_stubs_in_memory"], ["stubs-in-memory"]),
    ("esdm-gc --stubs removes what it says",
     ["faults.fsck: test_gc__containers_without_stubs test_gc__folders_routed_to_a_name",
      "netcdf.clients.stub_folders: test_containers_of_a_named_route_go_with_their_stubs test_patterns_and_everything",
      "netcdf.clients.stub_folders: test_programs_that_rename_and_write_anew test_stubs_of_containers_that_are_gone",
      "netcdf.clients.stub_folders: test_stubs_of_which_nothing_is_known_stay test_a_stub_that_is_in_use_again",
      "netcdf.clients.stub_folders: test_a_folder_of_the_same_path_on_another_node test_stubs_that_an_old_catalogue_lacks",
      "netcdf.clients.stub_folders: test_stubs_of_what_was_renamed_and_removed"],
     ["stubs-of-a-named-route", "stubs-of-clones", "stubs-of-what-may-come-back", "stubs-of-running-programs"]),
    ("small classic files cost little", ["netcdf.clients.small_files"],
     ["each-dataset-asks", "callers-looked-up-each-time", "a-pack-for-each-small-file"]),
    ("esdm-fsck lists the containers as often as needed", ["faults.fsck: test_fsck__lists_containers_twice"],
     ["listed-three-times"]),
    ("NULL arguments: the same check everywhere", ["integration.null_arguments"], ["null-arguments"]),
    ("esdm-drain works as much as there is to drain",
     ["faults.drain: test_drain__work_grows_with_what_is_there"], ["listed-again"]),
    ("esdm-stat --explain speaks with copies", ["integration.placement: test_copies_are_explained"],
     ["copies-are-not-explained"]),
    ("speeds are those of devices, not of memory",
     ["integration.calibration: test_memory_is_kept_out_of_measurements"], ["speeds-of-memory"]),
    ("esdm-find begins with what is rare",
     ["unit.sqlite.find", "integration.find_plans", "integration.plans", "integration.postgres: "
      "test_postgres__questions_begin_with_what_is_rare"], ["common-conditions-first"]),
    ("PostgreSQL: durability process waits for no disk",
     ["faults.postgres: test_postgres__durability_process_waits_for_no_disk"], ["server-that-flushes"]),
    ("the model of a target that stores in the background follows it",
     ["integration.placement: test_targets_that_store_in_the_background "
      "test_a_target_that_becomes_ten_times_slower_gets_less "
      "test_a_target_that_becomes_ten_times_faster_gets_its_share"], ["observations-that-are-lost"]),
    ("README by itself does everyday tasks, one after the other in one shell", ["integration.readme"],
     ["another-site-in-between"]),
    ("the quickstart names what it needs", ["integration.quickstart"],
     ["steps-that-show-nothing", "mpi-is-not-named"]),
    ("damaged files cost themselves alone", ["integration.crashes"], ["damaged-files-end-all"]),
    ("exports keep compression", ["integration.export", "netcdf.clients.keep_codecs"], ["exports-without-filters"]),
    ("health in numbers; targets are evacuated and balanced",
     ["integration.space: test_check__tells_numbers", "integration.restore: test_ls__sorts_sums_and_folds",
      "faults.drain_targets"], ["health-without-numbers"]),
    ("what was meant is told; asking makes no site",
     ["integration.restore: test_names__what_was_meant_is_told test_rm__asks_before_it_removes_many",
      "integration.trust: test_secret_that_everybody_can_read__is_warned_of",
      "netcdf.clients.routes: test_asking_makes_no_default_site"],
     ["no-suggestions", "removes-without-asking", "secrets-that-all-can-read"]),
]
