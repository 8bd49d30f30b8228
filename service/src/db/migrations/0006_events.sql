create table events (
  id uuid primary key,
  type text not null,
  -- The exact bytes that every delivery of it will carry and sign.
  body text not null,
  created_at timestamptz not null
);
create index events_created on events (created_at);

create table event_recipients (
  user_id uuid not null references users on delete cascade,
  event_id uuid not null references events on delete cascade,
  type text not null,
  primary key (user_id, event_id)
);
create index event_recipients_event on event_recipients (event_id);
