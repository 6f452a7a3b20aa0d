// For whom an assertion is (SAML Core §2.5.1.4). Service providers take whatever names them, so nobody may have
// an assertion made that names another: an AuthnRequest is not proof of its Issuer, signed or not.

import type { Client } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import type { ServiceProvider } from './service-provider.ts';

/**
 * The audience of a service provider's assertions: what its addon says; else the issuer of its request, where
 * that can be no other application's.
 * @param issuer of the request; undefined for a login that starts here.
 * @param entityId ours, as the application knows it.
 * @returns undefined when the issuer may be another's: there must be no assertion then.
 */
export async function audienceOf(
  config: Config,
  provider: ServiceProvider,
  issuer: string | undefined,
  entityId: string,
): Promise<string | undefined> {
  if (provider.audience !== undefined) return provider.audience;
  if (issuer === undefined) {
    return `urn:${config.settings().vendor_channel}:${entityId}:${provider.clientId}`;
  }
  return (await isOwnName(config, provider, issuer)) ? issuer : undefined;
}

/**
 * Whether a name can only be this application's. Of one that has an audience it is known what it is called. One
 * that has none may be called anything but what lies at an address of this application and at none of its own.
 */
export async function isOwnName(
  config: Config,
  { clientId, acsUrls }: ServiceProvider,
  name: string,
): Promise<boolean> {
  const origin = originOf(name);
  const isAtHome = origin !== undefined && acsUrls.some((url) => originOf(url) === origin);
  const others = (await config.clients()).filter((client) => client.client_id !== clientId);
  return others.every((other) => {
    const addon = other.addons?.samlp;
    if (addon === undefined) return true;
    if (addon.audience !== undefined) return folded(addon.audience) !== folded(name);
    return isAtHome && !addressesOf(other).some((url) => originOf(url) === origin);
  });
}

function addressesOf({ callbacks, addons }: Client): string[] {
  const { recipient, destination } = addons?.samlp ?? {};
  return [...callbacks, recipient, destination].filter((one) => one !== undefined);
}

function originOf(name: string): string | undefined {
  const url = URL.parse(name);
  return url !== null && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/** Entity IDs are compared as they are (Core §8.3.6); who compares them loosely is not to be fooled, either. */
function folded(name: string): string {
  return name.normalize('NFKC').trim().toLowerCase().replace(/\/+$/, '');
}
