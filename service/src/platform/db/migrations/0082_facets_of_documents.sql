-- Documents have every column that facets count, so that the facets of a search read no listing: docs/decisions/0102-facets-of-documents.md.
-- A new table instead of an update of each row, which would write each of nine word indexes and double the table. The columns that
-- searches read are before the words, which take most of a row. Until the new table replaces the old one, searches go on; writers wait.
-- A weaker lock admits `for no key update`, so that a statement with its row locks would wait for this transaction, which waits for
-- these when it drops the table.
lock table listings, search_documents in exclusive mode;
create table search_documents_new (
  product_id uuid not null,
  published boolean not null,
  purchases bigint not null,
  type text not null,
  section text,
  category text,
  lang text,
  currency text not null,
  price_minor integer not null,
  -- stoa_rating_band() and stoa_pass_band(): most reviews change the mean alone, and write no document.
  rating_band smallint not null default 0,
  pass_band smallint,
  compatibility text[] not null,
  tags text[] not null default '{}',
  -- Null instead of an empty array, which would take 16 bytes of each row.
  tested_on text[],
  search tsvector not null,
  reach smallint generated always as (
    case when published then width_bucket(purchases, array[1, 3, 10, 30, 100, 300, 1000, 3000]::bigint[]) end) stored
);
-- In the order of the old rows: samples of facets come in this order.
insert into search_documents_new (product_id, published, purchases, type, section, category, lang, currency, price_minor, rating_band,
                                  pass_band, compatibility, tags, tested_on, search)
select d.product_id, d.published, d.purchases, d.type, d.section, d.category, d.lang, d.currency, d.price_minor,
       stoa_rating_band(l.rating_mean), stoa_pass_band(l.low), d.compatibility, l.tags, nullif(l.tested_on, '{}'), d.search
  from search_documents d join listings l on l.product_id = d.product_id
 order by d.ctid;

alter table search_documents_new
  add constraint search_documents_new_pkey primary key (product_id),
  add constraint search_documents_new_product_id_fkey foreign key (product_id) references listings on delete cascade;
create index search_documents_new_0 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 0;
create index search_documents_new_1 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 1;
create index search_documents_new_2 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 2;
create index search_documents_new_3 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 3;
create index search_documents_new_4 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 4;
create index search_documents_new_5 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 5;
create index search_documents_new_6 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 6;
create index search_documents_new_7 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 7;
create index search_documents_new_8 on search_documents_new using gin (search, section, category, type, compatibility) where reach = 8;
-- An empty table stays without statistics: PostgreSQL then expects some rows, and plans for them.
do $$ begin
  if exists (select from search_documents_new) then analyze search_documents_new; end if;
end $$;

drop table search_documents;
alter table search_documents_new rename to search_documents;
alter table search_documents rename constraint search_documents_new_pkey to search_documents_pkey;
alter table search_documents rename constraint search_documents_new_product_id_fkey to search_documents_product_id_fkey;
alter index search_documents_new_0 rename to search_documents_0;
alter index search_documents_new_1 rename to search_documents_1;
alter index search_documents_new_2 rename to search_documents_2;
alter index search_documents_new_3 rename to search_documents_3;
alter index search_documents_new_4 rename to search_documents_4;
alter index search_documents_new_5 rename to search_documents_5;
alter index search_documents_new_6 rename to search_documents_6;
alter index search_documents_new_7 rename to search_documents_7;
alter index search_documents_new_8 rename to search_documents_8;
