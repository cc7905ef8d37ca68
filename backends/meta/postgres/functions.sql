-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Functions of the metadata store "postgres", of commits; names.sql has those of names, clones, tags, migration and
-- opening, and is run after this. Each change is one statement, hence one round trip.
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
