export const sellingRoutes = [] as const;
