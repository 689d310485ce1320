-- +goose NO TRANSACTION
-- +goose Up
-- Lists of a test key, which would otherwise pass over all live requests. Those have no part in it.
DROP INDEX CONCURRENTLY IF EXISTS phoneproof_requests_test_listed;
CREATE INDEX CONCURRENTLY phoneproof_requests_test_listed ON phoneproof_requests (phase, project, created_at, id)
    WHERE method IN ('TEST_WHATSAPP', 'TEST_TELEGRAM');
