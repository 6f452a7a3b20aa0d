// Of what a provider says, the user's profile: all of it, or what the connection maps (`attribute_map`).
import { type OpenIdOptions, STANDARD_PROFILE } from '../../records/openid.ts';
import type { ProviderResponse } from './preset.ts';

/** Claims of a token, which say nothing of the user. */
const PROTOCOL = new Set([
  ...['iss', 'sub', 'aud', 'azp', 'exp', 'iat', 'nbf', 'jti', 'nonce', 'sid', 'auth_time', 'acr', 'amr'],
  ...['at_hash', 'c_hash', 's_hash', 'nonce_supported', 'typ', 'ver', 'aio', 'rh', 'uti', '_claim_names'],
  '_claim_sources',
]);

/** A place in a value of the map. */
const PLACE = /\$\{context\.(tokenset|userinfo)\.([^}]+)\}/g;

/** The profile. */
export function profileOf(
  { attribute_map: map }: OpenIdOptions,
  said: ProviderResponse,
): Record<string, unknown> {
  if (map.mapping_mode === 'use_map') return mapped(map.attributes, said);
  // What the ID token says is signed.
  const all = { ...said.userInfo, ...said.claims };
  const isBasic = map.mapping_mode === 'basic_profile';
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => (isBasic ? STANDARD_PROFILE.has(name) : !PROTOCOL.has(name))),
  );
}

function mapped(
  attributes: Readonly<Record<string, unknown>>,
  said: ProviderResponse,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      const found = typeof value === 'string' ? filled(value, said) : value;
      return found === undefined || found === null ? [] : [[name, found]];
    }),
  );
}

/** A value that is one place is of that place's type; places within a text are written into it. */
function filled(template: string, said: ProviderResponse): unknown {
  const [place] = template.matchAll(PLACE);
  if (place !== undefined && place[0] === template) return at(said, place);
  return template.replaceAll(PLACE, (...match) => {
    const found = at(said, match);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
  });
}

function at({ claims, userInfo }: ProviderResponse, [, from, path]: readonly unknown[]): unknown {
  const source: Readonly<Record<string, unknown>> = from === 'tokenset' ? claims : userInfo;
  const name = String(path);
  // Claims of other namespaces are addresses, with dots.
  if (Object.hasOwn(source, name)) return source[name];
  let found: unknown = source;
  for (const member of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found;
}
