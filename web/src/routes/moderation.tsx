export const moderationRoutes = [] as const;
