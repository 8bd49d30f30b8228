-- Version 3
-- Copies the score card of the released version into the rows that lists filter and sort by, and that facets count. Runs in
-- the transaction that completes an evaluation, and in each that changes a product.
create or replace function refresh_product_scores(product uuid) returns void language plpgsql as $$
declare
  evaluation uuid;
  best double precision;
  models text[];
begin
  -- A release and the end of an evaluation at the same time: the second one sees what the first one wrote.
  perform from products where id = product for no key update;
  select e.id into evaluation
    from products p
    join product_versions v on v.product_id = p.id and v.numbers = p.released
    join evaluations e on e.product_id = p.id and e.version = v.version and e.status = 'completed'
                      and e.definition_sha256 = definition_hash(v.content, v.content_format, v.variables)
   where p.id = product
   order by e.id desc limit 1;
  -- The scores of an evaluation never change.
  if evaluation is not distinct from (select s.evaluation_id from product_scores s where s.product_id = product limit 1) then
    return;
  end if;
  delete from product_scores s where s.product_id = product;
  insert into product_scores (product_id, name, evaluation_id, low, score)
  select distinct on (name) product, name, evaluation, (m.rate ->> 'low')::float8,
         json_build_object('provider', m.provider, 'model', m.model, 'isSandbox', m."isSandbox", 'passed', m.passed,
                           'n', m.n, 'rate', m.rate, 'medianCost', m."medianCost", 'baseline',
                           case when m.baseline is not null then json_build_object('passed', m.baseline -> 'passed',
                             'n', m.baseline -> 'n', 'rate', m.baseline -> 'rate') end)
    from evaluations e
   cross join json_to_recordset(e.scores)
         as m (provider text, model text, "isSandbox" boolean, passed integer, n integer, rate json, baseline json,
               "medianCost" double precision)
   cross join unnest(array['', lower(m.provider || '/' || m.model), lower(m.model)]) name
   where e.id = evaluation and m.rate is not null and name is not null
   order by name, (m.rate ->> 'low')::float8 desc, m.provider, m.model;
  select s.low into best from product_scores s where s.product_id = product and s.name = '';
  models := array(
    select distinct lower(m.provider || '/' || m.model)
      from evaluations e
     cross join json_to_recordset(e.scores) as m (provider text, model text, rate json)
     where e.id = evaluation and m.rate is not null and m.provider || m.model is not null
     order by 1);
  -- The document before the listing, as a sale does, so that neither waits for the other.
  update search_documents d set pass_band = stoa_pass_band(best), tested_on = nullif(models, '{}') where d.product_id = product;
  update listings l set low = best, tested_on = models where l.product_id = product;
end $$;
