type VersionNumbers = [number, number, number];

export const parseVersion = (version: string): VersionNumbers =>
  version.split(".").map(Number) as VersionNumbers;

export function isNewerVersion(a: string, b: string): boolean {
  const [x, y] = [parseVersion(a), parseVersion(b)];
  const [major, minor, patch] = x.map((number, index) => number - (y[index] ?? 0));
  return (major || minor || patch || 0) > 0;
}

export function nextMinorVersion(version: string): string {
  const [major, minor] = parseVersion(version);
  return `${major}.${minor + 1}.0`;
}
