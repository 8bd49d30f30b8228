alter table users
  -- In lower case. Never assigned to another account, so that links to it stay right.
  add column handle text check (handle ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
  -- SHA-256 of the picture, under which the storage has it.
  add column avatar text check (avatar ~ '^[0-9a-f]{64}$'),
  -- [{"label", "url"}]
  add column links jsonb not null default '[]';
create unique index users_handle on users (handle);
create index users_avatar on users (avatar) where avatar is not null;

-- Handles of closed accounts. Digests, because a handle may be a person's name.
create table retired_handles (
  digest bytea primary key
);

-- A card ends with its author.
update products set card = left(card, -2) || ',"handle":null,"avatar":null}}';
