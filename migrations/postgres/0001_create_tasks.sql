-- Tasks, and what is kept about queues beside them.
--
-- The schema is the search_path's business: no name here is qualified. Nothing here needs
-- a superuser, an extension or a function.
--
-- Names and keys have COLLATE "C": they are compared as bytes, as sent; callers that sort a
-- batch by code point sort it as we do; and a new C library on the server's machine, which
-- may sort words otherwise, cannot break the unique index.
--
-- Every CHECK runs at every UPDATE, also of columns it does not name. So the bounds that the
-- domain sets on callers (patterns, sizes, limits that may be raised one day) are not repeated here:
-- a CHECK guards what a lease or an index relies on, and what would make a row unreadable.

CREATE TABLE tasks (
    id uuid PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    payload jsonb NOT NULL,
    -- Of a row inserted by hand we do not know the size: it counts as the largest there may be,
    -- so that no reply is filled beyond what clients accept.
    payload_bytes integer DEFAULT 1048576 NOT NULL,
    fingerprint text COLLATE "C" DEFAULT '' NOT NULL,
    idempotency_key text COLLATE "C",
    -- Text rather than a number or an enum: a row explains itself to whoever reads it in
    -- psql, the predicates of the indexes below say what they mean, and a further status is
    -- a new CHECK (a value added to an enum cannot be used in the transaction that adds it).
    status text COLLATE "C" DEFAULT 'queued' NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    run_after timestamptz DEFAULT CURRENT_TIMESTAMP NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 10 NOT NULL,
    retry_base_us bigint DEFAULT 2000000 NOT NULL,
    retry_cap_us bigint DEFAULT 3600000000 NOT NULL,
    releases integer DEFAULT 0 NOT NULL,
    lease_number integer DEFAULT 0 NOT NULL,
    lease_token text COLLATE "C",
    lease_owner text COLLATE "C",
    lease_expires_at timestamptz,
    cancel_requested_at timestamptz,
    settled_token text COLLATE "C",
    settled_as text COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamptz DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamptz DEFAULT CURRENT_TIMESTAMP NOT NULL,
    finished_at timestamptz,
    last_error text,
    errors jsonb DEFAULT '[]' NOT NULL,
    result jsonb,

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

    -- A B-tree takes keys of up to some 2,700 bytes: longer ones would fail, or not, by how
    -- well they compress.
    CONSTRAINT tasks_names_are_short CHECK (
        octet_length(queue) BETWEEN 1 AND 255 AND octet_length(type) BETWEEN 1 AND 255
        AND octet_length(idempotency_key) BETWEEN 1 AND 255
    ),

    -- Neither infinity nor a year that clients cannot read, in whatever time zone they show it.
    -- (NULL passes.)
    CONSTRAINT tasks_times_are_readable CHECK (
        run_after >= '1970-01-01 00:00:00+00' AND run_after < '9999-01-01 00:00:00+00'
        AND created_at >= '1970-01-01 00:00:00+00' AND created_at < '9999-01-01 00:00:00+00'
        AND updated_at >= '1970-01-01 00:00:00+00' AND updated_at < '9999-01-01 00:00:00+00'
        AND lease_expires_at >= '1970-01-01 00:00:00+00'
        AND lease_expires_at < '9999-01-01 00:00:00+00'
        AND cancel_requested_at >= '1970-01-01 00:00:00+00'
        AND cancel_requested_at < '9999-01-01 00:00:00+00'
        AND finished_at >= '1970-01-01 00:00:00+00' AND finished_at < '9999-01-01 00:00:00+00'
    ),

    -- To look at a JSON document is to fetch and unpack all of it (measured: 64 µs for 256 kB,
    -- many times the rest of a heartbeat's UPDATE). A payload never changes, so it is looked
    -- at while nobody has leased the task; errors change when a lease ends.
    CONSTRAINT tasks_payload_is_an_object
        CHECK (lease_number > 0 OR jsonb_typeof(payload) = 'object'),
    CONSTRAINT tasks_errors_are_an_array
        CHECK (status = 'leased' OR jsonb_typeof(errors) = 'array')
) WITH (
    -- Room in each page for the new version of a row, so that a heartbeat changes the table
    -- alone (a HOT update): none of the indexes below has a column that a heartbeat sets.
    fillfactor = 70,
    -- A task is rewritten at least twice and its old versions stay in front of the indexes
    -- that a claim reads. The defaults (a fifth of the table) would let millions pile up.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    -- With old statistics a planner that believes in an empty or a full queue reads it all.
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 1000,
    -- Ten times the default: a vacuum that is slower than the work never ends.
    autovacuum_vacuum_cost_limit = 2000,
    -- Cutting off the empty end of the table needs a lock that nobody else may share, and
    -- after the next burst the space is wanted again.
    vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0.01,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 2000,
    toast.vacuum_truncate = false
);

-- A query uses a partial index when it spells out the status: `status = 'queued'`, not
-- `status = $1`, since a prepared statement's plan has to hold for every value.

-- One task a key, for as long as the task is stored.
CREATE UNIQUE INDEX tasks_keyed ON tasks (queue, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- Claim: within one queue, type and priority the tasks stand in the order of leasing, so the
-- due ones are in front. Read type by type and priority by priority (a loose scan), it skips
-- what is scheduled for later at a higher priority, and the types nobody asked for.
CREATE INDEX tasks_claimable ON tasks (queue, type, priority DESC, run_after, id)
    WHERE status = 'queued';

-- Claim of any type, and: when is the next task of a queue due, and since when has the oldest
-- been? Read priority by priority. The priority is negated so that no claim of some types can
-- be planned on this index, which would be right and would walk all the other types: only the index
-- above has their tasks in order without a sort.
CREATE INDEX tasks_waiting ON tasks (queue, (-priority), run_after, id)
    WHERE status = 'queued';

-- The reaper reads all leases, as many as there are busy workers. An index on lease_expires_at
-- would cost every heartbeat an entry in every index of the table.
CREATE INDEX tasks_leased ON tasks (queue)
    WHERE status = 'leased';

-- Depths (count a few thousand entries of one status and queue, from the index alone) and
-- pages of an operator's list, by id, which is by creation. Without the leased tasks, few enough
-- to be sorted, so that a lease pays for one index entry and not for two.
CREATE INDEX tasks_listed ON tasks (status, queue, id)
    WHERE status <> 'leased';

-- Pruning: the oldest of a status. `finished_at < $1` alone implies the predicate.
CREATE INDEX tasks_finished ON tasks (status, finished_at)
    WHERE finished_at IS NOT NULL;

CREATE TABLE queues (
    name text COLLATE "C" PRIMARY KEY,
    paused boolean DEFAULT false NOT NULL,
    settings jsonb DEFAULT '{}' NOT NULL,
    state jsonb DEFAULT '{}' NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    updated_at timestamptz DEFAULT CURRENT_TIMESTAMP NOT NULL,

    CONSTRAINT queues_name_is_short CHECK (octet_length(name) BETWEEN 1 AND 255),
    CONSTRAINT queues_version_is_in_range CHECK (version >= 0),
    CONSTRAINT queues_documents_are_objects
        CHECK (jsonb_typeof(settings) = 'object' AND jsonb_typeof(state) = 'object'),
    CONSTRAINT queues_time_is_readable CHECK (
        updated_at >= '1970-01-01 00:00:00+00' AND updated_at < '9999-01-01 00:00:00+00'
    )
) WITH (
    -- Few rows, changed often: of such a table it is the dead versions that are read. Half of each
    -- page is kept free for them, and a hundred of them call for the vacuum.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 100,
    vacuum_truncate = false
);
