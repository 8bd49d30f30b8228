-- Double entry, append-only. An amount is what its account gained, below zero what it gave: what we owe to sellers is theirs and
-- positive, what the provider holds for us stands below zero. The entries of a transaction sum to zero in each currency.
create table ledger_transactions (
  id uuid primary key,
  kind text not null check (kind in ('sale', 'refund', 'dispute_opened', 'dispute_won', 'dispute_lost', 'subscription',
    'payout', 'payout_completed', 'payout_failed', 'payout_returned')),
  -- The row that it is about: an order, a refund, a dispute, a payout, a payment of a plan. Each is booked once for each kind.
  source_id uuid not null,
  occurred_at timestamptz not null,
  unique (kind, source_id)
);

create table ledger_entries (
  transaction_id uuid not null references ledger_transactions on delete restrict,
  position smallint not null,
  account text not null check (account in ('provider_clearing', 'platform_revenue', 'processor_fees', 'tax_payable',
    'seller', 'referrer', 'in_transit', 'dispute_hold')),
  -- Whose money it is, on the accounts that people have.
  owner_id uuid references users on delete restrict,
  currency text not null,
  amount_minor bigint not null check (amount_minor <> 0),
  order_id uuid references orders on delete restrict,
  -- From when the owner may be paid out: before it counts as pending.
  matures_at timestamptz,
  primary key (transaction_id, position),
  check ((owner_id is not null) = (account in ('seller', 'referrer', 'in_transit'))),
  check ((matures_at is not null) = (account in ('seller', 'referrer')))
);
create index ledger_entries_owner on ledger_entries (owner_id, currency, account, matures_at) include (amount_minor)
  where owner_id is not null;
create index ledger_entries_order on ledger_entries (order_id) where order_id is not null;

create function ledger_must_balance() returns trigger language plpgsql as $$
declare
  unbalanced text;
begin
  select currency into unbalanced from ledger_entries where transaction_id = new.transaction_id
    group by currency having sum(amount_minor) <> 0 limit 1;
  if unbalanced is not null then
    raise exception 'ledger transaction % does not sum to zero in %', new.transaction_id, unbalanced
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;

create function ledger_must_have_entries() returns trigger language plpgsql as $$
begin
  if not exists (select from ledger_entries where transaction_id = new.id) then
    raise exception 'ledger transaction % has no entries', new.id using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;

create function ledger_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append-only: a mistake is mended by another transaction'
    using errcode = 'integrity_constraint_violation';
end $$;

create constraint trigger ledger_balances after insert on ledger_entries
  deferrable initially deferred for each row execute function ledger_must_balance();
create constraint trigger ledger_is_not_empty after insert on ledger_transactions
  deferrable initially deferred for each row execute function ledger_must_have_entries();
create trigger ledger_entries_stay before update or delete or truncate on ledger_entries
  for each statement execute function ledger_is_append_only();
create trigger ledger_transactions_stay before update or delete or truncate on ledger_transactions
  for each statement execute function ledger_is_append_only();
