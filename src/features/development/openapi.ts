// The OpenAPI 3.1 document, made from the features' declarations of their routes.
import { z } from 'zod';
import type { Feature } from '../../engine/feature.ts';
import { STANDARD_GRANTS, tokenBody } from '../../engine/parameter-schemas.ts';
import { type GrantDeclaration, grantTypeOf } from '../../engine/tokens.ts';
import { parseRouteKey, type RouteDeclaration } from '../../http/routes.ts';
import type { Limits } from '../../records/limits.ts';

export interface ApiDescription {
  /** The version of Gatehouse. */
  version: string;
  /** The public origin. */
  baseUrl: string;
  /** The tenant's vendor host, for its grant types. */
  vendorHost: string;
  features: readonly Feature<never>[];
  limits: Limits;
}

type Route = RouteDeclaration<never>;
type Json = Record<string, unknown>;

/** Parts that several operations refer to. */
interface Components {
  schemas: Json;
  responses: Json;
}

const RATE_LIMITED = {
  description: 'Too many requests from this address, or for this user.',
  headers: Object.fromEntries(
    Object.entries({
      'X-RateLimit-Limit': 'The size of the bucket.',
      'X-RateLimit-Remaining': 'The number of requests left.',
      'X-RateLimit-Reset': 'When the bucket is full again, in epoch seconds.',
      'Retry-After': 'Seconds to wait.',
    }).map(([name, description]) => [name, { description, schema: { type: 'integer' } }]),
  ),
};

const SECURITY = {
  client: {
    type: 'http',
    scheme: 'basic',
    description:
      "The application's client_id and client_secret (RFC 6749 §2.3.1). It may send them, or a client_assertion (RFC 7523), in the body instead; an application without a secret sends its client_id there.",
  },
  accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token.' },
  mfaToken: { type: 'http', scheme: 'bearer', description: 'The mfa_token of the error mfa_required.' },
  device: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      '`Device <JWT>`: a JWT signed with the key of the device, for this server, at most a minute old.',
  },
};

/** Makes the document. Every route that has a summary is in it. */
export function openApi(api: ApiDescription): Json {
  const paths: Record<string, Json> = {};
  const components: Components = { schemas: {}, responses: {} };
  for (const { name, routes = {} } of api.features) {
    for (const [key, route] of Object.entries(routes) as [string, Route][]) {
      if (route.summary === undefined) continue;
      const { methods, path } = parseRouteKey(key);
      const template = path.replaceAll(/:(\w+)/g, '{$1}');
      // HEAD is GET without the body (RFC 9110 §9.3.2).
      for (const method of methods.filter((one) => one !== 'HEAD')) {
        const id = `${method.toLowerCase()} ${path}`.replaceAll(/[^a-z0-9]+(.)?/gi, (_, next = '') =>
          next.toUpperCase(),
        );
        paths[template] = {
          ...paths[template],
          [method.toLowerCase()]: {
            operationId: id,
            tags: [name],
            ...operationOf(api, components, path, route),
          },
        };
      }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: api.version,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Every public endpoint. `x-rate-limit` names the limits of an endpoint, `x-cors` the origins whose scripts may call it: those of the tenant’s applications, any, or none.',
    },
    servers: [{ url: api.baseUrl }],
    tags: api.features
      .map(({ name }) => ({ name }))
      .filter(({ name }) =>
        Object.values(paths).some((path) => JSON.stringify(path).includes(`"tags":["${name}"]`)),
      ),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: { securitySchemes: SECURITY, ...components },
  };
}

