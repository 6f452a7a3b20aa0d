// Builds the user's profile from the claims of a provider: all of them, or those that the connection maps (`attribute_map`).
import { type OpenIdOptions, STANDARD_PROFILE } from '../../records/openid.ts';
import type { ProviderResponse } from './preset.ts';

/** Claims that describe the token, and not the user. */
const PROTOCOL = new Set([
  ...['iss', 'sub', 'aud', 'azp', 'exp', 'iat', 'nbf', 'jti', 'nonce', 'sid', 'auth_time', 'acr', 'amr'],
  ...['at_hash', 'c_hash', 's_hash', 'nonce_supported', 'typ', 'ver', 'aio', 'rh', 'uti', '_claim_names'],
  '_claim_sources',
]);

/** A placeholder in a value of the map. */
const PLACEHOLDER = /\$\{context\.(tokenset|userinfo)\.([^{}]+)\}/g;

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
  const [placeholder] = template.matchAll(PLACEHOLDER);
  if (placeholder !== undefined && placeholder[0] === template) return claimAt(response, placeholder);
  return template.replaceAll(PLACEHOLDER, (...match) => {
    const found = claimAt(response, match);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
  });
}

function claimAt({ claims, userInfo }: ProviderResponse, [, sourceName, path]: readonly unknown[]): unknown {
  const source: Readonly<Record<string, unknown>> = sourceName === 'tokenset' ? claims : userInfo;
  const name = String(path);
  // Namespaced claims have URLs as their names, with dots in them.
  if (Object.hasOwn(source, name)) return source[name];
  let found: unknown = source;
  for (const member of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found;
}
