create table events (
  id uuid primary key,
  type text not null,
  -- The exact bytes that each delivery sends and signs.
  body text not null,
  -- The order in which deliveries were created; null: not yet. One batch at a time gives the numbers, so that no smaller number becomes
  -- visible later. Ids cannot promise that: they are drawn before the commit.
  seq bigint unique,
  created_at timestamptz not null
);
create index events_created on events (created_at);
create index events_unsent on events (id) where seq is null;
create sequence events_seq;

create table event_recipients (
  user_id uuid not null references users on delete cascade,
  event_id uuid not null references events on delete cascade,
  type text not null,
  -- The event's. A stream continues after it.
  seq bigint,
  primary key (event_id, user_id)
);
-- For the list of events, of all types and of one: index-only pages.
create index event_recipients_user on event_recipients (user_id, event_id);
create index event_recipients_type on event_recipients (user_id, type, event_id);
-- Accounts with events that have no deliveries yet.
create index event_recipients_unsent on event_recipients (user_id, event_id) where seq is null;
create index event_recipients_seq on event_recipients (user_id, seq) where seq is not null;
