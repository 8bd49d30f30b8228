-- Of each product that was published: finds copies of its text and titles like its own.
create table product_fingerprints (
  product_id uuid primary key references products on delete cascade,
  -- When the version and the title were as fingerprinted.
  created_at timestamptz not null,
  bands int[] not null,
  signature bytea not null,
  title_keys int[] not null
);
-- A list of pending entries would be read by each search for copies: up to 4 MB, for as long as neither it is full nor a vacuum runs.
create index product_fingerprints_bands on product_fingerprints using gin (bands) with (fastupdate = off);
create index product_fingerprints_titles on product_fingerprints using gin (title_keys) with (fastupdate = off);

-- The marketplace reports copies itself: then there is no reporter.
alter table product_reports drop constraint product_reports_pkey;
alter table product_reports alter column reporter_id drop not null;
alter table product_reports add unique nulls not distinct (product_id, reporter_id);
