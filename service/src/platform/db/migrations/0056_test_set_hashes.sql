-- The key of the hashes that buyers see: without it, a hash would confirm a guess of a hidden case. Equal cases of a product have equal salts.
-- A volatile default gives each existing row its own.
alter table test_sets
  add column salt bytea not null default sha256(gen_random_uuid()::text::bytea) check (length(salt) = 32),
  -- What lists and score cards show, so that they do not read the cases.
  add column visible_cases smallint,
  add column hidden_cases smallint,
  -- With at least one assertion that a judge model decides.
  add column judged_cases smallint;

update test_sets t
   set visible_cases = c.visible, hidden_cases = c.hidden, judged_cases = c.judged
  from (select s.id, count(x.one) filter (where not is_hidden) as visible, count(x.one) filter (where is_hidden) as hidden,
               count(x.one) filter (where is_judged) as judged
          from test_sets s
               left join lateral (
                 select one, coalesce((one ->> 'isHidden')::boolean, false) as is_hidden,
                        jsonb_path_exists(one, '$.assert.**.type ? (@ like_regex "^(not-)?(llm-rubric|similar|factuality|answer-relevance)$")')
                          as is_judged
                   from jsonb_array_elements(s.cases::jsonb) one) x on true
         group by s.id) c
 where c.id = t.id;

alter table test_sets
  alter column salt drop default,
  alter column visible_cases set not null,
  alter column hidden_cases set not null,
  alter column judged_cases set not null;
