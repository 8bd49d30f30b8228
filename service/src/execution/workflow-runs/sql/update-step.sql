-- The end of an insert into execution_steps: a known step gets its new state.
on conflict (execution_id, step_id, item) do update set
  status = excluded.status, attempt = excluded.attempt, retries = excluded.retries, repeats = excluded.repeats, items = excluded.items,
  called = excluded.called, due_at = excluded.due_at, sealed_output = excluded.sealed_output, error_code = excluded.error_code,
  error_message = excluded.error_message, provider = excluded.provider, model = excluded.model, prompt_tokens = excluded.prompt_tokens,
  completion_tokens = excluded.completion_tokens, cost_usd = excluded.cost_usd, cost_known = excluded.cost_known,
  usage_estimated = excluded.usage_estimated, started_at = excluded.started_at, ended_at = excluded.ended_at
