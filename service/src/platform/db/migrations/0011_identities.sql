-- Who somebody is elsewhere: what a provider calls them never changes, their mail address may.
create table identities (
  provider text not null check (provider in ('github', 'google')),
  subject text not null,
  user_id uuid not null references users on delete cascade,
  created_at timestamptz not null,
  primary key (provider, subject)
);
create index identities_user on identities (user_id);
