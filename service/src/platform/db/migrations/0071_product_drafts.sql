-- What the editor of an author holds back from a product that was on sale. Text, not jsonb, which refuses some characters.
create table product_drafts (
  product_id uuid primary key references products on delete cascade,
  -- JSON; null: there is none any more.
  changes text,
  saved_at timestamptz not null
);
