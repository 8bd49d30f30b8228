-- Names what a version runs. Immutable, because the encoding of the database never changes.
create function definition_hash(content text, content_format text, variables jsonb) returns text
  language sql immutable parallel safe
  return encode(sha256(convert_to(jsonb_build_array(content, content_format, variables)::text, 'UTF8')), 'hex');

-- Of the version at the beginning. content_sha256 stays what buyers see: a default of a variable can be guessed.
alter table evaluations add column definition_sha256 text;
update evaluations e
   set definition_sha256 = coalesce(
     (select definition_hash(v.content, v.content_format, v.variables) from product_versions v
       where v.product_id = e.product_id and v.version = e.version
         and e.content_sha256 = encode(sha256(convert_to(v.content, 'UTF8')), 'hex')),
     e.content_sha256);
alter table evaluations alter column definition_sha256 set not null;
