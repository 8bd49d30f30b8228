-- Steps that ask a provider for the vectors of texts.
alter table execution_steps
  drop constraint execution_steps_type_check,
  add constraint execution_steps_type_check
    check (type in ('prompt', 'embedding', 'transform', 'map', 'approval', 'delay', 'product'));
