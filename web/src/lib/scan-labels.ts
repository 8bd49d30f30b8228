/** What the scan of a product finds, by its kind. A kind of a newer service has its own name. */
export const FINDING_KINDS: Record<string, string> = {
  secret: "Secret",
  "hidden-characters": "Hidden characters",
  "bidirectional-characters": "Bidirectional characters",
  "confusable-characters": "Confusable characters",
  "html-comment": "Hidden markup",
  "encoded-payload": "Encoded payload",
  "remote-code": "Runs downloaded code",
  "role-forgery": "Forged role",
  deception: "Deceives the user",
  "instruction-override": "Overrides rules",
  exfiltration: "Sends data away",
  "off-platform-link": "Link to another site",
};

/** Each promises no more than what was checked. A badge of a newer service has no label here, and is left out. */
export const SCAN_BADGES: Record<string, string> = {
  "no-hidden-text": "No hidden characters",
  "no-external-links": "No links to other sites",
  "no-download-commands": "No known commands that run downloads",
  "no-secrecy": "No known orders to deceive you or send your data away",
};
