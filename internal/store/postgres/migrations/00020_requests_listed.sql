-- +goose NO TRANSACTION
-- +goose Up
-- Lists are ranges of this index, one for each phase. Every write that changes the phase changes the column work, too, and so writes to
-- all indexes anyway. Built without blocking writes; a build that failed leaves an index that is not valid, hence the first statement.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_listed;
CREATE INDEX CONCURRENTLY phoneproof_requests_listed ON phoneproof_requests (phase, project, created_at, id);
