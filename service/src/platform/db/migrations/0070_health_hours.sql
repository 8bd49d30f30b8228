-- The worst state that the checks of the operator's health page found in each hour, for the last two days.
create table health_hours (
  service text not null,
  hour timestamptz not null,
  state text not null check (state in ('ok', 'warning', 'failed')),
  primary key (service, hour)
);
