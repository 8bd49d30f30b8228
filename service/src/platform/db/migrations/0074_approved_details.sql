-- The fields beside its version as moderators approved them, or as they were last changed without moderation: the difference
-- that moderators see. JSON as text, as in drafts. null: it was never published, or not on sale since this column exists.
alter table products add column approved_details text;
update products
   set approved_details = json_build_object(
         'category', category, 'lang', lang, 'tags', tags, 'requirements', requirements, 'features', features,
         'license', license, 'compatibility', compatibility, 'models', models, 'preview', preview,
         'priceMinor', price_minor, 'currency', currency, 'samples', samples, 'images', images)::text
 where status = 'published';
