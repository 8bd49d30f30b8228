create table events (
  id uuid primary key,
  type text not null,
  -- The exact bytes that every delivery of it will carry and sign.
  body text not null,
  -- In which order it was handed to the endpoints that want it; null: not yet. Given one batch after another, so that whoever has
  -- seen a number will see no smaller one later: ids are drawn before the commit, and cannot promise that.
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
  -- The event's: a stream of one account reads on by it.
  seq bigint,
  primary key (event_id, user_id)
);
-- What somebody's list asks for, of all types and of one: each page is found in the index alone, however deep.
create index event_recipients_user on event_recipients (user_id, event_id);
create index event_recipients_type on event_recipients (user_id, type, event_id);
-- Of whom there are events that were not handed to endpoints yet: accounts take turns.
create index event_recipients_unsent on event_recipients (user_id, event_id) where seq is null;
create index event_recipients_seq on event_recipients (user_id, seq) where seq is not null;
