-- What is paid for: at most one row an account, none while it has a plan that costs nothing or that an operator gave it.
-- users.plan says which plan holds; a row of another plan is asleep until its plan holds again.
create table subscriptions (
  user_id uuid primary key references users on delete cascade,
  plan text not null check (plan in ('free', 'pro', 'business', 'enterprise')),
  -- A whole month's price when the period began: what is unused of it counts towards an upgrade.
  price_minor bigint not null check (price_minor > 0),
  currency text not null,
  payment_method_id text not null,
  period_start timestamptz not null,
  period_end timestamptz not null,
  -- The day of the month on which periods begin, where the month has it.
  anchor_day smallint not null check (anchor_day between 1 and 31),
  -- How often the next period could not be paid, and when it is asked for: at first when this one ends.
  tries smallint not null default 0,
  next_try_at timestamptz not null,
  -- Takes the plan's place at the period's end; null: the plan goes on.
  next_plan text check (next_plan in ('free', 'pro', 'business', 'enterprise')),
  check (period_start < period_end)
);
create index subscriptions_due on subscriptions (period_end);
create index subscriptions_to_renew on subscriptions (next_try_at);

-- Every attempt to pay for a plan; the provider knows it by this id.
create table subscription_payments (
  id uuid primary key,
  user_id uuid not null references users,
  -- Copied when asked for: a receipt stays as it was, whoever takes another name or closes the account.
  buyer_name text not null,
  buyer_email text not null,
  plan text not null check (plan in ('free', 'pro', 'business', 'enterprise')),
  -- A whole month's price, and what was unused of the period before.
  price_minor bigint not null,
  credit_minor bigint not null default 0,
  tax_minor bigint not null default 0,
  tax_basis_points integer not null default 0,
  -- Whether the price holds the tax already.
  tax_inclusive boolean not null default false,
  tax_country text,
  -- What is charged.
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  payment_method_id text not null,
  -- Where the period begins that it renews the plan for; null: the plan begins when it is paid.
  renews_from timestamptz,
  -- Whether they were there to confirm what their bank asks: asked again, it is the same question.
  owner_present boolean not null,
  status text not null check (status in ('pending', 'requires_action', 'completed', 'failed', 'canceled')),
  payment_method jsonb,
  payment_id text,
  -- What the provider took in the place of the amount, such as '1899 USD' in minor units: for the operator to compare.
  mismatch text,
  -- What the provider took late, when the plan was not to be had by it any more: for the operator to give back; null: nothing, or it
  -- was given back.
  unusable_payment_id text,
  decline_code text,
  action_url text,
  created_at timestamptz not null,
  -- When the provider was last asked to charge: silence is counted from here. Of a canceled one, when it was last asked about.
  asked_at timestamptz,
  settled_at timestamptz,
  -- The month that it paid for.
  period_start timestamptz,
  period_end timestamptz,
  -- What the payment provider kept for itself; null until it says.
  processor_fee_minor bigint,
  -- Counted from 1 in each year (UTC) of the whole marketplace, which sells its plans itself, without gaps; taken when it is completed.
  receipt_year smallint,
  receipt_number integer,
  check (amount_minor = price_minor - credit_minor + case when tax_inclusive then 0 else tax_minor end),
  check (least(credit_minor, tax_minor) >= 0),
  check ((receipt_number is not null) = (status = 'completed')),
  check (num_nulls(receipt_year, receipt_number, period_start, period_end) in (0, 4)),
  unique (receipt_year, receipt_number)
);

-- The last number of a year.
create table subscription_receipt_counters (
  year smallint primary key,
  last integer not null
);

create index subscription_payments_user on subscription_payments (user_id, id desc);
create index subscription_payments_canceled on subscription_payments (created_at) where status = 'canceled';
create index subscription_payments_open on subscription_payments (created_at) where status in ('pending', 'requires_action');
create index subscription_payments_mismatched on subscription_payments (created_at) where mismatch is not null;
create index subscription_payments_unusable on subscription_payments (created_at) where unusable_payment_id is not null;
-- No period is paid twice.
create unique index subscription_payments_once on subscription_payments (user_id, renews_from)
  where status in ('pending', 'requires_action', 'completed');
-- Two parallel upgrades of one account cannot both be charged.
create unique index subscription_payments_one_open on subscription_payments (user_id) where status in ('pending', 'requires_action');

-- What a bank takes back of a payment for a plan; the provider reports it. Nothing is held: the money is the marketplace's own.
create table subscription_disputes (
  id uuid primary key,
  payment_id uuid not null references subscription_payments,
  provider_dispute_id text not null unique,
  status text not null check (status in ('inquiry', 'inquiry_closed', 'open', 'won', 'lost')),
  amount_minor bigint not null check (amount_minor > 0),
  -- What the bank took in the end; null unless the dispute is lost.
  lost_minor bigint check (lost_minor > 0),
  -- What of that others had taken of the payment before.
  excess_minor bigint not null default 0 check (excess_minor >= 0),
  fee_minor bigint not null default 0,
  reason text not null,
  -- Until when the bank hears the other side; null: not known.
  answer_by timestamptz,
  opened_at timestamptz not null,
  closed_at timestamptz,
  check ((closed_at is null) = (status in ('inquiry', 'open'))),
  check ((lost_minor is not null) = (status = 'lost')),
  check (excess_minor <= coalesce(lost_minor, 0))
);
create index subscription_disputes_payment on subscription_disputes (payment_id);
create index subscription_disputes_open on subscription_disputes (opened_at) where status in ('inquiry', 'open');
create index subscription_disputes_lost on subscription_disputes (closed_at) where status = 'lost';
