-- The fake payment provider's own books. In a schema of its own because the marketplace must treat it as another
-- company's database: it is reached over HTTP only, and no query or foreign key crosses over.
create schema fake_provider;

create table fake_provider.charges (
  id text primary key,
  -- The idempotency key: of two charges for one order that arrive at once, this lets one in.
  order_id text not null unique,
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  method_id text not null,
  description text not null,
  state text not null check (state in ('succeeded', 'declined', 'requires_action', 'canceled')),
  decline_code text check ((state = 'declined') = (decline_code is not null)),
  created_at timestamptz not null
);
