import { randomBytes } from "node:crypto";

const SHAPE = /^client_[0-9a-f]{32}$/;

export const newClientId = () => `client_${randomBytes(16).toString("hex")}`;

/** Whether it can name a client at all: the database is not asked about text of any other shape, NUL included. */
export const isClientId = (text: string): boolean => SHAPE.test(text);
