-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Begins the upgrade of a store of an older format: waits for changes in progress, and gives up when
-- somebody has been faster. Tables and functions follow in the same transaction.
SELECT pg_advisory_xact_lock({K}, 0);
DO $body$
BEGIN
    IF (SELECT value::bigint FROM {S}.store WHERE key = 'format') >= {F} THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD03', MESSAGE = 'the metadata store was upgraded';
    END IF;
END $body$;
