-- The tables of the fake payment provider. They have their own schema because the marketplace treats them as another
-- company's database: it is reached over HTTP only, and no query or foreign key crosses over.
create schema fake_provider;

create table fake_provider.charges (
  id text primary key,
  -- The idempotency key: of two charges for one order that arrive at once, this lets one in.
  order_id text not null unique,
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  customer_id text not null,
  method_id text not null,
  description text not null,
  state text not null check (state in ('succeeded', 'declined', 'requires_action', 'canceled')),
  decline_code text check ((state = 'declined') = (decline_code is not null)),
  created_at timestamptz not null
);

create table fake_provider.refunds (
  id text primary key,
  -- The idempotency key.
  refund_id text not null unique,
  charge_id text not null references fake_provider.charges,
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  state text not null check (state in ('processing', 'succeeded', 'failed')),
  failure_code text check ((state = 'failed') = (failure_code is not null)),
  created_at timestamptz not null
);
create index refunds_charge on fake_provider.refunds (charge_id);

create table fake_provider.payouts (
  id text primary key,
  -- The idempotency key.
  payout_id text not null unique,
  destination text not null,
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  state text not null check (state in ('in_transit', 'completed', 'returned', 'failed')),
  failure_code text check ((state = 'failed') = (failure_code is not null)),
  created_at timestamptz not null
);

create table fake_provider.accounts (
  id text primary key,
  owner_id text not null unique,
  state text not null check (state in ('restricted', 'enabled')),
  created_at timestamptz not null
);

create table fake_provider.disputes (
  id text primary key,
  charge_id text not null unique references fake_provider.charges,
  order_id text not null,
  amount_minor bigint not null check (amount_minor > 0),
  fee_minor bigint not null check (fee_minor >= 0),
  currency text not null,
  reason text not null,
  state text not null check (state in ('open', 'won', 'lost')),
  created_at timestamptz not null
);
