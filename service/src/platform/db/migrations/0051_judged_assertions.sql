-- The model that decides the judged assertions of an evaluation: provider, model, isSandbox, instructions and the hash of its rubrics.
-- Null: they stay without a verdict.
alter table evaluations add column judge json;

-- A judge is a column of its own, whose run follows the column that it judges.
alter table evaluation_columns
  drop constraint evaluation_columns_kind_check,
  add constraint evaluation_columns_kind_check check (kind in ('product', 'baseline', 'judge')),
  add column judged_column_n smallint,
  add constraint evaluation_columns_judges check ((kind = 'judge') = (judged_column_n is not null)),
  add foreign key (evaluation_id, judged_column_n) references evaluation_columns on delete cascade;

-- The judge's verdict about one run; `column_n` is the column of the run. Rows never change.
create table evaluation_judgments (
  evaluation_id uuid not null,
  column_n smallint not null,
  case_n smallint not null,
  repeat_n smallint not null,
  outcome text not null check (outcome in ('passed', 'failed', 'undecided')),
  -- Null: it depends on what is undecided.
  score double precision,
  -- Verdicts and the judge's answers, whose reasons may quote the output.
  sealed_texts text not null,
  primary key (evaluation_id, column_n, case_n, repeat_n),
  foreign key (evaluation_id, column_n, case_n, repeat_n) references evaluation_results on delete cascade
);
