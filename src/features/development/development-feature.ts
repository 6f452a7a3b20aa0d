// The development pages: home, "Try login", inbox. For this machine only, and not in production.

import type { Context } from 'koa';
import { z } from 'zod';
import { declarePage, type Views } from '../../capabilities/pages/views.ts';
import { testProgram } from '../../capabilities/quickstarts/other-snippets.ts';
import { STANDARD_GRANTS, tokenBody } from '../../engine/base/parameter-schemas.ts';
import { type Feature, feature } from '../../engine/provider/feature.ts';
import { type GrantDeclaration, grantTypeOf } from '../../engine/token/tokens.ts';
import { forwardedAddress } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import { isLoopback } from '../../http/loopback.ts';
import { tenantHostOf } from '../../http/server/request-target.ts';
import { parseRouteKey, type RouteDeclaration, type RouteDeclarations } from '../../http/server/router.ts';
import { TRY_LOGIN } from '../../records/clients/clients.ts';
import type { Client, Connection } from '../../records/collections.ts';
import { OWN_COMMAND } from '../../runtime/own-command.ts';
import type { Config } from '../../tenant/config.ts';
import { DOCUMENTS_PATH, documentRoutes } from './development-documents.ts';
import { SCRIPTS_PATH, type ScriptLogDependencies, scriptRoutes } from './development-scripts.ts';
import { type FirstProgram, firstPrograms } from './first-programs.ts';
import { INBOX_PATH, type InboxDependencies, inboxRoutes } from './inbox.ts';
import { TRY_LOGIN_CALLBACK, tryLoginBuiltIns } from './try-login.ts';

// Restricts the development pages to this machine, because they show every code and link that was sent.

/** Restricts routes to requests from this machine, whatever address the server listens on. */
function onThisMachine<D extends { baseUrl: string }>(routes: RouteDeclarations<D>): RouteDeclarations<D> {
  return Object.fromEntries(
    Object.entries(routes).map(([key, route]) => [
      key,
      {
        ...route,
        handle: (deps, ctx, received) => {
          refuseOthers(deps.baseUrl, ctx);
          return route.handle(deps, ctx, received);
        },
      },
    ]),
  );
}

/** @param baseUrl the public origin, the only name the pages answer to. @throws AuthError 404 */
function refuseOthers(baseUrl: string, ctx: Context): void {
  // A foreign name that resolves to this machine must not read the codes (DNS rebinding).
  const { host, isRequested } = tenantHostOf(ctx);
  if (!isRequested || host !== new URL(baseUrl).host) {
    throw new AuthError(404, 'invalid_request', 'There is nothing here.');
  }
  if (!hopsOf(ctx).every(isLoopback)) {
    throw new AuthError(404, 'invalid_request', 'This page is shown on the machine of the server alone.');
  }
}

/**
 * Returns all addresses that a request came through. A tunnel or proxy on this machine connects from loopback.
 * Forwarding headers of any client count here, because they can only deny access.
 */
function hopsOf(ctx: Context): string[] {
  const forwarded = ['X-Forwarded-For', 'X-Real-IP'].flatMap((name) => ctx.get(name).split(','));
  // RFC 7239 §4: not parsed; its presence alone denies.
  const standard = ctx.get('Forwarded') === '' ? [] : ['unknown'];
  const forwardedHops = forwarded
    .map((hop) => forwardedAddress(hop) ?? hop.trim())
    .filter((hop) => hop !== '');
  return [ctx.req.socket.remoteAddress ?? 'unknown', ctx.ip, ...forwardedHops, ...standard];
}

interface DevelopmentDependencies extends InboxDependencies, ScriptLogDependencies {
  baseUrl: string;
  /** The version of Gatehouse, which the page shows. */
  version: string;
  /** The path of the tenant file. */
  tenantFile: string;
  config: Config;
  /** Returns the example's administrator of the console, if there is one. */
  exampleAdministrator(): Promise<{ email: string; password: string; consoleUrl: string } | undefined>;
  views: Views;
  /** For the OpenAPI document. */
  features: ApiDescription['features'];
  /**
   * Makes the OpenAPI document of the Management API, at the first request: that takes far longer than the rest of a
   * start.
   */
  managementOpenApi(): object;
}

const page = { limit: httpLimits.other, cors: 'none', errors: 'page' } as const;

