-- What sellers take off their price, by a code.
create table discount_codes (
  id uuid primary key,
  seller_id uuid not null references users,
  -- As the seller wrote it; one of a name, whatever its case.
  code text not null,
  percent_basis_points integer check (percent_basis_points between 0 and 10000),
  amount_off_minor bigint check (amount_off_minor > 0),
  -- Of amount_off_minor; a code of a percentage fits every currency.
  currency text,
  -- Null: all products of the seller.
  product_id uuid references products,
  starts_at timestamptz,
  ends_at timestamptz,
  max_redemptions integer check (max_redemptions > 0),
  max_per_buyer integer check (max_per_buyer > 0),
  -- Orders that hold the code now, open ones too. A purchase takes it below the maximum alone; an order that was given up and was
  -- paid all the same takes it anew, above it if need be.
  redemptions integer not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  check ((percent_basis_points is null) <> (amount_off_minor is null)),
  check ((amount_off_minor is null) = (currency is null)),
  check (redemptions >= 0),
  check (ends_at > starts_at)
);
create unique index discount_codes_code on discount_codes (seller_id, lower(code)) where deleted_at is null;
create index discount_codes_seller on discount_codes (seller_id, id desc) where deleted_at is null;

-- A person's own code, under which others buy.
create table referral_codes (
  user_id uuid primary key references users,
  code text not null unique,
  created_at timestamptz not null
);

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
  -- Of refunds that are approved, and of which nobody knows yet that they succeeded or failed.
  refunding_minor bigint not null default 0,
  -- How the total is parted, when it is bought and for ever: a later change of a rate changes no order.
  fee_minor bigint not null,
  commission_minor bigint not null default 0,
  seller_minor bigint not null,
  fee_basis_points integer not null,
  commission_basis_points integer not null default 0,
  tax_basis_points integer not null default 0,
  -- Whether the price holds the tax already.
  tax_inclusive boolean not null default false,
  tax_country text,
  discount_code_id uuid references discount_codes,
  discount_code text,
  referrer_id uuid references users,
  referral_code text,
  -- What the payment provider kept for itself; null until it says.
  processor_fee_minor bigint,
  currency text not null,
  refund_days smallint not null,
  -- Null: nothing had to be paid.
  payment_method_id text,
  payment_method jsonb,
  payment_id text,
  -- What the provider took in the place of the total, such as '1899 USD' in minor units: for the operator to compare.
  mismatch text,
  decline_code text,
  action_url text,
  created_at timestamptz not null,
  -- When the provider was last asked to charge: silence is counted from here. Of a canceled one, when it was last asked about.
  asked_at timestamptz,
  completed_at timestamptz,
  -- From when the seller may be paid out for it.
  matures_at timestamptz,
  -- Counted from 1 in each of the seller's years (UTC), without gaps; taken when it is completed.
  receipt_year smallint,
  receipt_number integer,
  check (total_minor = subtotal_minor - discount_minor + case when tax_inclusive then 0 else tax_minor end),
  check (total_minor = seller_minor + fee_minor + commission_minor + tax_minor),
  check (least(seller_minor, fee_minor, commission_minor, tax_minor, discount_minor) >= 0),
  check (least(refunded_minor, refunding_minor) >= 0 and refunded_minor + refunding_minor <= total_minor),
  check (commission_minor = 0 or referrer_id is not null),
  check ((completed_at is not null) = (status in ('completed', 'partially_refunded', 'refunded', 'disputed'))),
  check (case status
           when 'disputed' then true
           when 'refunded' then refunded_minor = total_minor and total_minor > 0
           when 'partially_refunded' then refunded_minor > 0 and refunded_minor < total_minor
           else refunded_minor = 0
         end),
  check ((matures_at is null) = (completed_at is null)),
  check (matures_at = completed_at + greatest(7, refund_days) * interval '24 hours'),
  check ((receipt_year is null) = (completed_at is null)),
  check ((receipt_number is null) = (completed_at is null)),
  unique (seller_id, receipt_year, receipt_number)
);
create index orders_seller on orders (seller_id, id desc);
-- Each seller's customers, one after another: docs/decisions/0037-counting-customers.md.
create index orders_customers on orders (seller_id, currency, buyer_id, completed_at) include (total_minor, tax_minor)
  where completed_at is not null;
create index orders_product on orders (product_id, id desc);
-- Few among many: to find them in the others would be to walk through all.
create index orders_otherwise on orders (seller_id, id desc)
  where status in ('failed', 'canceled', 'partially_refunded', 'refunded', 'disputed');

-- An order holds its code unless nothing came of it, or all of it was given back.
create function holds_discount_code(status text) returns boolean language sql immutable as $$
  select status not in ('failed', 'canceled', 'refunded');
$$;

-- However an order ends, and whoever moves it.
create function move_redemptions() returns trigger language plpgsql as $$
declare
  held constant boolean := holds_discount_code(old.status);
  holds constant boolean := tg_op = 'UPDATE' and holds_discount_code(new.status);
begin
  if holds <> held then
    update discount_codes set redemptions = redemptions + case when holds then 1 else -1 end
     where id = old.discount_code_id;
  end if;
  return null;
end $$;

create trigger orders_move_redemptions after delete or update of status on orders
  for each row when (old.discount_code_id is not null) execute function move_redemptions();

create index orders_discount on orders (discount_code_id, buyer_id) where discount_code_id is not null;
create index orders_referrer on orders (referrer_id, id desc) where referrer_id is not null;

