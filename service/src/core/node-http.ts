/** `import` evaluates all exports of a module: of `node:http`, `WebSocket` loads Node's own undici, which takes 40 ms and 13 MB. */
export const { Agent, createServer, maxHeaderSize, request } = process.getBuiltinModule("node:http");
