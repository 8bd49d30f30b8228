-- Bytes in the storage. Who refers to them are versions (files) and products (images), by the key.
create table blobs (
  -- files/<sha256>, images/<sha256 of the widest>-<width>.webp, and gone/<name> while the bytes are being removed.
  key text primary key,
  -- What the storage calls it: <sha256>-<uuid>. The same bytes get another name each time that they come back after they
  -- were removed, so that a late removal never meets a new upload.
  name text not null unique,
  size bigint not null,
  -- The last time that somebody was about to refer to it.
  touched_at timestamptz not null
);

-- [{"id", "name", "size", "type", "sha256"}]: a version keeps its files as it keeps its content, for ever.
alter table product_versions add column files jsonb not null default '[]';
create index product_versions_files on product_versions using gin (files jsonb_path_ops) where files <> '[]';

-- [{"id", "hash", "alt", "width", "height"}], the cover first. Not of a version: everybody sees the same.
alter table products add column images jsonb not null default '[]';
create index products_images on products using gin (images jsonb_path_ops) where images <> '[]';

update products set card = replace(card, ',"author":', ',"image":null,"author":');
