type VersionNumbers = [number, number, number];

export const parseVersion = (version: string): VersionNumbers =>
  version.split(".").map(Number) as VersionNumbers;

/** Whether semantic version `a` comes after `b`. */
export function isNewerVersion(a: string, b: string): boolean {
  const [x, y] = [parseVersion(a), parseVersion(b)];
  const at = x.findIndex((number, index) => number !== y[index]);
  return at >= 0 && x[at]! > y[at]!;
}

export function nextMinorVersion(version: string): string {
  const [major, minor] = parseVersion(version);
  return `${major}.${minor + 1}.0`;
}
