-- +goose NO TRANSACTION
-- +goose Up
-- Each file is one statement: databases that are distributed do not change tables within transactions. Files are never
-- edited, and what they do must suit the version before: replicas of both run side by side during a rollout.
CREATE TABLE IF NOT EXISTS phoneproof_requests (
    project          text        NOT NULL,
    id               text        NOT NULL,
    phone            text        NOT NULL,
    method           text        NOT NULL,
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
    PRIMARY KEY (project, id)
);
