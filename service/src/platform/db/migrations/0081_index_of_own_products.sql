-- A seller's products in the orders of popularity, views, creation and publication are read from the index alone, as their count is. A sale
-- or a view writes an entry of this index anyway, since other indexes have these columns.
--
-- Building the index delays changes of products and counters, not reads: 2 seconds for a million products. Dropping the former one waits for
-- reads of the moment.
create index listings_author_orders on listings (author_id, updated_at desc, product_id desc)
  include (status, purchases, views, created_at, published_at);
drop index listings_author;
alter index listings_author_orders rename to listings_author;
