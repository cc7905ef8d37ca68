-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Functions of the metadata store "postgres": each change is one statement, hence one round trip.
-- {S} is the quoted name of the schema, {K} a number made from it, {F} the format. SQLSTATE ESDnn is an
-- esdm_status. All of them expect the isolation level "read committed": what is read after a lock
-- was waited for is read anew.
--
-- Advisory locks, of this database:
--   (bigint) (container + {K}) << 32 | snapshot   shared, by session: a pin
--   (bigint) (container + {K}) << 32              shared: who pins; exclusive: who deletes
--   ({K}, 0)                                      shared: who changes; exclusive: who sets the state
--   (halves of a token's hash)                    exclusive: the change with this token

CREATE OR REPLACE FUNCTION {S}.lock_key(p_container bigint, p_snapshot bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $body$ SELECT ((p_container + {K}) << 32) | p_snapshot $body$;

-- Time of the server: the clocks of clients differ.
CREATE OR REPLACE FUNCTION {S}.now_ns() RETURNS bigint
LANGUAGE sql VOLATILE AS $body$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint $body$;

-- What an earlier attempt at the change with this token has returned, NULL if there was none. A
-- lost connection leaves open whether the attempt succeeded: it still runs, and is waited for, or
-- has left its token. A server that has died may see after its recovery what no synchronous standby
-- has yet: touching the token makes this transaction, too, wait for that.
CREATE OR REPLACE FUNCTION {S}.enter(p_token uuid, p_again boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_hash bigint := hashtextextended(p_token::text, 0);
    v_state text;
    v_result bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock_shared({K}, 0);
    SELECT value INTO v_state FROM {S}.store WHERE key = 'state';
    IF v_state IS DISTINCT FROM '0' AND current_setting('esdm.migrating', true)
            IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD08', MESSAGE = 'the metadata store is migrated to '
            'another place: it is not written to any more';
    END IF;
    PERFORM pg_advisory_xact_lock((v_hash >> 32)::integer, ((v_hash << 32) >> 32)::integer);
    IF p_again THEN
        UPDATE {S}.token t SET time_ns = t.time_ns WHERE t.token = p_token
        RETURNING t.result INTO v_result;
    END IF;
    RETURN v_result;
END $body$;

-- Leaves the token; those that nobody can ask for any more go, some at a time.
CREATE OR REPLACE FUNCTION {S}.leave(p_token uuid, p_now bigint, p_result bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {S}.token(token, time_ns, result) VALUES (p_token, p_now, p_result);
    IF random() < 0.02 THEN
        DELETE FROM {S}.token WHERE token IN (
            SELECT t.token FROM {S}.token t WHERE t.time_ns < p_now - 3600000000000
            ORDER BY t.time_ns LIMIT 500 FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN p_result;
END $body$;

-- Whether the change with this token took place.
CREATE OR REPLACE FUNCTION {S}.happened(p_token uuid) RETURNS boolean
LANGUAGE plpgsql AS $body$
DECLARE
    v_hash bigint := hashtextextended(p_token::text, 0);
BEGIN
    PERFORM pg_advisory_xact_lock((v_hash >> 32)::integer, ((v_hash << 32) >> 32)::integer);
    RETURN EXISTS(SELECT FROM {S}.token t WHERE t.token = p_token);
END $body$;

-- ---- commits ------------------------------------------------------------------------------------

-- p_added, p_removed: NULL for pages of the snapshot p_snapshot. In plpgsql, as all that commits
-- call: the server plans the statements of sql functions anew at each call.
CREATE OR REPLACE FUNCTION {S}.add_pages(
    p_container bigint, p_snapshot bigint, p_first bigint, p_dataset bigint[], p_records bigint[],
    p_level bigint[], p_absolute bigint[], p_raw bigint[], p_stored bigint[], p_box bytea[],
    p_data bytea[], p_added bigint[] DEFAULT NULL, p_removed bigint[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {S}.page(page, container, dataset, records, level, absolute, added, removed,
        raw_bytes, stored_bytes, box, data)
    SELECT p_first + u.n - 1, p_container, u.dataset, u.records, u.level, u.absolute <> 0,
        coalesce(u.added, p_snapshot), coalesce(u.removed, 0), u.raw, u.stored, u.box, u.data
    FROM unnest(p_dataset, p_records, p_level, p_absolute, p_raw, p_stored, p_box, p_data,
        p_added, p_removed) WITH ORDINALITY AS u(dataset, records, level, absolute, raw, stored,
        box, data, added, removed, n);
END $body$;

CREATE OR REPLACE FUNCTION {S}.set_objects(
    p_container bigint, p_dataset bigint[], p_path text[], p_attributes text[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO {S}.object(container, dataset, path, attributes)
    SELECT p_container, u.dataset, u.path, u.attributes::jsonb
    FROM unnest(p_dataset, p_path, p_attributes) AS u(dataset, path, attributes);
END $body$;

-- Snapshots in use, of all sessions of this database.
CREATE OR REPLACE FUNCTION {S}.pins(p_container bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
    RETURN (SELECT coalesce(array_agg(DISTINCT l.objid::bigint), '{}') FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.objid <> 0 AND l.granted
            AND l.database = (SELECT d.oid FROM pg_database d
                WHERE d.datname = current_database())
            AND l.classid::bigint = ((p_container + {K}) & 4294967295));
END $body$;

-- Deletes snapshots that the history does not keep, nobody has pinned and nothing names. A writer
-- pins what it has just committed: young ones stay, up to a number.
CREATE OR REPLACE FUNCTION {S}.prune(p_container bigint, p_head bigint, p_history bigint,
    p_now bigint) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_pins bigint[];
    v_victims bigint[];
BEGIN
    IF NOT EXISTS(SELECT FROM {S}.snapshot s WHERE s.container = p_container
            AND s.snapshot <= p_head - greatest(p_history, 1) AND NOT s.pruned
            AND (s.time_ns < p_now - 500000000 OR s.snapshot <= p_head - 4096)) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock({S}.lock_key(p_container, 0));
    v_pins := {S}.pins(p_container) || ARRAY(SELECT t.snapshot FROM {S}.tag t
        WHERE t.container = p_container);
    v_victims := ARRAY(SELECT s.snapshot FROM {S}.snapshot s WHERE s.container = p_container
        AND s.snapshot <= p_head - greatest(p_history, 1) AND NOT s.pruned
        AND (s.time_ns < p_now - 500000000 OR s.snapshot <= p_head - 4096)
        AND s.snapshot <> ALL(v_pins));
    IF cardinality(v_victims) = 0 THEN
        RETURN;
    END IF;
    UPDATE {S}.snapshot s SET pruned = true
    WHERE s.container = p_container AND s.snapshot = ANY(v_victims);
    -- One that is pruned stays for the document that a later one needs.
    DELETE FROM {S}.snapshot s WHERE s.container = p_container AND s.pruned
        AND NOT EXISTS(SELECT FROM {S}.snapshot k WHERE k.container = p_container
            AND NOT k.pruned AND k.document_at = s.snapshot);
    DELETE FROM {S}.page p WHERE p.container = p_container AND p.removed <> 0
        AND NOT EXISTS(SELECT FROM {S}.snapshot k WHERE k.container = p_container
            AND NOT k.pruned AND k.snapshot >= p.added AND k.snapshot < p.removed);
END $body$;

-- Refuses a change of a sealed record.
CREATE OR REPLACE FUNCTION {S}.check_seal(p_container bigint, p_name text) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    IF EXISTS(SELECT FROM {S}.tag t WHERE t.container = p_container AND t.name = 'esdm:seal') THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD08', MESSAGE = format('the container is sealed: ''%s'' '
            'is never changed, replaced or renamed (esdm-seal --verify tells by whom; esdm-cp '
            'makes another one)', p_name);
    END IF;
END $body$;

-- Whoever gives a record another name, or none; the row is locked by now.
CREATE OR REPLACE FUNCTION {S}.check_name() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF OLD.name IS DISTINCT FROM NEW.name AND OLD.name NOT LIKE '/%'
            AND coalesce(NEW.name, '') NOT LIKE '/former/%-d' THEN
        PERFORM {S}.check_seal(OLD.container, OLD.name);
    END IF;
    RETURN NEW;
END $body$;
DROP TRIGGER IF EXISTS check_name ON {S}.container;
CREATE TRIGGER check_name BEFORE UPDATE OF name ON {S}.container
    FOR EACH ROW EXECUTE FUNCTION {S}.check_name();

-- A new record under the name: container, replaced record or 0.
CREATE OR REPLACE FUNCTION {S}.insert_container(
    p_replace boolean, p_name text, p_uuid text, p_pages bigint, p_now bigint, p_raw bigint,
    p_stored bigint, p_fragments bigint, p_datasets bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_replaced bigint;
    v_container bigint;
BEGIN
    LOOP
        SELECT c.container INTO v_replaced FROM {S}.container c WHERE c.name = p_name FOR UPDATE;
        IF FOUND AND NOT p_replace THEN
            RAISE EXCEPTION USING ERRCODE = 'ESD03',
                MESSAGE = format('container ''%s'' exists', p_name);
        END IF;
        UPDATE {S}.container c SET name = NULL WHERE c.container = v_replaced;
        INSERT INTO {S}.container(container, name, uuid, snapshot, structure, document_at,
            next_page, created_ns, modified_ns, raw_bytes, stored_bytes, fragments, datasets)
        VALUES (nextval('{S}.container_number'), p_name, p_uuid, 1, 1, 1, p_pages + 1, p_now,
            p_now, p_raw, p_stored, p_fragments, p_datasets)
        ON CONFLICT (name) DO NOTHING RETURNING container INTO v_container;
        EXIT WHEN FOUND; -- else another writer was faster
    END LOOP;
    RETURN ARRAY[v_container, coalesce(v_replaced, 0)];
END $body$;

-- Takes pages out of the snapshots from p_snapshot on: their sums of raw bytes, stored bytes,
-- fragments.
CREATE OR REPLACE FUNCTION {S}.retire(p_container bigint, p_snapshot bigint, p_pages bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $body$
DECLARE
    v_sums bigint[];
BEGIN
    WITH retired AS (
        UPDATE {S}.page p SET removed = p_snapshot
        WHERE p.page = ANY(p_pages) AND p.container = p_container AND p.removed = 0
        RETURNING p.raw_bytes, p.stored_bytes, p.records)
    SELECT ARRAY[coalesce(sum(raw_bytes), 0)::bigint, coalesce(sum(stored_bytes), 0)::bigint,
        coalesce(sum(records), 0)::bigint, count(*)] INTO v_sums FROM retired;
    IF v_sums[4] <> cardinality(p_pages) THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04',
            MESSAGE = format('record %s: a page to merge is not live any more', p_container);
    END IF;
    RETURN v_sums;
END $body$;

-- The record as it is before an update, locked; refuses what conflicts.
CREATE OR REPLACE FUNCTION {S}.lock_head(p_container bigint, p_changes boolean,
    p_structure bigint) RETURNS {S}.container
LANGUAGE plpgsql AS $body$
DECLARE
    v_head {S}.container;
BEGIN
    SELECT c.* INTO v_head FROM {S}.container c WHERE c.container = p_container FOR UPDATE;
    IF v_head.name IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04', MESSAGE = format('record %s: the container was '
            'removed or replaced by another writer', p_container);
    END IF;
    PERFORM {S}.check_seal(p_container, v_head.name);
    IF p_changes AND v_head.structure <> p_structure THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD04', MESSAGE = format('record %s: another writer '
            'changed its structure first', p_container);
    END IF;
    IF v_head.snapshot >= 4294967295 OR v_head.next_page >= 4294967295 THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD05', MESSAGE = format('record %s has used up its '
            '2^32 snapshots or index pages; copy the container', p_container);
    END IF;
    RETURN v_head;
END $body$;

-- Publishes a snapshot. p_kind: 0 create, 1 replace, 2 update. p_new: number of new pages and
-- their sums of raw bytes, stored bytes, fragments. Of the pages themselves the first ones may come
-- along, add_pages() takes the others within the same transaction.
-- Result: container, snapshot, structure, time_ns, replaced record or 0, number of the first page.
CREATE OR REPLACE FUNCTION {S}.publish(
    p_token uuid, p_again boolean, p_kind bigint, p_name text, p_uuid text, p_container bigint,
    p_structure bigint, p_document text, p_datasets bigint, p_dimensions bigint[],
    p_lengths text[], p_merged bigint[], p_new bigint[], p_writer text, p_message text,
    p_history bigint, p_durable boolean, p_pin boolean,
    p_page_dataset bigint[], p_page_records bigint[], p_page_level bigint[],
    p_page_absolute bigint[], p_page_raw bigint[], p_page_stored bigint[], p_page_box bytea[],
    p_page_data bytea[],
    p_object_dataset bigint[], p_object_path text[], p_object_attributes text[])
RETURNS bigint[] LANGUAGE plpgsql AS $body$
DECLARE
    v_result bigint[] := {S}.enter(p_token, p_again);
    v_now bigint := {S}.now_ns();
    v_pair bigint[] := '{0, 0}';
    v_sums bigint[] := '{0, 0, 0}';
    v_dimensions bigint[] := p_dimensions;
    v_lengths numeric[] := p_lengths::numeric[];
    v_head {S}.container;
    v_old_dimensions bigint[];
    v_old_lengths numeric[];
BEGIN
    IF v_result IS NOT NULL THEN
        IF p_pin THEN
            PERFORM pg_advisory_lock_shared({S}.lock_key(v_result[1], v_result[2]));
        END IF;
        RETURN v_result;
    END IF;
    IF p_durable AND current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'local', true);
    END IF;
    IF p_kind < 2 THEN
        v_pair := {S}.insert_container(p_kind = 1, p_name, p_uuid, p_new[1], v_now, p_new[2],
            p_new[3], p_new[4], p_datasets);
        v_head.container := v_pair[1];
        v_head.snapshot := 1;
        v_head.structure := 1;
        v_head.document_at := 1;
        v_head.next_page := 1;
    ELSE
        v_head := {S}.lock_head(p_container, p_document IS NOT NULL, p_structure);
        SELECT s.dimensions, s.lengths INTO v_old_dimensions, v_old_lengths FROM {S}.snapshot s
        WHERE s.container = p_container AND s.snapshot = v_head.snapshot;
        v_now := greatest(v_now, v_head.modified_ns);
        v_head.snapshot := v_head.snapshot + 1;
        IF p_document IS NOT NULL THEN
            v_head.structure := v_head.structure + 1;
            v_head.document_at := v_head.snapshot;
        END IF;
        IF cardinality(p_merged) > 0 THEN
            v_sums := {S}.retire(p_container, v_head.snapshot, p_merged);
        END IF;
        UPDATE {S}.container c SET snapshot = v_head.snapshot, structure = v_head.structure,
            document_at = v_head.document_at, next_page = c.next_page + p_new[1],
            modified_ns = v_now, raw_bytes = c.raw_bytes + p_new[2] - v_sums[1],
            stored_bytes = c.stored_bytes + p_new[3] - v_sums[2],
            fragments = c.fragments + p_new[4] - v_sums[3],
            datasets = CASE WHEN p_document IS NULL THEN c.datasets ELSE p_datasets END
        WHERE c.container = p_container;
    END IF;
    IF cardinality(p_dimensions) = 0 THEN
        v_dimensions := v_old_dimensions;
        v_lengths := v_old_lengths;
    ELSIF cardinality(v_old_dimensions) > 0 OR cardinality(p_dimensions) > 1 THEN
        SELECT array_agg(m.d ORDER BY m.d), array_agg(m.l ORDER BY m.d)
        INTO v_dimensions, v_lengths
        FROM (SELECT a.d, max(a.l) AS l FROM (
            SELECT * FROM unnest(v_old_dimensions, v_old_lengths)
            UNION ALL SELECT * FROM unnest(p_dimensions, p_lengths::numeric[])) AS a(d, l)
            GROUP BY a.d) AS m;
    END IF;
    INSERT INTO {S}.snapshot(container, snapshot, parent, structure, document_at, time_ns, pruned,
        writer, message, dimensions, lengths, document)
    VALUES (v_head.container, v_head.snapshot, v_head.snapshot - 1, v_head.structure,
        v_head.document_at, v_now, false, p_writer, p_message, v_dimensions, v_lengths, p_document);
    v_result := ARRAY[v_head.container, v_head.snapshot, v_head.structure, v_now, v_pair[2],
        (v_head.container << 32) + v_head.next_page];
    IF cardinality(p_page_dataset) > 0 THEN
        PERFORM {S}.add_pages(v_head.container, v_head.snapshot, v_result[6], p_page_dataset,
            p_page_records, p_page_level, p_page_absolute, p_page_raw, p_page_stored, p_page_box,
            p_page_data);
    END IF;
    IF p_document IS NOT NULL THEN
        IF p_kind = 2 THEN
            DELETE FROM {S}.object o WHERE o.container = p_container;
        END IF;
        IF cardinality(p_object_dataset) > 0 THEN
            PERFORM {S}.set_objects(v_head.container, p_object_dataset, p_object_path,
                p_object_attributes);
        END IF;
    END IF;
    IF v_head.snapshot % 16 = 0 THEN
        PERFORM {S}.prune(v_head.container, v_head.snapshot, p_history, v_now);
    END IF;
    PERFORM {S}.leave(p_token, v_now, v_result);
    IF p_pin THEN -- the session's, whatever becomes of this transaction: last of all
        PERFORM pg_advisory_lock_shared({S}.lock_key(v_head.container, v_head.snapshot));
    END IF;
    RETURN v_result;
END $body$;

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
