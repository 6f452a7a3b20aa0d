// Builds the OpenAPI 3.1 document of the Management API from the declarations of its calls.
import { z } from 'zod';
import type { CallRules } from './call.ts';
import { MANAGEMENT_CALLS } from './calls.ts';
import { parameterDescription } from './parameter-descriptions.ts';

type Json = Record<string, unknown>;

const ERROR = {
  type: 'object',
  required: ['statusCode', 'error', 'message'],
  properties: {
    statusCode: { type: 'integer', description: 'The HTTP status.' },
    error: { type: 'string', description: 'The name of the status.' },
    message: { type: 'string', description: 'What is wrong, in words for people.' },
    errorCode: {
      type: 'string',
      description: 'What is wrong, as a code for programs. Not every error has one.',
    },
  },
};

const failure = (description: string, headers?: Json): Json => ({
  description,
  ...(headers && { headers }),
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
});

const number = (description: string): Json => ({ description, schema: { type: 'integer' } });

const RESPONSES: Readonly<Record<string, Json>> = {
  Invalid: failure('The path, the query or the body is invalid.'),
  Unauthorized: failure('The access token is missing or invalid.'),
  Forbidden: failure(
    'The token lacks the scopes, or was issued to a user and the call is about another user.',
  ),
  Missing: failure('The resource does not exist.'),
  Taken: failure('The resource exists already.'),
  TooLarge: failure('The body is too large.'),
  TooMany: failure('Too many requests from this address.', {
    'Retry-After': number('Seconds to wait.'),
    'X-RateLimit-Limit': number('The size of the bucket.'),
    'X-RateLimit-Remaining': number('Requests left in the bucket.'),
    'X-RateLimit-Reset': number('When the bucket is full again, in epoch seconds.'),
  }),
  Failure: failure('Any other error.'),
};

const answer = (name: keyof typeof RESPONSES): Json => ({ $ref: `#/components/responses/${name}` });

/** Returns the document. @param baseUrl the public origin. */
export function managementOpenApi(
  baseUrl: string,
  calls: readonly CallRules[] = MANAGEMENT_CALLS,
): Json & { paths: Record<string, Json> } {
  const paths: Record<string, Json> = {};
  for (const call of calls) {
    const at = call.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[at] = { ...paths[at], [call.method.toLowerCase()]: operationOf(call) };
  }
  const tags = [...new Set(calls.map(({ path }) => tagOf(path)))].sort();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse Management API',
      version: '2',
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'The API by which administrators and their tools change a running tenant. `x-scopes` are the scopes that allow a call: one of `any`, or all of `all`. A token issued to a user reaches that user alone, with one of `own`.',
    },
    servers: [{ url: `${baseUrl}/api/v2` }],
    tags: tags.map((name) => ({ name })),
    security: [{ bearer: [] }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An access token for the audience `<issuer>api/v2/`, by client_credentials.',
        },
      },
      schemas: { Error: ERROR },
      responses: RESPONSES,
    },
  };
}

/** Returns the first segment of a path, which is the operation's tag. */
const tagOf = (path: string): string => path.split('/')[1] ?? '';

function operationOf(call: CallRules): Json {
  const { method, path, summary, scopes, allScopes, ownScopes } = call;
  return {
    operationId: `${method.toLowerCase()}${path}`.replaceAll(/[^a-z0-9]+(.)?/gi, (_, next = '') =>
      next.toUpperCase(),
    ),
    summary,
    tags: [tagOf(path)],
    'x-scopes': {
      ...(allScopes === undefined ? { any: scopes } : { all: allScopes }),
      ...(ownScopes && { own: ownScopes }),
    },
    ...parametersOf(call),
    ...requestOf(call),
    responses: {
      '2XX': { description: 'Success.' },
      400: answer('Invalid'),
      401: answer('Unauthorized'),
      403: answer('Forbidden'),
      ...(path.includes(':') && { 404: answer('Missing') }),
      ...(method === 'POST' && { 409: answer('Taken') }),
      ...(call.body !== undefined && { 413: answer('TooLarge') }),
      429: answer('TooMany'),
      default: answer('Failure'),
    },
  };
}

function parametersOf({ path, query }: CallRules): Json {
  const pathParameters = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const description = parameterDescription(path, name);
    return { name, in: 'path', required: true, description, schema: { type: 'string' } };
  });
  const { properties = {}, required = [] } = query === undefined ? {} : schemaOf(query);
  const queryParameters = Object.entries(properties as Record<string, Json>).map(
    ([name, { description = parameterDescription(path, name), ...schema }]) => {
      return { name, in: 'query', required: (required as string[]).includes(name), description, schema };
    },
  );
  const parameters = [...pathParameters, ...queryParameters];
  return parameters.length === 0 ? {} : { parameters };
}

function requestOf({ body, file, textTypes = [] }: CallRules): Json {
  if (body === undefined) return {};
  const forms = ['application/json', 'application/x-www-form-urlencoded'];
  const structured = (file === undefined ? forms : ['multipart/form-data']).map(
    (type) => [type, { schema: schemaOf(body) }] as const,
  );
  const texts = textTypes.map((type) => [type, { schema: { type: 'string' } }] as const);
  return { requestBody: { required: true, content: Object.fromEntries([...structured, ...texts]) } };
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return json;
}
