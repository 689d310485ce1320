-- +goose NO TRANSACTION
-- +goose Up
-- Requests of one phone number, which are few. With all that a list is ordered by, as above, it would cost each insert three times as much.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_phone;
CREATE INDEX CONCURRENTLY phoneproof_requests_phone ON phoneproof_requests (phone);
