-- Double entry, append-only. An amount is what its account gained, below zero what it gave: what we owe to sellers is theirs and
-- positive, what the provider holds for us stands below zero. The entries of a transaction sum to zero in each currency.
create table ledger_transactions (
  id uuid primary key,
  -- In which order an order's money moved: whoever books it holds its lock, whatever the clocks of two processes say.
  number bigint not null generated always as identity,
  kind text not null check (kind in ('sale', 'refund', 'refund_returned', 'refund_settled', 'dispute_opened', 'dispute_won', 'dispute_lost',
    'subscription', 'subscription_dispute_lost', 'payout', 'payout_completed', 'payout_failed', 'payout_returned')),
  -- The row that it is about: an order, a refund, a dispute, a payout, a payment of a plan. Each is booked once for each kind.
  source_id uuid not null,
  -- How many entries it has, once and for all: none can be added later.
  entry_count smallint not null check (entry_count >= 2),
  occurred_at timestamptz not null,
  unique (kind, source_id),
  unique (id, entry_count)
);

create table ledger_entries (
  transaction_id uuid not null,
  -- Counted from 1 to what the transaction says: together with the key, each place is taken once.
  position smallint not null,
  entry_count smallint not null,
  account text not null check (account in ('provider_clearing', 'platform_revenue', 'processor_fees', 'tax_payable',
    'seller', 'referrer', 'in_transit', 'buyer_credit', 'dispute_hold', 'dispute_losses', 'bank')),
  -- Whose money it is, on the accounts that people have.
  owner_id uuid references users on delete restrict,
  currency text not null,
  amount_minor bigint not null check (amount_minor <> 0),
  order_id uuid references orders on delete restrict,
  -- From when the owner may be paid out: before it counts as pending.
  matures_at timestamptz,
  primary key (transaction_id, position),
  constraint ledger_entries_are_counted foreign key (transaction_id, entry_count)
    references ledger_transactions (id, entry_count) on delete restrict,
  constraint ledger_entries_have_places check (position between 1 and entry_count),
  check ((owner_id is not null) = (account in ('seller', 'referrer', 'in_transit', 'buyer_credit'))),
  check ((matures_at is not null) = (account in ('seller', 'referrer')))
);
create index ledger_entries_owner on ledger_entries (owner_id, currency, account, matures_at) include (amount_minor)
  where owner_id is not null;
create index ledger_entries_order on ledger_entries (order_id) where order_id is not null;

-- At commit, once for a transaction: all its places are taken then, so that it need never be looked at again.
create function ledger_must_balance() returns trigger language plpgsql as $$
declare
  found_entries bigint;
  unbalanced text;
begin
  select coalesce(sum(entries), 0), min(currency) filter (where amount <> 0) into found_entries, unbalanced
    from (select currency, count(*) as entries, sum(amount_minor) as amount
            from ledger_entries where transaction_id = new.id group by currency) as sums;
  if found_entries <> new.entry_count then
    raise exception 'ledger transaction % has % of its % entries', new.id, found_entries, new.entry_count
      using errcode = 'integrity_constraint_violation';
  end if;
  if unbalanced is not null then
    raise exception 'ledger transaction % does not sum to zero in %', new.id, unbalanced
      using errcode = 'integrity_constraint_violation';
  end if;
  return null;
end $$;

create function ledger_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append-only: a mistake is mended by another transaction'
    using errcode = 'integrity_constraint_violation';
end $$;

create constraint trigger ledger_balances after insert on ledger_transactions
  deferrable initially deferred for each row execute function ledger_must_balance();
create trigger ledger_entries_stay before update or delete or truncate on ledger_entries
  for each statement execute function ledger_is_append_only();
create trigger ledger_transactions_stay before update or delete or truncate on ledger_transactions
  for each statement execute function ledger_is_append_only();

-- The result of each nightly verification of the ledger.
create table ledger_verifications (
  begun_at timestamptz primary key,
  ended_at timestamptz not null,
  transactions bigint not null,
  entries bigint not null,
  -- How many problems were found.
  problems integer not null
);

-- Until when the provider's lists have been read, so that a lost notice is made up for.
create table provider_cursors (
  list text primary key,
  read_until timestamptz not null
);

-- Listed disputes that could not be applied, because their payment is not settled here: tried again in each round.
create table unapplied_disputes (
  provider_dispute_id text primary key,
  order_id uuid references orders on delete cascade,
  payment_id uuid references subscription_payments on delete cascade,
  since timestamptz not null,
  check (num_nonnulls(order_id, payment_id) = 1)
);

-- What a comparison of the provider's books with ours found, a row each.
create table provider_reconciliations (
  begun_at timestamptz primary key,
  ended_at timestamptz not null,
  -- Since when what was made there was compared.
  compared_since timestamptz not null,
  compared bigint not null,
  differences integer not null,
  -- The first of them, a sentence each.
  examples jsonb not null
);
