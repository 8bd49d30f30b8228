import { readFile } from "node:fs/promises";

const CHANGELOG = new URL("../../../../CHANGELOG.md", import.meta.url);
const UNRELEASED = "Unreleased";
/** As Keep a Changelog writes it: `## [1.2.3] - 2026-05-01`. */
const HEADING = /^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?.*\n/gm;
/** Addresses of the versions at the end of the file. */
const LINK_DEFINITIONS = /^\[[^\]]+\]: \S+$/gm;

export interface Release {
  /** null: changes that have no version yet. */
  version: string | null;
  releasedOn: string | null;
  notes: string;
}

/** An installation of the service alone may have no changelog. */
export async function readChangelog(file: URL = CHANGELOG): Promise<Release[]> {
  try {
    return parseChangelog(await readFile(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** In the order of the file: the newest first. */
export function parseChangelog(text: string): Release[] {
  const headings = [...text.matchAll(HEADING)];
  return headings.map(({ 0: heading, 1: name, 2: date, index }, at) => ({
    version: name === undefined || name === UNRELEASED ? null : name,
    releasedOn: date ?? null,
    notes: text
      .slice(index + heading.length, headings[at + 1]?.index)
      .replace(LINK_DEFINITIONS, "")
      .trim(),
  }));
}

/**
 * The release of this version and those between it and the version before, newest first. A version without a release of
 * its own has the notes of unreleased changes.
 */
export function selectReleases(releases: Release[], version: string, previous: string | null): Release[] {
  const indexOf = (wanted: string | null) => releases.findIndex((release) => release.version === wanted);
  const released = indexOf(version);
  const start = released === -1 ? indexOf(null) : released;
  if (start === -1) return [];
  const end = previous === null ? -1 : indexOf(previous);
  return releases.slice(start, Math.max(end, start + 1));
}
