-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Functions of the metadata store "postgres" for names, garbage, clones, tags, migration and opening. functions.sql,
-- which is run before, has those of commits, what {S} and {K} stand for, and the advisory locks.

-- ---- names and garbage --------------------------------------------------------------------------

-- Result: the record that became garbage.
CREATE OR REPLACE FUNCTION {S}.remove_container(p_token uuid, p_again boolean, p_name text)
RETURNS bigint[] LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
    v_container bigint;
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    UPDATE {S}.container c SET name = NULL WHERE c.name = p_name
    RETURNING c.container INTO v_container;
    IF v_container IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD02',
            MESSAGE = format('there is no container ''%s''', p_name);
    END IF;
    RETURN {S}.leave(p_token, {S}.now_ns(), ARRAY[v_container]);
END $body$;

-- Result: the record that became garbage, or 0.
CREATE OR REPLACE FUNCTION {S}.move_container(p_token uuid, p_again boolean, p_from text,
    p_to text, p_replace boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
    v_container bigint;
    v_replaced bigint := 0;
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    SELECT c.container INTO v_container FROM {S}.container c WHERE c.name = p_from FOR UPDATE;
    IF v_container IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD02',
            MESSAGE = format('there is no container ''%s''', p_from);
    END IF;
    IF p_from <> p_to THEN
        SELECT c.container INTO v_replaced FROM {S}.container c WHERE c.name = p_to FOR UPDATE;
        IF v_replaced IS NOT NULL AND NOT p_replace THEN
            RAISE EXCEPTION USING ERRCODE = 'ESD03',
                MESSAGE = format('container ''%s'' exists', p_to);
        END IF;
        UPDATE {S}.container c SET name = NULL WHERE c.container = v_replaced;
        UPDATE {S}.container c SET name = p_to WHERE c.container = v_container;
    END IF;
    RETURN {S}.leave(p_token, {S}.now_ns(), ARRAY[coalesce(v_replaced, 0)]);
EXCEPTION WHEN unique_violation THEN -- somebody has made it just now
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'a name was taken meanwhile';
END $body$;

CREATE OR REPLACE FUNCTION {S}.forget(p_token uuid, p_again boolean, p_container bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    PERFORM FROM {S}.container c WHERE c.container = p_container AND c.name IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04',
            MESSAGE = format('record %s is not garbage', p_container);
    END IF;
    PERFORM pg_advisory_xact_lock({S}.lock_key(p_container, 0));
    IF cardinality({S}.pins(p_container)) > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04',
            MESSAGE = format('record %s is in use by a reader', p_container);
    END IF;
    DELETE FROM {S}.snapshot s WHERE s.container = p_container;
    DELETE FROM {S}.page p WHERE p.container = p_container;
    DELETE FROM {S}.object o WHERE o.container = p_container;
    DELETE FROM {S}.shared h WHERE h.container = p_container;
    DELETE FROM {S}.tag t WHERE t.container = p_container;
    DELETE FROM {S}.container c WHERE c.container = p_container;
    RETURN {S}.leave(p_token, {S}.now_ns(), ARRAY[p_container]);
END $body$;

-- ---- clones and tags -----------------------------------------------------------------------------

-- Programs that do not know the tables `shared` and `tag` would take packs for garbage that a clone
-- needs. They refuse to open the store; what has it open from before the upgrade cannot delete or
-- move anything from the first such row on.
CREATE OR REPLACE FUNCTION {S}.guard() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF coalesce(nullif(current_setting('esdm.format', true), ''), '0')::bigint < 2
            AND (EXISTS(SELECT FROM {S}.shared) OR EXISTS(SELECT FROM {S}.tag)) THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD05', MESSAGE = 'the metadata store was upgraded: '
            'start this program again, with a newer ESDM';
    END IF;
    RETURN NULL;
END $body$;
DROP TRIGGER IF EXISTS guard_prune ON {S}.snapshot;
CREATE TRIGGER guard_prune BEFORE DELETE OR UPDATE OF pruned ON {S}.snapshot
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.guard();
DROP TRIGGER IF EXISTS guard_move ON {S}.page;
CREATE TRIGGER guard_move BEFORE UPDATE OF page ON {S}.page
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.guard();

-- Copies a snapshot of the record, with its lengths, document and pages.
CREATE OR REPLACE FUNCTION {S}.copy_snapshot(p_from {S}.container, p_snapshot bigint,
    p_container bigint, p_now bigint, p_writer text, p_message text) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {S}.snapshot(container, snapshot, parent, structure, document_at, time_ns, pruned,
        writer, message, dimensions, lengths, document)
    SELECT p_container, s.snapshot, s.parent, s.structure, s.snapshot, p_now, false, p_writer,
        p_message, s.dimensions, s.lengths, d.document
    FROM {S}.snapshot s JOIN {S}.snapshot d ON d.container = s.container
        AND d.snapshot = s.document_at
    WHERE s.container = p_from.container AND s.snapshot = p_snapshot;
    INSERT INTO {S}.page(page, container, dataset, records, level, absolute, added, removed,
        raw_bytes, stored_bytes, box, data)
    SELECT (p_container << 32) + row_number() OVER (ORDER BY p.dataset, p.page), p_container,
        p.dataset, p.records, p.level, p.absolute, p.added, 0, p.raw_bytes, p.stored_bytes, p.box,
        p.data
    FROM {S}.page p WHERE p.container = p_from.container AND p.added <= p_snapshot
        AND (p.removed = 0 OR p.removed > p_snapshot);
    INSERT INTO {S}.shared(uuid, container)
    SELECT p_from.uuid, p_container UNION
    SELECT h.uuid, p_container FROM {S}.shared h WHERE h.container = p_from.container;
END $body$;

-- A record that begins with a snapshot (0: the newest) of another one. Result: as of publish().
CREATE OR REPLACE FUNCTION {S}.clone(
    p_token uuid, p_again boolean, p_from bigint, p_snapshot bigint, p_name text, p_uuid text,
    p_replace boolean, p_writer text, p_message text, p_durable boolean,
    p_object_dataset bigint[], p_object_path text[], p_object_attributes text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
    v_now bigint := {S}.now_ns();
    v_from {S}.container;
    v_old {S}.snapshot;
    v_pair bigint[];
    v_sums bigint[];
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    IF p_durable AND current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    -- Commits wait, and nobody deletes the snapshot meanwhile.
    SELECT c.* INTO v_from FROM {S}.container c WHERE c.container = p_from
        AND c.name IS NOT NULL FOR UPDATE;
    IF v_from.container IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04', MESSAGE = 'it was removed or replaced meanwhile';
    END IF;
    SELECT s.* INTO v_old FROM {S}.snapshot s WHERE s.container = v_from.container
        AND s.snapshot = CASE p_snapshot WHEN 0 THEN v_from.snapshot ELSE p_snapshot END
        AND NOT s.pruned;
    IF v_old.container IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD02',
            MESSAGE = format('it has no snapshot %s', p_snapshot);
    END IF;
    SELECT ARRAY[count(*), coalesce(sum(p.raw_bytes), 0)::bigint,
            coalesce(sum(p.stored_bytes), 0)::bigint, coalesce(sum(p.records), 0)::bigint]
    INTO v_sums FROM {S}.page p WHERE p.container = v_from.container
        AND p.added <= v_old.snapshot AND (p.removed = 0 OR p.removed > v_old.snapshot);
    IF v_old.snapshot = v_from.snapshot AND v_sums[2:4] IS DISTINCT FROM
            ARRAY[v_from.raw_bytes, v_from.stored_bytes, v_from.fragments] THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD11', MESSAGE = 'its directory lists other index pages '
            'than were committed; esdm-fsck tells more';
    END IF;
    v_pair := {S}.insert_container(p_replace, p_name, p_uuid, v_sums[1], v_now, v_sums[2],
        v_sums[3], v_sums[4], v_from.datasets);
    UPDATE {S}.container c SET snapshot = v_old.snapshot, structure = v_old.structure,
        document_at = v_old.snapshot WHERE c.container = v_pair[1];
    PERFORM {S}.copy_snapshot(v_from, v_old.snapshot, v_pair[1], v_now, p_writer, p_message);
    IF cardinality(p_object_dataset) > 0 THEN
        PERFORM {S}.set_objects(v_pair[1], p_object_dataset, p_object_path, p_object_attributes);
    ELSE -- of the newest document alone
        INSERT INTO {S}.object(container, dataset, path, attributes)
        SELECT v_pair[1], o.dataset, o.path, o.attributes FROM {S}.object o
        WHERE o.container = v_from.container AND v_old.document_at = v_from.document_at;
    END IF;
    IF v_old.snapshot = v_from.snapshot THEN
        INSERT INTO {S}.extent(container, dataset, name, value, text, how)
        SELECT v_pair[1], x.dataset, x.name, x.value, x.text, x.how FROM {S}.extent x
        WHERE x.container = v_from.container;
    END IF;
    RETURN {S}.leave(p_token, v_now, ARRAY[v_pair[1], v_old.snapshot, v_old.structure, v_now,
        v_pair[2], (v_pair[1] << 32) + 1]);
END $body$;

CREATE OR REPLACE FUNCTION {S}.set_tag(
    p_token uuid, p_again boolean, p_container bigint, p_name text, p_snapshot bigint,
    p_created_ns bigint, p_author text, p_replace boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
    v_now bigint := {S}.now_ns();
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    -- Nobody deletes the snapshot meanwhile.
    PERFORM FROM {S}.container c WHERE c.container = p_container FOR UPDATE;
    PERFORM FROM {S}.snapshot s WHERE s.container = p_container AND s.snapshot = p_snapshot
        AND NOT s.pruned;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD02',
            MESSAGE = format('record %s has no snapshot %s', p_container, p_snapshot);
    END IF;
    IF p_name = 'esdm:seal' AND EXISTS(SELECT FROM {S}.container c WHERE c.container = p_container
            AND c.snapshot <> p_snapshot) THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04', MESSAGE = format('snapshot %s is not the newest '
            'any more: somebody has written to the container', p_snapshot);
    END IF;
    IF NOT p_replace AND EXISTS(SELECT FROM {S}.tag t WHERE t.container = p_container
            AND t.name = p_name) THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD03', MESSAGE = format('tag ''%s'' exists', p_name);
    END IF;
    INSERT INTO {S}.tag(container, name, snapshot, created_ns, author)
    VALUES (p_container, p_name, p_snapshot,
        CASE p_created_ns WHEN 0 THEN v_now ELSE p_created_ns END, p_author)
    ON CONFLICT (container, name) DO UPDATE SET snapshot = excluded.snapshot,
        created_ns = excluded.created_ns, author = excluded.author;
    RETURN {S}.leave(p_token, v_now, ARRAY[p_container]);
END $body$;

CREATE OR REPLACE FUNCTION {S}.remove_tag(p_token uuid, p_again boolean, p_container bigint,
    p_name text) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
BEGIN
    IF v_result IS NOT NULL THEN
        RETURN v_result;
    END IF;
    DELETE FROM {S}.tag t WHERE t.container = p_container AND t.name = p_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD02',
            MESSAGE = format('there is no tag ''%s''', p_name);
    END IF;
    RETURN {S}.leave(p_token, {S}.now_ns(), ARRAY[p_container]);
END $body$;

-- ---- migration ----------------------------------------------------------------------------------

-- Waits for changes in progress.
CREATE OR REPLACE FUNCTION {S}.set_state(p_state bigint, p_note text) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM pg_advisory_xact_lock({K}, 0);
    INSERT INTO {S}.store AS s(key, value) VALUES ('state', p_state::text), ('note', p_note)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
END $body$;

-- A record as another store had it, without its pages. Result: its number.
CREATE OR REPLACE FUNCTION {S}.import_container(p_name text, p_uuid text, p_record bigint[],
    p_snapshot bigint[], p_parent bigint[], p_structure bigint[], p_document_at bigint[],
    p_time_ns bigint[], p_writer text[], p_message text[], p_dimensions text[], p_lengths text[],
    p_document text[], p_object_dataset bigint[], p_object_path text[],
    p_object_attributes text[]) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_container bigint;
BEGIN
    INSERT INTO {S}.container(container, name, uuid, snapshot, structure, document_at, next_page,
        created_ns, modified_ns, raw_bytes, stored_bytes, fragments, datasets)
    VALUES (nextval('{S}.container_number'), p_name, p_uuid, p_record[1], p_record[2], p_record[3],
        p_record[4], p_record[5], p_record[6], p_record[7], p_record[8], p_record[9], p_record[10])
    ON CONFLICT (name) DO NOTHING RETURNING container INTO v_container;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD03',
            MESSAGE = format('container ''%s'' exists', p_name);
    END IF;
    INSERT INTO {S}.snapshot(container, snapshot, parent, structure, document_at, time_ns, pruned,
        writer, message, dimensions, lengths, document)
    SELECT v_container, u.snapshot, u.parent, u.structure, u.document_at, u.time_ns, false,
        u.writer, u.message, string_to_array(u.dimensions, ' ')::bigint[],
        string_to_array(u.lengths, ' ')::numeric[], u.document
    FROM unnest(p_snapshot, p_parent, p_structure, p_document_at, p_time_ns, p_writer, p_message,
        p_dimensions, p_lengths, p_document) AS u(snapshot, parent, structure, document_at,
        time_ns, writer, message, dimensions, lengths, document);
    PERFORM {S}.set_objects(v_container, p_object_dataset, p_object_path, p_object_attributes);
    RETURN v_container;
END $body$;

-- ---- reading ------------------------------------------------------------------------------------

-- Pins for this session; false when there is no such snapshot.
CREATE OR REPLACE FUNCTION {S}.pin(p_container bigint, p_snapshot bigint) RETURNS boolean
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({S}.lock_key(p_container, 0));
    PERFORM pg_advisory_lock_shared({S}.lock_key(p_container, p_snapshot));
    IF EXISTS(SELECT FROM {S}.snapshot s
            WHERE s.container = p_container AND s.snapshot = p_snapshot AND NOT s.pruned) THEN
        RETURN true;
    END IF;
    PERFORM pg_advisory_unlock_shared({S}.lock_key(p_container, p_snapshot));
    RETURN false;
END $body$;

-- The snapshot (0: newest) of the container with this name, pinned for this session. No row: no
-- such container. Columns of the snapshot are NULL: no such snapshot.
CREATE OR REPLACE FUNCTION {S}.open_snapshot(p_name text, p_snapshot bigint,
    p_known_container bigint, p_known_structure bigint)
RETURNS TABLE(container bigint, uuid text, head bigint, head_structure bigint, created_ns bigint,
    modified_ns bigint, raw_bytes bigint, stored_bytes bigint, fragments bigint, datasets bigint,
    snapshot bigint, structure bigint, dimensions text, lengths text, document text)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_container bigint;
    v_snapshot bigint;
    v_known bigint;
BEGIN
    LOOP
        SELECT c.container, c.snapshot INTO v_container, v_snapshot
        FROM {S}.container c WHERE c.name = p_name;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        IF p_snapshot <> 0 THEN
            v_snapshot := p_snapshot;
        END IF;
        v_known := CASE WHEN v_container = p_known_container THEN p_known_structure ELSE 0 END;
        IF {S}.pin(v_container, v_snapshot) THEN
            RETURN QUERY SELECT c.container, c.uuid, c.snapshot, c.structure, c.created_ns,
                c.modified_ns, c.raw_bytes, c.stored_bytes, c.fragments, c.datasets, s.snapshot,
                s.structure, array_to_string(s.dimensions, ' '), array_to_string(s.lengths, ' '),
                CASE WHEN s.structure = v_known THEN NULL ELSE d.document END
            FROM {S}.container c JOIN {S}.snapshot s ON s.container = c.container
            LEFT JOIN {S}.snapshot d ON d.container = s.container AND d.snapshot = s.document_at
            WHERE c.container = v_container AND s.snapshot = v_snapshot;
            IF FOUND THEN
                RETURN;
            END IF;
            PERFORM pg_advisory_unlock_shared({S}.lock_key(v_container, v_snapshot));
        ELSIF p_snapshot <> 0 THEN
            RETURN QUERY SELECT c.container, c.uuid, c.snapshot, c.structure, c.created_ns,
                c.modified_ns, c.raw_bytes, c.stored_bytes, c.fragments, c.datasets, NULL::bigint,
                NULL::bigint, NULL::text, NULL::text, NULL::text
            FROM {S}.container c WHERE c.container = v_container;
            RETURN;
        END IF; -- else it was deleted meanwhile: there is a newer one
    END LOOP;
END $body$;
