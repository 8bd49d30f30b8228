create table reviews (
  id uuid primary key,
  product_id uuid not null references products,
  author_id uuid not null references users,
  rating smallint not null check (rating between 1 and 5),
  comment text not null,
  created_at timestamptz not null,
  -- When its author last changed it.
  updated_at timestamptz,
  -- The product's author answers here.
  reply text,
  replied_at timestamptz,
  reply_updated_at timestamptz,
  -- Set: a moderator took it out of the list, and out of the rating.
  hidden_at timestamptz,
  hidden_reason text,
  -- Its author got the money back: it stays in the list, and out of the rating.
  refunded boolean not null default false,
  unique (product_id, author_id),
  check ((reply is null) = (replied_at is null)),
  check ((hidden_at is null) = (hidden_reason is null))
);
create index reviews_product on reviews (product_id, id desc);
-- Of the stars that a list shows above its page.
create index reviews_stars on reviews (product_id, rating) include (hidden_at, refunded, author_id);
create index reviews_hidden on reviews (id desc) where hidden_at is not null;

create table review_reports (
  review_id uuid not null references reviews on delete cascade,
  reporter_id uuid not null references users,
  reason text not null,
  created_at timestamptz not null,
  -- A moderator looked at it.
  resolved_at timestamptz,
  primary key (review_id, reporter_id)
);
create index review_reports_open on review_reports (review_id, created_at) where resolved_at is null;
