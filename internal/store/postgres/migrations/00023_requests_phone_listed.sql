-- +goose NO TRANSACTION
-- +goose Up
-- Lists of one phone number. All requests have a part in it.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_phone;
CREATE INDEX CONCURRENTLY phoneproof_requests_phone ON phoneproof_requests (phone, phase, project, created_at, id);
