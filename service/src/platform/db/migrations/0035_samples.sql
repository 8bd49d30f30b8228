alter table products
  -- What buyers may do with it: an SPDX id or a short text.
  add column license text,
  -- Examples of what it makes. Not jsonb, which would sort the members of a workflow's results by the length of their names.
  add column samples json not null default '[]';
