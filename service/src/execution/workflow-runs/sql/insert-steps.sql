-- Parts of the `with` of a statement: inserts or updates the steps of the runs in `rows`, and inserts their events.
steps as (
  insert into execution_steps as s (
    execution_id, step_id, item, n, type, status, attempt, retries, repeats, items, called, due_at, sealed_output, error_code,
    error_message, provider, model, prompt_tokens, completion_tokens, cost_usd, cost_known, usage_estimated, started_at, ended_at)
  select run.id, "stepId", item, n, type, step.status, attempt, retries, repeats, items, "childRunId", step."dueAt", "sealedOutput",
         step."errorCode", step."errorMessage", provider, model, step."promptTokens", step."completionTokens", step."costUsd",
         step."costKnown", step.estimated, "startedAt", "endedAt"
    from :rows run join json_to_recordset(:steps::json) as step (
      "runId" uuid, "stepId" text, item integer, n integer, type text, status text, attempt integer, retries integer, repeats integer,
      items integer, "childRunId" uuid, "dueAt" timestamptz, "sealedOutput" text, "errorCode" text, "errorMessage" text, provider text,
      model text, "promptTokens" bigint, "completionTokens" bigint, "costUsd" numeric, "costKnown" boolean, estimated boolean,
      "startedAt" timestamptz, "endedAt" timestamptz) on "runId" = run.id
  :updateStep),
events as (
  insert into execution_events (execution_id, seq, type, data, created_at)
  select run.id, seq, event.type, data, event."createdAt"
    from :rows run join json_to_recordset(:events::json) as event (
      "runId" uuid, seq integer, type text, data jsonb, "createdAt" timestamptz) on "runId" = run.id)
