-- Version 1

-- Inserts a pending order by these terms. Returns the names for its receipt and the columns that its row joins. One statement, so that a purchase
-- needs no transaction around it, whose beginning would set the lock timeout. `refused_by` says why nothing was inserted:
--   buyer, seller, referrer  the account is closed or banned
--   open order               the buyer has one for this product
-- Raises ST002 if the buyer owns the product. Each query sees what was committed before it began, so the last one sees a purchase that
-- completed while the insert waited for it.
-- The lock prevents closing or banning the accounts until the order is inserted; afterwards the open order does.
create or replace function place_order(terms json)
returns table (refused_by text, buyer_name text, buyer_email text, seller_name text, seller_handle text, seller_avatar text, latest_version text)
language plpgsql set lock_timeout = '10s' as $$
#variable_conflict use_variable
declare
  new_order constant orders := json_populate_record(null::orders, terms);
  account record;
  has_referrer boolean := new_order.referrer_id is null;
begin
  for account in
    select u.id, u.name, u.email, u.handle, u.avatar from users u
     where u.id in (new_order.buyer_id, new_order.seller_id, new_order.referrer_id) and u.banned_at is null and u.closed_at is null
     order by u.id for share
  loop
    case account.id
      when new_order.buyer_id then
        buyer_name := account.name;
        buyer_email := account.email;
      when new_order.seller_id then
        seller_name := account.name;
        seller_handle := account.handle;
        seller_avatar := account.avatar;
      else
        has_referrer := true;
    end case;
  end loop;
  refused_by := case when buyer_name is null then 'buyer' when seller_name is null then 'seller' when not has_referrer then 'referrer' end;
  if refused_by is null then
    insert into orders (
      id, buyer_id, seller_id, product_id, buyer_name, buyer_email, seller_name, product_title, product_type, product_version, status,
      subtotal_minor, discount_minor, tax_minor, total_minor, fee_minor, commission_minor, seller_minor,
      fee_basis_points, commission_basis_points, tax_basis_points, tax_inclusive, tax_country,
      discount_code_id, discount_code, referrer_id, referral_code, currency, refund_days, payment_method_id, created_at, asked_at)
    values (
      new_order.id, new_order.buyer_id, new_order.seller_id, new_order.product_id, buyer_name, buyer_email, seller_name,
      new_order.product_title, new_order.product_type, new_order.product_version, 'pending',
      new_order.subtotal_minor, new_order.discount_minor, new_order.tax_minor, new_order.total_minor,
      new_order.fee_minor, new_order.commission_minor, new_order.seller_minor,
      new_order.fee_basis_points, new_order.commission_basis_points, new_order.tax_basis_points, new_order.tax_inclusive, new_order.tax_country,
      new_order.discount_code_id, new_order.discount_code, new_order.referrer_id, new_order.referral_code,
      new_order.currency, new_order.refund_days, new_order.payment_method_id, new_order.created_at, new_order.asked_at)
    on conflict (buyer_id, product_id) where status in ('pending', 'requires_action') do nothing;
    if not found then
      refused_by := 'open order';
    elsif exists (select from entitlements e
                   where e.buyer_id = new_order.buyer_id and e.product_id = new_order.product_id and e.status <> 'revoked') then
      raise exception 'the buyer owns the product' using errcode = 'ST002';
    end if;
  end if;
  latest_version := (select array_to_string(p.released, '.') from products p where p.id = new_order.product_id);
  return next;
end $$;
