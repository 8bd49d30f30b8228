export const workflowEditorRoutes = [] as const;
