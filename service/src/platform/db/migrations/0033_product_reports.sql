create table product_reports (
  product_id uuid not null references products on delete cascade,
  reporter_id uuid not null references users,
  reason_code text not null,
  comment text,
  created_at timestamptz not null,
  -- A moderator looked at it.
  resolved_at timestamptz,
  primary key (product_id, reporter_id)
);
create index product_reports_open on product_reports (product_id, created_at) where resolved_at is null;
create index product_reports_reporter on product_reports (reporter_id);
create trigger open_account before insert on product_reports
  for each row execute function must_not_be_closed('reporter_id');
