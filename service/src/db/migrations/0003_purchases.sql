create table orders (
  id uuid primary key,
  buyer_id uuid not null references users,
  seller_id uuid not null references users,
  product_id uuid not null references products,
  -- Copied when bought: a receipt stays as it was, whoever takes another name or closes the account.
  buyer_name text not null,
  buyer_email text not null,
  seller_name text not null,
  -- Copied too: a later change of the product changes no order.
  product_title text not null,
  product_type text not null,
  product_version text not null,
  status text not null check (status in ('pending', 'requires_action', 'completed', 'failed', 'canceled',
    'partially_refunded', 'refunded', 'disputed')),
  subtotal_minor bigint not null,
  discount_minor bigint not null default 0,
  tax_minor bigint not null default 0,
  total_minor bigint not null,
  refunded_minor bigint not null default 0,
  fee_minor bigint not null,
  currency text not null,
  refund_days smallint not null,
  payment_method_id text not null,
  payment_method jsonb,
  payment_id text,
  decline_code text,
  action_url text,
  created_at timestamptz not null,
  -- When the provider was last asked to charge: silence is counted from here.
  asked_at timestamptz,
  completed_at timestamptz,
  check (total_minor = subtotal_minor - discount_minor + tax_minor),
  check (refunded_minor between 0 and total_minor)
);
create index orders_buyer on orders (buyer_id, id desc);
create index orders_open on orders (created_at) where status in ('pending', 'requires_action');
-- Two parallel purchases of one product by one buyer cannot both go on.
create unique index orders_one_open on orders (buyer_id, product_id) where status in ('pending', 'requires_action');

create table entitlements (
  buyer_id uuid not null references users,
  product_id uuid not null references products,
  order_id uuid not null references orders,
  -- The major line that was bought: the buyer runs its newest version.
  major integer not null,
  status text not null check (status in ('active', 'revoked')),
  -- Set by the first reveal, download or run, which ends the refund without questions.
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (order_id)
);
create unique index entitlements_active on entitlements (buyer_id, product_id) where status = 'active';