const routes: RouteDeclarations<DevelopmentDependencies> = {
  'GET|HEAD /': { ...page, handle: showHome },
  // "Try login" runs in the browser, as a single-page application.
  'GET|HEAD /dev/callback': { ...page, handle: showTokens },
  'GET|HEAD /openapi.json': { ...page, handle: sendOpenApi },
  'GET|HEAD /api/v2/openapi.json': { ...page, handle: sendManagementOpenApi },
  ...inboxRoutes,
  ...scriptRoutes,
  ...documentRoutes,
};

type DevelopmentNeeds = Omit<DevelopmentDependencies, 'config'> & {
  /** The page lists what the tenant file declares, without what is built in. */
  declaredConfig: Config;
  isForThisMachine: boolean;
};

export const development = feature<DevelopmentNeeds, unknown, DevelopmentDependencies>({
  name: 'development',
  hasResources: true,
  builtIns: tryLoginBuiltIns,
  given: ({ declaredConfig, isForThisMachine, ...needs }) =>
    isForThisMachine ? { ...needs, config: declaredConfig } : undefined,
  routes: onThisMachine(routes),
});

/** What the script of "Try login" is told. */
interface TryLogin {
  clientId: string;
  callback: string;
}

function tryLoginOf({ baseUrl }: DevelopmentDependencies): TryLogin {
  return { clientId: TRY_LOGIN, callback: `${baseUrl}${TRY_LOGIN_CALLBACK}` };
}

interface DevelopmentHomeModel {
  baseUrl: string;
  version: string;
  clients: readonly Pick<Client, 'client_id' | 'name' | 'app_type'>[];
  programs: readonly FirstProgram[];
  /** Writes the tenant file of one application. */
  initCommand: string;
  /** The program of a test. */
  test: string;
  connections: readonly Pick<Connection, 'name' | 'strategy'>[];
  tryLogin: TryLogin;
  inboxUrl: string;
  scriptsUrl: string;
  documentsUrl: string;
  administrator?: { email: string; password: string; consoleUrl: string };
}

export const DEVELOPMENT_HOME_PAGE = declarePage<DevelopmentHomeModel>('development/home');

async function showHome(deps: DevelopmentDependencies, ctx: Context): Promise<void> {
  const { baseUrl, version, config, views } = deps;
  const [clients, connections, administrator] = await Promise.all([
    config.clients(),
    config.connections(),
    deps.exampleAdministrator(),
  ]);
  const model = {
    baseUrl,
    version,
    clients,
    programs: firstPrograms(clients, `${baseUrl}/`),
    initCommand: `${OWN_COMMAND} init`,
    test: testProgram(deps.tenantFile),
    connections,
    tryLogin: tryLoginOf(deps),
    inboxUrl: INBOX_PATH,
    scriptsUrl: SCRIPTS_PATH,
    documentsUrl: DOCUMENTS_PATH,
    ...(administrator && { administrator }),
  };
  await views.page(ctx, DEVELOPMENT_HOME_PAGE, model);
}

interface DevelopmentTokensModel {
  tryLogin: TryLogin;
}

export const DEVELOPMENT_TOKENS_PAGE = declarePage<DevelopmentTokensModel>('development/tokens');

function showTokens(deps: DevelopmentDependencies, ctx: Context): Promise<void> {
  return deps.views.page(ctx, DEVELOPMENT_TOKENS_PAGE, { tryLogin: tryLoginOf(deps) });
}

function sendOpenApi({ baseUrl, version, config, features }: DevelopmentDependencies, ctx: Context): void {
  const { vendor_host: vendorHost } = config.settings();
  ctx.set('Cache-Control', 'no-store');
  ctx.body = openApi({ version, baseUrl, vendorHost, features });
}

function sendManagementOpenApi({ managementOpenApi }: DevelopmentDependencies, ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = managementOpenApi();
}

// The OpenAPI 3.1 document, made from the features' declarations of their routes.

interface ApiDescription {
  version: string;
  baseUrl: string;
  /** The tenant's vendor host, for its grant types. */
  vendorHost: string;
  features: readonly Feature<never>[];
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
  const body = path === '/oauth/token' ? tokenBodies(api) : (route.body ?? route.uncheckedBody);
  const limited = [limit, ...furtherLimits].filter((one) => one !== 'unlimited');
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
      'x-rate-limit': limited.map(({ name, per, capacity, perMinute }) => {
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
