/** An environment variable; an empty one counts as unset. */
export const environment = (name: string): string | undefined =>
  // biome-ignore lint/style/noProcessEnv: the only reader of the environment
  process.env[name] || undefined;
