-- What the score card of each product's released version says, by the name under which lists filter: "provider/model", the
-- model alone, and '' for the best of them. catalog/search/sql/functions/refresh_product_scores.sql writes it.
create table product_scores (
  product_id uuid not null references products on delete cascade,
  -- In lower case.
  name text not null,
  evaluation_id uuid not null references evaluations on delete cascade,
  -- The lower bound of the pass rate's 95 % interval.
  low double precision not null,
  -- What a list item shows.
  score json not null,
  primary key (product_id, name)
);
create index product_scores_low on product_scores (name, low desc nulls last, product_id desc);
create index product_scores_evaluation on product_scores (evaluation_id);

-- The lower bound of the best model; null: not measured. And its models as "provider/model".
alter table listings add column low double precision;
alter table listings add column tested_on text[] not null default '{}';
create index listings_low on listings (low desc nulls last, product_id desc) where status = 'published';

-- How many published products were tested on a model, and have a band of pass rates. Rows as in tag_counts.
create table score_counts (
  -- Null in rows of a band.
  model text,
  -- Null in rows of a model.
  pass_band smallint,
  products bigint not null,
  compacted boolean not null default false
);
create unique index score_counts_compacted on score_counts (model, pass_band) nulls not distinct where compacted;
create index score_counts_uncompacted on score_counts (compacted) where not compacted;

-- From 50, 70 and 85 %.
create function stoa_pass_band(low float8) returns smallint language sql immutable parallel safe
  return width_bucket(low, array[0.5, 0.7, 0.85]::float8[])::smallint;

create or replace function stoa_count_listing(listing listings, way bigint) returns void language plpgsql as $$
begin
  if listing.status <> 'published' then return; end if;
  insert into facet_counts (provider, type, category, currency, price_band, rating_band, products)
  select provider, listing.type, listing.category, listing.currency, stoa_price_band(listing.price_minor),
         stoa_rating_band(listing.rating_mean), way
    from unnest(null::text || listing.compatibility) provider;
  insert into tag_counts (tag, products) select unnest(listing.tags), way;
  if listing.low is null then return; end if;
  insert into score_counts (model, products) select unnest(listing.tested_on), way;
  insert into score_counts (pass_band, products) values (stoa_pass_band(listing.low), way);
end $$;

drop trigger listings_counted_again on listings;
create trigger listings_counted_again after update on listings
  for each row when (
    (old.status, old.type, old.category, old.compatibility, old.currency, old.tags,
     stoa_price_band(old.price_minor), stoa_rating_band(old.rating_mean), old.low, old.tested_on)
    is distinct from
    (new.status, new.type, new.category, new.compatibility, new.currency, new.tags,
     stoa_price_band(new.price_minor), stoa_rating_band(new.rating_mean), new.low, new.tested_on))
  execute function stoa_listing_counted();

-- Evaluations that completed before: the same as the function does for one product.
insert into product_scores (product_id, name, evaluation_id, low, score)
select distinct on (card.product_id, scored.name) card.product_id, scored.name, card.id, scored.low, scored.score
  from (select distinct on (e.product_id) e.id, e.product_id, e.scores
          from products p
          join product_versions v on v.product_id = p.id and v.numbers = p.released
          join evaluations e on e.product_id = p.id and e.version = v.version and e.status = 'completed'
                            and e.content_sha256 = encode(sha256(convert_to(v.content, 'UTF8')), 'hex')
         order by e.product_id, e.id desc) card
 cross join lateral (
   select name, m.provider, m.model, (m.rate ->> 'low')::float8 as low,
          json_build_object('provider', m.provider, 'model', m.model, 'isSandbox', m."isSandbox", 'passed', m.passed,
                            'n', m.n, 'rate', m.rate, 'medianCost', m."medianCost", 'baseline',
                            case when m.baseline is not null then json_build_object('passed', m.baseline -> 'passed',
                              'n', m.baseline -> 'n', 'rate', m.baseline -> 'rate') end) as score
     from json_to_recordset(card.scores)
          as m (provider text, model text, "isSandbox" boolean, passed integer, n integer, rate json, baseline json,
                "medianCost" double precision)
    cross join unnest(array['', lower(m.provider || '/' || m.model), lower(m.model)]) name
    where m.rate is not null and name is not null) scored
 order by card.product_id, scored.name, scored.low desc, scored.provider, scored.model;

update listings l
   set low = best.low,
       tested_on = array(
         select distinct lower(m.provider || '/' || m.model)
           from evaluations e
          cross join json_to_recordset(e.scores) as m (provider text, model text, rate json)
          where e.id = best.evaluation_id and m.rate is not null and m.provider || m.model is not null
          order by 1)
  from product_scores best
 where best.product_id = l.product_id and best.name = '';
