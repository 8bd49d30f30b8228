-- The session lock of the worker that holds the lease (platform/db/presence.ts): when the lock is gone, its process died. It stays after the
-- lease and means nothing then. null: the worker had no lock, so its lease ends only by time.
alter table workflow_runs add column lease_worker integer;
