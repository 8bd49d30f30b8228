/**
 * Browsers offer `crypto.randomUUID` on secure origins only, and a test environment may be opened at http://192.168.…; the SDK and each
 * button that acts once need it. Version 4 of RFC 9562, section 5.4.
 */
function randomUuid(): ReturnType<Crypto["randomUUID"]> {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

if (!isSecureContext) crypto.randomUUID = randomUuid;
