// The kinds of applications, and the defaults of a new one.
import type { Kind } from '../../../capabilities/quickstarts/snippets.ts';

/** What can be created by a click. */
export const KINDS: readonly Kind[] = ['spa', 'regular_web', 'native', 'non_interactive'];

/** Whether users log in with it. */
export const hasUsers = (kind: Kind): boolean => kind !== 'non_interactive' && kind !== 'resource_server';

/** @param callback where its users return to; undefined for one without users. */
export function newApplication(kind: Kind, name: string, callback: string | undefined): object {
  const isPublic = kind === 'spa' || kind === 'native';
  const origin = callback === undefined ? undefined : originOf(callback);
  return {
    name,
    app_type: kind,
    oidc_conformant: true,
    token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_post',
    grant_types: hasUsers(kind) ? ['authorization_code', 'refresh_token'] : ['client_credentials'],
    ...(callback !== undefined && { callbacks: [callback] }),
    ...(origin !== undefined && { allowed_logout_urls: [origin] }),
    ...(origin !== undefined && kind === 'spa' && { web_origins: [origin] }),
  };
}

/** Returns the origin of a browser application; undefined when the address is not http or https. */
function originOf(address: string): string | undefined {
  const url = URL.parse(address);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? url.origin : undefined;
}

export function kindOf(type: unknown): Kind {
  return type === 'resource_server' ? type : (KINDS.find((kind) => kind === type) ?? 'regular_web');
}
