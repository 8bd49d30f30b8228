-- Letters to be sent, and in the test environment to be read at /dev/mail. They hold links that open accounts, so what is
-- in them is sealed, and emptied when a mail server has taken or refused them.
create table mails (
  id uuid primary key,
  recipient text not null,
  sealed_letter text,
  created_at timestamptz not null,
  sent_at timestamptz,
  refused_at timestamptz,
  check (sent_at is null or refused_at is null)
);
create index mails_created on mails (created_at);
