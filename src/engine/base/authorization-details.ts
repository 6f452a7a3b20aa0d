// Rich authorization requests (RFC 9396): `authorization_details` of types that the requested API has registered.
// The user consents to each request anew: an earlier consent does not cover the next one.
// docs/understand/decisions/authorize.md#authorization_details-need-consent-at-each-request
import { isDeepStrictEqual } from 'node:util';
import {
  type AccessToken,
  type ClientCredentials,
  errors,
  type KoaContextWithOIDC,
  type UnknownObject,
} from 'oidc-provider';
import { z } from 'zod';
import { AuthError } from '../../http/errors.ts';
import { visibleText } from '../../records/clients/third-parties.ts';
import type { ResourceServer as Api } from '../../records/collections.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { Config } from '../../tenant/config.ts';
import { requestedAudience, toAudience } from './request-extensions.ts';

/** One authorization detail; its members beside `type` are the API's. */
export type AuthorizationDetail = { type: string } & UnknownObject;

/** A member of a detail as a person reads it: the path of names, and the value. */
export interface DetailLine {
  name: string;
  value: string;
}

/**
 * Returns a detail, or a part of one, with all its texts visible: with characters that are not seen, or reorder others, an
 * application could have a user agree to something else than they read. Line breaks are spaces.
 */
export function visibleDetail<T>(detail: T): T {
  const visible = (value: unknown): unknown => {
    if (typeof value === 'string') return visibleText(value.replaceAll(/[\t\r\n]+/g, ' '));
    if (Array.isArray(value)) return value.map(visible);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [visibleText(name), visible(one)]));
  };
  // A copy of the same form.
  return visible(detail) as T;
}

/** Lists everything in a detail but its type. */
export function detailLines({ type: _, ...members }: AuthorizationDetail): DetailLine[] {
  return linesOf(members, []);
}

function linesOf(value: unknown, path: readonly string[]): DetailLine[] {
  if (typeof value !== 'object' || value === null) return [{ name: path.join(' › '), value: String(value) }];
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) {
    return [{ name: path.join(' › '), value: value.join(', ') }];
  }
  // It may mean something by being there.
  if (path.length > 0 && Object.keys(value).length === 0) return [{ name: path.join(' › '), value: '{}' }];
  return Object.entries(value).flatMap(([name, one]) =>
    linesOf(one, [...path, Array.isArray(value) ? String(Number(name) + 1) : name]),
  );
}

/** The most lines of all details of a request, and the most characters of a name and a value: what a person can read. */
const MAX_LINES = 60;
const MAX_NAME = 200;
const MAX_VALUE = 1_000;

// docs/understand/decisions/authorize.md#authorization_details-need-consent-at-each-request
function isReadable(details: readonly AuthorizationDetail[]): boolean {
  if (details.length > MAX_LINES) return false;
  const lines = details.flatMap((one) => [{ name: one.type, value: '' }, ...detailLines(one)]);
  return (
    lines.length <= MAX_LINES &&
    lines.every(({ name, value }) => name.length <= MAX_NAME && value.length <= MAX_VALUE)
  );
}

/** The routes of requests whose details a page can show to the user. */
const ROUTES_WITH_CONSENT = ['authorization', 'pushed_authorization_request'];

/** Returns the details in a parameter. @param parameter as the engine has checked it. */
export function detailsIn(parameter: unknown): AuthorizationDetail[] {
  return typeof parameter === 'string' && parameter !== ''
    ? (JSON.parse(parameter) as AuthorizationDetail[])
    : [];
}

/** The engine's configuration of types: those that any API has registered. */
export type DetailTypes = Record<
  string,
  { validate(ctx: KoaContextWithOIDC, detail: AuthorizationDetail): Promise<void> }
>;

/** Returns the engine's configuration of types for the APIs as they are now. */
export function detailTypes(config: Config): DetailTypes {
  // All details of a request are looked at with the first of them.
  const readable = new WeakMap<object, boolean>();
  const isRequestReadable = (oidc: KoaContextWithOIDC['oidc']) => {
    const known = readable.get(oidc) ?? isReadable(detailsIn(oidc.params?.authorization_details));
    readable.set(oidc, known);
    return known;
  };
  const validate = async ({ oidc }: KoaContextWithOIDC, detail: AuthorizationDetail) => {
    const { type } = detail;
    // At the token endpoint the granted details decide (detailsOfToken).
    if (oidc.route === 'token') return;
    if (!ROUTES_WITH_CONSENT.includes(oidc.route)) throw invalid('they cannot be asked for here');
    if (isDeep(detail)) throw invalid('they are nested too deep');
    if (!isRequestReadable(oidc)) throw invalid(TOO_MUCH);
    const audience = requestedAudience(oidc.params) ?? config.settings().tenant.default_audience;
    const api = audience === undefined ? undefined : await config.resourceServer(audience);
    if (!hasType(api, type)) throw invalid(`the API has no type ${type}`);
  };
  return Object.fromEntries([...config.authorizationDetailsTypes()].map((type) => [type, { validate }]));
}

const TOO_MUCH = 'they are more than a person can read';

/** The most characters of details that are kept while a user is asked by CIBA. */
const MAX_LENGTH = 4_000;

/**
 * Verifies the details of a CIBA request by the rules of /authorize.
 * @param audience the identifier of the requested API, or of the tenant's default one.
 * @throws AuthError 400 `invalid_authorization_details` (RFC 9396 §5), `invalid_request` for an empty list.
 */
