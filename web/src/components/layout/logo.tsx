const PATH =
  "M2 2.8 22 8.3v2.3L2 7.2Z M2 9.3 6.6 9.92V20.68L2 21.6Z M8.9 10.23 12.3 10.69V19.54L8.9 20.22Z M14.3 10.96 16.8 11.3V18.64L14.3 19.14Z M18.6 11.54 20.4 11.78V17.92L18.6 18.28Z";

export const Logo = () => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <path d={PATH} fill="currentColor" />
  </svg>
);
