export const operationRoutes = [] as const;
