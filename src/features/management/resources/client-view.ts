// A client as the Management API shows it.
import type { Client } from '../../../records/collections.ts';
import type { Caller } from '../call.ts';
import { requestObjectKeys } from '../client-keys.ts';
import { credentialIds, KEY_SCOPES, KEYS } from './client-authentication.ts';

/** Members of a new client that the body does not set, and of a client of earlier releases that lacks them. */
export const DEFAULTS = {
  is_first_party: true,
  oidc_conformant: false,
  sso_disabled: false,
  cross_origin_authentication: false,
  custom_login_page_on: true,
} as const;

/** Members of `session_transfer` that apply if it does not have them. */
const TRANSFER_DEFAULTS = {
  can_create_session_transfer_token: false,
  enforce_cascade_revocation: true,
  allowed_authentication_methods: [],
  enforce_device_binding: 'ip',
  allow_refresh_token: false,
  enforce_online_refresh_tokens: true,
};

/**
 * Returns members that apply though the client does not have them. Tools compare them with what they would set; a
 * missing one would be a change in each of their plans.
 */
function inForce({
  refresh_token: refresh,
  session_transfer: transfer,
  oidc_logout: logout,
}: Client): object {
  const isEndless = refresh?.expiration_type === 'non-expiring';
  return {
    ...(refresh && {
      refresh_token: {
        infinite_token_lifetime: isEndless,
        infinite_idle_token_lifetime: isEndless,
        ...refresh,
      },
    }),
    ...(transfer && { session_transfer: { ...TRANSFER_DEFAULTS, ...transfer } }),
    ...(logout && { oidc_logout: logoutView(logout) }),
  };
}

/** Without the selected initiators where all are meant. */
function logoutView({
  backchannel_logout_initiators: initiators,
  ...logout
}: NonNullable<Client['oidc_logout']>) {
  const { selected_initiators: _, ...shown } = initiators ?? {};
  return {
    ...logout,
    ...(initiators && { backchannel_logout_initiators: shown.mode === 'all' ? shown : initiators }),
  };
}

/** Returns a client as the API shows it. */
export function clientView(client: Client, caller: Pick<Caller, 'scopes'>, tenant: string): object {
  const { id: _, credentials: _waiting, ...members } = client;
  const mayReadKeys = KEY_SCOPES.some((scope) => caller.scopes.has(scope));
  const visible = Object.fromEntries(
    Object.entries(members).filter(([name]) => mayReadKeys || !(KEYS as readonly string[]).includes(name)),
  );
  return {
    tenant,
    global: false,
    ...DEFAULTS,
    is_token_endpoint_ip_header_trusted: false,
    ...visible,
    ...inForce(client),
    callbacks: client.callbacks,
    jwt_configuration: { secret_encoded: false, ...client.jwt_configuration },
    ...('client_authentication_methods' in visible
      ? { client_authentication_methods: credentialIds(client) }
      : {}),
    ...(client.signed_request_object
      ? {
          signed_request_object: {
            ...client.signed_request_object,
            credentials: requestObjectKeys(client).map(({ id }) => ({ id })),
          },
        }
      : {}),
  };
}
