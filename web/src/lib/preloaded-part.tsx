import { type ComponentType, createElement, lazy, useState } from "react";

/**
 * A part of a page in its own file, and a function that loads the file ahead. A loaded part shows with its page. `lazy` alone would show a
 * fallback first, and React replaces a fallback only after 300 ms.
 */
export function preloadedPart<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): [part: ComponentType<Props>, preload: () => Promise<void>] {
  let loaded: ComponentType<Props> | undefined;
  const Lazy = lazy(load) as unknown as ComponentType<Props>;
  function PreloadedPart(props: Props) {
    // For good: a change of the component would lose what a person typed in it.
    const [part] = useState(() => loaded ?? Lazy);
    return createElement(part, props);
  }
  const preload = () =>
    load().then(
      (module) => {
        loaded = module.default;
      },
      // The part reports it where it stands.
      () => {},
    );
  return [PreloadedPart, preload];
}
