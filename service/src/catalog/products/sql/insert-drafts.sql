-- Inserts drafts with their counters and first versions.
with given as (
  select *
    from json_to_recordset(:drafts::json) as d (
         id uuid, "authorId" uuid, title text, description text, lang text, type text, category text, "priceMinor" integer, currency text,
         "commissionBasisPoints" integer, compatibility text[], tags text[], requirements text[], features text[], license text,
         samples json, models jsonb, preview text, images jsonb, card text, "createdAt" timestamptz, version text, numbers integer[],
         content text, "contentFormat" text, variables jsonb, changelog text, "acknowledgesRegression" boolean, files jsonb)),
inserted as (
  insert into products (id, author_id, title, description, lang, type, status, category, price_minor, currency,
                        commission_basis_points, compatibility, tags, requirements, features, license, samples, models, preview,
                        images, version, card, created_at, updated_at, moved_at)
  select id, "authorId", title, description, lang, type, 'draft', category, "priceMinor", currency, "commissionBasisPoints",
         compatibility, tags, requirements, features, license, samples, models, preview, images, version, card, "createdAt",
         "createdAt", "createdAt"
    from given),
counters as (insert into product_stats (product_id) select id from given)
insert into product_versions (product_id, version, numbers, title, description, content, content_format, variables, changelog,
                              acknowledges_regression, files, created_at)
select id, version, numbers, title, description, content, "contentFormat", variables, changelog, "acknowledgesRegression", files,
       "createdAt"
  from given
