import { randomBytes } from "node:crypto";

const CLIENT_ID_PATTERN = /^client_[0-9a-f]{32}$/;

export const generateClientId = () => `client_${randomBytes(16).toString("hex")}`;

/** Whether it can name a client at all: the database is not asked about text of any other shape, NUL included. */
export const isClientId = (text: string): boolean => CLIENT_ID_PATTERN.test(text);
