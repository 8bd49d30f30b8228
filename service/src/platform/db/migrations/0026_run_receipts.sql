-- What receipts of runs are signed with. The newest signs, and all of them are published: a receipt has no end.
create table run_receipt_keys (
  -- RFC 7638: the thumbprint of the public key.
  kid text primary key,
  public_key text not null,
  sealed_key text not null,
  created_at timestamptz not null
);
