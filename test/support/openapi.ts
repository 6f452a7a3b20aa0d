// Checks of OpenAPI documents.

interface Operation {
  parameters?: { name: string; description?: string }[];
}

/** Returns the parameters that have no description, with their operations: `get /clients: page`. */
export function undescribedParameters({ paths }: { paths: Record<string, object> }): string[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).flatMap(([method, { parameters = [] }]) =>
      parameters
        .filter(({ description = '' }) => description === '')
        .map(({ name }) => `${method} ${path}: ${name}`),
    ),
  );
}
