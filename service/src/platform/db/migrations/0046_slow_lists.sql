-- A seller's products are counted by status from the index alone: their rows are wide, and one seller can have tens of thousands.
drop index products_author;
create index products_author on products (author_id, id) include (status);

-- The studio lists a seller's products by their last change, popularity, views, creation and publication, and counts them, from the index
-- alone. A sale or a view writes an entry of this index anyway, since other indexes have these columns.
drop index listings_author;
create index listings_author on listings (author_id, updated_at desc, product_id desc)
  include (status, purchases, views, created_at, published_at);

-- The runs of a product since some time, by whom, and how they ended, from the index alone.
drop index executions_product;
create index executions_product on executions (product_id, created_at) include (user_id, status);

-- All orders are counted by status for administrators, and those of a seller.
drop index orders_seller;
create index orders_seller on orders (seller_id, id desc) include (status);

-- Purchases between two times, with what became of them, beside each seller's customers: docs/decisions/0037-counting-customers.md.
drop index orders_customers;
create index orders_customers on orders (seller_id, currency, buyer_id, completed_at)
  include (total_minor, tax_minor, product_id, refunded_minor)
  where completed_at is not null;
