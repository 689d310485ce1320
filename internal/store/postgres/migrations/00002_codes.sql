-- +goose NO TRANSACTION
-- +goose Up
-- What is sent to the number of a request, what proved it, and what became of the code. Replicas of the version before leave all empty.
ALTER TABLE phoneproof_requests
    ADD COLUMN IF NOT EXISTS deliver     text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS via         text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS code_state  text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS code_reason text NOT NULL DEFAULT '';
-- The codes that a project started lately. All other requests, which may be millions, have no part in it.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_codes;
CREATE INDEX CONCURRENTLY IF NOT EXISTS phoneproof_requests_codes ON phoneproof_requests (project, created_at)
    WHERE deliver <> '';
