create extension if not exists pg_trgm;
create extension if not exists btree_gin;
create extension if not exists fuzzystrmatch;

-- The read model of lists and searches: every product, narrow, with what is filtered and sorted by.
-- What a page shows comes from products.card and product_stats; what it is found by stands here.
create table listings (
  product_id uuid primary key references products,
  author_id uuid not null,
  status text not null,
  type text not null,
  category text,
  -- The top-level category that it is in.
  section text,
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
  trending double precision not null
);
create index listings_author on listings (author_id, product_id);
-- What is included lets PostgreSQL filter while it walks an order, without a look at the table.
create index listings_popularity on listings (purchases desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_published on listings (published_at desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_price on listings (currency, price_minor, product_id)
  include (type, lang, compatibility, rating_mean) where status = 'published';
create index listings_created on listings (created_at desc, product_id desc) where status = 'published';
create index listings_updated on listings (updated_at desc, product_id desc) where status = 'published';
create index listings_views on listings (views desc, product_id desc) where status = 'published';
create index listings_rating on listings (rating_score desc, product_id desc) where status = 'published';
create index listings_trending on listings (trending desc, product_id desc) where status = 'published';
create index listings_title on listings (title, product_id) where status = 'published';
create index listings_section on listings (section, purchases desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_section_published on listings (section, published_at desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_section_price on listings (section, currency, price_minor, product_id)
  include (type, lang, compatibility, rating_mean) where status = 'published';
create index listings_category on listings (category, purchases desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_category_published on listings (category, published_at desc, product_id desc)
  include (type, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
create index listings_category_price on listings (category, currency, price_minor, product_id)
  include (type, lang, compatibility, rating_mean) where status = 'published';
create index listings_tags on listings using gin (tags) where status = 'published';
create index listings_compatibility on listings using gin (compatibility) where status = 'published';

-- The words of listings, apart from them: a sale moves no index of words as long as its reach stays.
create table search_documents (
  product_id uuid primary key references listings on delete cascade,
  published boolean not null,
  -- Of product_stats, by the sale itself.
  purchases bigint not null,
  -- From here to compatibility as in listings: the filters that searches use most, so that a search with one of them reads no listing per
  -- match (docs/decisions/0088-filters-of-search-documents.md).
  type text not null,
  section text,
  category text,
  lang text,
  currency text not null,
  price_minor integer not null,
  compatibility text[] not null,
  -- Made by catalog/search/search-terms.ts, which also makes the queries.
  search tsvector not null,
  -- How often it was bought, in steps of about three; null where it is not for sale. Each step has an index of its own, so
  -- that the most bought matches of a common word are found without looking at all of them: catalog/search/matches.ts.
  reach smallint generated always as (
    case when published then width_bucket(purchases, array[1, 3, 10, 30, 100, 300, 1000, 3000]::bigint[]) end) stored
);
create index search_documents_0 on search_documents using gin (search, section, category, type, compatibility) where reach = 0;
create index search_documents_1 on search_documents using gin (search, section, category, type, compatibility) where reach = 1;
create index search_documents_2 on search_documents using gin (search, section, category, type, compatibility) where reach = 2;
create index search_documents_3 on search_documents using gin (search, section, category, type, compatibility) where reach = 3;
create index search_documents_4 on search_documents using gin (search, section, category, type, compatibility) where reach = 4;
create index search_documents_5 on search_documents using gin (search, section, category, type, compatibility) where reach = 5;
create index search_documents_6 on search_documents using gin (search, section, category, type, compatibility) where reach = 6;
create index search_documents_7 on search_documents using gin (search, section, category, type, compatibility) where reach = 7;
create index search_documents_8 on search_documents using gin (search, section, category, type, compatibility) where reach = 8;

-- Words that listings hold, to tell what begins with a word, and to guess what a mistyped one meant. Not unique: of two
-- transactions with the same new words one would wait for the other, or each for the other. The night leaves one of each.
create table search_words (
  word text not null,
  -- How many that are for sale hold it, by a sample; 0: none that is known.
  listings integer not null default 1
);
create index search_words_prefix on search_words (word text_pattern_ops);
create index search_words_similar on search_words using gin (word gin_trgm_ops);

-- How many published products share what the facets count by: added up over the rows of one cell. Every change of a
-- listing adds rows and rewrites none, so that no two changes wait for each other; a job compacts them (catalog/search/search-maintenance.ts).
create table facet_counts (
  -- Null: all products of the cell; else those that run with it. A set of providers here would make as many cells as there are sets.
  provider text,
  type text not null,
  category text,
  currency text not null,
  price_band smallint not null,
  rating_band smallint not null,
  products bigint not null,
  compacted boolean not null default false
);
create index facet_counts_provider on facet_counts (provider, category);
create unique index facet_counts_compacted on facet_counts (provider, type, category, currency, price_band, rating_band)
  nulls not distinct where compacted;
create index facet_counts_uncompacted on facet_counts (compacted) where not compacted;

create table tag_counts (
  tag text not null,
  products bigint not null,
  compacted boolean not null default false
);
create index tag_counts_tag on tag_counts (tag text_pattern_ops);
create unique index tag_counts_compacted on tag_counts (tag) where compacted;
create index tag_counts_uncompacted on tag_counts (compacted) where not compacted;

-- Below 5.00, 10.00, 20.00, 50.00, 100.00 of a currency with cents: round prices of those without or with mils, too.
create function stoa_price_band(price_minor integer) returns smallint language sql immutable parallel safe
  return width_bucket(price_minor, array[500, 1000, 2000, 5000, 10000])::smallint;

-- 0 below one star, then up to 2, 3, 4 and 4.5, and 5 above.
create function stoa_rating_band(rating_mean float8) returns smallint language sql immutable parallel safe
  return width_bucket(rating_mean, array[1, 2, 3, 4, 4.5]::float8[])::smallint;

create function stoa_count_listing(listing listings, way bigint) returns void language plpgsql as $$
begin
  if listing.status <> 'published' then return; end if;
  insert into facet_counts (provider, type, category, currency, price_band, rating_band, products)
  select provider, listing.type, listing.category, listing.currency, stoa_price_band(listing.price_minor),
         stoa_rating_band(listing.rating_mean), way
    from unnest(null::text || listing.compatibility) provider;
  insert into tag_counts (tag, products) select unnest(listing.tags), way;
end $$;

create function stoa_listing_counted() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then perform stoa_count_listing(old, -1); end if;
  if tg_op <> 'DELETE' then perform stoa_count_listing(new, 1); end if;
  return null;
end $$;
create trigger listings_counted after insert or delete on listings
  for each row execute function stoa_listing_counted();
create trigger listings_counted_again after update on listings
  for each row when (
    (old.status, old.type, old.category, old.compatibility, old.currency, old.tags,
     stoa_price_band(old.price_minor), stoa_rating_band(old.rating_mean))
    is distinct from
    (new.status, new.type, new.category, new.compatibility, new.currency, new.tags,
     stoa_price_band(new.price_minor), stoa_rating_band(new.rating_mean)))
  execute function stoa_listing_counted();
