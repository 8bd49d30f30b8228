-- The facet of categories counts the most bought products of other filters from the index alone.
drop index listings_popularity;
create index listings_popularity on listings (purchases desc, product_id desc)
  include (type, category, lang, compatibility, currency, price_minor, rating_mean) where status = 'published';
