-- A seller's purchases with a referral code, the newest first: few among many.
create index orders_referred on orders (seller_id, id desc) where referral_code is not null;
