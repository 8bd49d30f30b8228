-- What the scanner found in a version that buyers get or that waits for moderators, so that reads scan nothing.
create table product_scans (
  product_id uuid not null,
  numbers integer[] not null,
  scanned_at timestamptz not null,
  scanner_version text not null,
  findings jsonb not null,
  -- What is true of the version, as buyers read it.
  badges text[] not null,
  primary key (product_id, numbers),
  foreign key (product_id, numbers) references product_versions (product_id, numbers) on delete cascade
);
