// A preset and a connection's options, in the terms of OAuth 2.0.
import type { Connection } from '../../records/collections.ts';
import { type OAuth2Options, oauth2OptionsSchema } from '../../records/oauth2.ts';
import { type SocialOptions, socialOptionsSchema } from '../../records/social.ts';
import { upstreamFault } from '../redirect.ts';
import type { SocialPreset } from './preset.ts';

/** A connection to a provider, ready to be used. */
export interface SocialConnection {
  oauth2: OAuth2Options;
  /** All that the connection asks for itself. */
  scopes: readonly string[];
  clientId: string;
  clientSecret: string;
  userInfo: string;
}

/**
 * What a connection means.
 * @throws AuthError by {@link upstreamFault} for one that no user can log in by: exports of the hosted service have
 *   connections without a client, which it lends its own.
 */
export function socialConnection(
  preset: SocialPreset,
  { options }: Pick<Connection, 'options'>,
): SocialConnection {
  const given = socialOptionsSchema.parse(options);
  const { client_id: clientId, client_secret: clientSecret } = given;
  if (clientId === '' || clientSecret === '') {
    throw upstreamFault(
      'invalid_request',
      `The connection has no ${clientId === '' ? 'client_id' : 'client_secret'} of ${preset.displayName}.`,
    );
  }
  const scopes = scopesOf(preset, given);
  const tokenURL = given.tokenURL ?? preset.token;
  const oauth2 = oauth2OptionsSchema.parse({
    set_user_root_attributes: given.set_user_root_attributes,
    non_persistent_attrs: given.non_persistent_attrs,
    upstream_params: given.upstream_params,
    authorizationURL: given.authorizationURL ?? preset.authorization,
    tokenURL,
    client_id: clientId,
    ...(preset.basic ? { customHeaders: basic(clientId, clientSecret) } : { client_secret: clientSecret }),
    pkce_enabled: preset.pkce ?? false,
  });
  return {
    oauth2: { ...oauth2, scope: scopes },
    scopes,
    clientId,
    clientSecret,
    userInfo: userInfoOf(preset, given, tokenURL),
  };
}

/** The connection as refresh tokens are exchanged: a provider's software elsewhere has one endpoint for both. */
export function refreshOptions(
  { token, refresh }: SocialPreset,
  { oauth2 }: SocialConnection,
): OAuth2Options {
  return refresh !== undefined && oauth2.tokenURL === token ? { ...oauth2, tokenURL: refresh } : oauth2;
}

/** Where the profile is. A token of one host is not shown to another that the connection does not name. */
function userInfoOf(preset: SocialPreset, { userInfoURL }: SocialOptions, tokenURL: string): string {
  if (userInfoURL !== undefined) return userInfoURL;
  if (new URL(tokenURL).origin === new URL(preset.token).origin) return preset.userInfo;
  throw upstreamFault('invalid_request', 'The connection has a tokenURL of its own, but no userInfoURL.');
}

function scopesOf({ required = [], scope: usual = [], scopes = {} }: SocialPreset, given: SocialOptions) {
  const chosen = Object.entries(scopes).flatMap(([option, scope]) => (given[option] === true ? [scope] : []));
  // Exports have a scope by the option's name, too.
  const named = namesIn(given.scope).map(
    (name) => (Object.hasOwn(scopes, name) ? scopes[name] : name) ?? name,
  );
  const asked = [...named, ...namesIn(given.freeform_scopes), ...chosen];
  return [...new Set([...required, ...(asked.length > 0 ? asked : usual)])];
}

function namesIn(scope: string | readonly string[]): string[] {
  const all = typeof scope === 'string' ? scope.split(/[\s,]+/) : scope;
  return all.map((one) => one.trim()).filter((one) => one !== '');
}

/** RFC 6749 §2.3.1: both are encoded as in a form first. */
function basic(clientId: string, clientSecret: string) {
  const [id, secret] = [clientId, clientSecret].map((text) =>
    new URLSearchParams([['', text]]).toString().slice(1),
  );
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}
