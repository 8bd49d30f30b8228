-- A list of pending entries would be read by each search for copies: up to 4 MB, for as long as neither it is full nor a vacuum runs.
alter index product_fingerprints_bands set (fastupdate = off);
alter index product_fingerprints_titles set (fastupdate = off);
select gin_clean_pending_list('product_fingerprints_bands'), gin_clean_pending_list('product_fingerprints_titles');
