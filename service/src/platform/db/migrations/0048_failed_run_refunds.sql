-- Whether a request is approved at once if the buyer's runs failed more often than those of other buyers.
alter table users add refund_failed_runs boolean not null default false;
-- The runs of the product at the request: {"buyer": {"runs", "failed"}, "others": {"runs", "failed"}}.
alter table refunds add runs jsonb;
alter table refunds drop constraint refunds_approval_reason_check;
alter table refunds add check (approval_reason in ('unused', 'used', 'recent_instant_refund', 'failed_runs'));
