create extension if not exists pg_trgm;
create extension if not exists unaccent;

create table categories (
  slug text primary key,
  name text not null,
  parent text references categories
);

-- unaccent() is declared stable because its dictionary could change; a fixed dictionary makes it safe to index.
create function stoa_fold(text) returns text language sql immutable strict parallel safe
  as $$ select lower(public.unaccent('public.unaccent'::regdictionary, $1)) $$;

-- Titles weigh most, then tags, then the description.
create function stoa_search_vector(title text, tags text[], description text) returns tsvector
  language sql immutable parallel safe
  as $$ select setweight(to_tsvector('simple', stoa_fold(title)), 'A')
            || setweight(to_tsvector('simple', stoa_fold(array_to_string(tags, ' '))), 'B')
            || setweight(to_tsvector('simple', stoa_fold(description)), 'C') $$;

-- Every word of the question, each as a prefix; lexemes come out of the parser, so no input can be an operator.
create function stoa_search_query(words text) returns tsquery language sql immutable strict parallel safe
  as $$ select coalesce(string_agg(quote_literal(lexeme) || ':*', ' & '), '')::tsquery
        from unnest(to_tsvector('simple', stoa_fold(words))) $$;

create table products (
  id uuid primary key,
  author_id uuid not null references users,
  title text not null,
  description text not null,
  type text not null check (type in ('PROMPT', 'WORKFLOW')),
  status text not null check (status in
    ('draft', 'pending_review', 'published', 'rejected', 'unpublished', 'suspended', 'deleted')),
  category text references categories,
  price_minor integer not null check (price_minor between 1 and 99999999),
  currency text not null,
  compatibility text[] not null,
  tags text[] not null,
  requirements text[] not null,
  features text[] not null,
  models jsonb not null,
  preview text not null,
  -- Of product_versions: what a buyer gets now.
  version text not null,
  -- Counts what an author changes; the ETag is made from it, so counters never change an ETag.
  revision integer not null default 1,
  -- The list item as JSON text, all but the volatile numbers: rendering it once beats rendering it per request.
  card text not null,
  search tsvector not null generated always as (stoa_search_vector(title, tags, description)) stored,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  published_at timestamptz,
  first_published_at timestamptz,
  deleted_at timestamptz
);
create index products_author on products (author_id, id);
create index products_published on products (published_at desc nulls last, id desc) where status = 'published';
create index products_created on products (created_at desc, id desc) where status = 'published';
create index products_updated on products (updated_at desc, id desc) where status = 'published';
create index products_price on products (currency, price_minor, id) where status = 'published';
create index products_title on products (title, id) where status = 'published';
create index products_category on products (category, published_at desc) where status = 'published';
create index products_search on products using gin (search) where status = 'published';
create index products_tags on products using gin (tags) where status = 'published';
create index products_compatibility on products using gin (compatibility) where status = 'published';

create table product_versions (
  product_id uuid not null references products,
  version text not null,
  -- The version's three numbers, so that the newest of a major line is an index scan.
  numbers integer[] not null,
  content text not null,
  content_format text not null check (content_format in ('text', 'messages')),
  variables jsonb not null,
  changelog text not null,
  created_at timestamptz not null,
  primary key (product_id, numbers)
);

-- Volatile numbers apart from the wide row: they change all the time, and no index of products must move for them.
create table product_stats (
  product_id uuid primary key references products,
  views bigint not null default 0,
  purchases bigint not null default 0,
  rating_sum bigint not null default 0,
  rating_count bigint not null default 0,
  -- (sum + 10 × 3.5) / (count + 10): ten silent votes of 3.5 keep one 5-star vote from topping the list.
  rating_score double precision not null
    generated always as ((rating_sum + 35)::float8 / (rating_count + 10)) stored,
  -- log2 of the sum of 2^(time of purchase / 7 days): a 7-day half-life whose order needs no recount as time passes.
  trending double precision not null default 0
);
create index product_stats_purchases on product_stats (purchases desc, product_id desc);
create index product_stats_views on product_stats (views desc, product_id desc);
create index product_stats_rating on product_stats (rating_score desc, product_id desc);
create index product_stats_trending on product_stats (trending desc, product_id desc);

create table product_views (
  product_id uuid not null references products,
  day date not null,
  viewer text not null,
  primary key (product_id, day, viewer)
);

-- Moves with every change of what lists hold, in that change's transaction: totals counted at one revision stay true.
create table catalogue (
  singleton boolean primary key default true check (singleton),
  revision bigint not null
);
insert into catalogue (revision) values (1);
