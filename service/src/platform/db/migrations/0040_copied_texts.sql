-- Moderators look for copies of a text, apart from case and white space.
create function text_digest(content text) returns text immutable parallel safe language sql
  return md5(regexp_replace(lower(content), '\s+', ' ', 'g'));
create index product_versions_text on product_versions (text_digest(content));
create index disputes_opened on disputes (opened_at, id);
