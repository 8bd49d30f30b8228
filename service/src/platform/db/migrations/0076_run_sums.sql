-- Ended runs of products by others than their authors, of the last weeks by day in UTC: docs/decisions/0093-sums-of-runs.md
-- Rows of executions refer to the same accounts and products. Foreign keys here would double the time of a fold.
create table run_sums (
  author_id uuid not null,
  day date not null,
  product_id uuid not null,
  status text not null check (status in ('completed', 'failed', 'canceled')),
  -- '' for a run without one.
  error_code text not null,
  runs bigint not null,
  primary key (author_id, day, product_id, status, error_code) include (runs)
);

-- The same runs of all days, and how many accounts ran the product, also by runs that had not ended.
create table run_totals (
  author_id uuid not null references users on delete cascade,
  product_id uuid not null references products on delete cascade,
  completed bigint not null,
  failed bigint not null,
  canceled bigint not null,
  buyers bigint not null,
  primary key (author_id, product_id)
);
create table run_buyers (
  product_id uuid not null,
  user_id uuid not null,
  primary key (product_id, user_id)
);

-- Runs of summed days that are in no sum: they had not ended, or were reopened.
create table unfolded_runs (
  execution_id uuid primary key references executions on delete cascade,
  author_id uuid not null references users on delete cascade
);
create index unfolded_runs_author on unfolded_runs (author_id);

-- The sums have the runs that began before it: the beginning of a day in UTC.
create table run_folds (
  is_only boolean primary key default true check (is_only),
  folded_until timestamptz not null
);
insert into run_folds (folded_until) values ('-infinity');

-- The digests of the images at the last approval. Their bytes stay while a change waits, so that moderators see what was removed.
alter table products add column approved_images text[] not null default '{}';
update products
   set approved_images = array(select image ->> 'hash' from json_array_elements(approved_details::json -> 'images') as image)
 where approved_details is not null;
create index products_approved_images on products using gin (approved_images)
 where approved_images <> '{}' and status not in ('published', 'deleted');
