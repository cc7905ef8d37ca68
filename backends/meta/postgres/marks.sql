-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Marks of the values of attributes in the rows of `reach`, and what makes these rows. Run in one transaction: by mkfs and
-- by upgrades after reach.sql, and by esdm-mkfs --reindex in a store that was made before there were marks. Writers wait.
--
-- Each pair of a name and a text that a container has sets two of the 512 bits of `marks` in its row (dataset 0), so that
-- a question for times or boxes and for attributes looks at few containers that have these times alone: a bit that is not
-- set says that the container does not have the pair, NULL that nothing is known. Marks that a container has no more do no
-- harm. The row 'marks' of `store` has the hash of a text: where the server's hashes have become others (a dump that was
-- restored on a machine of another kind) nobody asks for marks.

LOCK TABLE {S}.container, {S}.object, {S}.extent IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE {S}.reach ADD COLUMN IF NOT EXISTS marks bit(512);

-- The bits of a pair, of which find_marks.c asks, and those of all that a container has; nearly all have one text of a name.
CREATE OR REPLACE FUNCTION {S}.reach_mark(p_hash bigint) RETURNS bit(512) LANGUAGE sql IMMUTABLE AS $body$
    SELECT set_bit(set_bit(B'0'::bit(512), (p_hash & 511)::int, 1), (p_hash >> 9 & 511)::int, 1) $body$;

CREATE OR REPLACE FUNCTION {S}.reach_marks(p_attributes jsonb) RETURNS bit(512) LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    RETURN (SELECT coalesce(bit_or(CASE WHEN jsonb_array_length(m.texts) = 1 THEN {S}.reach_mark(m.h)
            ELSE (SELECT bit_or({S}.reach_mark(hashtextextended((m.name || E'\n' || v.value) COLLATE "C", 0)))
                FROM jsonb_array_elements_text(m.texts) AS v) END), B'0'::bit(512))
        FROM (SELECT e.key AS name, e.value AS texts,
                hashtextextended((e.key || E'\n' || (e.value->>0)) COLLATE "C", 0) AS h
            FROM jsonb_each(p_attributes->'s') AS e OFFSET 0) AS m);
END $body$;

-- Puts the row of an object right, and with a container's those of its datasets, which may have its ends. Each statement
-- has plain parameters, so that its plan is made once. "=" of boxes compares areas. Marks of a row that is there follow
-- the container's attributes by themselves.
CREATE OR REPLACE FUNCTION {S}.reach_put(p_container bigint, p_dataset bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_row record;
    v_marks bit(512);
BEGIN
    SELECT r.span, r.lon INTO v_row FROM {S}.reach_of(p_container, p_dataset) AS r;
    IF FOUND THEN
        IF p_dataset = 0 AND NOT EXISTS(SELECT FROM {S}.reach r WHERE r.container = p_container AND r.dataset = 0) THEN
            SELECT {S}.reach_marks(o.attributes) INTO v_marks FROM {S}.object o
            WHERE o.container = p_container AND o.dataset = 0;
        END IF;
        INSERT INTO {S}.reach AS r VALUES (p_container, p_dataset, v_row.span, v_row.lon, v_marks)
        ON CONFLICT (container, dataset) DO UPDATE SET span = excluded.span, lon = excluded.lon
        WHERE box_send(r.span) <> box_send(excluded.span) OR box_send(r.lon) <> box_send(excluded.lon);
    ELSE
        DELETE FROM {S}.reach r WHERE r.container = p_container AND r.dataset = p_dataset;
    END IF;
    IF p_dataset = 0 THEN
        FOR v_row IN SELECT r.dataset FROM {S}.reach r WHERE r.container = p_container AND r.dataset <> 0 LOOP
            PERFORM {S}.reach_put(p_container, v_row.dataset);
        END LOOP;
    END IF;
END $body$;

-- After a container got its attributes, or others.
CREATE OR REPLACE FUNCTION {S}.reach_marked() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    v_marks bit(512);
BEGIN
    IF EXISTS(SELECT FROM {S}.reach r WHERE r.container = NEW.container AND r.dataset = 0) THEN
        v_marks := {S}.reach_marks(NEW.attributes);
        UPDATE {S}.reach r SET marks = v_marks WHERE r.container = NEW.container AND r.dataset = 0
            AND r.marks IS DISTINCT FROM v_marks;
    END IF;
    RETURN NULL;
END $body$;

-- All rows anew. Writers wait. DELETE, as who began to read before goes on to see the rows that were there, and none after
-- TRUNCATE.
CREATE OR REPLACE FUNCTION {S}.reach_make() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    LOCK TABLE {S}.container, {S}.object, {S}.extent IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM {S}.reach;
    DROP INDEX IF EXISTS {S}.reach_both;
    INSERT INTO {S}.reach SELECT d.container, d.dataset, r.span, r.lon,
        CASE WHEN d.dataset = 0 THEN (SELECT {S}.reach_marks(o.attributes) FROM {S}.object o
            WHERE o.container = d.container AND o.dataset = 0) END
    FROM (SELECT DISTINCT x.container, x.dataset FROM {S}.extent x WHERE x.value IS NOT NULL AND x.name IN
        ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max')) AS d
    CROSS JOIN LATERAL {S}.reach_of(d.container, d.dataset) AS r;
    -- With whose they are and what they have, so that the list of those that overlap is read in the index alone.
    CREATE INDEX reach_both ON {S}.reach USING gist(span, lon) INCLUDE (container, dataset, marks);
END $body$;
SELECT {S}.reach_make();

-- To drop one would wait for those who have read objects, and these may wait for the rows of `reach`.
DO $body$
BEGIN
    IF NOT EXISTS(SELECT FROM pg_trigger t WHERE t.tgrelid = '{S}.object'::regclass AND t.tgname = 'reach_marked') THEN
        CREATE TRIGGER reach_marked AFTER INSERT OR UPDATE ON {S}.object
            FOR EACH ROW WHEN (NEW.dataset = 0) EXECUTE FUNCTION {S}.reach_marked();
    END IF;
END $body$;
DELETE FROM {S}.store WHERE key = 'marks';
INSERT INTO {S}.store(key, value) VALUES ('marks', hashtextextended('esdm', 0)::text);
