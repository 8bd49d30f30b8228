import { preloadedPart } from "../../lib/preloaded-part.tsx";

export const [TimelineChart, preloadTimelineChart] = preloadedPart(() => import("./timeline-chart.tsx"));
