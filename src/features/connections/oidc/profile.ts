// Builds the user's profile from the claims of a provider: all of them, or those that the connection maps (`attribute_map`).
import { type OpenIdOptions, STANDARD_PROFILE } from '../../../records/openid.ts';
import type { ProviderResponse } from './preset.ts';

/** Claims that describe the token, and not the user. */
const PROTOCOL = new Set([
  ...['iss', 'sub', 'aud', 'azp', 'exp', 'iat', 'nbf', 'jti', 'nonce', 'sid', 'auth_time', 'acr', 'amr'],
  ...['at_hash', 'c_hash', 's_hash', 'nonce_supported', 'typ', 'ver', 'aio', 'rh', 'uti', '_claim_names'],
  '_claim_sources',
]);

/** A placeholder in a value of the map. */
const PLACEHOLDER = /\$\{([^{}]+)\}/g;

/** Returns the profile that a connection's `attribute_map` makes of a provider's claims. */
export function profileOf(
  { attribute_map: map }: OpenIdOptions,
  response: ProviderResponse,
): Record<string, unknown> {
  if (map.mapping_mode === 'use_map') return mapClaims(map.attributes, response);
  // The ID token is signed, so its claims take precedence.
  const all = { ...response.userInfo, ...response.claims };
  const isBasic = map.mapping_mode === 'basic_profile';
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => (isBasic ? STANDARD_PROFILE.has(name) : !PROTOCOL.has(name))),
  );
}

function mapClaims(
  attributes: Readonly<Record<string, unknown>>,
  response: ProviderResponse,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      const found = typeof value === 'string' ? fillTemplate(value, response) : value;
      return found === undefined || found === null ? [] : [[name, found]];
    }),
  );
}

/**
 * Replaces the placeholders of a value. A value that consists of one placeholder becomes the claim with its own type; within
 * a text, claims are inserted as texts.
 */
function fillTemplate(template: string, response: ProviderResponse): unknown {
  const [[placeholder, claim = ''] = []] = template.matchAll(PLACEHOLDER);
  if (placeholder === template && isClaim(claim)) return claimAt(response, claim);
  return template.replaceAll(PLACEHOLDER, (all, name: string) => {
    if (!isClaim(name)) return all;
    const found = claimAt(response, name);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
  });
}

const [FROM_TOKEN, FROM_USERINFO] = ['context.tokenset.', 'context.userinfo.'];

const isClaim = (text: string): boolean =>
  [FROM_TOKEN, FROM_USERINFO].some((source) => text.startsWith(source) && text.length > source.length);

/** @param claim the content of a placeholder. */
function claimAt({ claims, userInfo }: ProviderResponse, claim: string): unknown {
  const isOfToken = claim.startsWith(FROM_TOKEN);
  const source: Readonly<Record<string, unknown>> = isOfToken ? claims : userInfo;
  const name = claim.slice((isOfToken ? FROM_TOKEN : FROM_USERINFO).length);
  // Namespaced claims have URLs as their names, with dots in them.
  if (Object.hasOwn(source, name)) return source[name];
  let found: unknown = source;
  for (const member of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found;
}
