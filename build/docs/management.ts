// The Management API as Markdown, made from its OpenAPI document.

interface Operation {
  summary: string;
  tags: string[];
  'x-scopes': { any?: string[]; all?: string[]; own?: string[] };
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface Schema {
  properties?: Record<string, unknown>;
  required?: string[];
  anyOf?: Schema[];
  type?: string;
}

/** Returns the text of docs/reference/api/management.md. */
export function managementReadme(api: { paths: Record<string, object>; tags?: unknown }): string {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(([method, operation]) => ({
      heading: `### ${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
  const parts = (api.tags as { name: string }[]).map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    return `## ${name}\n\n${own.map(({ heading, operation }) => `${heading}\n\n${said(operation)}`).join('\n')}`;
  });
  return `# The Management API

Every call below \`/api/v2\`. \`npm run docs\` writes this page from the declarations in the code. [management.json](management.json) has the
same content for programs (OpenAPI 3.1); a server in development also serves it at \`/api/v2/openapi.json\`.

A call needs \`Authorization: Bearer\` with an access token for the audience \`<issuer>api/v2/\`. Errors are
\`{ statusCode, error, message, errorCode }\`. Every response has the \`X-RateLimit-\` headers, and a 429 has \`Retry-After\`.
Required members are bold.

${parts.join('\n')}`;
}

function said({ summary, 'x-scopes': scopes, parameters = [], requestBody }: Operation): string {
  const words = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const types = Object.keys(requestBody?.content ?? {}).filter(
    (type) => type !== 'application/x-www-form-urlencoded',
  );
  const [content] = Object.values(requestBody?.content ?? {});
  const lines = [
    scopes.all === undefined
      ? `Scope: ${(scopes.any ?? []).map((one) => `\`${one}\``).join(' or ')}`
      : `Scopes: ${words(scopes.all)}, all of them`,
    ...(scopes.own === undefined ? [] : [`With a user's own token: ${words(scopes.own)}`]),
    ...(query.length === 0 ? [] : [`Query: ${words(query)}`]),
    ...(content === undefined ? [] : [`Body (${types.join(', ')}): ${membersOf(content.schema)}`]),
  ];
  return `${summary}.\n\n${lines.map((line) => `- ${line}`).join('\n')}\n`;
}

function membersOf({ properties, required = [], anyOf, type }: Schema): string {
  if (anyOf !== undefined) return anyOf.map(membersOf).join(' | ');
  if (properties === undefined) return type ?? 'any';
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? `**\`${name}\`**` : `\`${name}\``))
    .join(', ');
}
