-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Ends an upgrade: who may use the table of containers may use the new tables alike.
DO $body$
DECLARE
    v_right record;
BEGIN
    FOR v_right IN SELECT a.privilege_type AS privilege, a.is_grantable AS grantable,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS grantee
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.oid = '{S}.container'::regclass AND a.grantee <> c.relowner
            AND (a.grantee = 0 OR r.rolname IS NOT NULL)
    LOOP
        EXECUTE format('GRANT %s ON {S}.shared, {S}.tag, {S}.extent, {S}.reach TO %s%s', v_right.privilege,
            v_right.grantee, CASE WHEN v_right.grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    UPDATE {S}.store SET value = '{F}' WHERE key = 'format';
END $body$;