function operationOf(api: ApiDescription, components: Components, path: string, route: Route): Json {
  const { summary, security = [], cors, limit, furtherLimits = [] } = route;
  const body = path === '/oauth/token' ? tokenBodies(api) : route.body;
  const limited = [limit, ...furtherLimits].filter((name) => name !== 'unlimited');
  return {
    summary,
    ...(security.length > 0 && { security: securityOf(security) }),
    ...parametersOf(path, route.query),
    ...(body !== undefined && { requestBody: { required: true, content: contentOf(body, route.bodyTypes) } }),
    responses: {
      ...answersOf(route),
      ...(limited.length > 0 && { 429: failure(components, route, 'RateLimited') }),
      default: failure(components, route, 'Failure'),
    },
    'x-cors': cors,
    ...(limited.length > 0 && {
      'x-rate-limit': limited.map((name) => {
        const { capacity, perMinute = 0, per } = api.limits[name] ?? {};
        return { name, per, capacity, perMinute: Math.round(perMinute * 10_000) / 10_000 };
      }),
    }),
  };
}

/**
 * Each scheme alone is enough. An application without a secret sends its client_id in the body, so no scheme is an
 * option, too.
 */
function securityOf(schemes: NonNullable<Route['security']>): Json[] {
  return [...schemes.map((name) => ({ [name]: [] })), ...(schemes.includes('client') ? [{}] : [])];
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  client_id: 'The client_id of the application.',
  connection: 'The name of the connection.',
  file: 'The name of the file.',
  id: 'The id of the resource.',
  organization: 'The id of the organization.',
};

function parametersOf(path: string, query: z.ZodObject | undefined): Json {
  const pathParameters = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    return {
      name,
      in: 'path',
      required: true,
      description: PATH_PARAMETERS[name],
      schema: { type: 'string' },
    };
  });
  const { properties = {}, required = [] } = query === undefined ? {} : schemaOf(query);
  const queryParameters = Object.entries(properties as Record<string, Json>).map(
    ([name, { description, ...schema }]) => {
      return { name, in: 'query', required: (required as string[]).includes(name), description, schema };
    },
  );
  return pathParameters.length + queryParameters.length === 0
    ? {}
    : { parameters: [...pathParameters, ...queryParameters] };
}

const MEDIA_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

function contentOf(body: z.ZodType, types: Route['bodyTypes'] = ['json', 'form']): Json {
  return Object.fromEntries(types.map((type) => [MEDIA_TYPES[type], { schema: schemaOf(body) }]));
}

/** Returns the schema of the token endpoint's body: one for each grant. */
function tokenBodies({ features, vendorHost }: ApiDescription): z.ZodType {
  const standard = Object.entries(STANDARD_GRANTS).map(([type, parameters]) =>
    tokenBody(type, parameters, true).describe(`The grant \`${type}\` (RFC 6749).`),
  );
  const others = features
    .flatMap(({ grants = [] }) => grants as readonly GrantDeclaration<never>[])
    .map(({ grantType, parameters, summary }) =>
      tokenBody(grantTypeOf(grantType, vendorHost), parameters, false).describe(`${summary}.`),
    );
  return z.union([...standard, ...others]);
}

function answersOf({ answers = {} }: Route): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      if (typeof answer === 'string') return [status, { description: answer }];
      const { description, body, type = 'application/json' } = answer;
      return [status, { description, content: { [type]: { schema: schemaOf(body) } } }];
    }),
  );
}

/** Adds the response that all routes with the same shape of errors share, and returns a reference to it. */
function failure(
  { schemas, responses }: Components,
  { errors }: Route,
  kind: 'RateLimited' | 'Failure',
): Json {
  const { name, body } = (errors === 'page' ? undefined : errors.schema) ?? {
    name: 'Page',
    body: undefined,
  };
  if (body !== undefined) schemas[name] = schemaOf(body);
  const content =
    body === undefined
      ? { 'text/html': { schema: { type: 'string' } } }
      : { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } };
  const id = `${kind}${name}`;
  responses[id] = {
    ...(kind === 'RateLimited' ? RATE_LIMITED : { description: 'The error.' }),
    content,
  };
  return { $ref: `#/components/responses/${id}` };
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return json;
}
