-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Removes what mkfs made, and nothing else; the schema, too, if it was made and is empty.
DO $body$
DECLARE
    v_made boolean;
    v_function regprocedure;
BEGIN
    SELECT value = 'made' INTO v_made FROM {S}.store WHERE key = 'schema';
    DROP TRIGGER IF EXISTS guard_prune ON {S}.snapshot;
    DROP TRIGGER IF EXISTS guard_move ON {S}.page;
    DROP TRIGGER IF EXISTS check_name ON {S}.container;
    DROP TRIGGER IF EXISTS reach_added ON {S}.extent;
    DROP TRIGGER IF EXISTS reach_changed ON {S}.extent;
    DROP TRIGGER IF EXISTS reach_gone ON {S}.extent;
    DROP TRIGGER IF EXISTS view_named ON {S}.container;
    DROP TRIGGER IF EXISTS reach_marked ON {S}.object;
    DROP TRIGGER IF EXISTS view_object ON {S}.object;
    DROP TRIGGER IF EXISTS view_object_gone ON {S}.object;
    FOR v_function IN SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = '{S}'::regnamespace AND p.proname IN ('lock_key', 'now_ns', 'enter',
            'leave', 'happened', 'add_pages', 'set_objects', 'pins', 'prune', 'insert_container',
            'retire', 'lock_head', 'set_state', 'import_container', 'publish', 'remove_container', 'move_container', 'forget', 'pin',
            'open_snapshot', 'guard', 'copy_snapshot', 'clone', 'set_tag', 'remove_tag', 'check_seal', 'check_name',
            'view_parts', 'view_nodes', 'view_fold', 'view_enter', 'view_leave', 'view_said', 'view_object', 'view_named', 'view_make', 'view_hides',
            'view_hide', 'view_hide_all', 'view_up',
            'facet_parts', 'facet_others', 'facet_marked', 'facet_drop', 'facet_fold', 'facet_put', 'reach_end', 'reach_of', 'reach_put', 'reach_added', 'reach_changed', 'reach_make',
            'reach_mark', 'reach_marks', 'reach_marked')
    LOOP
        EXECUTE 'DROP FUNCTION ' || v_function::text;
    END LOOP;
    DROP TABLE IF EXISTS {S}.shared, {S}.tag, {S}.extent, {S}.reach, {S}.view_node, {S}.view_delta, {S}.view_member, {S}.view_hidden, {S}.facet,
        {S}.facet_delta;
    DROP TABLE {S}.store, {S}.container, {S}.snapshot, {S}.page, {S}.object, {S}.token;
    DROP SEQUENCE {S}.container_number;
    IF v_made THEN
        BEGIN
            DROP SCHEMA {S};
        EXCEPTION WHEN dependent_objects_still_exist THEN
            NULL; -- somebody keeps something else in it
        END;
    END IF;
END $body$;
