// Combines a preset and a connection's options into the options of an OAuth 2.0 connection.
import type { Connection } from '../../../records/collections.ts';
import { type SocialOptions, socialOptionsSchema } from '../../../records/connections/social.ts';
import { type OAuth2Options, oauth2OptionsSchema } from '../../../records/connections/upstream.ts';
import { upstreamFault } from '../redirect.ts';
import type { SocialPreset } from './preset.ts';

export interface SocialConnection {
  oauth2: OAuth2Options;
  /** The scopes that the connection requests, without those that the application adds. */
  scopes: readonly string[];
  clientId: string;
  clientSecret: string;
  /** URL of the profile endpoint. */
  userInfo: string;
}

/**
 * @throws AuthError by {@link upstreamFault} if it has no client id or secret. Tenants exported from the hosted service
 *   have such connections, which used the service's own client.
 */
export function socialConnection(
  preset: SocialPreset,
  { options }: Pick<Connection, 'options'>,
): SocialConnection {
  const settings = socialOptionsSchema.parse(options);
  const { client_id: clientId, client_secret: clientSecret } = settings;
  if (clientId === '' || clientSecret === '') {
    throw upstreamFault(
      'invalid_request',
      `The connection has no ${clientId === '' ? 'client_id' : 'client_secret'} of ${preset.displayName}.`,
    );
  }
  const scopes = scopesOf(preset, settings);
  const tokenURL = settings.tokenURL ?? preset.token;
  const oauth2 = oauth2OptionsSchema.parse({
    set_user_root_attributes: settings.set_user_root_attributes,
    non_persistent_attrs: settings.non_persistent_attrs,
    upstream_params: settings.upstream_params,
    authorizationURL: settings.authorizationURL ?? preset.authorization,
    tokenURL,
    client_id: clientId,
    ...(preset.basic ? { customHeaders: basic(clientId, clientSecret) } : { client_secret: clientSecret }),
    pkce_enabled: preset.pkce ?? false,
    // Each of these providers takes spaces.
    useOauthSpecScope: true,
  });
  return {
    oauth2: { ...oauth2, scope: scopes },
    scopes,
    clientId,
    clientSecret,
    userInfo: userInfoOf(preset, settings, tokenURL),
  };
}

/**
 * Returns the options for exchanging refresh tokens. The preset's separate endpoint is used only with the preset's own token
 * endpoint: a connection with a `tokenURL` of its own uses that for both.
 */
export function refreshOptions(
  { token, refresh }: SocialPreset,
  { oauth2 }: SocialConnection,
): OAuth2Options {
  return refresh !== undefined && oauth2.tokenURL === token ? { ...oauth2, tokenURL: refresh } : oauth2;
}

/**
 * Returns the URL of the profile endpoint. An access token of another host's token endpoint is not sent to the preset's profile
 * endpoint: the connection then needs a `userInfoURL`.
 */
function userInfoOf(preset: SocialPreset, { userInfoURL }: SocialOptions, tokenURL: string): string {
  if (userInfoURL !== undefined) return userInfoURL;
  if (new URL(tokenURL).origin === new URL(preset.token).origin) return preset.userInfo;
  throw upstreamFault('invalid_request', 'The connection has a tokenURL of its own, but no userInfoURL.');
}

function scopesOf(
  { required = [], scope: defaults = [], scopes = {} }: SocialPreset,
  settings: SocialOptions,
) {
  const enabled = Object.entries(scopes).flatMap(([option, scope]) =>
    settings[option] === true ? [scope] : [],
  );
  // Exported tenants also have the names of options in `scope`.
  const listed = scopeNames(settings.scope).map(
    (name) => (Object.hasOwn(scopes, name) ? scopes[name] : name) ?? name,
  );
  const requested = [...listed, ...scopeNames(settings.freeform_scopes), ...enabled];
  return [...new Set([...required, ...(requested.length > 0 ? requested : defaults)])];
}

function scopeNames(scope: string | readonly string[]): string[] {
  const all = typeof scope === 'string' ? scope.split(/[\s,]+/) : scope;
  return all.map((one) => one.trim()).filter((one) => one !== '');
}

/** Returns the header for HTTP Basic; both values are form-encoded first (RFC 6749 §2.3.1). */
function basic(clientId: string, clientSecret: string) {
  const [id, secret] = [clientId, clientSecret].map((text) =>
    new URLSearchParams([['', text]]).toString().slice(1),
  );
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}
