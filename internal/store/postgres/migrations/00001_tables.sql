-- +goose NO TRANSACTION
-- +goose Up
-- Databases that are distributed do not change tables within transactions, so each statement can be repeated. Files are never edited once
-- they are released. What later ones do must suit the version before, whose replicas run beside the new ones during a rollout: columns have
-- a default, and indexes are built CONCURRENTLY, after a DROP INDEX CONCURRENTLY IF EXISTS of one whose build failed.
CREATE TABLE IF NOT EXISTS phoneproof_requests (
    project          text        NOT NULL,
    id               text        NOT NULL,
    phone            text        NOT NULL,
    method           text        NOT NULL,
    test             boolean     NOT NULL DEFAULT false,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    key_name         text        NOT NULL,
    body_hash        text        NOT NULL,
    phase            text        NOT NULL,
    verified_at      timestamptz,
    actual           text        NOT NULL DEFAULT '',
    assurance        text        NOT NULL DEFAULT '',
    contacts         text        NOT NULL DEFAULT '',
    attempts         bigint      NOT NULL DEFAULT 0,
    next_attempt_at  timestamptz,
    last_attempt_at  timestamptz,
    last_status_code bigint      NOT NULL DEFAULT 0,
    last_reason      text        NOT NULL DEFAULT '',
    delivered_at     timestamptz,
    exhausted_at     timestamptz,
    redelivered      text        NOT NULL DEFAULT '',
    epoch            bigint      NOT NULL DEFAULT 0,
    version          bigint      NOT NULL,
    work             bigint      NOT NULL,
    since            timestamptz NOT NULL,
    leased_until     timestamptz NOT NULL DEFAULT '1970-01-01 00:00:00+00',
    display_name     text        NOT NULL DEFAULT '',
    client_data      text        NOT NULL DEFAULT '',
    hints            text        NOT NULL DEFAULT '',
    verified_by      text        NOT NULL DEFAULT '',
    proven_at        timestamptz,
    wrong_codes      bigint      NOT NULL DEFAULT 0,
    earlier_attempts text        NOT NULL DEFAULT '',
    reference        text        NOT NULL DEFAULT '', -- that of client_data once more, for an index
    extra_from       timestamptz,
    PRIMARY KEY (project, id)
);
-- What needs a step is one range of this index per kind of work, however many requests are finished. It does not begin
-- with the project: a planner without statistics would take it for look-ups by (project, id).
CREATE INDEX IF NOT EXISTS phoneproof_requests_work ON phoneproof_requests (work, project, since);
-- Lists are ranges of this index, one for each phase. Every write that changes the phase changes the column work, too, and so writes to
-- all indexes anyway.
CREATE INDEX IF NOT EXISTS phoneproof_requests_listed ON phoneproof_requests (phase, project, created_at, id);
-- Lists of one reference. Requests without one, which may be all, have no part in it.
CREATE INDEX IF NOT EXISTS phoneproof_requests_reference ON phoneproof_requests (reference, phase, project, created_at, id)
    WHERE reference <> '';
-- Lists of a test key, which would otherwise pass over all live requests. Those have no part in it.
CREATE INDEX IF NOT EXISTS phoneproof_requests_test_listed ON phoneproof_requests (phase, project, created_at, id)
    WHERE test;
-- Requests of one phone number, which are few. With all that a list is ordered by, as above, it would cost each insert three times as much.
CREATE INDEX IF NOT EXISTS phoneproof_requests_phone ON phoneproof_requests (phone);
CREATE TABLE IF NOT EXISTS phoneproof_bindings (
    project    text NOT NULL,
    binding    text NOT NULL,
    request_id text NOT NULL,
    PRIMARY KEY (project, binding)
);
CREATE INDEX IF NOT EXISTS phoneproof_bindings_request ON phoneproof_bindings (request_id, project);
CREATE TABLE IF NOT EXISTS phoneproof_keys (
    project text        NOT NULL,
    name    text        NOT NULL,
    total   bigint      NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE TABLE IF NOT EXISTS phoneproof_key_admissions (
    project text        NOT NULL,
    name    text        NOT NULL,
    at      timestamptz NOT NULL,
    total   bigint      NOT NULL,
    n       bigint      NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, name, at)
);
CREATE TABLE IF NOT EXISTS phoneproof_number_admissions (
    project text        NOT NULL,
    number  text        NOT NULL,
    place   bigint      NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, number, place)
);
-- What counts for a prefix of numbers or a subject.
CREATE TABLE IF NOT EXISTS phoneproof_group_admissions (
    project text        NOT NULL,
    name    text        NOT NULL,
    place   bigint      NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, name, place)
);
-- Subjects are many, and no deletion of a request leads to their admissions: they are swept by time.
CREATE INDEX IF NOT EXISTS phoneproof_group_admissions_until ON phoneproof_group_admissions (until, project);
-- Which stored requests of a number were declined, and when.
CREATE TABLE IF NOT EXISTS phoneproof_declines (
    project    text        NOT NULL,
    number     text        NOT NULL,
    request_id text        NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (project, number, request_id)
);
CREATE TABLE IF NOT EXISTS phoneproof_leases (
    project text   NOT NULL,
    record  text   NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (project)
);
