create table categories (
  slug text primary key,
  name text not null,
  parent text references categories
);

create table products (
  id uuid primary key,
  author_id uuid not null references users,
  title text not null,
  description text not null,
  -- BCP 47, as the seller said; null: nobody said.
  lang text,
  type text not null check (type in ('PROMPT', 'WORKFLOW')),
  status text not null check (status in
    ('draft', 'pending_review', 'published', 'rejected', 'unpublished', 'suspended', 'deleted')),
  category text references categories,
  price_minor integer not null check (price_minor between 1 and 99999999),
  currency text not null,
  -- What a referrer gets of a sale; null: what its author says of all.
  commission_basis_points integer check (commission_basis_points between 0 and 10000),
  compatibility text[] not null,
  tags text[] not null,
  requirements text[] not null,
  features text[] not null,
  models jsonb not null,
  preview text not null,
  -- The newest of product_versions.
  version text not null,
  -- The newest that buyers get, as its three numbers: later ones wait for moderators. null: never published.
  released integer[],
  -- Counts what an author changes; the ETag is made from it, so counters never change an ETag.
  revision integer not null default 1,
  -- The list item as JSON text, all but the volatile numbers: rendering it once beats rendering it per request.
  card text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  published_at timestamptz,
  first_published_at timestamptz,
  deleted_at timestamptz,
  -- When it came into its status.
  moved_at timestamptz not null,
  -- Why moderators rejected or suspended it; a deleted one keeps what was said.
  moderation_code text,
  moderation_reason text,
  moderated_at timestamptz
);
create index products_author on products (author_id, id);
create index products_moved on products (moved_at, id);
create index products_queue on products (status, moved_at, id);

create table product_versions (
  product_id uuid not null references products on delete cascade,
  version text not null,
  -- The version's three numbers, so that the newest of a major line is an index scan.
  numbers integer[] not null,
  -- The product's, as they were when the version was made: what assistants read of it does not change behind the buyer's back.
  title text not null,
  description text not null,
  content text not null,
  content_format text not null check (content_format in ('text', 'messages')),
  variables jsonb not null,
  changelog text not null,
  created_at timestamptz not null,
  primary key (product_id, numbers)
);

-- What somebody may have bought is never rewritten. When the demo goes, versions go with their products.
create function keep_published_versions() returns trigger language plpgsql as $$
begin
  if exists (select from products where id = old.product_id and first_published_at is not null) then
    raise exception 'version % of the published product % is immutable', old.version, old.product_id;
  end if;
  return case tg_op when 'DELETE' then old else new end;
end $$;
create trigger product_versions_immutable before update or delete on product_versions
  for each row execute function keep_published_versions();

-- Volatile numbers apart from the wide row: they change all the time, and no index of products must move for them.
create table product_stats (
  product_id uuid primary key references products,
  views bigint not null default 0,
  purchases bigint not null default 0,
  -- Of reviews that are neither hidden nor a refunded buyer's.
  rating_sum bigint not null default 0,
  rating_count bigint not null default 0,
  -- (sum + 10 × 3.5) / (count + 10): ten silent votes of 3.5 keep one 5-star vote from topping the list.
  rating_score double precision not null
    generated always as ((rating_sum + 35)::float8 / (rating_count + 10)) stored,
  -- 0 of a product without ratings.
  rating_mean double precision not null
    generated always as (case rating_count when 0 then 0 else rating_sum::float8 / rating_count end) stored,
  -- log2 of the sum of 2^(time of purchase / 7 days): a 7-day half-life whose order needs no recount as time passes.
  trending double precision not null default 0
);

-- Views are unique by viewer, product and UTC day. Who a viewer is stands nowhere: only a digest, made with the salt of
-- the day, sealed by the vault. A day is closed by taking its salt away; then its viewers are deleted, and its sums stay.
create table view_salts (
  day date primary key,
  -- null: the day is closed, and counts no view any more.
  sealed_salt text
);

create table product_views (
  day date not null,
  product_id uuid not null references products,
  viewer bytea not null,
  primary key (day, product_id, viewer)
);

create table product_daily_views (
  product_id uuid not null references products,
  day date not null,
  views bigint not null,
  primary key (product_id, day)
);

-- The sums of an author: to read years of them costs the same however many products there are.
create table author_daily_views (
  author_id uuid not null references users,
  day date not null,
  views bigint not null,
  primary key (author_id, day)
);
