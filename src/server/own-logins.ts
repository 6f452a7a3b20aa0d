// The logins that the server requests of its own engine (for SAML, devices, the account page, the console), and their
// redirect URIs.

import type { CheckRequest } from '../engine/authorize/authorize.ts';
import { ownCallbacks } from '../engine/client/own-callbacks.ts';
import { accountCallbacks } from '../features/account/page/callbacks.ts';
import { tryCallbacks, tryLogins } from '../features/console/applications/try-logins.ts';
import { consoleCallbacks } from '../features/console/callbacks.ts';
import { type DelegatedLoginDependencies, delegatedLogins } from '../features/flow/delegated-login.ts';
import { approvalCallbacks } from '../features/grants/ciba/callbacks.ts';
import { deviceCallbacks } from '../features/grants/device/callbacks.ts';
import { samlCallbacks } from '../features/saml/callbacks.ts';

/**
 * Makes the delegated logins of a tenant.
 * @param origins `baseUrl`, and `consoleUrl`, which is the same or an origin of the console's own.
 */
export function ownLogins(
  { baseUrl, consoleUrl }: { baseUrl: string; consoleUrl: string },
  deps: Omit<DelegatedLoginDependencies, 'purpose' | 'callbacks'>,
) {
  const kinds = {
    saml: samlCallbacks(baseUrl),
    device: deviceCallbacks(baseUrl),
    approval: approvalCallbacks(baseUrl),
    account: accountCallbacks(baseUrl),
    console: consoleCallbacks(consoleUrl),
    tried: tryCallbacks(consoleUrl),
  };
  const logins = {
    delegatedLogins: delegatedLogins({ ...deps, purpose: 'internal_login', callbacks: kinds.saml }),
    deviceLogins: delegatedLogins({ ...deps, purpose: 'device_login', callbacks: kinds.device }),
    approvalLogins: delegatedLogins({ ...deps, purpose: 'approval_login', callbacks: kinds.approval }),
    accountLogins: delegatedLogins({ ...deps, purpose: 'account_login', callbacks: kinds.account }),
    consoleLogins: delegatedLogins({ ...deps, purpose: 'console_login', callbacks: kinds.console }),
    tryLogins: tryLogins({ ...deps, callbacks: kinds.tried }),
  };
  const checkRequest: CheckRequest = async (query) => {
    for (const one of Object.values(logins)) await one.check(query);
  };
  return { ownCallbacks: ownCallbacks(Object.values(kinds)), checkRequest, logins };
}
