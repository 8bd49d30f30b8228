create table payouts (
  id uuid primary key,
  seller_id uuid not null references users,
  status text not null check (status in ('pending', 'in_transit', 'completed', 'failed', 'returned')),
  amount_minor bigint not null check (amount_minor > 0),
  -- What of it was drawn from commissions: given back to where it came from.
  commission_minor bigint not null check (commission_minor between 0 and amount_minor),
  currency text not null,
  -- The seller's account at the provider, as it was when the payout was made: asked again, it is the same question.
  destination text not null,
  -- Days (UTC): from the one after the last payout's end, or of the first entry, to the last on which matured what it pays.
  period_start date not null,
  period_end date not null,
  -- The day of the schedule that created it; null: the seller requested it.
  scheduled_for date,
  provider_payout_id text,
  failure_code text,
  -- Why the provider cannot pay it yet, through no fault of the seller's, such as 'balance_insufficient'; null: nothing is known of that.
  waits_for text,
  -- What of a completed one the provider took back without taking back all: booked nowhere, for the operator to see to.
  reversed_minor bigint not null default 0 check (reversed_minor between 0 and amount_minor),
  -- When the provider was last asked.
  asked_at timestamptz,
  created_at timestamptz not null,
  completed_at timestamptz
);
create index payouts_seller on payouts (seller_id, id desc);
create unique index payouts_one_open on payouts (seller_id, currency) where status in ('pending', 'in_transit');
create unique index payouts_one_per_schedule_day on payouts (seller_id, currency, scheduled_for) where scheduled_for is not null;
-- Where somebody who left hears of what is still paid to them; gone when nothing is left to be told.
create table closed_account_emails (
  user_id uuid primary key references users,
  email text not null
);
create index payouts_open on payouts (created_at) where status in ('pending', 'in_transit');
create index payouts_reversed on payouts (completed_at) where reversed_minor > 0;
-- A bank may send back what was paid.
create index payouts_returnable on payouts (completed_at) where status = 'completed';
