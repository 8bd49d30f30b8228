-- Emails to send; a test environment shows them at /dev/mail. They hold links that open accounts, so the content is sealed.
-- It is deleted when the mail server has accepted or rejected the email.
create table emails (
  id uuid primary key,
  recipient text not null,
  sealed_email text,
  created_at timestamptz not null,
  sent_at timestamptz,
  refused_at timestamptz,
  check (sent_at is null or refused_at is null)
);
create index emails_created on emails (created_at);
create index emails_unsent on emails (created_at) where sent_at is null;
