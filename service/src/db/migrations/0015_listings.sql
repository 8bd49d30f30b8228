create extension if not exists pg_trgm;
create extension if not exists fuzzystrmatch;

-- The read model of lists and searches: every product but the deleted ones, narrow, with what is filtered and sorted by.
-- What a page shows comes from products.card and product_stats; what it is found by stands here.
create table listings (
  product_id uuid primary key references products,
  author_id uuid not null,
  status text not null,
  type text not null,
  category text,
  lang text,
  currency text not null,
  price_minor integer not null,
  compatibility text[] not null,
  tags text[] not null,
  -- Folded: without case and accents.
  title text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  published_at timestamptz,
  -- Of product_stats; views follow within seconds, the others in the transaction that moved them.
  purchases bigint not null,
  views bigint not null,
  rating_mean double precision not null,
  rating_score double precision not null,
  trending double precision not null,
  -- Made by catalogue/words.ts, which also makes the questions.
  search tsvector not null
);
create index listings_author on listings (author_id, product_id);
create index listings_popularity on listings (purchases desc, product_id desc) where status = 'published';
create index listings_published on listings (published_at desc, product_id desc) where status = 'published';
create index listings_created on listings (created_at desc, product_id desc) where status = 'published';
create index listings_updated on listings (updated_at desc, product_id desc) where status = 'published';
create index listings_views on listings (views desc, product_id desc) where status = 'published';
create index listings_rating on listings (rating_score desc, product_id desc) where status = 'published';
create index listings_trending on listings (trending desc, product_id desc) where status = 'published';
create index listings_price on listings (currency, price_minor, product_id) where status = 'published';
create index listings_title on listings (title, product_id) where status = 'published';
create index listings_category on listings (category, purchases desc, product_id desc) where status = 'published';
create index listings_category_published on listings (category, published_at desc, product_id desc)
  where status = 'published';
create index listings_category_price on listings (category, currency, price_minor, product_id)
  where status = 'published';
create index listings_tags on listings using gin (tags) where status = 'published';
create index listings_compatibility on listings using gin (compatibility) where status = 'published';
create index listings_search on listings using gin (search) where status = 'published';

-- Words that listings hold, to guess what a mistyped one meant.
create table search_words (
  word text primary key,
  listings integer not null default 1
);
create index search_words_prefix on search_words (word text_pattern_ops);
create index search_words_similar on search_words using gin (word gin_trgm_ops);
