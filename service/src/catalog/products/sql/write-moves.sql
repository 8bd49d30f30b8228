-- Writes the moves of locked products. The time of a move becomes `updated_at`; without an approval, the last one stays.
update products p
   set status = m.status, card = m.card, released = m.released,
       approved_details = coalesce(m."approvedDetails", p.approved_details),
       approved_images = coalesce(m."approvedImages", p.approved_images),
       moderation_code = m."moderationCode", moderation_reason = m."moderationReason", moderated_at = m."moderatedAt",
       moved_at = m.at, updated_at = m.at, revision = p.revision + 1,
       published_at = case when m.status = 'published' then m.at else p.published_at end,
       first_published_at = case when m.status = 'published' then coalesce(p.first_published_at, m.at) else p.first_published_at end,
       deleted_at = case when m.status = 'deleted' then m.at else p.deleted_at end
  from (select *
          from json_to_recordset(:moves::json) as m (
               id uuid, status text, card text, released integer[], "approvedDetails" text, "approvedImages" text[],
               "moderationCode" text, "moderationReason" text, "moderatedAt" timestamptz, at timestamptz)
         offset 0) m
 where p.id = m.id
