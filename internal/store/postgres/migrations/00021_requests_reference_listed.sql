-- +goose NO TRANSACTION
-- +goose Up
-- Lists of one reference. Requests without one, which may be all, have no part in it.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_reference;
CREATE INDEX CONCURRENTLY phoneproof_requests_reference ON phoneproof_requests (reference, phase, project, created_at, id)
    WHERE reference <> '';
