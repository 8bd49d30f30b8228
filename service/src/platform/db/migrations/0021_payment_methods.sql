-- How somebody pays; what the provider needs for it stays with the provider.
create table payment_methods (
  -- The provider's own id, such as pm_1Nv0FGQ9RKHgCVdK.
  id text primary key,
  user_id uuid not null references users,
  brand text not null,
  last4 text not null,
  created_at timestamptz not null
);
create index payment_methods_user on payment_methods (user_id, created_at desc, id desc);

-- Which method pays when a person names none, and where their payouts go.
create table payment_customers (
  user_id uuid primary key references users,
  default_method_id text,
  -- Where payouts go; null: nowhere yet.
  payout_account_id text
);

create trigger open_account before insert on payment_methods
  for each row execute function must_not_be_closed('user_id');
create trigger open_account before insert on payment_customers
  for each row execute function must_not_be_closed('user_id');
