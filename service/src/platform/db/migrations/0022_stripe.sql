-- What Stripe calls what we call by our ids. Written before money can move, so that a charge whose answer was lost is found by its
-- own name: Stripe's search is minutes late, and its idempotency keys end after a day.
create table stripe_references (
  our_id text primary key,
  stripe_id text not null
);
