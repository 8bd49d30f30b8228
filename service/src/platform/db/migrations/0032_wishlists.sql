create table wishlist_entries (
  user_id uuid not null references users on delete cascade,
  product_id uuid not null references products on delete cascade,
  added_at timestamptz not null,
  primary key (user_id, product_id)
);
create index wishlist_entries_newest on wishlist_entries (user_id, added_at desc, product_id desc);
create index wishlist_entries_product on wishlist_entries (product_id);
create trigger open_account before insert on wishlist_entries
  for each row execute function must_not_be_closed('user_id');
