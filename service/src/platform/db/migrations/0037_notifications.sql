-- What happened to an account, in the words of service/src/accounts/notifications/kinds.ts.
create table notifications (
  -- Version 7: in order of time.
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  kind text not null,
  -- The public id. The kind tells the type of the resource.
  subject_id text not null,
  -- Tells notifications of one kind about one subject apart.
  occurrence text not null,
  -- The account whose name the title has; null: closed.
  actor_id uuid references users on delete set null,
  data jsonb not null,
  created_at timestamptz not null,
  read_at timestamptz
);
create unique index notifications_once on notifications (user_id, kind, subject_id, occurrence);
create index notifications_user on notifications (user_id, id desc);
create index notifications_unread on notifications (user_id, id desc) where read_at is null;
create index notifications_actor on notifications (actor_id) where actor_id is not null;

-- Only choices: without a row, emails are sent.
create table notification_preferences (
  user_id uuid not null references users on delete cascade,
  kind text not null,
  email boolean not null,
  primary key (user_id, kind)
);
create trigger open_account before insert on notification_preferences
  for each row execute function must_not_be_closed('user_id');

-- The buyers of a product, by page.
create index entitlements_product on entitlements (product_id, buyer_id) where status <> 'revoked';
