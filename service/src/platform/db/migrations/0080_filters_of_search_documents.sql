-- Search documents get the filters that searches use most, so that a search with one of them reads no listing per match. Words, category,
-- type and providers are in the index: a search for workflows, one product in twenty, reads the documents of workflows alone.
--
-- Writes the table anew, since an update of every row would leave it and its nine indexes twice as large. Until it commits, searches, sales
-- and changes of products wait, since it locks search_documents against reads and listings against writes: about a second for 10,000
-- products, and 75 to 110 seconds for a million on two cores, with 2 GB of disk beside the former table.
set local statement_timeout = 0;
set local maintenance_work_mem = '256MB';

alter table search_documents rename to former_search_documents;
alter table former_search_documents drop constraint search_documents_pkey;
drop index search_documents_0, search_documents_1, search_documents_2, search_documents_3, search_documents_4, search_documents_5,
           search_documents_6, search_documents_7, search_documents_8;

create table search_documents (
  product_id uuid primary key references listings on delete cascade,
  published boolean not null,
  -- Of product_stats, by the sale itself.
  purchases bigint not null,
  -- From here to compatibility as in listings. The defaults are for the insert of an earlier version, see below.
  type text not null default '',
  section text,
  category text,
  lang text,
  currency text not null default '',
  price_minor integer not null default 0,
  compatibility text[] not null default '{}',
  -- Made by catalog/search/search-terms.ts, which also makes the queries.
  search tsvector not null,
  -- How often it was bought, in steps of about three; null where it is not for sale. Each step has an index of its own, so
  -- that the most bought matches of a common word are found without looking at all of them: catalog/search/matches.ts.
  reach smallint generated always as (
    case when published then width_bucket(purchases, array[1, 3, 10, 30, 100, 300, 1000, 3000]::bigint[]) end) stored
);
insert into search_documents (product_id, published, purchases, type, section, category, lang, currency, price_minor, compatibility, search)
select product_id, d.published, d.purchases, l.type, d.section, d.category, l.lang, l.currency, l.price_minor, l.compatibility, d.search
  from former_search_documents d join listings l using (product_id);
drop table former_search_documents;

create index search_documents_0 on search_documents using gin (search, section, category, type, compatibility) where reach = 0;
create index search_documents_1 on search_documents using gin (search, section, category, type, compatibility) where reach = 1;
create index search_documents_2 on search_documents using gin (search, section, category, type, compatibility) where reach = 2;
create index search_documents_3 on search_documents using gin (search, section, category, type, compatibility) where reach = 3;
create index search_documents_4 on search_documents using gin (search, section, category, type, compatibility) where reach = 4;
create index search_documents_5 on search_documents using gin (search, section, category, type, compatibility) where reach = 5;
create index search_documents_6 on search_documents using gin (search, section, category, type, compatibility) where reach = 6;
create index search_documents_7 on search_documents using gin (search, section, category, type, compatibility) where reach = 7;
create index search_documents_8 on search_documents using gin (search, section, category, type, compatibility) where reach = 8;
analyze search_documents;

-- A process of an earlier version, which may run beside this one, writes the listing and not these columns.
create function stoa_copy_filters() returns trigger language plpgsql as $$
begin
  update search_documents d
     set type = new.type, lang = new.lang, currency = new.currency, price_minor = new.price_minor, compatibility = new.compatibility
   where d.product_id = new.product_id
     and (d.type, d.lang, d.currency, d.price_minor, d.compatibility)
         is distinct from (new.type, new.lang, new.currency, new.price_minor, new.compatibility);
  return null;
end $$;
create trigger listings_inserted_filters after insert on listings for each row execute function stoa_copy_filters();
create trigger listings_changed_filters after update on listings
  for each row when (
    (old.type, old.lang, old.currency, old.price_minor, old.compatibility)
    is distinct from (new.type, new.lang, new.currency, new.price_minor, new.compatibility))
  execute function stoa_copy_filters();
