-- The limits within which the service repeats evaluations of a product, on the provider keys of its seller.
create table re_evaluations (
  product_id uuid primary key references products on delete cascade,
  max_cost_usd numeric(16, 8) not null,
  monthly_budget_usd numeric(16, 8) not null,
  -- The evaluation that cannot be repeated, and why; null: none.
  paused_evaluation_id uuid references evaluations on delete set null,
  paused_code text,
  paused_at timestamptz,
  updated_at timestamptz not null
);
create index re_evaluations_paused on re_evaluations (paused_evaluation_id);

alter table evaluations
  add started_by text not null default 'seller'
    check (started_by in ('seller', 'model_deprecated', 'price_changed', 'schedule')),
  -- The list's price and deprecation of each model at the beginning: [{"provider", "model", "price", "isDeprecated"}].
  add model_prices jsonb not null default '[]',
  -- Of a completed one of a released version: models that pass less than before.
  add regressions json not null default '[]';
create index evaluations_repeated on evaluations (product_id, created_at) where started_by <> 'seller';

-- Whether the changelog says that the version passes fewer tests than the one before.
alter table product_versions add acknowledges_regression boolean not null default false;
