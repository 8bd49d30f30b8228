create table reviews (
  id uuid primary key,
  product_id uuid not null references products,
  author_id uuid not null references users,
  rating smallint not null check (rating between 1 and 5),
  comment text not null,
  created_at timestamptz not null,
  unique (product_id, author_id)
);
create index reviews_product on reviews (product_id, id desc);
