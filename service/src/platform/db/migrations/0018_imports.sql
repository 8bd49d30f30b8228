-- What a seller calls a product in their files, so that the same file sent again finds what it made.
create table imported_names (
  author_id uuid not null references users,
  name text not null,
  product_id uuid not null references products,
  primary key (author_id, name)
);
create index imported_names_product on imported_names (product_id);

create trigger open_account before insert on imported_names
  for each row execute function must_not_be_closed('author_id');