export async function requestedDetails(
  config: Pick<Config, 'resourceServer'>,
  audience: string | undefined,
  parameter: string,
): Promise<AuthorizationDetail[]> {
  const invalidDetails = (reason: string) =>
    new AuthError(400, 'invalid_authorization_details', `authorization_details are invalid: ${reason}`);
  const parsed = DETAILS.safeParse(jsonOf(parameter));
  if (!parsed.success) throw invalidDetails('they are no list of objects with a type');
  if (parsed.data.length === 0)
    throw new AuthError(400, 'invalid_request', 'authorization_details must not be empty');
  if (parameter.length > MAX_LENGTH) throw invalidDetails('they are too long');
  const api = audience === undefined ? undefined : await config.resourceServer(audience);
  // Before the lines are made, which come of each level.
  if (parsed.data.some((detail) => isDeep(detail))) throw invalidDetails('they are nested too deep');
  if (!isReadable(parsed.data)) throw invalidDetails(TOO_MUCH);
  for (const detail of parsed.data) {
    if (!hasType(api, detail.type)) throw invalidDetails(`the API has no type ${detail.type.slice(0, 100)}`);
  }
  return parsed.data;
}

const texts = z.array(z.string().min(1)).optional();

/** RFC 9396 §2.2, as the engine reads them. */
const DETAILS = z.array(
  z.looseObject({
    type: z.string().min(1),
    locations: texts,
    actions: texts,
    datatypes: texts,
    identifier: z.string().min(1).optional(),
    privileges: texts,
  }),
);

/** The most levels of nesting: more than a user could read on a page. */
const MAX_DEPTH = 10;

function isDeep(value: unknown, left = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left === 0 || Object.values(value).some((one) => isDeep(one, left - 1));
}

function hasType(api: Api | undefined, type: string): boolean {
  return api?.authorization_details?.some((one) => one.type === type) === true;
}

export function richAuthorizationRequests(config: Config) {
  return {
    enabled: true,
    // Replaced before each request by the types of that moment.
    types: {},
    authorizationDetailsForGrantSource: detailsOfCode,
    authorizationDetailsForAccessToken: detailsOfToken(config),
    authorizationDetailsForIntrospection: () => undefined,
  } as const;
}

/** Returns the details of a code: all that the user has allowed. */
function detailsOfCode({ oidc }: KoaContextWithOIDC): AuthorizationDetail[] | undefined {
  return nonEmpty(detailsIn(oidc.params?.authorization_details));
}

/**
 * Returns the details of an access token: those granted, or the requested ones of them (RFC 9396 §6.1), as far as
 * the API still has their types.
 */
function detailsOfToken(
  config: Config,
): (
  ctx: KoaContextWithOIDC,
  token: AccessToken | ClientCredentials,
  source?: object,
) => Promise<AuthorizationDetail[] | undefined> {
  return async ({ oidc }, token, source) => {
    const resource = token.resourceServer?.identifier();
    const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
    const requested = detailsIn(oidc.params?.authorization_details);
    if (source === undefined)
      return nonEmpty(await detailsOfClient(config, String(token.clientId), api, requested));
    const granted = grantedDetails(source);
    refuseNotGranted(requested, granted);
    // The details were allowed for the API of the authorization request, not for another one that the refresh token
    // may be used for.
    if (resource !== undefined && !isFor(source, resource)) return undefined;
    return nonEmpty((requested.length > 0 ? requested : granted).filter(({ type }) => hasType(api, type)));
  };
}

function isFor(source: object, resource: string): boolean {
  const { resource: granted } = source as { resource?: string | readonly string[] };
  return granted === undefined || [granted].flat().includes(resource);
}

function grantedDetails(source: object): AuthorizationDetail[] {
  return (source as { rar?: AuthorizationDetail[] }).rar ?? [];
}

function refuseNotGranted(requested: readonly unknown[], granted: readonly AuthorizationDetail[]): void {
  if (requested.every((one) => granted.some((other) => isDeepStrictEqual(one, other)))) return;
  throw invalid('they go beyond what was granted');
}

/**
 * Verifies that a token request asks only for details that were granted (RFC 9396 §6.1).
 * @param parameter as received.
 * @throws errors.InvalidAuthorizationDetails when it asks for others.
 */
export function checkNarrowing(parameter: string, source: object): void {
  const requested = jsonOf(parameter);
  if (requested === undefined) throw invalid('they are no JSON');
  if (!Array.isArray(requested)) throw invalid('they are no list');
  refuseNotGranted(requested, grantedDetails(source));
}

/** Verifies the details that a client asks for itself: its client grant has to have their types. */
async function detailsOfClient(
  config: Config,
  clientId: string,
  api: Api | undefined,
  requested: AuthorizationDetail[],
): Promise<AuthorizationDetail[]> {
  const grant = api && (await config.clientGrant(clientId, api.identifier));
  for (const { type } of requested) {
    const isGranted = grant?.authorization_details_types?.includes(type) === true;
    if (!isGranted || !hasType(api, type)) throw invalid(`the client has no grant for the type ${type}`);
  }
  return requested;
}

const nonEmpty = (details: AuthorizationDetail[]) => (details.length > 0 ? details : undefined);

/** RFC 9396 §5. */
function invalid(reason: string): Error {
  return new errors.InvalidAuthorizationDetails(`authorization_details are invalid: ${reason}`);
}
