export const analyticsRoutes = [] as const;
