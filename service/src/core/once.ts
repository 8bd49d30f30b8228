/**
 * Made when it is first asked for: only then it is known where the service listens, and who asks for none of it pays nothing
 * for its library. What failed is tried again.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
