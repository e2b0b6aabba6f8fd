DO $create$
BEGIN
    -- Only one of several sessions creates the world; the others find it.
    PERFORM pg_advisory_xact_lock(hashtextextended('bevy_terrane: {world}', 0));
    IF to_regclass('"{world}".about') IS NOT NULL THEN
        RETURN;
    END IF;
    IF to_regnamespace('"{world}"') IS NULL THEN
        CREATE SCHEMA "{world}";
    END IF;

    CREATE TABLE about (product text NOT NULL, format integer NOT NULL);
    INSERT INTO about VALUES ('bevy_terrane', {format});

    -- Values of up to 4 KB, as most chunks are, stay beside their keys. A value that is stored apart takes longer to read.
    CREATE TABLE entries (
        family smallint NOT NULL,
        key bytea NOT NULL,
        value bytea NOT NULL,
        PRIMARY KEY (family, key)
    ) WITH (toast_tuple_target = 4080);

    -- Each open store is a writer. `last` is the number of its newest batch that was written.
    CREATE TABLE writers (
        writer uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        last bigint NOT NULL DEFAULT 0,
        touched timestamptz NOT NULL DEFAULT now()
    );

    -- Changes of batches that are too large for one statement. A change without a value is a deletion.
    CREATE TABLE staged (
        writer uuid NOT NULL REFERENCES writers ON DELETE CASCADE,
        batch bigint NOT NULL,
        part integer NOT NULL,
        family smallint NOT NULL,
        key bytea NOT NULL,
        value bytea,
        PRIMARY KEY (writer, batch, part)
    );

    -- Writes the batch if the writer's last one is `previous`. Returns the number of the writer's last batch, which is
    -- `this_batch` if the batch was written now or earlier. Each statement below sees everything that was committed
    -- before the statement began, so what is read after a lock is current.
    CREATE FUNCTION write_batch(
        this_writer uuid, previous bigint, this_batch bigint,
        required_families smallint[], required_keys bytea[], required_values bytea[],
        changed_families smallint[], changed_keys bytea[], changed_values bytea[]
    ) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
        newest bigint;
        required record;
        is_met boolean;
    BEGIN
        SELECT last INTO newest FROM writers WHERE writer = this_writer FOR UPDATE;
        IF newest IS NULL THEN
            RAISE EXCEPTION 'this session was forgotten: the world was removed or restored from a backup, or was not '
                'written by this session for 30 days; open the world again';
        END IF;
        IF newest <> previous THEN
            RETURN newest;
        END IF;

        FOR required IN
            SELECT * FROM unnest(required_families, required_keys, required_values) WITH ORDINALITY
                AS r (family, key, value, index)
        LOOP
            IF required.value IS NULL THEN
                -- Others who insert the key wait for this placeholder.
                INSERT INTO entries VALUES (required.family, required.key, '') ON CONFLICT DO NOTHING;
                is_met := FOUND;
            ELSE
                SELECT e.value = required.value INTO is_met FROM entries e
                    WHERE e.family = required.family AND e.key = required.key FOR UPDATE;
                is_met := coalesce(is_met, false);
            END IF;
            IF NOT is_met THEN
                RAISE EXCEPTION 'a precondition does not hold' USING ERRCODE = 'TE001', DETAIL = required.index;
            END IF;
        END LOOP;
        DELETE FROM entries e USING unnest(required_families, required_keys, required_values) AS r (family, key, value)
            WHERE r.value IS NULL AND e.family = r.family AND e.key = r.key;

        DELETE FROM entries e USING (
                SELECT * FROM unnest(changed_families, changed_keys, changed_values) AS c (family, key, value)
                UNION ALL SELECT s.family, s.key, s.value FROM staged s
                    WHERE s.writer = this_writer AND s.batch = this_batch
            ) AS c
            WHERE c.value IS NULL AND e.family = c.family AND e.key = c.key;
        INSERT INTO entries
            SELECT * FROM unnest(changed_families, changed_keys, changed_values) AS c (family, key, value)
                WHERE c.value IS NOT NULL
            UNION ALL SELECT s.family, s.key, s.value FROM staged s
                WHERE s.writer = this_writer AND s.batch = this_batch AND s.value IS NOT NULL
            ON CONFLICT (family, key) DO UPDATE SET value = excluded.value;

        DELETE FROM staged WHERE writer = this_writer;
        UPDATE writers SET last = this_batch, touched = now() WHERE writer = this_writer;
        RETURN this_batch;
    END
    $$;
END
$create$
