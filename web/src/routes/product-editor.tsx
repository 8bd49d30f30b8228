export const productEditorRoutes = [] as const;
