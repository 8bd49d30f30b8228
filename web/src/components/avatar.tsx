import type { Avatar as Picture } from "@stoa/sdk";
import { initialsOf } from "../lib/format.ts";

interface AvatarProps {
  name: string;
  image?: Picture | null;
  isSmall?: boolean;
}

/** A person's picture, or the initials of the name, which stands beside it. */
export const Avatar = ({ name, image = null, isSmall = false }: AvatarProps) => (
  <span className={isSmall ? "avatar s" : "avatar"} aria-hidden="true">
    {image ? <img src={image.url} alt="" width={96} height={96} /> : initialsOf(name)}
  </span>
);
