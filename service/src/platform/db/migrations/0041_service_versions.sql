-- The versions of the service that ran on this database.
create table service_versions (
  version text primary key,
  first_started_at timestamptz not null,
  last_started_at timestamptz not null
);
