-- +goose NO TRANSACTION
-- +goose Up
-- Which stored requests of a number were declined, and when. A replica of the version before writes nothing here, and leaves the
-- row of a request that it deletes: rows are also swept by time.
CREATE TABLE IF NOT EXISTS phoneproof_declines (
    project    text        NOT NULL,
    number     text        NOT NULL,
    request_id text        NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (project, number, request_id)
);
