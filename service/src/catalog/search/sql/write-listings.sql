-- Writes the listings and search documents of products, in order of id to avoid deadlocks. The counters come from the locked rows of
-- product_stats, so that a concurrent sale is never lost. It inserts words that are missing: one that only drafts had gets a row with
-- `listings` = 1 when a product is published. A plan for few products serves for many, because each row is found by its key.
with given as (
  select l.*, c.section, s.purchases, s.views, s.rating_mean, s.rating_score, s.trending
    from (select *
            from json_to_recordset(:listings::json) as l (
                 id uuid, "authorId" uuid, status text, type text, category text, lang text, currency text, "priceMinor" integer,
                 compatibility text[], tags text[], title text, "createdAt" timestamptz, "updatedAt" timestamptz,
                 "publishedAt" timestamptz, search text)
           order by id offset 0) l
   cross join lateral (
     select purchases, views, rating_mean, rating_score, trending from product_stats where product_id = l.id for update) s
    left join lateral (select coalesce(parent, slug) as section from categories where slug = l.category limit 1) c on true),
listed as (
  insert into listings (product_id, author_id, status, type, category, section, lang, currency, price_minor,
                        compatibility, tags, title, created_at, updated_at, published_at, purchases, views,
                        rating_mean, rating_score, trending)
  select id, "authorId", status, type, category, section, lang, currency, "priceMinor", compatibility, tags, title, "createdAt",
         "updatedAt", "publishedAt", purchases, views, rating_mean, rating_score, trending
    from given order by id
  on conflict (product_id) do update set
         status = excluded.status, type = excluded.type, category = excluded.category, section = excluded.section, lang = excluded.lang,
         currency = excluded.currency, price_minor = excluded.price_minor, compatibility = excluded.compatibility,
         tags = excluded.tags, title = excluded.title, updated_at = excluded.updated_at,
         published_at = excluded.published_at, purchases = excluded.purchases, views = excluded.views,
         rating_mean = excluded.rating_mean, rating_score = excluded.rating_score, trending = excluded.trending
  returning product_id),
documented as (
  insert into search_documents (product_id, published, purchases, type, section, category, lang, currency, price_minor,
                                rating_band, compatibility, tags, search)
  select g.id, g.status = 'published', g.purchases, g.type, g.section, g.category, g.lang, g.currency, g."priceMinor",
         stoa_rating_band(g.rating_mean), g.compatibility, g.tags, g.search::tsvector
    from given g join listed l on l.product_id = g.id order by g.id
  on conflict (product_id) do update set
         published = excluded.published, purchases = excluded.purchases, type = excluded.type, section = excluded.section,
         category = excluded.category, lang = excluded.lang, currency = excluded.currency,
         price_minor = excluded.price_minor, rating_band = excluded.rating_band, compatibility = excluded.compatibility,
         tags = excluded.tags, search = excluded.search)
insert into search_words (word, listings)
select w.word, w.listings
  from unnest(:words::text[], :wordListings::integer[]) as w (word, listings)
 where not exists (select from search_words s where s.word = w.word and s.listings >= w.listings offset 0)
