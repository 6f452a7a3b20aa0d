// Builds the OpenAPI 3.1 document of the Management API from the declarations of its calls.
import { z } from 'zod';
import type { CallRules } from './call.ts';
import { MANAGEMENT_CALLS } from './calls.ts';

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
  const { method, path, summary, scopes, allScopes, currentUserScopes } = call;
  return {
    operationId: `${method.toLowerCase()}${path}`.replaceAll(/[^a-z0-9]+(.)?/gi, (_, next = '') =>
      next.toUpperCase(),
    ),
    summary,
    tags: [tagOf(path)],
    'x-scopes': {
      ...(allScopes === undefined ? { any: scopes } : { all: allScopes }),
      ...(currentUserScopes && { own: currentUserScopes }),
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

// What the parameters of the Management API mean, for the API document. A description in the schema of a query takes
// precedence.

const COMMON: Readonly<Record<string, string>> = {
  actionName: 'Only the action with this name.',
  allow_any_organization: 'Only client grants that allow any organization, or only those that do not.',
  app_type: 'Only applications of these types, separated by commas.',
  audience: 'Only those for the API with this identifier.',
  bounded: 'Whether the search stops after a limited number of users that it has to compare one by one.',
  client_id: 'The client_id of the application.',
  connection: 'Only users of the connection with this name.',
  connection_id: 'The id of the connection.',
  consider_brute_force_enablement: 'Whether the list is empty while brute-force protection is off.',
  consumer: 'Only policies for this kind of consumer.',
  consumer_selector: 'Only policies with this selector of consumers.',
  credential_id: 'The id of the credential.',
  default_for: 'Only client grants that are the default for this group of applications.',
  deployed: 'Only actions that are deployed, or only those that are not.',
  disabled: 'Only those that are disabled, or only those that are not.',
  domain: 'The domain name.',
  domain_alias: 'Only connections with this domain among their aliases.',
  domain_id: 'The id of the domain.',
  email: 'The e-mail address of the user.',
  enabled: 'Only those that are enabled, or only those that are not.',
  enrollment_id: 'The id of the enrolment.',
  external_client_id: 'Only applications with this external client_id; there are none.',
  external_metadata_type:
    'Only applications that registered themselves (`dcr`), or are known by a document of theirs (`cimd`).',
  fields: 'Names of members, separated by commas.',
  force: 'Whether it is deleted although it is in use.',
  from: 'Where a page of a list begins: the `next` of the page before it.',
  grant_id: 'The id of the client grant.',
  grant_ids: 'Only client grants with these ids.',
  hydrate: 'Accepted and ignored.',
  id: 'The id of the resource.',
  identifier: 'The e-mail address, username or phone number of the user.',
  identifiers: 'Only APIs with these identifiers.',
  identity_id: 'The id of the user at the provider.',
  include_client_association_for: 'A client_id, whose association with each organization is added.',
  include_faults: 'Whether the response says why each user, or the job, failed, in a form for programs.',
  include_fields: 'Whether the response has only the members in `fields` (true), or all others (false).',
  include_places: 'Whether each error has the position of its user in the file.',
  include_totals: 'Whether the response is an object with the total and the items, or the items alone.',
  installed: 'Only actions that were installed from a catalogue; there are none.',
  is_enabled: 'Accepted and ignored.',
  is_first_party: 'Only first-party applications, or only third-party ones.',
  is_global: 'Only the global client, or only all others.',
  key: 'The name of the variable.',
  kid: 'The `kid` of the key.',
  language: 'The language, such as `en`.',
  method_id: 'The id of the authentication method.',
  name: 'Only the one with this name.',
  name_filter: 'Only roles whose name contains this text.',
  invitation_id: 'The id of the invitation.',
  owner_id: 'Only roles of the organization with this id.',
  page: 'The number of the page, from 0.',
  per_page: 'How many items a page has.',
  primary_order: 'Accepted and ignored.',
  prompt: 'The name of the prompt.',
  provider: 'The provider.',
  q: 'A search query.',
  rendering_mode: 'Only screens that are rendered in this mode.',
  resource: 'Only policies for this resource.',
  role_id: 'The id of the role.',
  screen: 'The name of the screen.',
  search: 'The search query, under its older name.',
  search_engine: 'The version of the search syntax, `v3`.',
  sort: 'The member by which the list is sorted and the direction, such as `name:1` or `name:-1`.',
  strategy: 'Only connections of these strategies.',
  subject_type: 'Only client grants for this type of subject.',
  synchronous: 'Only flows that run synchronously, or only those that do not.',
  take: 'How many items a page has, where pages begin at `from`.',
  templateName: 'The name of the template.',
  token_id: 'The id of the token.',
  triggerId: 'The id of the trigger.',
  type: 'Only those of this type.',
  user_id: 'The id of the user.',
  version: 'The id of the version.',
};

/** Where a name means something else than in other paths. */
const BY_PATH: Readonly<Record<string, string>> = {
  '/guardian/factors/:name name': 'The name of the factor.',
  '/logs from': 'The id of the log event after which a page begins.',
  '/organizations/name/:name name': 'The name of the organization.',
  '/roles type': 'Accepted and ignored.',
  '/self-service-profiles/:id/custom-text/:language/:page page': 'The name of the page.',
  '/stats/daily from': 'The first day, as YYYYMMDD.',
  '/stats/daily to': 'The last day, as YYYYMMDD.',
  '/users/:id/identities/:provider/:identity_id provider':
    'The provider of the identity, such as `google-oauth2`.',
  '/users/:id/multifactor/:provider provider': 'The provider of the second factors.',
};

/**
 * @param path the path of the call, as it is declared.
 * @returns undefined for a parameter that has no description yet.
 */
const parameterDescription = (path: string, name: string): string | undefined =>
  BY_PATH[`${path} ${name}`] ?? COMMON[name];
