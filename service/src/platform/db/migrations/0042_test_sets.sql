-- The cases by which a product is evaluated. Rows never change: an evaluation refers to the one with which it began.
create table test_sets (
  id uuid primary key,
  product_id uuid not null references products on delete cascade,
  -- That of the product when the test set was stored.
  version text not null,
  -- Of the canonical JSON of the cases, in hexadecimal.
  sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
  -- Not jsonb, which would sort the names of inputs by their length.
  cases json not null,
  created_at timestamptz not null
);
-- The newest belongs to the current version and to later ones.
create index test_sets_product on test_sets (product_id, id desc);
