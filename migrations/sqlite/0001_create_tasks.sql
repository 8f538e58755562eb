-- The same tables as for PostgreSQL, in SQLite's types.
--
-- Times are microseconds since 1970 in UTC, as integers: they compare exactly. Ids and JSON
-- are text, truth is 0 or 1. Text is compared as bytes (the collation BINARY), as sent.
--
-- The big columns come last: a row that is longer than a page goes on in a chain of further
-- pages, which SQLite follows only as far as the columns that a statement reads.

CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    -- Of a row inserted by hand we do not know the size: it counts as the largest there may be.
    payload_bytes INTEGER DEFAULT 1048576 NOT NULL,
    fingerprint TEXT DEFAULT '' NOT NULL,
    idempotency_key TEXT,
    status TEXT DEFAULT 'queued' NOT NULL,
    priority INTEGER DEFAULT 0 NOT NULL,
    -- To the second, rounded down, hence due at once: only rows inserted by hand use the default.
    run_after INTEGER DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000) NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    max_attempts INTEGER DEFAULT 10 NOT NULL,
    retry_base_us INTEGER DEFAULT 2000000 NOT NULL,
    retry_cap_us INTEGER DEFAULT 3600000000 NOT NULL,
    releases INTEGER DEFAULT 0 NOT NULL,
    lease_number INTEGER DEFAULT 0 NOT NULL,
    lease_token TEXT,
    lease_owner TEXT,
    lease_expires_at INTEGER,
    cancel_requested_at INTEGER,
    settled_token TEXT,
    settled_as TEXT,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at INTEGER DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000) NOT NULL,
    updated_at INTEGER DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000) NOT NULL,
    finished_at INTEGER,
    last_error TEXT,
    errors TEXT DEFAULT '[]' NOT NULL,
    result TEXT,
    payload TEXT NOT NULL,

    CONSTRAINT tasks_status_is_known
        CHECK (status IN ('queued', 'leased', 'succeeded', 'failed', 'dead', 'cancelled')),

    -- Leased, exactly when there is somebody who holds it, with what, and until when.
    CONSTRAINT tasks_lease_fits_status CHECK (
        CASE WHEN status = 'leased'
            THEN lease_number > 0 AND lease_token IS NOT NULL AND lease_owner IS NOT NULL
                AND lease_expires_at IS NOT NULL
            ELSE lease_token IS NULL AND lease_owner IS NULL
                AND lease_expires_at IS NULL AND cancel_requested_at IS NULL
        END
    ),
    CONSTRAINT tasks_end_fits_status CHECK (
        (status IN ('succeeded', 'failed', 'dead', 'cancelled')) = (finished_at IS NOT NULL)
    ),
    CONSTRAINT tasks_settlement_is_whole CHECK (
        CASE WHEN settled_token IS NULL
            THEN settled_as IS NULL
            ELSE settled_as IS NOT NULL AND settled_as IN ('complete', 'fail', 'release')
        END
    ),

    CONSTRAINT tasks_priority_is_in_range CHECK (priority BETWEEN 0 AND 255),
    CONSTRAINT tasks_attempts_are_in_range
        CHECK (attempts BETWEEN 0 AND max_attempts AND max_attempts > 0),
    CONSTRAINT tasks_counts_are_in_range
        CHECK (releases >= 0 AND lease_number >= 0 AND version >= 0 AND payload_bytes >= 0),
    CONSTRAINT tasks_retry_is_in_range CHECK (retry_base_us > 0 AND retry_cap_us >= retry_base_us),
    CONSTRAINT tasks_names_are_short CHECK (
        length(CAST(queue AS BLOB)) BETWEEN 1 AND 255
        AND length(CAST(type AS BLOB)) BETWEEN 1 AND 255
        AND length(CAST(idempotency_key AS BLOB)) BETWEEN 1 AND 255
    ),

    -- From 1970 to the end of 9998: years that clients can read in any time zone. (NULL passes.)
    CONSTRAINT tasks_times_are_readable CHECK (
        run_after >= 0 AND run_after < 253370764800000000
        AND created_at >= 0 AND created_at < 253370764800000000
        AND updated_at >= 0 AND updated_at < 253370764800000000
        AND lease_expires_at >= 0 AND lease_expires_at < 253370764800000000
        AND cancel_requested_at >= 0 AND cancel_requested_at < 253370764800000000
        AND finished_at >= 0 AND finished_at < 253370764800000000
    ),

    -- SQLite runs a CHECK at an UPDATE only when one of its columns is set, so that a heartbeat
    -- parses no JSON. CASE, since json_type fails on what is not JSON.
    CONSTRAINT tasks_payload_is_an_object
        CHECK (CASE WHEN json_valid(payload) THEN json_type(payload) = 'object' ELSE 0 END),
    CONSTRAINT tasks_errors_are_an_array
        CHECK (CASE WHEN json_valid(errors) THEN json_type(errors) = 'array' ELSE 0 END),
    CONSTRAINT tasks_result_is_json CHECK (result IS NULL OR json_valid(result))
) STRICT;

-- A query uses a partial index when it spells out the status: `status = 'queued'`, not a
-- parameter. Each index has the purpose that the PostgreSQL migration tells of its namesake.

CREATE UNIQUE INDEX tasks_keyed ON tasks (queue, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE INDEX tasks_claimable ON tasks (queue, type, priority DESC, run_after, id)
    WHERE status = 'queued';

-- The priority is not negated as PostgreSQL's is: our statements name the index they read.
CREATE INDEX tasks_waiting ON tasks (queue, priority DESC, run_after, id)
    WHERE status = 'queued';

-- Without a predicate, since SQLite's planner, unlike PostgreSQL's, does not see that
-- `status = 'dead'` implies `status <> 'leased'`. So it finds the leased tasks as well,
-- and there is no index for them alone.
CREATE INDEX tasks_listed ON tasks (status, queue, id);

CREATE INDEX tasks_finished ON tasks (status, finished_at)
    WHERE finished_at IS NOT NULL;

CREATE TABLE queues (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER DEFAULT 0 NOT NULL,
    settings TEXT DEFAULT '{}' NOT NULL,
    state TEXT DEFAULT '{}' NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    updated_at INTEGER DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000) NOT NULL,

    CONSTRAINT queues_name_is_short CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 255),
    CONSTRAINT queues_paused_is_truth CHECK (paused IN (0, 1)),
    CONSTRAINT queues_version_is_in_range CHECK (version >= 0),
    CONSTRAINT queues_settings_are_an_object
        CHECK (CASE WHEN json_valid(settings) THEN json_type(settings) = 'object' ELSE 0 END),
    CONSTRAINT queues_state_is_an_object
        CHECK (CASE WHEN json_valid(state) THEN json_type(state) = 'object' ELSE 0 END),
    CONSTRAINT queues_time_is_readable
        CHECK (updated_at >= 0 AND updated_at < 253370764800000000)
) STRICT;
