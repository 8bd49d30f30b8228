import { randomBytes } from "node:crypto";

const CLIENT_ID_PATTERN = /^client_[0-9a-f]{32}$/;

export const generateClientId = () => `client_${randomBytes(16).toString("hex")}`;

/** Keeps text of any other form, NUL included, away from the database. */
export const isClientId = (text: string): boolean => CLIENT_ID_PATTERN.test(text);