-- The last number of a seller's year.
create table receipt_counters (
  seller_id uuid not null references users,
  year smallint not null,
  last integer not null,
  primary key (seller_id, year)
);

create index orders_buyer on orders (buyer_id, id desc);
create index orders_canceled on orders (created_at) where status = 'canceled';
create index orders_open on orders (created_at) where status in ('pending', 'requires_action');
create index orders_mismatched on orders (created_at) where mismatch is not null;
-- Two parallel purchases of one product by one buyer cannot both go on.
create unique index orders_one_open on orders (buyer_id, product_id) where status in ('pending', 'requires_action');

create table entitlements (
  buyer_id uuid not null references users,
  product_id uuid not null references products,
  order_id uuid not null references orders,
  -- The major line that was bought: the buyer runs its newest version.
  major integer not null,
  -- held: the money is on its way back, and until it is known to be there nothing is read, downloaded or run.
  status text not null check (status in ('active', 'held', 'revoked')),
  -- Set by the first reveal, download or run, which ends the refund without questions.
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (order_id)
);
create unique index entitlements_live on entitlements (buyer_id, product_id) where status <> 'revoked';

-- What somebody may run: their own products, and what they bought and moderators left to its buyers. No major: any line.
create view runnable_products as
  select author_id as user_id, id as product_id, null::integer as major
    from products where status <> 'deleted'
  union all
  select e.buyer_id, e.product_id, e.major
    from entitlements e join products p on p.id = e.product_id
   where e.status = 'active' and (p.moderation_code is null or p.moderation_code not in ('malicious', 'illegal'));

create table refunds (
  id uuid primary key,
  order_id uuid not null references orders,
  -- The buyer asked, an administrator gave it unasked, or the service did, after a payment that bought nothing, or somebody did at the
  -- payment provider's own dashboard.
  origin text not null check (origin in ('buyer', 'admin', 'service', 'provider')),
  status text not null check (status in ('pending', 'approved', 'processing', 'succeeded', 'failed', 'rejected', 'canceled')),
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null,
  reason text not null,
  details text,
  -- Until then the seller decides; afterwards it is approved.
  decide_by timestamptz,
  -- Null: the rules decided.
  decided_by uuid references users,
  decided_at timestamptz,
  decision_note text,
  provider_refund_id text,
  failure_code text,
  -- When the provider was last asked.
  asked_at timestamptz,
  created_at timestamptz not null,
  -- When it succeeded, failed, or was rejected or canceled.
  completed_at timestamptz,
  -- Why the rules approved it at once, or left it to the seller; null: an administrator or the service gave it.
  approval_reason text check (approval_reason in ('unused', 'used', 'recent_instant_refund')),
  -- When the buyer's bank sent back what had succeeded: the provider has it, and the buyer is owed it.
  returned_at timestamptz,
  -- When the operator gave the buyer that in another way, and by which reference, such as that of a bank transfer.
  settled_at timestamptz,
  settlement_reference text,
  check ((completed_at is null) = (status in ('pending', 'approved', 'processing'))),
  check (returned_at is null or status = 'succeeded'),
  check (settled_at is null or returned_at is not null),
  check ((settled_at is null) = (settlement_reference is null))
);
create index refunds_order on refunds (order_id, id desc);
-- A buyer asks once at a time; administrators may give several parts meanwhile, as long as they are of what remains.
create unique index refunds_one_open on refunds (order_id)
  where origin = 'buyer' and status in ('pending', 'approved', 'processing');
-- What payouts must leave of a seller's balance.
create index refunds_open on refunds (order_id) include (amount_minor) where status in ('pending', 'approved', 'processing');
create index refunds_returned on refunds (returned_at) where returned_at is not null and settled_at is null;
-- What was refunded at the provider's own dashboard is booked once.
create unique index refunds_provider on refunds (provider_refund_id) where origin = 'provider';
create index refunds_undecided on refunds (decide_by) where status = 'pending';
create index refunds_unpaid on refunds (decided_at) where status in ('approved', 'processing');

-- What a buyer's bank takes back; the provider tells.
create table disputes (
  id uuid primary key,
  order_id uuid not null references orders,
  provider_dispute_id text not null unique,
  -- An inquiry is a question of the bank's, which takes nothing: a refund ends it, or it becomes a dispute.
  status text not null check (status in ('inquiry', 'inquiry_closed', 'open', 'won', 'lost')),
  amount_minor bigint not null check (amount_minor > 0),
  -- What of it is held back of the order now: less than the amount where some of that was refunded.
  held_minor bigint not null default 0 check (held_minor between 0 and amount_minor),
  -- What the bank took in the end; null unless the dispute is lost.
  lost_minor bigint check (lost_minor > 0),
  -- What of that the order no longer had, because it was refunded before: the marketplace's loss.
  excess_minor bigint not null default 0 check (excess_minor >= 0),
  -- What the provider charges for it, which the seller bears unless the dispute is won.
  fee_minor bigint not null default 0,
  reason text not null,
  -- Until when the bank hears the other side; null: nobody said.
  answer_by timestamptz,
  opened_at timestamptz not null,
  closed_at timestamptz,
  check ((closed_at is null) = (status in ('inquiry', 'open'))),
  check (status = 'open' or held_minor = 0),
  check ((lost_minor is not null) = (status = 'lost')),
  check (excess_minor <= coalesce(lost_minor, 0))
);
create index disputes_order on disputes (order_id);
create index disputes_open on disputes (opened_at) where status in ('inquiry', 'open');
create index disputes_in_excess on disputes (closed_at) where excess_minor > 0;
